"""Finding the nodes for one allocation, with what was promised to others left alone."""

from collections.abc import Iterator

from logyard_domain.resources import Request, asks_nothing
from logyard_domain.world import Node, Shape, World
from logyard_engine.scheduler.classes import NodeClass
from logyard_engine.scheduler.fit import fits
from logyard_engine.scheduler.memory import Memory
from logyard_engine.scheduler.promise import Promise

Seats = dict[Node, int]
"""How many chunks on which nodes; the first one leads."""


class Finder:
    """The nodes as they are during one pass, in which room only shrinks."""

    def __init__(self, world: World, memory: Memory) -> None:
        self._world = world
        self._memory = memory
        self._pointers: dict[tuple[int, int], int] = {}
        self._only_freed = False
        self.met_room = False
        """Whether the last look found room for a chunk, promised or not."""

    def direct(self, shape: Shape, limit_ms: int) -> Seats | None:
        """Where the next allocation of the shape fits, when nobody before it waits."""
        self._begin(shape, limit_ms)
        request = shape.request
        if request.nodes > 1:
            return self._many(shape, request, [], [])
        for found in self._memory.classes_for(shape):
            for node in self._fitting(shape, request, found):
                return {node: 1}
        return None

    def behind(
        self, shape: Shape, limit_ms: int, promises: list[Promise], ends: int
    ) -> Seats | None:
        """Where it fits without delaying the promises, when it has ended by `ends`.

        Afterwards `met_room` tells whether a chunk of it would fit if nothing were promised.
        """
        request = shape.request
        if asks_nothing(request):
            return self.direct(shape, limit_ms)
        self._begin(shape, limit_ms)
        short = [one for one in promises if ends <= one.at]
        long = [one for one in promises if ends > one.at]
        if request.nodes > 1:
            return self._many(shape, request, short, long)
        lent = self._lent(shape, short)
        if lent is not None:
            return {lent: 1}
        for found in self._memory.classes_for(shape):
            for node in self._fitting(shape, request, found):
                if all(one.spare(request, node) for one in long):
                    return {node: 1}
        return None

    def _begin(self, shape: Shape, limit_ms: int) -> None:
        self._memory.notice(self._world)
        hopeless = self._memory.hopeless
        # Several chunks may come together from new room and from room that was not enough.
        self._only_freed = shape.request.nodes == 1 and hopeless.elsewhere(shape, limit_ms)
        # What was barred had room, which is not looked at again.
        self.met_room = self._only_freed and not hopeless.is_full(shape)

    def _fitting(self, shape: Shape, request: Request, found: NodeClass) -> Iterator[Node]:
        """Nodes of a class on which a chunk fits now."""
        if asks_nothing(request):
            yield from found.up
            return
        if self._only_freed:
            for node in self._memory.freed.get(found.number, ()):
                if fits(request, node):
                    self.met_room = True
                    yield node
            return
        pair = (shape.id, found.number)
        rooms = self._memory.rooms_of(found)
        # Room only shrinks during a pass, so the first node that fits never moves left.
        first = True
        for place in rooms.fitting(request, self._pointers.get(pair, 0)):
            if first:
                self._pointers[pair] = place
                first = False
                self.met_room = True
            yield rooms.nodes[place]
        if first:
            self._pointers[pair] = len(rooms.nodes)

    def _lent(self, shape: Shape, promises: list[Promise]) -> Node | None:
        """A promised node on which it fits until then, that with least left."""
        if not promises:
            return None
        numbers = self._memory.numbers_for(shape)
        found = [
            (room.cores, room.memory, node.number, node)
            for one in promises
            for node in one.chunks
            if self._memory.by_node[node.name].number in numbers
            and fits(shape.request, node)
            and (room := one.left_on(node)) is not None
        ]
        return min(found)[3] if found else None

    def _many(
        self, shape: Shape, request: Request, short: list[Promise], long: list[Promise]
    ) -> Seats | None:
        wanted = request.nodes
        classes = self._memory.classes_for(shape)
        if request.cores:
            free = sum(self._memory.rooms_of(found).free_cores() for found in classes)
            if free < wanted * request.cores:
                return None
        found: list[tuple[Node, int]] = []
        for kind in classes:
            found += self._memory.rooms_of(kind).counted(request)
        self.met_room = bool(found)
        if short:
            lent = {
                node: (room.cores, room.memory, node.number)
                for one in short
                for node, _ in found
                if (room := one.left_on(node)) is not None
            }
            found.sort(key=lambda seat: (0, *lent[seat[0]]) if seat[0] in lent else (1, 0, 0, 0))
        seats: Seats = {}
        for node, count in found:
            for one in long:
                count = min(count, one.spare(request, node))
            if count >= wanted:
                seats[node] = wanted
                return seats
            if count:
                seats[node] = count
                wanted -= count
        return None
