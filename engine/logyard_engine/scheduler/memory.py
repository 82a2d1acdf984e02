"""What a tick knows from the ticks before it. Always disposable: it changes no decision."""

from collections import Counter

from logyard_domain.holds import NeverFits
from logyard_domain.resources import Request
from logyard_domain.world import Node, Shape, World
from logyard_engine.scheduler.classes import NodeClass, classes_of, misfits, surplus
from logyard_engine.scheduler.fit import chunks_of
from logyard_engine.scheduler.hopeless import Hopeless
from logyard_engine.scheduler.lanes import FEW, Lanes
from logyard_engine.scheduler.profile import Profile
from logyard_engine.scheduler.rooms import Rooms

FEW_FREED = 32
"""Up to so many nodes with new room are looked at by themselves."""


class Memory:
    """Classes of nodes and what is free on them, which shapes could run where, what cannot be
    placed, and when room will appear.
    """

    def __init__(self) -> None:
        self.fleet = -1
        self.revision = -1
        self.by_node: dict[str, NodeClass] = {}
        self.classes: list[NodeClass] = []
        self.eligible: dict[int, list[NodeClass]] = {}
        self.numbers: dict[int, frozenset[int]] = {}
        self.parked: dict[int, NeverFits] = {}
        self.freed: dict[int, list[Node]] = {}
        """By class, nodes on which room appeared since the last tick."""
        self._possible: dict[int, bool] = {}
        self._empty: dict[tuple[int, int], int] = {}
        self._alike: dict[tuple[object, ...], list[NodeClass]] = {}
        self.rooms: dict[int, Rooms] = {}
        self.lanes = Lanes()
        self.hopeless = Hopeless()
        self.profile = Profile()
        self.misses: Counter[str] = Counter()
        """How often each rule of preemption stood in the way, for metrics."""

    def refresh(self, world: World) -> None:
        """Forget what is not so any more."""
        if self.fleet != world.fleet:
            self.fleet = world.fleet
            self.by_node = classes_of(world)
            self.classes = list(dict.fromkeys(self.by_node.values()))
            self.eligible = {}
            self.numbers = {}
            self.parked = {}
            self._possible = {}
            self._empty = {}
            self._alike = {}
            self.rooms = {}
            self.hopeless = Hopeless(self.hopeless.active)
            self.profile.clear()
        if self.revision != world.revision:
            self.revision = world.revision
            self.hopeless = Hopeless(self.hopeless.active)
            self.profile.clear()
        self.notice(world)
        few = len(world.lanes) < FEW
        if self.hopeless.active == few:
            self.hopeless = Hopeless(not few)
        if few:
            self.freed = {}
            world.freed.clear()
            return
        for lane in world.dirty if self.hopeless.known else list(world.lanes.values()):
            shape = world.shapes[lane.key.shape]
            if not self.hopeless.knows(shape):
                self.hopeless.learn(shape, self.numbers_for(shape))
            elif shape.hold is None:
                # Why it waits is not on the log yet.
                self.hopeless.forget(shape)
        self.hopeless.begin()
        self.freed = {}
        for name in world.freed:
            node = world.nodes[name]
            if node.status == "up":
                self.freed.setdefault(self.by_node[name].number, []).append(node)
        for number, nodes in self.freed.items():
            places = self.classes[number].places
            nodes.sort(key=lambda node: places[node.name])
        fresh, many = not self.hopeless.remembers, len(world.freed) > FEW_FREED
        world.freed.clear()
        if fresh or many:
            # Then all that may fit there is looked at again, and on all nodes.
            self.revive()
            self.hopeless.keep()
            self.freed = {}
        self.revive()

    def revive(self) -> None:
        """What fits where room has appeared may be worth a look; room there may be gone by now."""
        self.hopeless.freed(
            (node, number) for number, nodes in self.freed.items() for node in nodes
        )

    def rest(self, world: World) -> None:
        """Nothing waits."""
        self.notice(world)
        if world.freed:
            world.freed.clear()
            if self.hopeless.active:
                self.hopeless = Hopeless()

    def notice(self, world: World) -> None:
        """Look anew at nodes on which something began, ended or is being stopped."""
        for name in world.stirred:
            found = self.by_node.get(name)
            if found is not None and found.number in self.rooms:
                place = found.places.get(name)
                if place is not None:
                    self.rooms[found.number].notice(place)
        world.stirred.clear()

    def rooms_of(self, found: NodeClass) -> Rooms:
        """What is free on the nodes of the class that are up."""
        rooms = self.rooms.get(found.number)
        if rooms is None:
            rooms = self.rooms[found.number] = Rooms(found.up)
        return rooms

    def classes_for(self, shape: Shape) -> list[NodeClass]:
        """Classes on which a chunk of the shape could run, those with least to spare first."""
        found = self.eligible.get(shape.id)
        if found is None:
            request = shape.request
            cores, memory = request.cores, request.memory
            found = [
                one
                for one in self._equipped(request)
                if cores <= one.sample.capacity.cores and memory <= one.sample.capacity.memory
            ]
            self.eligible[shape.id] = found
            self.numbers[shape.id] = frozenset(c.number for c in found)
        return found

    def _equipped(self, request: Request) -> list[NodeClass]:
        """Classes that have what it asks for beside cores and memory, those with least to spare
        first. Many shapes differ in nothing else.
        """
        alike = (request.devices, request.annotations, request.features, request.storage)
        found = self._alike.get(alike)
        if found is None:
            bare = Request(0, 0, *alike)
            found = [one for one in self.classes if not misfits(bare, one.sample)]
            found.sort(key=lambda one: (surplus(request, one.sample), one.number))
            self._alike[alike] = found
        return found

    def numbers_for(self, shape: Shape) -> frozenset[int]:
        """The numbers of those classes."""
        self.classes_for(shape)
        return self.numbers[shape.id]

    def empty_for(self, shape: Shape, found: NodeClass) -> int:
        """How many chunks of the shape an empty node of the class holds."""
        pair = (shape.id, found.number)
        count = self._empty.get(pair)
        if count is None:
            count = self._empty[pair] = chunks_of(shape.request, found.sample.capacity)
        return count

    def possible(self, shape: Shape) -> bool:
        """Whether it could start if nothing else ran on the nodes that are up."""
        found = self._possible.get(shape.id)
        if found is None:
            wanted = shape.request.nodes
            for one in self.classes_for(shape):
                # A single chunk fits on any node of these classes that is empty.
                wanted -= len(one.up) * (self.empty_for(shape, one) if wanted > 1 else 1)
            found = self._possible[shape.id] = wanted <= 0
        return found

    def parked_for(self, shape: Shape) -> NeverFits:
        """Why the shape could never run here."""
        found = self.parked.get(shape.id)
        if found is None:
            causes = {m for c in self.classes for m in misfits(shape.request, c.sample)}
            found = self.parked[shape.id] = NeverFits(misfits=tuple(sorted(causes or {"nodes"})))
        return found
