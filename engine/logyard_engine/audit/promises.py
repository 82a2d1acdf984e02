"""Promises to the first in line: made, moved, taken back and kept, and what may move them."""

from collections.abc import Mapping

from logyard_domain.events import ReservationHeld, ReservationMoved, ReservationReleased
from logyard_engine.audit.findings import Ledger
from logyard_engine.audit.fleet import Node
from logyard_engine.audit.state import State
from logyard_engine.audit.work import Attempt, Promise


class Promises:
    """Events of promises: I5 and I6."""

    def __init__(self, state: State, ledger: Ledger) -> None:
        self._state = state
        self._ledger = ledger

    def held(self, event: ReservationHeld) -> None:
        """The first in line gets a promise."""
        state = self._state
        state.settle()
        self._ledger.checked["I3"] += 1
        name = event.allocation
        if name in state.promises:
            self._ledger.breach("I3", name, "it got a promise, and has one")
            return
        id, _, rest = name.partition("/")
        workflow = state.workflows.get(id)
        stage = workflow.stages.get(rest.rpartition("/")[0]) if workflow is not None else None
        if stage is None or stage.shape is None:
            self._ledger.breach("I3", name, "it got a promise, and its stage is not ready")
            return
        promise = state.promises[name] = Promise(name, stage, state.known(stage.shape))
        self._takes(promise, event.at, event.chunks)

    def moved(self, event: ReservationMoved) -> None:
        """It is promised another instant or other nodes."""
        state = self._state
        state.settle()
        self._ledger.checked["I3"] += 1
        promise = state.promises.get(event.allocation)
        if promise is None:
            self._ledger.breach("I3", event.allocation, "its promise moved, and it has none")
            return
        self._judged(promise, event)
        self._leaves(promise)
        self._takes(promise, event.at, event.chunks)

    def released(self, event: ReservationReleased) -> None:
        """The promise is taken back."""
        self._ledger.checked["I3"] += 1
        promise = self._state.promises.pop(event.allocation, None)
        if promise is None:
            self._ledger.breach(
                "I3", event.allocation, "its promise was taken back, and it has none"
            )
            return
        self._leaves(promise)
        self._state.dirty = True

    def kept(self, attempt: Attempt) -> None:
        """It is placed, and no later than was promised."""
        promise = self._state.promises.pop(attempt.id, None)
        if promise is None:
            return
        self._ledger.checked["I6"] += 1
        self._leaves(promise)
        late_ms = self._state.at - promise.at
        if late_ms > 0:
            causes = self._causes(promise)
            if not causes - {"outranked"}:
                self._ledger.breach(
                    "I6",
                    attempt.id,
                    f"it was placed {late_ms} ms after the promised instant {promise.at}",
                )

    def _takes(self, promise: Promise, at: int, chunks: Mapping[str, int]) -> None:
        state = self._state
        promise.at = at
        promise.position = state.position
        promise.fresh = True
        promise.chunks = {}
        for name, count in chunks.items():
            node = state.fleet.nodes.get(name)
            if node is None:
                self._ledger.breach("I4", promise.allocation, f"promised node {name} is not there")
                continue
            promise.chunks[node] = count
            node.promise = promise
        if state.plain:
            promise.idle = sum(node.free_cores > 0 for node in promise.chunks)
        state.dirty = True

    def _leaves(self, promise: Promise) -> None:
        for node in promise.chunks:
            if node.promise is promise:
                node.promise = None

    # What moves a promise

    def _judged(self, promise: Promise, event: ReservationMoved) -> None:
        self._ledger.checked["I5"] += 1
        name, slip_ms = promise.allocation, event.at - promise.at
        if slip_ms <= 0:
            if event.cause != "earlier":
                self._ledger.breach(
                    "I5",
                    name,
                    f"its promise did not get later, and {event.cause} is named as cause",
                )
            return
        causes = self._causes(promise)
        what = f"its promise got {slip_ms} ms later"
        if not causes:
            self._ledger.breach("I5", name, f"{what}, and no cause lies between")
        elif event.cause not in causes:
            self._ledger.breach(
                "I5",
                name,
                f"{what}; {event.cause} is named and {', '.join(sorted(causes))} lies between",
            )
        elif event.because and not self._is_cause(promise, event):
            self._ledger.breach(
                "I5", name, f"{what}; position {event.because} is named, and is no cause of it"
            )

    def _is_cause(self, promise: Promise, event: ReservationMoved) -> bool:
        state = self._state
        if event.cause == "outranked":
            return any(one.position == event.because for one, _ in state.turn.given)
        last = state.fleet.changed_at if event.cause == "node" else state.ranking.changed_at
        return promise.position < event.because <= last

    def _causes(self, promise: Promise) -> set[str]:
        """What lies between the last word about it and now that may have moved it."""
        state = self._state
        found: set[str] = set()
        if state.fleet.changed_at > promise.position:
            found.add("node")
        if state.ranking.changed_at > promise.position:
            found.add("policy")
        kinds = state.known(promise.shape).kinds
        state.ranking.refresh(state.at)
        for attempt, key in state.turn.given:
            if key <= promise.stage.key and _touches(attempt, kinds):
                found.add("outranked")
        state.notice_late(state.at)
        if any(node.overran > promise.position for node in self._nodes(kinds)):
            found.add("overrun")
        return found

    def _nodes(self, kinds: frozenset[int]) -> list[Node]:
        return list(self._state.fleet.up(kinds))


def _touches(attempt: Attempt, kinds: frozenset[int]) -> bool:
    return any(node.kind is not None and node.kind.number in kinds for node, _ in attempt.chunks)
