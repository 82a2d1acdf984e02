"""Finding the nodes for one allocation, with what was promised to others left alone."""

from collections.abc import Iterator

from logyard_domain.resources import Request
from logyard_domain.world import Node, Shape, World
from logyard_engine.scheduler.classes import NodeClass
from logyard_engine.scheduler.fit import asks_nothing, chunks_on, first_fit, fits
from logyard_engine.scheduler.memory import Memory
from logyard_engine.scheduler.promise import Promise

Seats = dict[Node, int]
"""How many chunks on which nodes; the first one leads."""


class Finder:
    """The nodes as they are during one pass, in which room only shrinks."""

    def __init__(self, world: World, memory: Memory) -> None:
        self._memory = memory
        self._pointers: dict[tuple[int, int], int] = {}
        self._roomy: dict[int, list[Node]] = {}
        self._freed: dict[int, list[Node]] = {}
        self._full: set[tuple[int, int]] = set()
        for name in world.freed:
            node = world.nodes[name]
            if node.status == "up":
                self._freed.setdefault(memory.by_node[name].number, []).append(node)
        for number, nodes in self._freed.items():
            nodes.sort(key=memory.classes[number].place)
        world.freed.clear()

    def direct(self, shape: Shape) -> Seats | None:
        """Where the next allocation of the shape fits, when nobody before it waits."""
        request = shape.request
        if request.nodes > 1:
            return self._many(shape, request, None, False)
        for found in self._memory.classes_for(shape):
            node = self._one(shape.id, request, found)
            if node is not None:
                return {node: 1}
        return None

    def behind(self, shape: Shape, promises: list[Promise], ends: int) -> tuple[Seats | None, bool]:
        """Where it fits without delaying the promises, when it has ended by `ends`; and whether
        it would fit if nothing were promised.
        """
        request = shape.request
        if asks_nothing(request):
            return self.direct(shape), False
        short = [one for one in promises if ends <= one.at]
        long = [one for one in promises if ends > one.at]
        if request.nodes > 1:
            seats = self._many(shape, request, promises, bool(long))
            return seats, seats is None and bool(long) and self._many(
                shape, request, None, False
            ) is not None
        for node in self._lent(shape, short):
            return {node: 1}, False
        fits_otherwise = False
        for found in self._memory.classes_for(shape):
            pair = (shape.id, found.number)
            for node in self._all(pair, request, found):
                if all(one.spare(request, node) for one in long):
                    return {node: 1}, False
                fits_otherwise = True
        return None, fits_otherwise

    def remember(self) -> None:
        """Keep what was seen to be full.

        Room that appeared unseen must be looked at another time.
        """
        memory = self._memory
        if self._freed:
            memory.full = {
                pair for pair in memory.full if pair[1] not in self._freed or pair in self._full
            }
        memory.full |= self._full

    def _one(self, shape: int, request: Request, found: NodeClass) -> Node | None:
        pair = (shape, found.number)
        nodes = self._candidates(pair, request, found)
        # Room only shrinks during a pass, so the first node that fits never moves left.
        index = first_fit(request, nodes, self._pointers.get(pair, 0))
        self._pointers[pair] = index
        if index < len(nodes):
            return nodes[index]
        self._full.add(pair)
        return None

    def _all(self, pair: tuple[int, int], request: Request, found: NodeClass) -> Iterator[Node]:
        """Nodes of a class on which it fits now."""
        nodes = self._candidates(pair, request, found)
        index = first_fit(request, nodes, self._pointers.get(pair, 0))
        self._pointers[pair] = index
        if index >= len(nodes):
            self._full.add(pair)
        while index < len(nodes):
            yield nodes[index]
            index = first_fit(request, nodes, index + 1)

    def _candidates(self, pair: tuple[int, int], request: Request, found: NodeClass) -> list[Node]:
        if pair in self._memory.full:
            return self._freed.get(found.number, [])
        return self._open(found) if request.cores else found.up

    def _open(self, found: NodeClass) -> list[Node]:
        """Nodes of the class that had a free core at the first look."""
        nodes = self._roomy.get(found.number)
        if nodes is None:
            nodes = self._roomy[found.number] = [n for n in found.up if n.free_cores > 0]
        return nodes

    def _lent(self, shape: Shape, promises: list[Promise]) -> list[Node]:
        """Promised nodes on which it fits until then, those with least left first."""
        request = shape.request
        numbers = self._memory.numbers_for(shape)
        found = [
            (room.cores, room.memory, node.number, node)
            for one in promises
            for node, room in one.left.items()
            if self._memory.by_node[node.name].number in numbers and fits(request, node)
        ]
        return [min(found)[3]] if found else []

    def _many(
        self, shape: Shape, request: Request, promises: list[Promise] | None, long: bool
    ) -> Seats | None:
        wanted = request.nodes
        classes = self._memory.classes_for(shape)
        if request.cores:
            free = sum(node.free_cores for found in classes for node in self._open(found))
            if free < wanted * request.cores:
                return None
        order = [
            node for found in classes for node in (self._open(found) if request.cores else found.up)
        ]
        lent: dict[Node, tuple[int, int, int]] = {}
        for one in promises or ():
            for node, room in one.left.items():
                lent[node] = (room.cores, room.memory, node.number)
        if lent and not long:
            order.sort(key=lambda node: (0, *lent[node]) if node in lent else (1, 0, 0, 0))
        seats: Seats = {}
        for node in order:
            count = chunks_on(request, node)
            if not count:
                continue
            if long:
                for one in promises or ():
                    count = min(count, one.spare(request, node))
                if not count:
                    continue
            seats[node] = min(count, wanted)
            wanted -= seats[node]
            if not wanted:
                return seats
        return None
