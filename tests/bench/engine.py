"""queue: ticks over a long queue."""

import gc
import time
from collections.abc import Iterator
from random import Random

from logyard_domain.commands import SubmitWorkflow
from logyard_domain.decide import decide
from logyard_domain.events import AllocationEnded, AnyEvent
from logyard_domain.evolve import evolve
from logyard_domain.settle import settle
from logyard_domain.world import World
from logyard_engine.scheduler.memory import Memory
from logyard_engine.scheduler.tick import tick
from logyard_engine.simulation.nodes import Run, simulated_node
from tests.bench.figures import Bench, Figure, figure
from tests.engine.work import flow, job

PENDING = 100_000
SHAPES = 50
NODES = 1_000
NOW = 1_800_000_000_000


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


def _waiting(dice: Random) -> World:
    world = World("main")
    for number in range(NODES):
        devices = {"gpu": 8} if number % 10 == 0 else {}
        node = simulated_node(f"n{number}", 64, _never, memory=256 << 30, devices=devices)
        _apply(world, decide(world, node.facts, NOW))
    sizes = [1, 2, 4, 8, 16, 32]
    shapes = [
        flow(
            a=job(
                dice.choice(sizes),
                memory=(dice.choice(sizes) << 30) + (number << 20),
                devices={"gpu": dice.choice([1, 4])} if dice.random() < 0.3 else {},
            )
        )
        for number in range(SHAPES)
    ]
    for number in range(PENDING):
        command = SubmitWorkflow(
            key=str(number), name="w", user="ana", definition=shapes[number % SHAPES]
        )
        _apply(world, decide(world, command, NOW))
    _apply(world, settle(world, NOW))
    return world


def _never(_: str) -> Run:
    raise AssertionError("nothing runs here")


def _tick_ms(world: World, memory: Memory) -> float:
    began = time.perf_counter()
    _apply(world, tick(world, memory, NOW))
    return (time.perf_counter() - began) * 1_000


def _apply(world: World, events: Iterator[AnyEvent] | list[AnyEvent]) -> None:
    for event in events:
        evolve(world, event, NOW, world.position + 1)


BENCHES: dict[str, Bench] = {"queue": queue}
