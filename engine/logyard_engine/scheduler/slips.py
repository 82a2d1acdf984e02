"""What a promise became, and what moved it."""

from collections.abc import Iterator

from logyard_domain.events import AnyEvent, ReservationHeld, ReservationMoved, SlipCause
from logyard_domain.world import Reservation, World


def recorded(
    world: World, allocation: str, at: int, chunks: dict[str, int], outranked: int
) -> Iterator[AnyEvent]:
    """The event that says so, if the promise is new or not what it was.

    `outranked` is the position of a placement of the same pass that came before it in order, on
    nodes of a kind that it could use, or 0.
    """
    known = world.reservations.get(allocation)
    if known is None:
        yield ReservationHeld(allocation=allocation, at=at, chunks=chunks, revision=world.revision)
    elif (known.at, known.chunks) != (at, chunks):
        cause, because = _cause(world, known, at, outranked)
        yield ReservationMoved(
            allocation=allocation,
            at=at,
            chunks=chunks,
            cause=cause,
            because=because,
            revision=world.revision,
        )


def _cause(world: World, known: Reservation, at: int, outranked: int) -> tuple[SlipCause, int]:
    if at <= known.at:
        return "earlier", 0
    if outranked:
        return "outranked", outranked
    if world.fleet_at > known.position:
        return "node", world.fleet_at
    if world.ranked_at > known.position:
        return "policy", world.ranked_at
    return "overrun", 0
