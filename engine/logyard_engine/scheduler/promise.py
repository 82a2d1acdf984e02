"""The promise to the first that is blocked: NM-EASY's reservation.

It is the earliest instant at which enough chunks are free if what runs takes as long as it may. Its
chunks are taken from the nodes on which room appears last, so that nodes that are idle now stay
free for what comes behind (tests hold that with one core a node this is classic EASY).
"""

from logyard_domain.resources import Request
from logyard_domain.world import Node, Shape, Stage, World
from logyard_engine.scheduler.fit import MANY, Room
from logyard_engine.scheduler.memory import Memory
from logyard_engine.scheduler.offer import Offer
from logyard_engine.scheduler.profile import End


class Promise:
    """`chunks` of a request from instant `at` on, and what is left beside them then."""

    __slots__ = (
        "_left",
        "_offer",
        "_taken",
        "at",
        "chunks",
        "classes",
        "outranked",
        "shape",
        "stage",
    )

    def __init__(self, shape: Shape, stage: Stage, classes: frozenset[int], offer: Offer) -> None:
        self.shape = shape
        self.stage = stage
        self.at = offer.at
        self.chunks = offer.chunks
        self.classes = classes
        """Classes of nodes that it could run on: who wants these waits behind it."""
        self.outranked = 0
        """Position of the last placement of this tick on its classes before it was made, or 0."""
        self._offer = offer
        self._left: dict[Node, Room] = {}
        """What is left at `at` on its nodes, as far as it was asked for."""
        self._taken: set[Node] = set()
        """Where something else is placed beyond `at`."""

    def mark(self) -> tuple[object, ...]:
        """What it keeps others from: promises with equal marks bar the same requests."""
        late = self._offer.late
        left: list[object] = []
        for node, chunks in self.chunks.items():
            if late.get(node, node) is None and node not in self._taken:
                # All of the node but these chunks.
                left.append((node.number, chunks))
                continue
            room = self._on(node)
            devices = tuple(sorted(room.devices.items())) if room.devices else ()
            left.append((node.number, room.cores, room.memory, devices, room.sole, room.busy > 0))
        return (self.at, self.shape.id, *left)

    def left_on(self, node: Node) -> Room | None:
        """What is left at `at` on one of its nodes; what is placed beyond `at` is taken off."""
        return self._on(node) if node in self.chunks else None

    def take(self, request: Request, seats: dict[Node, int], ends: int) -> None:
        """Something is about to be placed on these nodes that ends at `ends` at the latest."""
        for node, chunks in seats.items():
            if node in self.chunks:
                # What ends in time takes nothing of what is free then, only of what is free now.
                left = self._on(node)
                if ends > self.at:
                    self._taken.add(node)
                    left.take(request, chunks)

    def spare(self, request: Request, node: Node) -> int:
        """How many chunks of another request may stay on the node beyond `at`."""
        held = self.chunks.get(node)
        if held is None:
            return MANY
        if request.cores > node.capacity.cores - held * self.shape.request.cores:
            # Not even if nothing else were there.
            return 0
        return self._on(node).chunks(request)

    def _on(self, node: Node) -> Room:
        left = self._left.get(node)
        if left is None:
            late = self._offer.late
            left = Room(late.get(node) or node)
            if late.get(node, node) is None:
                left.empty(node.capacity)
            left.take(self.shape.request, self.chunks[node])
            self._left[node] = left
        return left


def promise(
    world: World,
    memory: Memory,
    shape: Shape,
    stage: Stage,
    now: int,
) -> Promise:
    """The promise for the next rank of a stage that does not fit now, and would if nothing ran."""
    ends = memory.profile.ends(world, now)
    offers = memory.profile.offers
    if shape.id not in offers:
        offers[shape.id] = _offer(world, memory, shape, ends)
    return Promise(shape, stage, memory.numbers_for(shape), offers[shape.id])


def _offer(world: World, memory: Memory, shape: Shape, ends: list[End]) -> Offer:
    request = shape.request
    numbers = memory.numbers_for(shape)
    counts = _now(memory, shape)
    wanted = request.nodes - sum(counts.values())
    late: dict[Node, Room | None] = {}
    since: dict[Node, int] = {}
    at = 0
    for end, name in ends:
        # What ends at one instant counts together.
        if wanted <= 0 and end != at:
            break
        at = end
        allocation = world.allocations[name]
        holding = world.shapes[allocation.stage.shape].request
        for node, held in allocation.chunks:
            if node.status != "up":
                continue
            found = memory.by_node[node.name]
            if found.number not in numbers:
                continue
            if len(node.running) == 1:
                # It is alone there: afterwards the node is empty.
                late[node] = None
                count = memory.empty_for(shape, found)
            else:
                room = late.get(node) or Room(node)
                late[node] = room
                room.add(holding, held)
                count = room.chunks(request)
            before = counts.get(node, 0)
            if count > before:
                counts[node], since[node] = count, end
                wanted -= count - before
    assert wanted <= 0, f"{wanted} chunks of shape {shape.id} could never fit"
    offers = sorted(
        [(-since.get(node, 0), count, node.number, node) for node, count in counts.items()]
    )
    wanted = request.nodes
    chunks: dict[Node, int] = {}
    for _, count, _, node in offers:
        chunks[node] = min(count, wanted)
        wanted -= count
        if wanted <= 0:
            break
    return Offer(at, chunks, late)


def _now(memory: Memory, shape: Shape) -> dict[Node, int]:
    """Nodes on which chunks fit now, and how many; of one that does not fit, none."""
    counts: dict[Node, int] = {}
    if shape.request.nodes > 1:
        for found in memory.classes_for(shape):
            counts |= memory.rooms_of(found).counted(shape.request)
    return counts
