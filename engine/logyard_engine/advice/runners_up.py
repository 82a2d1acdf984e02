"""The runners-up of a placement: other nodes that it fitted on, and why they came after."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from logyard_domain.events import AllocationPlaced, AnyEvent, ReservationHeld, ReservationReleased
from logyard_domain.identifiers import allocation_parts
from logyard_domain.resources import Request, asks_nothing
from logyard_domain.rules.priorities import priority_of
from logyard_domain.world import Node, Shape, Stage, World
from logyard_engine.advice.trials import apply
from logyard_engine.scheduler.classes import NodeClass, surplus
from logyard_engine.scheduler.fit import chunks_on
from logyard_engine.scheduler.memory import Memory
from logyard_engine.scheduler.promise import Promise, promise

RUNNERS_UP_MAX = 3
Cause = Literal["devices", "annotations", "cores", "kind", "order", "kept", "room"]
"""Why a node came after the chosen one: it has more unused devices, annotations or cores, its kind
was seen later, it is later among its like, it is kept free because the chosen one is promised from
later on, or more is left on it until it is promised.
"""


class RunnerUp(msgspec.Struct, frozen=True):
    """A node that fitted as well. `chosen` and `own` are what was compared."""

    node: str
    cause: Cause
    chosen: int
    own: int
    free_cores: int
    free_memory: int


class Placement(msgspec.Struct, frozen=True):
    """How a placement was found: `fitted` nodes had room for a chunk that delayed no promise,
    `first` tells that those chosen were the first of them. The next ones are `runners_up`.
    """

    fitted: int
    first: bool
    runners_up: tuple[RunnerUp, ...]


class _Seat(NamedTuple):
    """A node that fits: sorted by where it comes."""

    rank: tuple[int, ...]
    node: Node
    kind: NodeClass
    lent: bool


def placement_of(world: World, events: Sequence[AnyEvent], place: int, now: int) -> Placement:
    """How the placement `events[place]` was found, in the world before the first of the events.

    These are all of one tick at `now` (ms). The world is used up.
    """
    apply(world, events[:place], now)
    event = events[place]
    assert isinstance(event, AllocationPlaced), event
    return _placement(world, event, _promised(world, events, place), now)


def _promised(world: World, events: Sequence[AnyEvent], place: int) -> list[tuple[str, str]]:
    """The stages (workflow, name) that the tick ended with promises to."""
    names = dict.fromkeys(world.reservations)
    for event in events[place:]:
        if isinstance(event, ReservationHeld):
            names[event.allocation] = None
        elif isinstance(event, ReservationReleased | AllocationPlaced):
            names.pop(event.allocation, None)
    return [allocation_parts(name)[:2] for name in names]


def _placement(
    world: World, event: AllocationPlaced, promised: Sequence[tuple[str, str]], now: int
) -> Placement:
    memory = Memory()
    memory.refresh(world)
    workflow, name, _, _ = allocation_parts(event.allocation)
    stage = world.workflows[workflow].stages[name]
    shape = world.shapes[stage.shape]
    if event.behind or event.kind == "preempting":
        return Placement(0, True, ())
    promises: list[Promise] = []
    if event.kind == "backfilled" and not asks_nothing(shape.request):
        promises = list(_promises(world, memory, stage, promised, now))
    seats = sorted(_seats(world, memory, stage, shape, promises, now), key=lambda seat: seat.rank)
    names = list(event.chunks or {event.node: 1})
    first = [seat.node.name for seat in seats[: len(names)]] == names
    chosen = next((seat for seat in seats if seat.node.name == names[-1]), None)
    if chosen is None:
        # Nothing fits there, so nothing came after it.
        return Placement(len(seats), False, ())
    others = [seat for seat in seats if seat.node.name not in names][:RUNNERS_UP_MAX]
    told = tuple(_runner_up(shape.request, chosen, seat) for seat in others)
    return Placement(len(seats), first, told)


def _promises(
    world: World,
    memory: Memory,
    stage: Stage,
    promised: Sequence[tuple[str, str]],
    now: int,
) -> Iterator[Promise]:
    """Those that it had to leave alone, as they are in this world."""
    numbers = memory.numbers_for(world.shapes[stage.shape])
    for workflow, name in promised:
        found = world.workflows.get(workflow)
        other = found.stages[name] if found else None
        # Promises to what comes later in order were not made yet.
        if other is None or not other.open or _order(world, other, now) > _order(world, stage, now):
            continue
        shape = world.shapes[other.shape]
        if memory.possible(shape) and memory.numbers_for(shape) & numbers:
            yield promise(world, memory, shape, other, now)


def _order(world: World, stage: Stage, now: int) -> tuple[float, int, int]:
    value = priority_of(world, world.priority, stage, now)
    return -value, stage.workflow.position, stage.plan.index


def _seats(
    world: World,
    memory: Memory,
    stage: Stage,
    shape: Shape,
    promises: Sequence[Promise],
    now: int,
) -> Iterator[_Seat]:
    """Nodes on which a chunk fits and delays nobody."""
    request = shape.request
    ends = now + stage.limit_ms + int(world.config["workflow.killGrace"])
    short = [one for one in promises if ends <= one.at]
    long = [one for one in promises if ends > one.at]
    place = 0
    for kind in memory.classes_for(shape):
        for node in kind.up:
            place += 1
            if not (asks_nothing(request) or chunks_on(request, node)):
                continue
            if not all(one.spare(request, node) for one in long):
                continue
            lent = [room for one in short if (room := one.left_on(node)) is not None]
            if lent:
                rank = (0, lent[-1].cores, lent[-1].memory, node.number)
                yield _Seat(rank, node, kind, True)
            else:
                yield _Seat((1, place), node, kind, False)


def _runner_up(request: Request, chosen: _Seat, other: _Seat) -> RunnerUp:
    cause, before, after = _compared(request, chosen, other)
    node = other.node
    return RunnerUp(node.name, cause, before, after, node.free_cores, node.free_memory)


def _compared(request: Request, chosen: _Seat, other: _Seat) -> tuple[Cause, int, int]:
    if chosen.lent and other.lent:
        return "room", chosen.rank[1], other.rank[1]
    if chosen.lent:
        return "kept", 0, 0
    if chosen.kind is other.kind:
        return "order", chosen.kind.places[chosen.node.name], other.kind.places[other.node.name]
    causes: tuple[Cause, ...] = ("devices", "annotations", "cores")
    ours, theirs = surplus(request, chosen.kind.sample), surplus(request, other.kind.sample)
    for cause, before, after in zip(causes, ours, theirs, strict=True):
        if before != after:
            return cause, before, after
    return "kind", chosen.kind.number, other.kind.number
