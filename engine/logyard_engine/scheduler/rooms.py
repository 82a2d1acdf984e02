"""What is free on the nodes of a class, as columns: the first node that fits, among many."""

from collections.abc import Iterable, Iterator

import numpy as np

from logyard_domain.resources import Request, asks_nothing
from logyard_domain.world import Node
from logyard_engine.scheduler.fit import MANY, chunks_on, fits

FEW = 48
"""Up to so many nodes are looked at one by one; more as vectors."""
NEAR = 8
"""So many from where the last one was found are looked at one by one even then: work of one shape
fills node after node.
"""


class Rooms:
    """The nodes of one class that are up, and their free cores and memory. Always disposable."""

    __slots__ = ("_cores", "_full", "_memory", "_sole", "nodes")

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self._cores = np.zeros(0, np.int64)
        self._memory = self._cores
        self._sole = np.zeros(0, bool)
        self._full: dict[int, int] = {}
        """Cores of a chunk -> the least memory with which it was seen to fit nowhere, whatever else
        it asks for. Who asks for as much or more need not look.
        """
        if len(nodes) > FEW:
            self._cores = np.array([max(0, node.free_cores) for node in nodes], np.int64)
            self._memory = np.array([max(0, node.free_memory) for node in nodes], np.int64)
            self._sole = np.array([node.sole > 0 for node in nodes], bool)

    def notice(self, place: int) -> None:
        """Something changed on the node at that place."""
        if len(self._cores):
            node = self.nodes[place]
            cores, memory = max(0, node.free_cores), max(0, node.free_memory)
            if self._full and (cores > self._cores[place] or memory > self._memory[place]):
                self._full.clear()
            self._cores[place] = cores
            self._memory[place] = memory
            self._sole[place] = node.sole > 0

    def free_cores(self) -> int:
        """All free cores of the class."""
        if len(self._cores):
            return int(self._cores.sum())
        return sum(node.free_cores for node in self.nodes if node.free_cores > 0)

    def fitting(self, request: Request, start: int) -> Iterator[int]:
        """Places of nodes that one chunk fits on now, from `start` on."""
        nodes = self.nodes
        if not len(self._cores):
            yield from self._one_by_one(request, range(start, len(nodes)))
            return
        if self._known_full(request):
            return
        near = min(len(nodes), start + NEAR)
        yield from self._one_by_one(request, range(start, near))
        if near < len(nodes):
            places = self._roomy(request, near)
            if not places and not start:
                self._note_full(request, near)
            yield from self._one_by_one(request, places)

    def counted(self, request: Request) -> list[tuple[Node, int]]:
        """Nodes that a chunk fits on now, in order, each with how many chunks of it do."""
        nodes = self.nodes
        if not len(self._cores) or asks_nothing(request):
            return [(node, count) for node in nodes if (count := chunks_on(request, node))]
        if self._known_full(request):
            return []
        open_ = (self._cores >= request.cores) & (self._memory >= request.memory) & ~self._sole
        places = np.flatnonzero(open_)
        found = [nodes[place] for place in places.tolist()]
        if request.devices or request.exclusive != "none":
            return [(node, count) for node in found if (count := chunks_on(request, node))]
        counts = np.full(len(places), MANY, np.int64)
        if request.cores:
            counts = self._cores[places] // request.cores
        if request.memory:
            counts = np.minimum(counts, self._memory[places] // request.memory)
        return list(zip(found, counts.tolist(), strict=True))

    def _one_by_one(self, request: Request, places: Iterable[int]) -> Iterator[int]:
        nodes = self.nodes
        cores = request.cores
        for place in places:
            node = nodes[place]
            # Most nodes of a busy class fail here, so the rest is asked of few.
            if (cores <= node.free_cores or not cores) and fits(request, node):
                yield place

    def _roomy(self, request: Request, start: int) -> list[int]:
        """Places from `start` on where the cores and the memory of a chunk are free."""
        found = self._cores[start:] >= request.cores
        if request.memory:
            found &= self._memory[start:] >= request.memory
        places: list[int] = (np.flatnonzero(found) + start).tolist()
        return places

    def _known_full(self, request: Request) -> bool:
        """Whether less than it asks for was seen to fit nowhere."""
        cores, memory = request.cores, request.memory
        return any(cores >= seen and memory >= least for seen, least in self._full.items())

    def _note_full(self, request: Request, near: int) -> None:
        """From `near` on there is no room for a chunk; see whether there is any before that."""
        cores, memory = request.cores, request.memory
        if ((self._cores[:near] < cores) | (self._memory[:near] < memory)).all():
            self._full[cores] = min(memory, self._full.get(cores, memory))
