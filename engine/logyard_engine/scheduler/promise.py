"""The promise to the first that is blocked: NM-EASY's reservation.

It is the earliest instant at which enough chunks are free if what runs takes as long as it may. Its
chunks are taken from the nodes on which room appears last, so that nodes that are idle now stay
free for what comes behind (tests hold that with one core a node this is classic EASY).
"""

from logyard_domain.resources import Request
from logyard_domain.world import Node, Shape, Stage, World
from logyard_engine.scheduler.fit import Room, chunks_on
from logyard_engine.scheduler.memory import Memory


class Promise:
    """`chunks` of a request from instant `at` on, and what is left beside them then."""

    __slots__ = ("at", "chunks", "classes", "left", "outranked", "shape", "stage")

    def __init__(self, shape: Shape, stage: Stage, at: int, classes: frozenset[int]) -> None:
        self.shape = shape
        self.stage = stage
        self.at = at
        self.chunks: dict[Node, int] = {}
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
                tuple(sorted(room.devices.items())) if room.devices else (),
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
    memory: Memory,
    shape: Shape,
    stage: Stage,
    now: int,
) -> Promise:
    """The promise for the next rank of a stage that does not fit now, and would if nothing ran."""
    request = shape.request
    numbers = memory.numbers_for(shape)
    idle, wanted = _now(memory, shape)
    rooms: dict[Node, Room] = {}
    counts: dict[Node, int] = dict(idle)
    late: dict[Node, int] = {}
    at = 0
    for end, name in memory.profile.ends(world, now):
        # What ends at one instant counts together.
        if wanted <= 0 and end != at:
            break
        at = end
        allocation = world.allocations[name]
        holding = world.shapes[allocation.stage.shape].request
        for node, chunks in allocation.chunks:
            if node.status != "up" or memory.by_node[node.name].number not in numbers:
                continue
            room = rooms.get(node)
            if room is None:
                room = rooms[node] = Room(node)
            room.add(holding, chunks)
            count = room.chunks(request)
            before = counts.get(node, 0)
            if count > before:
                counts[node], late[node] = count, end
                wanted -= count - before
    assert wanted <= 0, f"{wanted} chunks of shape {shape.id} could never fit"
    offers = sorted(
        ((-late.get(node, 0), count, node.number, node) for node, count in counts.items()),
        key=lambda offer: offer[:3],
    )
    wanted = request.nodes
    found = Promise(shape, stage, at, numbers)
    for _, count, _, node in offers:
        taken = found.chunks[node] = min(count, wanted)
        room = found.left[node] = rooms.get(node) or Room(node)
        room.take(request, taken)
        wanted -= taken
        if not wanted:
            break
    return found


def _now(memory: Memory, shape: Shape) -> tuple[dict[Node, int], int]:
    """Nodes on which chunks fit now, and how many chunks are missing then."""
    request = shape.request
    wanted = request.nodes
    counts: dict[Node, int] = {}
    if wanted > 1:
        for found in memory.classes_for(shape):
            rooms = memory.rooms_of(found)
            for place in rooms.fitting(request, 0):
                node = rooms.nodes[place]
                counts[node] = chunks_on(request, node)
                wanted -= counts[node]
    return counts, wanted
