"""Decisions made once more: the real tick in the world as it was just before."""

from collections.abc import Sequence
from itertools import zip_longest

import msgspec

from logyard_domain.events import AnyEvent
from logyard_domain.expressions import printed
from logyard_domain.holds import Hold
from logyard_domain.world import World
from logyard_engine.advice.trials import Outcome, apply, followed, outcome, waiting_stage
from logyard_engine.scheduler.memory import Memory
from logyard_engine.scheduler.tick import tick

DIFFERENCES_MAX = 10


class Basis(msgspec.Struct, frozen=True):
    """What a tick reads: the world as of `position`, and the instant `now` (ms).

    Of `nodes`, `nodes_up` were up; `running` allocations held room, `waiting` ranks in so many
    `lanes` and `shapes` wanted it, `promises` were made. The policy is `formula`, of configuration
    `revision`.
    """

    position: int
    now: int
    nodes: int
    nodes_up: int
    running: int
    waiting: int
    lanes: int
    shapes: int
    promises: int
    revision: int
    formula: str


class Difference(msgspec.Struct, frozen=True):
    """The event `number` (from 0) of a tick is not the same: as recorded, and as found anew."""

    number: int
    recorded: AnyEvent | None
    found: AnyEvent | None


class Proof(msgspec.Struct, frozen=True):
    """A tick made once more: its events are `equal` to those recorded, or some are `differing`, of
    which the first are shown.
    """

    basis: Basis
    equal: bool
    recorded: int
    found: int
    differing: int = 0
    differences: tuple[Difference, ...] = ()


class Standing(msgspec.Struct, frozen=True):
    """A tick made where something waits: what becomes of it, and of how many there are.

    `hold` and `promised_at` are what the log says, before the tick; `events` counts what it does.
    """

    basis: Basis
    waiting: int
    hold: Hold | None
    promised_at: int
    events: int
    outcome: Outcome


def prove(world: World, now: int, recorded: Sequence[AnyEvent]) -> Proof:
    """Make the tick at `now` (ms) once more, and compare. The world is used up."""
    basis = basis_of(world, now)
    found = apply(world, tick(world, Memory(), now), now)
    differences: list[Difference] = []
    for number, (one, other) in enumerate(zip_longest(recorded, found)):
        if one != other:
            differences.append(Difference(number, one, other))
    return Proof(
        basis,
        not differences,
        len(recorded),
        len(found),
        len(differences),
        tuple(differences[:DIFFERENCES_MAX]),
    )


def stand(world: World, allocation: str, now: int) -> Standing | None:
    """Make the tick of this instant; None where the allocation does not wait for room.

    The world is used up. Raises ValueError for what is no allocation's name.
    """
    now = max(now, world.at)
    stage = waiting_stage(world, allocation)
    if stage is None:
        return None
    basis, waiting = basis_of(world, now), stage.waiting
    before = outcome(world, stage, ())
    events = followed(world, Memory(), now)
    after = outcome(world, stage, events)
    return Standing(basis, waiting, before.hold, before.promised_at, len(events), after)


def basis_of(world: World, now: int) -> Basis:
    """What a tick of this world at `now` reads."""
    stages = [entry[2] for lane in world.lanes.values() for entry in lane.heap]
    return Basis(
        position=world.position,
        now=now,
        nodes=len(world.nodes),
        nodes_up=sum(node.status == "up" for node in world.nodes.values()),
        running=sum(one.behind is None for one in world.allocations.values()),
        waiting=sum(stage.waiting for stage in stages if stage.open),
        lanes=len(world.lanes),
        shapes=sum(shape.lanes > 0 for shape in world.shapes.values()),
        promises=len(world.reservations),
        revision=world.revision,
        formula=printed(world.priority),
    )
