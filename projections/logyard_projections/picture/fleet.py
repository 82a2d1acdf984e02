"""The nodes while the log is read: in which state they are, what they offer, what is used of it."""

from logyard_domain.events import NodeRegistered
from logyard_domain.resources import Capacity, Request
from logyard_projections.nodes import amounts_of
from logyard_projections.picture.grid import Course, Grid
from logyard_projections.picture.picture import Load, NodeRow, NodeSpan, Piece
from logyard_projections.picture.slots import Range, Slots

SPANS_MOST = 20_000
ABSENT = ("", "lost")
"""States in which a node offers nothing."""


class _Node:
    def __init__(self, index: int, capacity: Capacity) -> None:
        self.index = index
        self.capacity = capacity
        self.state = ""
        self.since = 0
        self.slots = Slots(capacity.cores)


class Fleet:
    """All nodes that were ever registered, or that something was placed on: the log may begin in
    the middle, and then what a node has is not known.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._nodes: dict[str, _Node] = {}
        self._spans: list[NodeSpan] = []
        self._used: dict[str, Course] = {}
        self._offered: dict[str, Course] = {}

    def registered(self, event: NodeRegistered, at: int) -> None:
        """It is there, or is there with another capacity."""
        node = self._nodes.get(event.node)
        if node is None:
            node = self._nodes[event.node] = _Node(len(self._nodes), event.capacity)
        elif node.state not in ABSENT:
            self._offer(node, at, -1)
        node.capacity = event.capacity
        node.slots.resize(event.capacity.cores)
        if node.state not in ABSENT:
            self._offer(node, at, 1)
        elif not node.state:
            self.turned(event.node, "up", at)

    def turned(self, name: str, state: str, at: int) -> None:
        """It is in another state from now on; an empty one is that it is not there."""
        node = self._nodes.get(name)
        if node is None:
            return
        self._close(node, at)
        if (node.state in ABSENT) != (state in ABSENT):
            self._offer(node, at, -1 if state in ABSENT else 1)
        node.state, node.since = state, at

    def occupy(self, request: Request, chunks: dict[str, int], at: int) -> tuple[Piece, ...]:
        """Take room for so many chunks on each of these nodes."""
        pieces: list[Piece] = []
        for name, count in chunks.items():
            node = self._nodes.get(name)
            if node is None:
                node = self._nodes[name] = _Node(len(self._nodes), Capacity(cores=0, memory=0))
                self.turned(name, "up", at)
            whole = request.exclusive == "job"
            taken = node.slots.take_all() if whole else node.slots.take(count * request.cores)
            pieces += [Piece(node.index, low, cores) for low, cores in taken]
        self._change(self._used, request, at, sum(chunks.values()))
        return tuple(pieces)

    def vacate(
        self, request: Request, chunks: dict[str, int], pieces: tuple[Piece, ...], at: int
    ) -> None:
        """Give it back."""
        names = {self._nodes[name].index: name for name in chunks if name in self._nodes}
        ranges: dict[str, list[Range]] = {}
        for piece in pieces:
            ranges.setdefault(names[piece.node], []).append((piece.low, piece.cores))
        for name, given in ranges.items():
            self._nodes[name].slots.give(tuple(given))
        self._change(self._used, request, at, -sum(chunks.values()))

    def rows(self) -> tuple[NodeRow, ...]:
        """The nodes by index."""
        return tuple(
            NodeRow(name, node.slots.cores, max(node.slots.top, 1))
            for name, node in self._nodes.items()
        )

    def spans(self, at: int) -> tuple[NodeSpan, ...]:
        """In which states they were until `at`, within the span of the grid."""
        for node in self._nodes.values():
            self._close(node, at)
            node.since = at
        return tuple(self._spans)

    def loads(self, at: int) -> tuple[Load, ...]:
        """Of each resource that was both offered and used."""
        return tuple(
            Load(name, used.means(at), self._offered[name].means(at), used.peak)
            for name, used in sorted(self._used.items(), key=_place)
            if name in self._offered and used.total(at) > 0
        )

    def _close(self, node: _Node, at: int) -> None:
        since, until = max(node.since, self._grid.since), min(at, self._grid.until)
        if node.state and since < until:
            self._spans.append(NodeSpan(node.index, node.state, since, until))
            if len(self._spans) > SPANS_MOST:
                self._spans.sort(key=lambda span: span.since - span.until)
                del self._spans[SPANS_MOST // 2 :]

    def _offer(self, node: _Node, at: int, times: int) -> None:
        self._change(self._offered, node.capacity, at, times)

    def _change(
        self, courses: dict[str, Course], amounts: Request | Capacity, at: int, times: int
    ) -> None:
        for name, amount in amounts_of(amounts).items():
            if amount:
                course = courses.get(name)
                if course is None:
                    course = courses[name] = Course(self._grid)
                course.change(at, times * amount)


def _place(entry: tuple[str, Course]) -> tuple[int, str]:
    """Cores first, then memory, then devices by name."""
    order = {"cores": 0, "memory": 1}
    return order.get(entry[0], 2), entry[0]
