"""Promises: what the first in line was told about when it starts."""

from collections.abc import Callable, Iterator
from typing import Any

from logyard_domain.events import ReservationHeld, ReservationMoved, ReservationReleased
from logyard_domain.identifiers import allocation_parts
from logyard_domain.world import Reservation, World


def withdrawn(world: World) -> Iterator[ReservationReleased]:
    """Promises to what does not wait any more, because its workflow was stopped or its stage is
    over.
    """
    for allocation, reservation in list(world.reservations.items()):
        if not reservation.stage.open:
            yield ReservationReleased(allocation=allocation, cause="withdrawn")


def _held(world: World, event: ReservationHeld) -> None:
    workflow, name, _, _ = allocation_parts(event.allocation)
    stage = world.workflows[workflow].stages[name]
    world.reservations[event.allocation] = Reservation(
        event.at, event.chunks, world.position, stage
    )


def _moved(world: World, event: ReservationMoved) -> None:
    reservation = world.reservations[event.allocation]
    reservation.at, reservation.chunks = event.at, event.chunks
    reservation.position = world.position


def _released(world: World, event: ReservationReleased) -> None:
    del world.reservations[event.allocation]


APPLY: dict[type, Callable[[World, Any], None]] = {
    ReservationHeld: _held,
    ReservationMoved: _moved,
    ReservationReleased: _released,
}
