"""A live yard: real processes on two embedded nodes and one far one, preemption and backfill on, a
node killed in the middle. Its own log passes the audit, and replays to the same decisions.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from logyard_api.past import Past
from logyard_domain.events import AllocationPlaced, AllocationStopping
from logyard_domain.evolve import evolve
from logyard_domain.identifiers import allocation_id
from logyard_domain.records import Record
from logyard_domain.world import World
from logyard_engine.audit.auditor import audit
from logyard_engine.log.opening import open_for_reading
from logyard_projections.answers.why import explain
from logyard_projections.catalog import PROJECTIONS
from logyard_projections.instants import rfc3339
from logyard_projections.runners.memory import MemoryRunner
from tests.services.server import ServerMaker, YardServer, end_keepers, until
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
TIMELY = (
    "at", "terms", "priority", "waited", "lines", "waitedMs", "message", "history", "withinMs",
    "early", "late", "samples", "protected",
)  # fmt: skip
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
        _play(server, far)
    finally:
        far.kill()
        far.wait()
        end_keepers(tmp_path / "agent")
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
    _whys_hold(records, server.folder / "data", tmp_path / "past")


def _play(server: YardServer, far: "subprocess.Popen[bytes]") -> None:
    """Start all the work, lose a node half-way, wait for the end; ask why now and then."""
    dice = Random(7)
    started: list[str] = []
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
            for workflow in started[-5:]:
                _why(server, workflow)
    for id in started:
        server.outcome(id, 120)


def _why(server: YardServer, workflow: str) -> None:
    """Ask what became of a workflow, and again as of the same position: the answers are equal."""
    end = server.get("/healthz")["position"]
    path = f"/v4/workflows/{workflow}/allocations/work/explain"
    now = server.ask("GET", path, after=end)
    assert now.status == 200, now.body
    then = server.ask("GET", path, at=now.position)
    assert _lasting(then.json) == _lasting(now.json)


def _whys_hold(records: Sequence[Record], data: Path, folder: Path) -> None:
    """Of every job that waited, at three positions: `why` agrees with the world of that position,
    and says the same from copied rows as from rows that were folded from the start.
    """
    asked = _waits(records)
    log = open_for_reading(data)
    past = Past(folder, log, PROJECTIONS)
    runner = MemoryRunner(PROJECTIONS)
    world = World("main")
    try:
        for record in records:
            runner.apply([record])
            evolve(world, record.event, record.at, record.position)
            for name in asked.get(record.position, ()):
                question = partial(explain, name=name, now=record.at)
                with runner.read() as view:
                    found = question(view)
                assert found is not None
                assert past.look(record.position, question) == found
                assert found.kind not in ("running", "ended")
                promised = world.reservations.get(name)
                said = found.forecast.start if found.forecast else None
                assert said == (rfc3339(promised.at) if promised else None)
    finally:
        past.close()
        log.close()


def _waits(records: Sequence[Record]) -> dict[int, list[str]]:
    """By position, the allocations that waited then: each at its first, last and middle one."""
    world = World("main")
    found: dict[str, list[int]] = {}
    for record in records:
        evolve(world, record.event, record.at, record.position)
        for workflow in world.workflows.values():
            for stage in workflow.stages.values():
                if stage.open and stage.waiting:
                    name = allocation_id(workflow.id, stage.plan.name, *stage.first_waiting())
                    found.setdefault(name, []).append(record.position)
    assert len(found) >= JOBS
    asked: dict[int, list[str]] = {}
    for waiting, positions in found.items():
        for position in {positions[0], positions[len(positions) // 2], positions[-1]}:
            asked.setdefault(position, []).append(waiting)
    return asked


def _lasting(answer: Any) -> Any:
    """What does not depend on the instant of the question."""
    match answer:
        case {**found}:
            return {key: _lasting(value) for key, value in found.items() if key not in TIMELY}
        case [*items]:
            return [_lasting(one) for one in items]
        case _:
            return answer
