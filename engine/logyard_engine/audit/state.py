"""Everything that the audit knows at one position of the log, and the turn that it is in."""

from collections.abc import Sequence
from heapq import heappop, heappush

from logyard_domain.configuration import DEFAULTS, Value
from logyard_domain.expressions import DEFAULT_PRIORITY, Expression
from logyard_engine.audit.boards import Board, Ends, PlainBoard
from logyard_engine.audit.ends import due
from logyard_engine.audit.fleet import Fleet, Node
from logyard_engine.audit.ranking import Ranking
from logyard_engine.audit.work import Attempt, Key, Promise, Shape, Stage, Workflow

JOURNAL_MAX = 100_000


class Turn:
    """What happened in the present turn, and in its tick. `before` are placements of ticks just
    before it that were cut off by their limit and told of no promises.
    """

    def __init__(self, before: Sequence[tuple[Attempt, Key]] = ()) -> None:
        self.before = before
        self.touched: dict[Stage, None] = {}
        """Stages that something happened to."""
        self.nodes: dict[str, None] = {}
        """Nodes that may have become empty."""
        self.doomed: list[Attempt] = []
        """Attempts whose node was lost or started anew: they end in this turn."""
        self.ended: dict[tuple[Stage, int], Attempt] = {}
        """(stage, rank) -> the attempt of it that ended and has no successor yet."""
        self.placed: list[tuple[Attempt, Key]] = []
        """What the tick placed, other than behind others, and the order it had."""
        self.lined: list[tuple[Attempt, Key]] = []
        """The same of what it placed behind others."""
        self.passed: list[tuple[Attempt, Stage]] = []
        """What was placed in order, and a stage before it that waits for the same nodes."""
        self.seatable: dict[Attempt, None] = {}
        """Attempts whose victims have all ended."""
        self.evicted: dict[str, list[Attempt]] = {}
        """Preemptor -> its victims of this tick."""
        self.evictions = 0
        self.backfilled = 0

    @property
    def given(self) -> tuple[tuple[Attempt, Key], ...]:
        """All that was placed since promises were last told of."""
        return (*self.before, *self.placed, *self.lined)


