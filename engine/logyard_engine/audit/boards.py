"""How much of a request fits over all nodes that could run it: now, and when for the first time.

`Board` knows any nodes and requests, and looks again only at nodes on which something changed.
`PlainBoard` says the same of equal nodes of one core by counting.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Sequence

from logyard_domain.resources import Request
from logyard_engine.audit.fleet import Kind, Node
from logyard_engine.audit.rooms import chunks_empty, chunks_now, steps_of
from logyard_engine.audit.work import Attempt

Rise = tuple[int, int, int]
"""At an instant so many chunks more fit, on the node of that number."""


class Board:
    """One request over the nodes that are up and could run it.

    `journal` lists the nodes on which something changed, in order; it only grows.
    """

    plain = False

    def __init__(
        self, request: Request, asks: bool, nodes: Sequence[Node], journal: list[Node]
    ) -> None:
        self.request = request
        self.asks = asks
        self.nodes = nodes
        self.roomy: dict[Node, int] = {}
        """Nodes on which it fits now, and how many chunks."""
        self.most = sum(chunks_empty(node, request, asks) for node in nodes)
        self._now = 0
        self._member = set(nodes)
        self._journal = journal
        self._cursor = len(journal)
        self._first: dict[Node, int] = {}
        self._rises: list[Rise] = []
        self._unknown: set[Node] = set(nodes)
        """Nodes of which it is not known when more fits."""
        for node in nodes:
            self._look(node)

    def total(self) -> int:
        """How many chunks fit now."""
        journal = self._journal
        if self._cursor < len(journal):
            member = self._member
            changed = {node for node in journal[self._cursor :] if node in member}
            self._cursor = len(journal)
            for node in changed:
                self._look(node)
            self._unknown |= changed
        return self._now

    def earliest(self, wanted: int, grace_ms: int, now: int) -> int | None:
        """The first instant at which `wanted` chunks fit, 0 for now; None for never."""
        self.total()
        if self._unknown:
            self._look_ahead(grace_ms, now)
        if wanted == 1:
            return min(self._first.values(), default=None)
        return reached(self._rises, wanted)

    def _look(self, node: Node) -> None:
        count = chunks_now(node, self.request, self.asks)
        self._now += count - self.roomy.get(node, 0)
        if count:
            self.roomy[node] = count
        else:
            self.roomy.pop(node, None)

    def _look_ahead(self, grace_ms: int, now: int) -> None:
        numbers = {node.number for node in self._unknown}
        self._rises = [rise for rise in self._rises if rise[2] not in numbers]
        for node in self._unknown:
            steps = steps_of(node, self.request, grace_ms, now)
            if steps:
                self._first[node] = steps[0][0]
            else:
                self._first.pop(node, None)
            self._rises += rises_of(steps, node.number)
        self._rises.sort()
        self._unknown.clear()


class Ends:
    """By when attempts are due, in order, and how many chunks each holds."""

    def __init__(self) -> None:
        self.list: list[tuple[int, int, int]] = []

    def add(self, attempt: Attempt, due: int) -> None:
        """It holds room from now on."""
        attempt.due = due
        insort(self.list, (due, attempt.sequence, attempt.size))

    def remove(self, attempt: Attempt) -> None:
        """It does not any more."""
        place = bisect_left(self.list, (attempt.due, attempt.sequence, attempt.size))
        if place < len(self.list) and self.list[place][1] == attempt.sequence:
            del self.list[place]


class PlainBoard:
    """A request for one core each over equal nodes of one core, all up."""

    plain = True

    def __init__(self, kind: Kind, ends: Ends) -> None:
        self.most = len(kind.up)
        self._kind = kind
        self._ends = ends

    def total(self) -> int:
        """How many nodes are idle."""
        return self._kind.idle

    def earliest(self, wanted: int) -> int | None:
        """The first instant at which so many are, 0 for now; None for never.

        Right only while nothing is late and no room was given away twice.
        """
        wanted -= self._kind.idle
        if wanted <= 0:
            return 0
        for due, _, size in self._ends.list:
            wanted -= size
            if wanted <= 0:
                return due
        return None


AnyBoard = Board | PlainBoard


def earliest_without(
    request: Request,
    nodes: Sequence[Node],
    grace_ms: int,
    now: int,
    without: Collection[Attempt],
) -> int | None:
    """The first instant at which the request fits if those attempts had not been placed."""
    rises: list[Rise] = []
    for node in nodes:
        rises += rises_of(steps_of(node, request, grace_ms, now, without), node.number)
    rises.sort()
    return reached(rises, request.nodes)


def rises_of(steps: Sequence[tuple[int, int]], number: int) -> list[Rise]:
    """By how much what fits on the node of that number grows."""
    found: list[Rise] = []
    before = 0
    for instant, count in steps:
        found.append((instant, count - before, number))
        before = count
    return found


def reached(rises: Sequence[Rise], wanted: int) -> int | None:
    """The instant at which they come to `wanted`."""
    for instant, more, _ in rises:
        wanted -= more
        if wanted <= 0:
            return instant
    return None
