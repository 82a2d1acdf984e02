"""`evolve(world, event, at, position)`: the only way the world changes. It never refuses."""

from collections.abc import Callable
from typing import Any

from logyard_domain.events import AnyEvent
from logyard_domain.records import Record
from logyard_domain.rules import (
    allocations,
    cluster,
    entities,
    fleet,
    reservations,
    stages,
    workflows,
)
from logyard_domain.world import World

_APPLY: dict[type, Callable[[World, Any], None]] = {
    **cluster.APPLY,
    **entities.APPLY,
    **reservations.APPLY,
    **fleet.APPLY,
    **workflows.APPLY,
    **stages.APPLY,
    **allocations.APPLY,
}


def evolve(world: World, event: AnyEvent, at: int, position: int) -> None:
    """Apply what happened. Running and restarting both call this, and nothing else does."""
    assert position == world.position + 1, (world.position, position)
    world.position = position
    world.at = at
    _APPLY[type(event)](world, event)


def replay(world: World, record: Record) -> None:
    """Apply a record of the log."""
    evolve(world, record.event, record.at, record.position)
