"""The promise to the first that is blocked: NM-EASY's reservation.

It is the earliest instant at which enough chunks are free if what runs takes as long as it may. Its
chunks are taken from the nodes on which room appears last, so that nodes that are idle now stay
free for what comes behind (tests hold that with one core a node this is classic EASY).
"""

from logyard_domain.resources import Request
from logyard_domain.world import Node, Shape, Stage, World
from logyard_engine.scheduler.classes import NodeClass
from logyard_engine.scheduler.fit import Room
from logyard_engine.scheduler.profile import Gains, Profile


class Promise:
    """`chunks` of a request from instant `at` on, and what is left beside them then."""

    __slots__ = ("at", "chunks", "classes", "left", "outranked", "shape", "stage")

    def __init__(
        self, shape: Shape, stage: Stage, at: int, chunks: dict[Node, int], classes: frozenset[int]
    ) -> None:
        self.shape = shape
        self.stage = stage
        self.at = at
        self.chunks = chunks
        self.classes = classes
        """Classes of nodes that it could run on: who wants these waits behind it."""
        self.outranked = 0
        """Position of the last placement of this tick on its classes before it was made, or 0."""
        self.left: dict[Node, Room] = {}
        """What is left at `at` on each of its nodes; what is placed beyond `at` is taken off."""

    def mark(self) -> tuple[object, ...]:
        """What it keeps others from: promises with equal marks bar the same requests."""
        left = tuple(
            (
                node.name,
                room.cores,
                room.memory,
                tuple(sorted(room.devices.items())),
                room.sole,
                room.busy > 0,
            )
            for node, room in self.left.items()
        )
        return (self.at, left)

    def take(self, request: Request, seats: dict[Node, int]) -> None:
        """Something goes on beyond `at` on these nodes."""
        for node, chunks in seats.items():
            if node in self.left:
                self.left[node].take(request, chunks)

    def spare(self, request: Request, node: Node) -> int:
        """How many chunks of another request may stay on the node beyond `at`."""
        room = self.left.get(node)
        return 1 << 30 if room is None else room.chunks(request)


def promise(
    world: World,
    profile: Profile,
    shape: Shape,
    stage: Stage,
    classes: list[NodeClass],
    now: int,
) -> Promise:
    """The promise for the next rank of a stage that does not fit now, and would if nothing ran."""
    request = shape.request
    wanted = request.nodes
    nodes = [node for found in classes for node in found.up]
    gains = [profile.gains(world, request, node, now) for node in nodes]
    at = _earliest(gains, wanted)
    offers: list[tuple[int, int, int, Node]] = []
    for node, steps in zip(nodes, gains, strict=True):
        late = count = 0
        for instant, chunks in steps:
            if instant > at:
                break
            late, count = instant, chunks
        if count:
            offers.append((-late, count, node.number, node))
    offers.sort(key=lambda offer: offer[:3])
    chosen: dict[Node, int] = {}
    for _, count, _, node in offers:
        chosen[node] = min(count, wanted)
        wanted -= chosen[node]
        if not wanted:
            break
    found = Promise(shape, stage, at, chosen, frozenset(c.number for c in classes))
    for node, chunks in chosen.items():
        room = found.left[node] = profile.room_at(world, node, at, now)
        room.take(request, chunks)
    return found


def _earliest(gains: list[Gains], wanted: int) -> int:
    """The first instant at which `wanted` chunks fit in all."""
    if wanted == 1:
        return min(steps[0][0] for steps in gains if steps)
    rises: list[tuple[int, int]] = []
    for steps in gains:
        before = 0
        for instant, count in steps:
            rises.append((instant, count - before))
            before = count
    rises.sort()
    for instant, more in rises:
        wanted -= more
        if wanted <= 0:
            return instant
    raise AssertionError(f"{wanted} chunks could never fit")
