"""What a tick knows from the ticks before it. Always disposable: it changes no decision."""

from collections import Counter

from logyard_domain.holds import NeverFits
from logyard_domain.world import Shape, World
from logyard_engine.scheduler.classes import NodeClass, classes_of, misfits, surplus
from logyard_engine.scheduler.order import Priorities
from logyard_engine.scheduler.profile import Profile


class Memory:
    """Classes of nodes, which shapes could run on them, where there was no room at the last look,
    and when room will appear.
    """

    def __init__(self) -> None:
        self.fleet = -1
        self.revision = -1
        self.by_node: dict[str, NodeClass] = {}
        self.classes: list[NodeClass] = []
        self.eligible: dict[int, list[NodeClass]] = {}
        self.numbers: dict[int, frozenset[int]] = {}
        self.parked: dict[int, NeverFits] = {}
        self.full: set[tuple[int, int]] = set()
        """Pairs of shape and class in which no node had room for a chunk at the last look."""
        self.priorities = Priorities()
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
            self.full = set()
            self.profile.clear()
        if self.revision != world.revision:
            self.revision = world.revision
            self.profile.clear()
        self.notice(world)

    def notice(self, world: World) -> None:
        """Look anew at nodes on which something began, ended or is being stopped."""
        for name in world.stirred:
            self.profile.forget(name)
        world.stirred.clear()

    def classes_for(self, shape: Shape) -> list[NodeClass]:
        """Classes on which a chunk of the shape could run, those with least to spare first."""
        found = self.eligible.get(shape.id)
        if found is None:
            request = shape.request
            found = [c for c in self.classes if not misfits(request, c.sample)]
            found.sort(key=lambda c: (surplus(request, c.sample), c.number))
            self.eligible[shape.id] = found
            self.numbers[shape.id] = frozenset(c.number for c in found)
        return found

    def numbers_for(self, shape: Shape) -> frozenset[int]:
        """The numbers of those classes."""
        self.classes_for(shape)
        return self.numbers[shape.id]

    def parked_for(self, shape: Shape) -> NeverFits:
        """Why the shape could never run here."""
        found = self.parked.get(shape.id)
        if found is None:
            causes = {m for c in self.classes for m in misfits(shape.request, c.sample)}
            found = self.parked[shape.id] = NeverFits(misfits=tuple(sorted(causes or {"nodes"})))
        return found