class State:
    """The fold of a log as far as it was read."""

    def __init__(self) -> None:
        self.position = 0
        self.at = 0
        self.config: dict[str, Value] = dict(DEFAULTS)
        self.grace_ms = 0
        self.term = 0
        self.revision = 0
        self.fleet = Fleet()
        self.ranking = Ranking()
        self.workflows: dict[str, Workflow] = {}
        self.attempts: dict[str, Attempt] = {}
        self.shapes: dict[int, Shape] = {}
        self.promises: dict[str, Promise] = {}
        self.turn = Turn()
        self.pending = 0
        """Attempts that wait for their victims to end."""
        self.lined = 0
        """Attempts that queue behind others."""
        self.late: dict[Attempt, None] = {}
        """What runs longer than it may."""
        self.dirty = False
        """Whether something changed since the last conclusion."""
        self.plain = False
        self.journal: list[Node] = []
        self._ends = Ends()
        self._due: list[tuple[int, int, Attempt]] = []
        """Heap of attempts by when they are due; may hold stale entries."""
        self._pushed = 0
        self._boards: dict[tuple[object, ...], Board] = {}
        self.configure({}, {})

    def configure(self, values: dict[str, Value], formulas: dict[str, Expression]) -> None:
        """These settings are in force."""
        self.config = DEFAULTS | values
        self.ranking.half_life_ms = int(self.config["usage.halfLife"])
        self.ranking.formula(formulas.get("scheduler.priority", DEFAULT_PRIORITY))
        grace_ms = int(self.config["workflow.killGrace"])
        if grace_ms != self.grace_ms:
            self.grace_ms = grace_ms
            self.fleet.version += 1
            for promise in self.promises.values():
                promise.fresh = True
            self._due = []
            for one in self.attempts.values():
                if one.since:
                    self._push(one, due(one, grace_ms))

    # Nodes

    def settle(self) -> None:
        """Take over what changed of the nodes, before anything is asked about them."""
        if len(self.journal) > JOURNAL_MAX:
            self.fleet.version += 1
        if not self.fleet.sort():
            return
        self.plain = self.fleet.plain
        self.journal.clear()
        self._boards.clear()
        self._ends = Ends()
        for node in self.fleet.nodes.values():
            node.releases = None
        if self.plain:
            for one in self.attempts.values():
                if one.since and one.request.cores:
                    self._ends.add(one, due(one, self.grace_ms))
            for promise in self.promises.values():
                promise.idle = sum(node.free_cores > 0 for node in promise.chunks)
                promise.fresh = True

    def known(self, shape: Shape) -> Shape:
        """The shape, with what the present nodes mean for it."""
        version = self.fleet.version
        if shape.version == version:
            return shape
        shape.version = version
        request = shape.request
        shape.kinds = frozenset(
            kind.number for kind in self.fleet.kinds if not kind.sample.lacks(request)
        )
        shape.board = None
        board = self.board(shape)
        shape.placeable = board.most >= request.nodes
        return shape

    def board(self, shape: Shape) -> Board | PlainBoard:
        """How much of it fits now and later."""
        if shape.board is not None:
            return shape.board
        request = shape.request
        if self.plain and request.cores == 1 and request.exclusive == "none" and shape.kinds:
            shape.board = PlainBoard(self.fleet.kinds[0], self._ends)
            return shape.board
        if self.plain:
            # What changes is not noted down here, so a board is good for one look.
            return self.fresh_board(shape)
        key = (
            shape.kinds, request.cores, request.memory, request.devices,
            request.exclusive == "none", shape.asks,
        )  # fmt: skip
        board = self._boards.get(key)
        if board is None:
            board = self._boards[key] = self.fresh_board(shape)
        shape.board = board
        return board

    def fresh_board(self, shape: Shape) -> Board:
        """One that has looked at every node."""
        nodes = list(self.fleet.up(shape.kinds))
        if self.plain:
            for node in nodes:
                node.releases = None
        return Board(shape.request, shape.asks, nodes, self.journal)

    def stirred(self, attempt: Attempt) -> None:
        """It ends at another time than it would have."""
        if not self.plain:
            for node, _ in attempt.chunks:
                node.releases = None
                self.journal.append(node)
        if attempt.since:
            end = due(attempt, self.grace_ms)
            self._push(attempt, end)
            if self.plain and attempt.request.cores:
                self._ends.remove(attempt)
                self._ends.add(attempt, end)

    # Attempts and their room

    def occupy(self, attempt: Attempt) -> None:
        """It holds its chunks, or has them given."""
        request = attempt.request
        if self.plain and request.cores:
            for node, chunks in attempt.chunks:
                node.holders[attempt] = chunks
                if node.free_cores == 1:
                    kind = node.kind
                    assert kind is not None
                    kind.idle -= 1
                    if node.promise is not None:
                        node.promise.idle -= 1
                node.take(request, chunks)
        else:
            for node, chunks in attempt.chunks:
                node.holders[attempt] = chunks
                node.take(request, chunks)
            if not self.plain:
                self.journal += [node for node, _ in attempt.chunks]

    def vacate(self, attempt: Attempt) -> None:
        """It gives them back."""
        request = attempt.request
        plain = self.plain and request.cores
        for node, chunks in attempt.chunks:
            if node.holders.pop(attempt, None) is None:
                continue
            node.give(request, chunks)
            if plain and node.free_cores == 1:
                kind = node.kind
                assert kind is not None
                kind.idle += 1
                if node.promise is not None:
                    node.promise.idle += 1
        if not self.plain:
            self.journal += [node for node, _ in attempt.chunks]

    def begin(self, attempt: Attempt) -> None:
        """It got its room at this instant."""
        attempt.since = self.at
        self.expect(attempt)

    def expect(self, attempt: Attempt) -> None:
        """Note by when it should end."""
        end = due(attempt, self.grace_ms)
        self._push(attempt, end)
        if self.plain and attempt.request.cores:
            self._ends.add(attempt, end)

    def _push(self, attempt: Attempt, end: int) -> None:
        self._pushed += 1
        heappush(self._due, (end, self._pushed, attempt))

    def forget(self, attempt: Attempt) -> None:
        """It has ended."""
        self.late.pop(attempt, None)
        if self.plain and attempt.request.cores and attempt.since:
            self._ends.remove(attempt)

    def notice_late(self, now: int) -> None:
        """See what runs longer than it may at this instant; it is expected anew each time."""
        heap = self._due
        while heap and heap[0][0] <= now:
            _, _, attempt = heappop(heap)
            if self.attempts.get(attempt.id) is not attempt:
                continue
            end = due(attempt, self.grace_ms)
            if end <= now:
                self.late[attempt] = None
            else:
                self._push(attempt, end)
        for attempt in list(self.late):
            end = due(attempt, self.grace_ms)
            if end > now:
                del self.late[attempt]
                self._push(attempt, end)
            self.overran(attempt)
            self.stirred(attempt)
            if attempt.claimant is not None:
                self.stirred(attempt.claimant)

    def overran(self, attempt: Attempt) -> None:
        """It runs longer than it may, and whoever waits for its room has it later."""
        for node, _ in attempt.chunks:
            node.overran = self.position
        if attempt.claimant is not None:
            self.overran(attempt.claimant)

    # The queue

    def queue(self, stage: Stage) -> None:
        """Let it wait, or not wait any more, as its state says."""
        if stage.open:
            if not stage.queued:
                self.ranking.enqueue(stage)
                self.dirty = True
        elif stage.queued:
            self.ranking.dequeue(stage)
            self.dirty = True
