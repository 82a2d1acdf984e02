"""A live yard: real processes on two embedded nodes and one far one, preemption and backfill on, a
node killed in the middle. Its own log passes the audit, and replays to the same decisions.
"""

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

from logyard_domain.events import AllocationPlaced, AllocationStopping
from logyard_engine.audit.auditor import audit
from logyard_engine.log.opening import open_for_reading
from tests.services.server import ServerMaker, YardServer, until
from tests.simulation.test_replay import again, decided

JOBS = 200
SETTINGS = {
    "scheduler.preemption.enabled": True,
    "scheduler.preemption.minRuntime": 100,
    "scheduler.preemption.utilizationThreshold": 0.5,
    "scheduler.preemption.multiVictim.enabled": True,
    "workflow.killGrace": 2_000,
    "node.lostAfter": 1_500,
}
TIMELY = ("at", "terms", "priority", "waited", "lines", "waitedMs", "message", "history")
"""Parts of an explanation that grow with time by themselves."""
_AGENT = """
import sys
from pathlib import Path
from logyard_engine.substrate.node import run_substrate
sys.exit(run_substrate(sys.argv[1], Path(sys.argv[2]), name="far", token=sys.argv[3], cores=2))
"""


def _flow(dice: Random) -> str:
    cores, seconds = dice.choice((1, 1, 1, 2)), dice.choice((0.0, 0.02, 0.1, 0.4))
    array = ""
    if dice.random() < 0.2:
        array = f"\n    task-array: {{start: 1, end: {dice.randint(2, 6)}}}"
    retry = "\n      retry: {attempts: 1}" if dice.random() < 0.1 else ""
    return f"""
version: v4
jobs:
  work:{array}
    command: [sleep, "{seconds}"]
    resource: {{cpu: {{cores: {cores}}}}}
    policy:
      timeout: {{execute: {dice.choice(("2s", "10s", "1m"))}}}{retry}
"""


def test_a_session_of_mixed_jobs(make_server: ServerMaker, tmp_path: Path) -> None:
    server = make_server(token="a-token-for-tests-0123", nodes=2, node_cores=2)
    server.start()
    answer = server.ask("PATCH", "/v4/admin/centralconfig", {"values": SETTINGS})
    assert answer.status == 200, answer.body
    for group in ("crowd", "vip"):
        assert server.ask("POST", "/v4/accounts", {"name": group}).status == 200
    vip = {"priority": 5, "updatePriority": True, "addPreemptIds": ["crowd"]}
    reply = server.ask("PATCH", "/v4/accounts/vip", vip)
    assert reply.status == 200, reply.body
    far = subprocess.Popen(
        [sys.executable, "-c", _AGENT, server.url, str(tmp_path / "agent"), server.token],
        env={**os.environ},
    )
    try:
        until(lambda: server.ask("GET", "/v4/nodes/far").status == 200)
        asked = _play(server, far)
    finally:
        far.kill()
        far.wait()
    assert server.stop() == 0
    with_log = open_for_reading(server.folder / "data")
    records = with_log.read(0, with_log.position)
    with_log.close()
    report = audit(records)
    assert report.clean, [v for verdict in report.verdicts for v in verdict.violations][:5]
    kinds = {r.event.kind for r in records if isinstance(r.event, AllocationPlaced)}
    assert kinds == {"direct", "backfilled", "preempting"}
    assert any(
        isinstance(r.event, AllocationStopping) and r.event.reason == "preempted" for r in records
    )
    assert decided(again(records)) == decided(records)
    assert asked


def _play(server: YardServer, far: "subprocess.Popen[bytes]") -> list[str]:
    """Start all the work, lose a node half-way, wait for the end; what was asked about."""
    dice = Random(7)
    started: list[str] = []
    asked: list[str] = []
    for number in range(JOBS):
        group = "vip" if dice.random() < 0.15 else "crowd"
        body = {
            "name": f"w{number}",
            "rawSpecification": _flow(dice),
            "preemptible": group == "crowd",
        }
        reply = server.ask("POST", "/v4/workflows", body, {"Logyard-Group": group})
        assert reply.status == 200, reply.body
        started.append(reply.json["id"])
        if number == JOBS // 2:
            far.kill()
        if number % 20 == 19:
            asked += _why(server, started[-5:])
    for id in started:
        server.outcome(id, 120)
    return asked


def _why(server: YardServer, workflows: list[str]) -> list[str]:
    """Ask why some wait, and again as of the same position: the answers are equal."""
    found: list[str] = []
    end = server.get("/healthz")["position"]
    for workflow in workflows:
        path = f"/v4/workflows/{workflow}/allocations"
        allocations = server.get(path, after=end)["allocations"]
        for one in allocations[:1]:
            path = f"/v4/workflows/{workflow}/allocations/{one['id'].replace('#', '%23')}/explain"
            now = server.ask("GET", path)
            assert now.status == 200, now.body
            then = server.ask("GET", path, at=now.position)
            assert _lasting(then.json) == _lasting(now.json)
            found.append(one["id"])
    return found


def _lasting(answer: Any) -> Any:
    """What does not depend on the instant of the question."""
    match answer:
        case {**found}:
            return {key: _lasting(value) for key, value in found.items() if key not in TIMELY}
        case [*items]:
            return [_lasting(one) for one in items]
        case _:
            return answer
