"""What is free on the nodes of a class, as columns: the first node that fits, among many."""

from collections.abc import Iterator

import numpy as np

from logyard_domain.resources import Request
from logyard_domain.world import Node
from logyard_engine.scheduler.fit import fits

FEW = 48
"""Up to so many nodes are looked at one by one; more as vectors."""
NEAR = 8
"""So many from where the last one was found are looked at one by one even then: work of one shape
fills node after node.
"""


class Rooms:
    """The nodes of one class that are up, and their free cores and memory. Always disposable."""

    __slots__ = ("_cores", "_memory", "nodes")

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self._cores = np.zeros(0, np.int64)
        self._memory = self._cores
        if len(nodes) > FEW:
            self._cores = np.array([max(0, node.free_cores) for node in nodes], np.int64)
            self._memory = np.array([max(0, node.free_memory) for node in nodes], np.int64)

    def notice(self, place: int) -> None:
        """Something changed on the node at that place."""
        if len(self._cores):
            node = self.nodes[place]
            self._cores[place] = max(0, node.free_cores)
            self._memory[place] = max(0, node.free_memory)

    def free_cores(self) -> int:
        """All free cores of the class."""
        if len(self._cores):
            return int(self._cores.sum())
        return sum(node.free_cores for node in self.nodes if node.free_cores > 0)

    def fitting(self, request: Request, start: int) -> Iterator[int]:
        """Places of nodes that one chunk fits on now, from `start` on."""
        nodes = self.nodes
        cores, memory = request.cores, request.memory
        near = len(nodes) if not len(self._cores) else min(len(nodes), start + NEAR)
        for place in range(start, near):
            node = nodes[place]
            # Most nodes of a busy class fail here, so the rest is asked of few.
            if (cores <= node.free_cores or not cores) and fits(request, node):
                yield place
        if near < len(nodes):
            rest = (self._cores[near:] >= cores) & (self._memory[near:] >= memory)
            for place in rest.nonzero()[0].tolist():
                if fits(request, nodes[near + place]):
                    yield near + place
