"""What would be free if some of what runs left: counted on, victim by victim, and back."""

from collections.abc import Iterable

from logyard_domain.world import Allocation, Node, Shape, World
from logyard_engine.scheduler.fit import Room
from logyard_engine.scheduler.memory import Memory
from logyard_engine.scheduler.seats import Seats


class Leaving:
    """Room for the chunks of a shape, beside what is free now, when those that were added left."""

    def __init__(self, world: World, memory: Memory, shape: Shape) -> None:
        self._world = world
        self._memory = memory
        self._request = shape.request
        self._numbers = memory.numbers_for(shape)
        self._rooms: dict[Node, Room] = {}
        self._counts: dict[Node, int] = {}
        # Of a single chunk it is known that it fits nowhere now.
        if shape.request.nodes > 1:
            for found in memory.classes_for(shape):
                self._counts |= memory.rooms_of(found).counted(shape.request)
        self._have = sum(self._counts.values())

    @property
    def enough(self) -> bool:
        """Whether all chunks fit then."""
        return self._have >= self._request.nodes

    def add(self, victim: Allocation) -> None:
        """It leaves."""
        self._change(victim, True)

    def take_back(self, victim: Allocation) -> None:
        """It stays after all."""
        self._change(victim, False)

    def seats(self, victims: Iterable[Allocation]) -> Seats:
        """Where the chunks fit then: victims are those that leave."""
        wanted = self._request.nodes
        # A single chunk fits only where a victim leaves.
        leave = dict.fromkeys(node for victim in victims for node, _ in victim.chunks)
        nodes = leave if wanted == 1 else self._world.nodes.values()
        seats: Seats = {}
        for node in nodes:
            count = min(wanted, self._counts.get(node, 0))
            if count:
                seats[node] = count
                wanted -= count
                if not wanted:
                    break
        return seats

    def _change(self, victim: Allocation, leaves: bool) -> None:
        held = self._world.shapes[victim.stage.shape].request
        for node, chunks in victim.chunks:
            if node.status != "up" or self._memory.by_node[node.name].number not in self._numbers:
                continue
            room = self._rooms.get(node)
            if room is None:
                room = self._rooms[node] = Room(node)
            if leaves:
                room.add(held, chunks)
            else:
                room.take(held, chunks)
            count = room.chunks(self._request)
            self._have += count - self._counts.get(node, 0)
            self._counts[node] = count
