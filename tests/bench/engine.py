"""queue: ticks over a long queue."""

import gc
import time
from collections.abc import Iterator
from random import Random

import numpy as np

from logyard_domain.commands import SubmitWorkflow
from logyard_domain.decide import decide
from logyard_domain.events import AllocationEnded, AnyEvent
from logyard_domain.evolve import evolve
from logyard_domain.settle import settle
from logyard_domain.world import World
from logyard_engine.scheduler.formula import Formula
from logyard_engine.scheduler.memory import Memory
from logyard_engine.scheduler.tick import tick
from logyard_engine.simulation.nodes import Run, simulated_node
from logyard_workflows_dsl.expressions import parse
from tests.bench.figures import Bench, Figure, figure
from tests.engine.work import flow, job

PENDING = 100_000
SHAPES = 50
NODES = 1_000
NOW = 1_800_000_000_000
HOUR_MS = 3_600_000
TWELVE = (
    "4 * organization.priority + 2 * group.priority + user.priority + workflow.priority"
    " + queue.age_hours / 24 + request.nodes * 0.5 - request.cores / 64 - request.memory_gib / 256"
    " + min(request.limit_seconds / 3600, 10) - usage.group * 0.01 - usage.user * 0.02"
    " + (request.preemptible ? 1 : 0)"
)


def queue() -> Iterator[Figure]:
    """100,000 pending allocations in 50 shapes on 1,000 nodes."""
    first: list[float] = []
    changed: list[float] = []
    for seed in range(3):
        world = _waiting(Random(seed))
        memory = Memory()
        gc.collect()
        gc.freeze()
        first.append(_tick_ms(world, memory))
        dice = Random(seed)
        for _ in range(100):
            ended = AllocationEnded(
                allocation=dice.choice(list(world.allocations)), outcome="finished"
            )
            _apply(world, [ended])
            _apply(world, settle(world, NOW))
            changed.append(_tick_ms(world, memory))
        gc.unfreeze()
    yield figure("queue first tick", "ms", first, target="< 150")
    changed.sort()
    median = changed[len(changed) // 2]
    yield figure(
        "queue one ended", "ms", [median], target="< 2", note=f"p99 {changed[-3]:.2f} ms of 300"
    )


def backfill() -> Iterator[Figure]:
    """100,000 pending allocations in 1,000 shapes behind a blocked head, on 1,000 busy nodes with
    four resources; every shape is looked at.
    """
    full: list[float] = []
    changed: list[float] = []
    backfilled = 0
    for seed in range(3):
        dice = Random(seed)
        world = _waiting(dice, 1_000, 0)
        memory = Memory()
        _tick_ms(world, memory)
        head = flow(head=job(64, memory=250 << 30, timeout_ms=HOUR_MS))
        command = SubmitWorkflow(key="head", name="head", user="ana", definition=head)
        _apply(world, decide(world, command, NOW))
        _wait(world, dice, 1_000, PENDING)
        running = len(world.allocations)
        gc.collect()
        gc.freeze()
        memory = Memory()
        full.append(_tick_ms(world, memory))
        assert world.reservations
        backfilled += len(world.allocations) - running
        for _ in range(100):
            ended = dice.choice(list(world.allocations))
            _apply(world, [AllocationEnded(allocation=ended, outcome="finished")])
            _apply(world, settle(world, NOW))
            changed.append(_tick_ms(world, memory))
        gc.unfreeze()
    yield figure("tick_full", "ms", full, target="< 100", note=f"{backfilled // 3} backfilled")
    changed.sort()
    median = changed[len(changed) // 2]
    yield figure(
        "tick_change", "ms", [median], target="< 3", note=f"p99 {changed[-3]:.2f} ms of 300"
    )


def priority() -> Iterator[Figure]:
    """100,000 allocations under an expression of twelve terms."""
    formula = Formula(parse(TWELVE))
    dice = np.random.default_rng(1)
    columns = {
        name: dice.random(PENDING) * 100
        if "preemptible" not in name
        else dice.random(PENDING) < 0.5
        for name in formula.columns
    }
    runs: list[float] = []
    for _ in range(15):
        began = time.perf_counter()
        formula.values(columns, PENDING)
        runs.append((time.perf_counter() - began) * 1_000)
    yield figure("priority", "ms", runs[3:], target="< 3")


def _waiting(dice: Random, shapes: int = SHAPES, pending: int = PENDING) -> World:
    world = World("main")
    for number in range(NODES):
        devices = {"gpu": 8} if number % 10 == 0 else {}
        if number % 7 == 0:
            devices["fpga"] = 2
        node = simulated_node(f"n{number}", 64, _never, memory=256 << 30, devices=devices)
        _apply(world, decide(world, node.facts, NOW))
    _wait(world, dice, shapes, pending or 20_000)
    return world


def _wait(world: World, dice: Random, shapes: int, pending: int) -> None:
    """So many workflows of one job each queue, of so many shapes."""
    sizes = [1, 2, 4, 8, 16, 32]
    made = [
        flow(
            a=job(
                dice.choice(sizes),
                memory=(dice.choice(sizes) << 30) + (number << 20),
                devices={"gpu": dice.choice([1, 4])} if dice.random() < 0.3 else {},
                timeout_ms=dice.randrange(1, 48) * HOUR_MS,
            )
        )
        for number in range(shapes)
    ]
    before = len(world.workflows)
    for number in range(pending):
        command = SubmitWorkflow(
            key=str(before + number), name="w", user="ana", definition=made[number % shapes]
        )
        _apply(world, decide(world, command, NOW))
    _apply(world, settle(world, NOW))


def _never(_: str) -> Run:
    raise AssertionError("nothing runs here")


def _tick_ms(world: World, memory: Memory) -> float:
    began = time.perf_counter()
    _apply(world, tick(world, memory, NOW))
    return (time.perf_counter() - began) * 1_000


def _apply(world: World, events: Iterator[AnyEvent] | list[AnyEvent]) -> None:
    for event in events:
        evolve(world, event, NOW, world.position + 1)


BENCHES: dict[str, Bench] = {"queue": queue, "backfill": backfill, "priority": priority}
