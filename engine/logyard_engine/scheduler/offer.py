"""What a request that is blocked could have, at the earliest."""

from typing import NamedTuple

from logyard_domain.world import Node
from logyard_engine.scheduler.fit import Room


class Offer(NamedTuple):
    """Enough chunks for a request, as soon as it can have them, and where they are.

    `late` is what will be free at `at` on nodes where something ends by then; None for all of it.
    """

    at: int
    chunks: dict[Node, int]
    late: dict[Node, Room | None]
