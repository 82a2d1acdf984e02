"""Who may be placed before whom."""

from logyard_engine.audit.findings import Ledger
from logyard_engine.audit.state import State
from logyard_engine.audit.work import Attempt, Key, Shape, Stage


class Precedence:
    """I8 and I10 at each placement, I13 at the end of the tick."""

    def __init__(self, state: State, ledger: Ledger) -> None:
        self._state = state
        self._ledger = ledger

    def in_order(self, attempt: Attempt) -> None:
        """It is its turn: what comes before it does not wait for the same nodes, or stands behind
        somebody else's promise for others of its nodes, which the end of the tick tells.
        """
        state = self._state
        checked = self._ledger.checked
        checked["I8"] += 1
        checked["I10"] += 1
        stage = attempt.stage
        shape = stage.shape
        assert shape is not None
        for other in state.ranking.waiting:
            key, first = other.queue[0]
            if first is stage or key >= stage.key:
                continue
            if not self._contend(other, shape):
                continue
            if state.ranking.precedes(first, stage, state.at):
                state.turn.passed.append((attempt, first))

    def _contend(self, other: Shape, shape: Shape) -> bool:
        self._state.known(other)
        return other.placeable and not other.kinds.isdisjoint(shape.kinds)

    def backfilled(self, attempt: Attempt) -> None:
        """Of those that are equal to it none comes before it, unless with a longer time limit."""
        self._ledger.checked["I8"] += 1
        stage = attempt.stage
        shape = stage.shape
        assert shape is not None
        for key, first in shape.queue:
            if key >= stage.key:
                return
            if first.limit_ms > stage.limit_ms:
                continue
            if self._state.ranking.precedes(first, stage, self._state.at):
                self._ledger.breach(
                    "I8",
                    attempt.id,
                    f"it was placed, though {first.next_waiting()} asks for the same and comes "
                    "before it",
                )
                return

    def conclude(self) -> None:
        """What was backfilled in this tick stood behind a promise; what was not passed nobody."""
        for attempt, first in self._state.turn.passed:
            if not self._stands_behind(first):
                equal = first.shape is attempt.stage.shape
                rule = "I8" if equal and first.limit_ms <= attempt.stage.limit_ms else "I10"
                self._ledger.breach(
                    rule,
                    attempt.id,
                    f"it was placed in order, though {first.next_waiting()} comes before it and "
                    "waits for the same nodes",
                )
        for attempt, key in self._state.turn.placed:
            if attempt.kind == "backfilled":
                self._ledger.checked["I13"] += 1
                what = self._unbacked(attempt, key)
                if what:
                    self._ledger.breach("I13", attempt.id, what)

    def _stands_behind(self, stage: Stage) -> bool:
        """Whether one that comes before it has a promise for some of its nodes."""
        shape = stage.shape
        assert shape is not None
        return any(
            promise.stage is not stage
            and not promise.shape.kinds.isdisjoint(shape.kinds)
            and self._state.ranking.precedes(promise.stage, stage, self._state.at)
            for promise in self._state.promises.values()
        )

    def _unbacked(self, attempt: Attempt, key: Key) -> str:
        stage = attempt.stage
        shape = stage.shape
        assert shape is not None
        if not attempt.request.bounded or stage.limit_ms <= 0:
            return "it was backfilled and has no time limit"
        for promise in self._state.promises.values():
            if promise.stage is stage or promise.shape.kinds.isdisjoint(shape.kinds):
                continue
            if self._before(promise.stage, stage, key):
                return ""
        return "it was backfilled, though nobody before it has a promise for the same nodes"

    def _before(self, holder: Stage, stage: Stage, key: Key) -> bool:
        if holder.key < key:
            return True
        return self._state.ranking.precedes(holder, stage, self._state.at)
