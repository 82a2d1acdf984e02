"""Yards that the scenarios share: small ones made to measure, and besieged ones from a seed."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
from random import Random
from typing import NamedTuple, TypeVar

from logyard_domain.commands import (
    AnyCommand,
    CordonNode,
    PreemptAllocation,
    Refused,
    SetConfig,
    StopWorkflow,
    UncordonNode,
    UpdateGroup,
    UpdateOrganization,
    UpdateUser,
)
from logyard_domain.configuration import Value
from logyard_domain.definition import Job, Workflow
from logyard_domain.events import AllocationPlaced, AllocationStopping, AnyEvent
from logyard_domain.evolve import evolve, replay
from logyard_domain.identifiers import allocation_parts
from logyard_domain.records import Record
from logyard_domain.resources import Request
from logyard_domain.world import Stage, World
from logyard_engine.audit.auditor import audit
from logyard_engine.log.opening import open_log
from logyard_engine.scheduler.memory import Memory
from logyard_engine.scheduler.tick import tick
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import Yard
from logyard_workflows_dsl.expressions import parse
from tests.engine.work import flow, job

GIB = 1 << 30
SECOND_MS = 1_000
MINUTE_MS = 60_000
HOUR_MS = 3_600_000
CROWD = ("chem", "geo")
URGENT = "bio"
QUIET = range(8)
SIEGES = [(seed, several) for several in (False, True) for seed in range(4)]
FORMULAS = (
    "organization.priority + group.priority + user.priority + workflow.priority"
    " + queue.age_hours / 24",
    "group.priority + workflow.priority + queue.age_seconds / 300",
    "10 * group.priority - request.cores / 10 + user.priority",
    "group.priority + workflow.priority - min(usage.group, 3)",
)
E = TypeVar("E")


def yard(
    script: Callable[[str], Run] = lambda _: Run(),
    nodes: dict[str, int] | None = None,
    /,
    **settings: Value,
) -> Yard:
    """An empty yard. Settings are written with `__` for dots; without lookahead and grace."""
    made = Yard(open_log("memory:", "test"), nodes or {}, script)
    values: dict[str, Value] = {"workflow.killGrace": 0, "scheduler.lookahead": 0}
    made.ask(configured(made, **(values | settings)), "server")
    return made


def configured(y: Yard, **settings: Value) -> SetConfig:
    """The command that changes these settings (`__` for dots), and leaves the others."""
    changes = {key.replace("__", "."): value for key, value in settings.items()}
    formulas = dict(y.world.formulas)
    if "scheduler.priority" in changes:
        formulas = {"scheduler.priority": parse(str(changes["scheduler.priority"]))}
    return SetConfig(values=y.world.config | changes, formulas=formulas)


def evicting(several: bool = False, **settings: Value) -> dict[str, Value]:
    """Settings under which whoever may evict does, at once."""
    values: dict[str, Value] = {
        "scheduler.preemption.enabled": True,
        "scheduler.preemption.minRuntime": 0,
        "scheduler.preemption.utilizationThreshold": 0.0,
        "scheduler.preemption.multiVictim.enabled": several,
    }
    return values | settings


def grouped(y: Yard, priority: int = 10) -> None:
    """Group `bio` is above `chem` and `geo` by so much, and may preempt them."""
    for group in CROWD:
        y.ask(UpdateGroup(group=group))
    y.ask(UpdateGroup(group=URGENT, priority=priority, preempt=CROWD))


def finished(y: Yard) -> Yard:
    """Everything ends; the log tells all of it, and keeps every rule."""
    y.run(most_ms=400 * 24 * HOUR_MS)
    assert not y.world.workflows and not y.world.allocations
    assert not y.world.reservations and not y.world.held
    return sound(y)


def sound(y: Yard) -> Yard:
    """The world is the fold of its log, and the audit finds nothing."""
    y.check()
    report = audit(y.records)
    broken = [(one.rule, x) for one in report.verdicts for x in one.violations]
    assert not broken, broken[:3]
    return y


def events(y: Yard, kind: type[E]) -> list[E]:
    """The events of a kind, in order."""
    return [one.event for one in y.records if isinstance(one.event, kind)]


def stage_of(allocation: str) -> str:
    """The name of its stage."""
    return allocation.split("/")[1]


def walk(records: Sequence[Record]) -> Iterator[tuple[Record, World]]:
    """Every record, with the world as it is just before it. The world goes on after each step."""
    world = World(records[0].cluster)
    for record in records:
        yield record, world
        replay(world, record)


def ticks(records: Sequence[Record]) -> Iterator[tuple[list[Record], World]]:
    """The decisions of each tick that decided something, with the world as it is after them."""
    world = World(records[0].cluster)
    for (actor, _), found in groupby(records, lambda one: (one.actor, one.cause)):
        tick = list(found)
        for record in tick:
            replay(world, record)
        if actor == "scheduler":
            yield tick, world


def decided(world: World, now: int) -> list[AnyEvent]:
    """What one tick decides, with nothing remembered; the world follows."""
    decisions: list[AnyEvent] = []
    for event in tick(world, Memory(), now):
        evolve(world, event, now, world.position + 1)
        decisions.append(event)
    return decisions


class Eviction(NamedTuple):
    """One decision to evict: its instant, the victims and the placement of the preemptor, what that
    asks for, and the world just before (which goes on after).
    """

    at: int
    stops: tuple[AllocationStopping, ...]
    placed: AllocationPlaced
    request: Request
    world: World

    @property
    def victims(self) -> set[str]:
        """Names of the victims."""
        return {one.allocation for one in self.stops}


def evictions(records: Sequence[Record]) -> Iterator[Eviction]:
    """Every eviction by rule, in order."""
    by = ""
    for record, world in walk(records):
        event = record.event
        if not isinstance(event, AllocationStopping) or not event.by:
            by = ""
            continue
        if event.by == by:
            continue
        by = event.by
        stops: list[AllocationStopping] = []
        for following in records[record.position - 1 :]:
            if not isinstance(following.event, AllocationStopping) or following.event.by != by:
                break
            stops.append(following.event)
        placed = records[record.position - 1 + len(stops)].event
        assert isinstance(placed, AllocationPlaced), placed
        yield Eviction(record.at, tuple(stops), placed, request_of(world, by), world)


def request_of(world: World, allocation: str) -> Request:
    """What an allocation asks for that waits or runs."""
    return world.shapes[stage_in(world, allocation).shape].request


def stage_in(world: World, allocation: str) -> Stage:
    """Its stage, in the world."""
    workflow, stage, _, _ = allocation_parts(allocation)
    return world.workflows[workflow].stages[stage]


@cache
def siege(seed: int, several: bool) -> Yard:
    """A heterogeneous yard full of preemptible work, from which more urgent work evicts, while
    nodes are lost, priorities and settings change, and the server crashes; then all runs out.

    It is shared: look at it, and change nothing.
    """
    dice = Random(f"{seed}/{several}")
    y = Yard(open_log("memory:", "test"), {}, runs(seed))
    y.ask(_policy(y, dice, several), "server")
    grouped(y, 5)
    names = pool(y, dice)
    for step in range(110):
        try:
            _step(y, dice, step, names, several)
        except Refused:
            pass
    for name in names:
        y.ask(UncordonNode(node=name))
    y.run()
    return y


@cache
def brim(seed: int, several: bool) -> Yard:
    """Nodes that are full of small preemptible work, and much larger urgent work that comes all at
    one instant. Nothing else happens; then all runs out. It is shared like a siege.
    """
    dice = Random(f"brim/{seed}/{several}")
    y = yard(runs(seed), **evicting(several, scheduler__priority=dice.choice(FORMULAS[:3])))
    grouped(y)
    pool(y, dice)
    for _ in range(40):
        small = job(dice.choice([1, 1, 2]), memory=dice.choice([0, 1, 2]) * GIB, timeout_ms=HOUR_MS)
        priority = dice.choice([0, -1, -2])
        _submit(y, flow(low=small), dice, dice.choice(CROWD), dice.random() < 0.9, priority)
        y.advance(dice.choice([0, 0, 100]))
    for _ in range(5):
        _submit(y, flow(urgent=wanted(dice, retries=0)), dice, URGENT, False)
    y.run()
    return y


@cache
def quiet(seed: int) -> Yard:
    """Much of all kinds comes at once to a heterogeneous yard and keeps to its limits; nothing
    else happens. It is shared like a siege.
    """
    dice = Random(f"quiet/{seed}")
    y = yard(lambda _: Run(ms=dice.choice([5, 30, 60]) * SECOND_MS))
    pool(y, dice)
    for _ in range(60):
        y.submit(flow(it=wanted(dice, retries=0)))
    for _ in range(100):
        y.advance(dice.choice([1, 10]) * SECOND_MS)
    y.run()
    return y


def logs(several: bool | None = None) -> Iterator[tuple[str, list[Record]]]:
    """The names and records of all sieges and brims, or of those that may evict several."""
    for seed, many in SIEGES:
        if several in (None, many):
            yield f"siege {seed} {many}", siege(seed, many).records
            yield f"brim {seed} {many}", brim(seed, many).records


def lasting(ms: int) -> Callable[[str], Run]:
    """Every attempt lasts so long. So many attempts of one rank that it must be a circle end the
    test, instead of going on for ever.
    """

    def run(allocation: str) -> Run:
        assert allocation_parts(allocation)[3] < 60, f"{allocation}: this never ends"
        return Run(ms=ms)

    return run


def runs(seed: int) -> Callable[[str], Run]:
    """How attempts go, by their name alone: most run long, some fail, or do not heed SIGTERM."""

    def run(allocation: str) -> Run:
        dice = Random(f"{seed}/{allocation}")
        return Run(
            ms=dice.choice([0, 2, 10, 30, 60, 60, 100]) * SECOND_MS,
            exit_code=int(dice.random() < 0.05),
            stubborn=dice.random() < 0.1,
        )

    return run


def pool(y: Yard, dice: Random) -> list[str]:
    """Nodes of several classes: small and large ones, with devices, in racks."""
    kinds: list[dict[str, object]] = [
        {"cores": 8, "memory": 32 * GIB},
        {"cores": 4, "memory": 16 * GIB, "devices": {"gpu": 2}},
        {"cores": 2, "memory": 4 * GIB, "annotations": {"rack": "a"}},
        {"cores": 4, "memory": 8 * GIB, "annotations": {"rack": "a"}},
    ]
    names = [f"n{number}" for number in range(dice.randint(4, 6))]
    for number, name in enumerate(names):
        facts = kinds[number % len(kinds)]
        y.node(name, **facts)  # type: ignore[arg-type]
    return names


def wanted(dice: Random, **fields: object) -> Job:
    """A job that asks for something of such a pool. Some run into their limit."""
    settings: dict[str, object] = {
        "cores": dice.choice([1, 1, 2, 2, 4, 8]),
        "memory": dice.choice([0, 0, 1, 4]) * GIB,
        "timeout_ms": dice.choice([61, 90, 200, 600]) * SECOND_MS,
        "retries": dice.choice([0, 0, 1]),
    }
    match dice.randrange(10):
        case 0:
            settings |= {"devices": {"gpu": dice.choice([1, 2])}, "cores": dice.choice([1, 2, 4])}
        case 1:
            settings |= {"annotations": {"rack": "a"}, "cores": dice.choice([1, 2])}
        case 2 | 3:
            settings |= {"nodes": dice.choice([2, 3]), "cores": dice.choice([1, 2])}
        case 4:
            settings |= {"exclusive": True, "cores": 1}
        case 5:
            settings |= {"array": (1, dice.choice([3, 9])), "cores": 1}
        case _:
            pass
    return job(**(settings | fields))  # type: ignore[arg-type]


def _policy(y: Yard, dice: Random, several: bool) -> SetConfig:
    settings = evicting(
        several,
        scheduler__priority=dice.choice(FORMULAS),
        workflow__killGrace=dice.choice([0, 5, 20]) * SECOND_MS,
        node__lostAfter=30 * SECOND_MS,
    ) | {
        "scheduler.preemption.minRuntime": dice.choice([0, 1, 5]) * SECOND_MS,
        "scheduler.preemption.utilizationThreshold": dice.choice([0.0, 0.5]),
        "scheduler.preemption.maxEvictionsPerTick": dice.choice([2, 5]),
    }
    return configured(y, **settings)


def _step(y: Yard, dice: Random, step: int, names: list[str], several: bool) -> None:
    match dice.randrange(24):
        case 0 | 1 | 2 | 3 | 4 | 5 | 6:
            jobs = {"low": wanted(dice, cores=dice.choice([1, 2, 2, 4]))}
            if dice.random() < 0.3:
                jobs["and"] = wanted(dice)
            priority = dice.choice([0, 0, -1, -3])
            _submit(y, Workflow(jobs=jobs), dice, dice.choice(CROWD), dice.random() < 0.9, priority)
        case 7 | 8 | 9 | 10:
            _submit(y, flow(urgent=wanted(dice, retries=0)), dice, URGENT, dice.random() < 0.2)
        case 11 if y.world.workflows and dice.random() < 0.4:
            y.ask(StopWorkflow(workflow=dice.choice(list(y.world.workflows))))
        case 12 if dice.random() < 0.5:
            command = CordonNode if dice.random() < 0.3 else UncordonNode
            y.ask(command(node=dice.choice(names)))
        case 13 if dice.random() < 0.5:
            lost = y.nodes[dice.choice(names)]
            if dice.random() < 0.5:
                lost.restart(f"{lost.facts.node}.r{step}")
                y.join(lost)
            else:
                y.leave(lost.facts.node)
                y.advance(dice.choice([10, 40]) * SECOND_MS)
                y.add(lost)
        case 14:
            commands: list[AnyCommand] = [
                UpdateUser(user="eve", priority=dice.choice([0, 2])),
                UpdateOrganization(organization="default", priority=dice.choice([0, 1])),
                UpdateGroup(group="geo", priority=dice.choice([0, 2])),
                _policy(y, dice, several),
            ]
            y.ask(dice.choice(commands))
        case 15 if y.world.allocations and dice.random() < 0.2:
            y.ask(PreemptAllocation(allocation=dice.choice(list(y.world.allocations))))
        case 16 if dice.random() < 0.3:
            y.crash(y.engine.log)
        case _:
            y.advance(dice.choice([50, 1_000, 5_000, 10_000]))


def _submit(
    y: Yard, definition: Workflow, dice: Random, group: str, preemptible: bool, priority: int = 0
) -> None:
    user = dice.choice(["ana", "eve"])
    y.submit(definition, group=group, user=user, preemptible=preemptible, priority=priority)
