"""What scheduling tells the world: evictions by rule and by name, and the metrics of both."""

import re
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.services.server import YardServer, until

HOLDS = """version: v4
jobs:
  hold:
    script: sleep {seconds}
    resource: {{cpu: {{cores: {cores}}}}}
    policy: {{timeout: {{execute: {limit}}}}}
"""


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YardServer]:
    """A node of two cores; group chem may evict what group bio runs."""
    server = YardServer(tmp_path_factory.mktemp("scheduling"), {"node-cores": 2}).start()
    configured = {
        "scheduler.preemption.enabled": True,
        "scheduler.preemption.minRuntime": 0,
        "workflow.killGrace": "1s",
    }
    assert server.ask("PATCH", "/v4/admin/centralconfig", {"values": configured}).status == 200
    server.ask("PATCH", "/v4/accounts/bio", {})
    body = {"priority": 7, "updatePriority": True, "addPreemptIds": ["bio"]}
    assert server.ask("PATCH", "/v4/accounts/chem", body).status == 200
    yield server
    assert server.stop() == 0
    assert "Traceback" not in server.errors.read_text()


def start(
    server: YardServer, group: str, *, cores: int = 2, limit: str = "1h", seconds: int = 600,
    **fields: Any,
) -> str:  # fmt: skip
    """Start a job that sleeps; its workflow."""
    body = {"rawSpecification": HOLDS.format(cores=cores, limit=limit, seconds=seconds)} | fields
    reply = server.ask("POST", "/v4/workflows", body, {"Logyard-Group": group})
    assert reply.status == 200, reply.body
    return str(reply.json["id"])


def lines(server: YardServer, workflow: str) -> list[str]:
    """What happened in a workflow, in sentences."""
    found = server.get("/v4/events:poll", workflow=workflow, sentences=True, limit=1000)
    return [one["logyardmessage"] for one in found["events"]]


def await_line(server: YardServer, workflow: str, part: str) -> str:
    """Wait until something is told of a workflow."""
    return until(lambda: next((one for one in lines(server, workflow) if part in one), None))


def metric(server: YardServer, name: str) -> float | None:
    """The value of a metric, labels included in its name; None where it has none."""
    text = server.ask("GET", "/metrics").body.decode()
    found = re.search(rf"^logyard_{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else None


def test_an_eviction_by_rule_and_its_metrics(server: YardServer) -> None:
    low = start(server, "bio", preemptible=True)
    await_line(server, low, "runs")
    high = start(server, "chem")
    told = await_line(server, high, "preempted ")
    assert re.fullmatch(
        rf"preempted {low}/hold \(ran .+, priority gap 7\.0\); starts on node1 once there is room",
        told,
    )
    assert re.search(rf"preempted by {high}/hold \(ran ", await_line(server, low, "preempted by"))
    await_line(server, high, "runs")
    await_line(server, low, "queues again: it was preempted")
    promised = await_line(server, low, "head of the queue: promised at ")
    assert promised.endswith(" on node1")
    assert metric(server, 'scheduler_placements_total{kind="preempting"}') == 1
    assert metric(server, 'scheduler_placements_total{kind="direct"}') == 1
    assert metric(server, 'scheduler_preemptions_total{outcome="preempted"}') == 1
    assert metric(server, "scheduler_preemption_blocked_seconds_count") == 1
    assert metric(server, "scheduler_reservations_held") == 1
    wait = metric(server, "scheduler_head_predicted_wait_seconds")
    assert wait is not None and 0 < wait <= 3601
    assert metric(server, "scheduler_ticks_total" + '{outcome="events",trigger="command"}')
    kinds = {
        one["eventType"].removeprefix("STAGE_EVENT_TYPE_")
        for flow in (low, high)
        for one in server.get(f"/v4/workflows/{flow}:activity", pageSize=100)["events"]
    }
    assert {"PREEMPTED", "PREEMPT_INITIATED", "RESERVATION_HELD", "PRIORITY_SET"} <= kinds


def test_rules_that_stand_in_the_way_are_counted(server: YardServer) -> None:
    low = start(server, "bio", preemptible=True)
    await_line(server, low, "runs")
    other = start(server, "phys")
    head = await_line(server, other, "head of the queue: ")
    assert head
    assert metric(server, 'scheduler_preemption_misses_total{rule="gap"}')
    changed = {"values": {"scheduler.preemption.priorityGap": 20}}
    assert server.ask("PATCH", "/v4/admin/centralconfig", changed).status == 200
    start(server, "chem")

    turns = count()

    def near() -> float | None:
        # A look is due every few seconds, and is made when a turn is.
        body = {"priority": next(turns), "updatePriority": True}
        server.ask("PATCH", "/v4/accounts/other", body)
        return metric(server, "scheduler_preemption_near_miss_gap")

    assert until(near) == pytest.approx(7.0, abs=0.1)


def test_a_backfilled_start_and_a_promise_that_is_kept(server: YardServer) -> None:
    first = start(server, "phys", cores=1, limit="1m", seconds=2)
    await_line(server, first, "runs")
    wide = start(server, "phys", cores=2)
    await_line(server, wide, "head of the queue: ")
    small = start(server, "phys", cores=1, limit="1s", seconds=0)
    told = await_line(server, small, "backfilled on node1: ends by ")
    assert told.endswith(f", before the promise to {wide}/hold")
    await_line(server, wide, "placed on node1")
    assert metric(server, "scheduler_backfilled_total") == 1
    assert metric(server, "scheduler_forecast_error_seconds_count") == 1
    early = 'scheduler_forecast_error_seconds_bucket{le="-10.0"}'
    assert metric(server, early) == 1, "what was before it ended long before it had to"
    assert metric(server, "scheduler_reservations_held") == 0
    assert metric(server, "scheduler_head_predicted_wait_seconds") is None


def test_an_administrator_evicts_by_name(server: YardServer) -> None:
    flow = start(server, "phys")
    await_line(server, flow, "runs")
    body = {"allocationId": f"{flow}/hold/0#1"}
    reply = server.ask("POST", "/v4/scheduler/allocations:preempt", body)
    assert (reply.status, reply.json["id"]) == (200, body["allocationId"])
    await_line(server, flow, "preempted by an administrator (ran ")
    until(lambda: "runs" in lines(server, flow)[-3:] or None)
    records = server.get("/v4/events:poll", workflow=flow, limit=1000)["events"]
    again = [one["data"] for one in records if one["type"].endswith("allocation.requeued")]
    assert [(one["allocation"], one["reason"]) for one in again] == [
        (f"{flow}/hold/0#2", "preempted")
    ]
    for name, words in ((body["allocationId"], "no allocation"), ("nonsense", "no allocation")):
        refused = server.ask("POST", "/v4/scheduler/allocations:preempt", {"allocationId": name})
        assert refused.status == 404 and words in refused.json["message"]
