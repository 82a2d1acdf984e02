"""What is free on the nodes of a class, as columns: the first node that fits, among many."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from logyard_domain.resources import Request, asks_nothing
from logyard_domain.world import Node
from logyard_engine.scheduler.fit import chunks_on, fits

FEW = 48
"""Up to so many nodes are looked at one by one; more as vectors."""
NEAR = 8
"""So many from where the last one was found are looked at one by one even then: work of one shape
fills node after node.
"""


class Rooms:
    """The nodes of one class that are up, and their free cores and memory. Always disposable."""

    __slots__ = ("_cores", "_free", "_full", "_memory", "_wide", "nodes")

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self._cores = np.zeros(0, np.int64)
        """Free cores; -1 where somebody has the node for himself."""
        self._memory = self._cores
        self._free = -1
        """The sum of free cores; -1 where it has to be counted anew."""
        self._full: dict[int, int] = {}
        """Cores of a chunk -> the least memory with which it was seen to fit nowhere, whatever else
        it asks for. Who asks for as much or more need not look.
        """
        self._wide = len(nodes) > FEW
        if self._wide:
            self._cores = np.array([_cores_of(node) for node in nodes], np.int64)
            self._memory = np.array([max(0, node.free_memory) for node in nodes], np.int64)

    def notice(self, place: int) -> None:
        """Something changed on the node at that place."""
        if self._wide:
            node = self.nodes[place]
            cores = -1 if node.sole else max(0, node.free_cores)
            memory = max(0, node.free_memory)
            if self._full and (cores > self._cores[place] or memory > self._memory[place]):
                self._full.clear()
            self._cores[place] = cores
            self._memory[place] = memory
            self._free = -1

    def free_cores(self) -> int:
        """All free cores of the class that a request could get."""
        if not self._wide:
            return sum(max(0, _cores_of(node)) for node in self.nodes)
        if self._free < 0:
            self._free = int(self._cores.sum()) + int(np.count_nonzero(self._cores < 0))
        return self._free

    def fitting(self, request: Request, start: int) -> Iterator[int]:
        """Places of nodes that one chunk fits on now, from `start` on."""
        nodes = self.nodes
        cores = request.cores
        near = len(nodes)
        if self._wide:
            if self._known_full(request):
                return
            near = min(near, start + NEAR)
        for place in range(start, near):
            node = nodes[place]
            # Most nodes of a busy class fail here, so the rest is asked of few.
            if (cores <= node.free_cores or not cores) and fits(request, node):
                yield place
        if near < len(nodes):
            places = self._roomy(request, near)
            if not len(places) and not start:
                self._note_full(request, near)
            roomy: list[int] = places.tolist()
            for place in roomy:
                if fits(request, nodes[place]):
                    yield place

    def counted(self, request: Request) -> list[tuple[Node, int]]:
        """Nodes that a chunk fits on now, in order, each with how many chunks of it do."""
        nodes = self.nodes
        if not self._wide or asks_nothing(request):
            return [(node, count) for node in nodes if (count := chunks_on(request, node))]
        if self._known_full(request):
            return []
        places = self._roomy(request, 0)
        if request.devices or request.exclusive != "none":
            open_: list[Node] = [nodes[place] for place in places.tolist()]
            return [(node, count) for node in open_ if (count := chunks_on(request, node))]
        if request.cores:
            counts = self._cores[places] // request.cores
            if request.memory:
                counts = np.minimum(counts, self._memory[places] // request.memory)
        else:
            counts = self._memory[places] // request.memory
        pairs = zip(places.tolist(), counts.tolist(), strict=True)
        return [(nodes[place], count) for place, count in pairs]

    def _roomy(self, request: Request, start: int) -> npt.NDArray[np.int64]:
        """Places from `start` on where the cores and the memory of a chunk are free."""
        found = self._cores[start:] >= request.cores
        if request.memory:
            found &= self._memory[start:] >= request.memory
        return np.flatnonzero(found) + start

    def _known_full(self, request: Request) -> bool:
        """Whether less than it asks for was seen to fit nowhere."""
        for cores, memory in self._full.items():
            if request.cores >= cores and request.memory >= memory:
                return True
        return False

    def _note_full(self, request: Request, near: int) -> None:
        """From `near` on there is no room for a chunk; see whether there is any before that."""
        cores, memory = request.cores, request.memory
        if ((self._cores[:near] < cores) | (self._memory[:near] < memory)).all():
            self._full[cores] = min(memory, self._full.get(cores, memory))


def _cores_of(node: Node) -> int:
    return -1 if node.sole else max(0, node.free_cores)
