"""One scheduling pass: what waits is placed in order, and what goes on waiting says why.

Steps 1 and 2 of NM-EASY. Order is (priority, submission). A shape that does not fit anywhere now
*closes* the classes of nodes that it could run on: what comes after it in order may not take room
there, so nobody overtakes and nobody starves; classes that it could never use stay open. A shape
that fits no node even when empty is parked and closes nothing.

The answer depends on the world alone. What is remembered from tick to tick (`Memory`) only saves
looking again at nodes on which a shape was found not to fit and where no room has appeared since.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace

from logyard_domain.events import AllocationPlaced, AnyEvent, ShapeHeld, ShapeReleased
from logyard_domain.holds import BehindHigher, Hold, NeverFits, NodesBusy, NodesClosed, NoNodes
from logyard_domain.identifiers import allocation_id
from logyard_domain.world import Node, Order, Shape, World
from logyard_engine.scheduler.ahead import queue_ahead
from logyard_engine.scheduler.classes import NodeClass, classes_of, misfits, surplus
from logyard_engine.scheduler.fit import first_fit


class Memory:
    """What a tick knows from the ticks before it. Always disposable."""

    def __init__(self) -> None:
        self.fleet = -1
        self.by_node: dict[str, NodeClass] = {}
        self.classes: list[NodeClass] = []
        self.eligible: dict[int, list[NodeClass]] = {}
        self.parked: dict[int, NeverFits] = {}
        self.full: set[tuple[int, int]] = set()
        """Pairs of shape and class in which no node had room for it at the last look."""

    def refresh(self, world: World) -> None:
        """Forget everything when the fleet has changed."""
        if self.fleet != world.fleet:
            self.fleet = world.fleet
            self.by_node = classes_of(world)
            self.classes = list(dict.fromkeys(self.by_node.values()))
            self.eligible = {}
            self.parked = {}
            self.full = set()

    def classes_for(self, shape: Shape) -> list[NodeClass]:
        """Classes on which the shape could run, those with least to spare first."""
        found = self.eligible.get(shape.id)
        if found is None:
            request = shape.request
            found = [c for c in self.classes if not misfits(request, c.sample)]
            found.sort(key=lambda c: (surplus(request, c.sample), c.number))
            self.eligible[shape.id] = found
        return found

    def parked_for(self, shape: Shape) -> NeverFits:
        """Why the shape could run on no class at all."""
        found = self.parked.get(shape.id)
        if found is None:
            causes = {m for c in self.classes for m in misfits(shape.request, c.sample)}
            found = self.parked[shape.id] = NeverFits(misfits=tuple(sorted(causes)))
        return found


class _Pass:
    """The state of one tick."""

    def __init__(self, world: World, memory: Memory) -> None:
        memory.refresh(world)
        self.world = world
        self.memory = memory
        self.closed: dict[int, int] = {}
        """Class -> the shape that closed it."""
        self.pointers: dict[tuple[int, int], int] = {}
        self.freed: dict[int, list[Node]] = {}
        self.full: set[tuple[int, int]] = set()
        for name in world.freed:
            node = world.nodes[name]
            if node.status == "up":
                self.freed.setdefault(memory.by_node[name].number, []).append(node)
        for number, nodes in self.freed.items():
            nodes.sort(key=memory.classes[number].place)
        world.freed.clear()

    def seat(self, shape: Shape) -> Node | None:
        """A node for the next rank of the shape, the first in the order of classes and nodes."""
        for found in self.memory.classes_for(shape):
            if found.number in self.closed or not found.up:
                continue
            pair = (shape.id, found.number)
            nodes = found.up
            if pair in self.memory.full:
                nodes = self.freed.get(found.number, [])
            # Room only shrinks during a pass, so the first node that fits never moves left.
            index = first_fit(shape.request, nodes, self.pointers.get(pair, 0))
            self.pointers[pair] = index
            if index < len(nodes):
                return nodes[index]
            self.full.add(pair)
        return None

    def close(self, shape: Shape) -> bool:
        """Keep for the shape what it could run on; whether all of it was open until now."""
        classes = self.memory.classes_for(shape)
        for found in classes:
            self.closed.setdefault(found.number, shape.id)
        return all(self.closed[found.number] == shape.id for found in classes)

    def remember(self) -> None:
        """Keep what was seen to be full.

        Room that appeared unseen must be looked at another time.
        """
        if self.freed:
            self.memory.full = {
                pair for pair in self.memory.full if pair[1] not in self.freed or pair in self.full
            }
        self.memory.full |= self.full

    def hold(self, shape: Shape) -> Hold:
        """Why the shape waits."""
        if not self.world.nodes:
            return NoNodes()
        classes = self.memory.classes_for(shape)
        if not classes:
            return self.memory.parked_for(shape)
        up = [found for found in classes if found.up]
        if not up:
            return NodesClosed()
        for found in up:
            closer = self.closed.get(found.number, shape.id)
            if closer != shape.id:
                return BehindHigher(shape=closer)
        return NodesBusy()


def tick(world: World, memory: Memory) -> Iterator[AnyEvent]:
    """Decisions of one pass, one after the other.

    Each event must be applied to the world before the next one is asked for.
    """
    if not any(shape.heap or shape.hold for shape in world.shapes.values()):
        world.freed.clear()
        memory.full.clear()
        return
    this = _Pass(world, memory)
    left = int(world.config["scheduler.placementsPerTick"])
    heads: list[tuple[Order, int]] = []
    for shape in world.shapes.values():
        if head := shape.head():
            heads.append((head.order, shape.id))
    heapify(heads)
    while heads and left:
        shape = world.shapes[heads[0][1]]
        stage = shape.head()
        if stage is None or (node := this.seat(shape)) is None:
            heappop(heads)
            if stage is not None and this.close(shape):
                yield from queue_ahead(world, stage)
            continue
        rank, attempt = stage.first_waiting()
        left -= 1
        yield AllocationPlaced(
            allocation=allocation_id(stage.workflow.id, stage.plan.name, rank, attempt),
            node=node.name,
            revision=world.revision,
        )
        if following := shape.head():
            heapreplace(heads, (following.order, shape.id))
        else:
            heappop(heads)
    this.remember()
    for shape in world.shapes.values():
        if shape.head() is None:
            if shape.hold is not None:
                yield ShapeReleased(shape=shape.id)
        elif left and (hold := this.hold(shape)) != shape.hold:
            yield ShapeHeld(shape=shape.id, hold=hold)
