"""why, queue show, queue stats: questions to a real server about a yard in which 100,000 wait."""

import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from urllib.parse import quote, urlsplit

from logyard_domain.commands import SetConfig, SubmitWorkflow, UpdateGroup, UpdateUser
from logyard_domain.configuration import Value
from logyard_domain.definition import Job
from logyard_engine.log.opening import open_log
from logyard_engine.simulation.nodes import Run, simulated_node
from logyard_engine.simulation.yard import Yard
from logyard_engine.turn import Asked
from tests.bench.engine import TWELVE
from tests.bench.figures import Bench, Figure, figure
from tests.bench.server import server
from tests.engine.work import flow, job
from tests.services.server import YardServer

ARRAYS, RANKS, SINGLES = 1_000, 60, 40_000
"""Workflows of one array each, ranks of an array, workflows of one job: 100,000 ranks in all."""
NODES, SHAPES, GROUPS, USERS = 100, 60, 8, 40
TURNS = 120
"""Turns in which it all comes, half a minute after each other."""
ASKED = 300
"""Questions of a kind, after the first few."""
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SETTINGS: dict[str, Value] = {
    # The nodes are on the log only.
    "node.lostAfter": DAY_MS,
    # The rules of preemption are asked, but nothing is evicted.
    "scheduler.preemption.enabled": True,
    "scheduler.preemption.minRuntime": 30 * DAY_MS,
}
GPU = "nvidia.com/gpu"


def why() -> Iterator[Figure]:
    """Why, the queue and its numbers; then under an order that is made at reading."""
    with server(nodes=0) as one:
        one.stop()
        waiting = _filled(one.folder / "data")
        one.start()
        totals = one.get("/v4/queue/stats")["totals"]
        note = f"{totals['ready'] + totals['parked']:,} wait, {totals['running']:,} run"
        yield from _why(one, waiting, "why", "< 20", note)
        yield from _p99(one, "queue show", lambda: "/v4/queue", "< 50", note)
        yield from _p99(one, "queue ready", lambda: "/v4/queue?queue=ready", "< 50", note)
        yield from _p99(one, "queue stats", lambda: "/v4/queue/stats", None, note)
        body = {"values": {"scheduler.priority": TWELVE}}
        reply = one.ask("PATCH", "/v4/admin/centralconfig", body)
        assert reply.status == 200, reply.body
        note = "under a priority of twelve terms that moves by itself"
        yield from _why(one, waiting, "why moving", None, note)
        yield from _p99(one, "queue show moving", lambda: "/v4/queue", None, note)


def _why(
    one: YardServer, waiting: list[str], name: str, target: str | None, note: str
) -> Iterator[Figure]:
    dice = Random(1)

    def path() -> str:
        workflow = quote(dice.choice(waiting))
        return f"/v4/workflows/{workflow}/allocations/{workflow}/explain"

    yield from _p99(one, name, path, target, note)


def _p99(
    one: YardServer, name: str, path: Callable[[], str], target: str | None, note: str
) -> Iterator[Figure]:
    """The time that 99% of many questions do not exceed, one after the other."""
    parts = urlsplit(one.url)
    connection = HTTPConnection(parts.hostname or "", parts.port or 0, timeout=60)
    times: list[float] = []
    for _ in range(ASKED + 10):
        began = time.perf_counter()
        connection.request("GET", path())
        answer = connection.getresponse()
        body = answer.read()
        times.append((time.perf_counter() - began) * 1_000)
        assert answer.status == 200, body[:1000]
    connection.close()
    times = sorted(times[10:])
    median, p99 = times[len(times) // 2], times[int(len(times) * 0.99) - 1]
    note = f"p99 of {ASKED}, median {median:.1f} ms; {note}"
    yield figure(name, "ms", [p99], target=target, note=note)


def _filled(folder: Path) -> list[str]:
    """Write the log of a busy yard; the workflows of which something waits."""
    dice = Random(3)
    log = open_log(folder, "main")
    yard = Yard(log, script=lambda _: Run(ms=dice.randrange(1, 40) * HOUR_MS))
    yard.clock.ms = time.time_ns() // 1_000_000 - (TURNS + 2) * 30_000
    yard.ask(SetConfig(values=SETTINGS))
    _people(yard, dice)
    for number in range(NODES):
        devices = {GPU: 8} if number % 5 == 0 else {}
        memory = (256 if number % 3 else 512) << 30
        yard.add(simulated_node(f"n{number:03}", 64, yard.script, memory=memory, devices=devices))
    submitted = list(_work(dice))
    dice.shuffle(submitted)
    for turn in range(TURNS):
        yard.turn([Asked(one, f"user:{one.user}", one.key) for one in submitted[turn::TURNS]])
        yard.advance(30_000)
    log.close()
    return [
        workflow.id
        for workflow in yard.world.workflows.values()
        if any(stage.open and stage.waiting for stage in workflow.stages.values())
    ]


def _people(yard: Yard, dice: Random) -> None:
    """Groups of which each may preempt those below it, and users."""
    for number in range(GROUPS):
        yard.ask(UpdateGroup(group=f"g{number}", priority=number))
        below = tuple(f"g{other}" for other in range(number))
        if below:
            yard.ask(UpdateGroup(group=f"g{number}", preempt=below))
    for number in range(USERS):
        yard.ask(UpdateUser(user=f"u{number}", priority=dice.randrange(3)))


def _work(dice: Random) -> Iterator[SubmitWorkflow]:
    """Workflows of arrays and single jobs of many shapes, owners and time limits."""
    for number in range(ARRAYS + SINGLES):
        user = dice.randrange(USERS)
        array = (1, RANKS) if number < ARRAYS else None
        yield SubmitWorkflow(
            key=f"k{number}",
            name=f"w{number}",
            user=f"u{user}",
            group=f"g{user % GROUPS}",
            definition=flow(work=_job(dice, dice.randrange(SHAPES), array)),
            preemptible=dice.random() < 0.3,
        )


def _job(dice: Random, shape: int, array: tuple[int, int] | None) -> Job:
    made = Random(shape)
    return job(
        made.choice([1, 1, 2, 2, 4, 8, 16]),
        memory=(made.choice([1, 2, 4, 16]) << 30) + (shape << 20),
        devices={GPU: made.choice([1, 4])} if shape % 6 == 0 else {},
        nodes=made.choice([2, 4]) if shape % 10 == 1 and array is None else 1,
        array=array,
        timeout_ms=dice.choice([12, 24, 36, 48]) * HOUR_MS,
    )


BENCHES: dict[str, Bench] = {"why": why}
