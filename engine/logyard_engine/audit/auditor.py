"""The audit itself: takes the records of a log one by one, and gives the report."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationReady,
    AllocationRequeued,
    AllocationSeated,
    AllocationStarted,
    AllocationStopping,
    ConfigSet,
    GroupDeleted,
    GroupUpdated,
    NodeCordoned,
    NodeDrained,
    NodeDraining,
    NodeLost,
    NodeRegistered,
    NodeRemoved,
    NodeReturned,
    NodeUncordoned,
    OrganizationUpdated,
    ReservationHeld,
    ReservationMoved,
    ReservationReleased,
    ServerStarted,
    ServerStopped,
    ShapeDeclared,
    ShapeHeld,
    ShapeReleased,
    StageCanceled,
    StageFailed,
    StageFinished,
    StageReady,
    StageStarted,
    UserUpdated,
    WorkflowCanceled,
    WorkflowFailed,
    WorkflowFinished,
    WorkflowStarted,
    WorkflowStopping,
    WorkflowSubmitted,
)
from logyard_domain.records import Record
from logyard_engine.audit.attempts import Attempts
from logyard_engine.audit.conclusions import Conclusions
from logyard_engine.audit.evictions import Evictions
from logyard_engine.audit.findings import Ledger, Report
from logyard_engine.audit.lives import Lives
from logyard_engine.audit.nodes import Nodes
from logyard_engine.audit.precedence import Precedence
from logyard_engine.audit.promises import Promises
from logyard_engine.audit.rules import RULE_IDS
from logyard_engine.audit.settings import Settings
from logyard_engine.audit.state import State, Turn

PROGRESS_EVERY = 2_000
TICK, SETTLED = "scheduler", "engine"


class Auditor:
    """Audits a log from its first record on; also while it is being written."""

    def __init__(self, rules: Collection[str] = RULE_IDS) -> None:
        """Raises ValueError where one of `rules` is no rule."""
        self._ledger = ledger = Ledger(rules)
        self._state = state = State()
        self._cluster = ""
        self._records = 0
        self._actor = ""
        self._cause = ""
        self._precedence = Precedence(state, ledger)
        self._evictions = Evictions(state, ledger)
        self._lives = lives = Lives(state, ledger)
        self._nodes = nodes = Nodes(state, ledger)
        self._conclusions = conclusions = Conclusions(state, ledger)
        promises = Promises(state, ledger)
        settings = Settings(state, ledger)
        self._attempts = attempts = Attempts(
            state, ledger, self._precedence, promises, self._evictions
        )
        self._take: dict[type, Callable[[Any], None]] = {
            ServerStarted: settings.server_started,
            ServerStopped: settings.server_stopped,
            ConfigSet: settings.config,
            OrganizationUpdated: settings.organization,
            GroupUpdated: settings.group,
            GroupDeleted: settings.group_deleted,
            UserUpdated: settings.user,
            NodeRegistered: nodes.registered,
            NodeCordoned: nodes.changed,
            NodeUncordoned: nodes.changed,
            NodeDraining: nodes.changed,
            NodeDrained: nodes.changed,
            NodeLost: nodes.changed,
            NodeReturned: nodes.changed,
            NodeRemoved: nodes.removed,
            WorkflowSubmitted: lives.submitted,
            WorkflowStarted: lives.workflow_started,
            WorkflowStopping: lives.stopping,
            WorkflowFinished: lives.finished,
            WorkflowFailed: lives.failed,
            WorkflowCanceled: lives.canceled,
            StageReady: lives.ready,
            StageStarted: lives.stage_started,
            StageFinished: lives.stage_finished,
            StageFailed: lives.stage_failed,
            StageCanceled: lives.stage_canceled,
            ShapeDeclared: conclusions.declared,
            ShapeHeld: conclusions.held,
            ShapeReleased: conclusions.released,
            ReservationHeld: promises.held,
            ReservationMoved: promises.moved,
            ReservationReleased: promises.released,
            AllocationPlaced: attempts.placed,
            AllocationSeated: attempts.seated,
            AllocationStarted: attempts.started,
            AllocationStopping: attempts.stopping,
            AllocationEnded: attempts.ended,
            AllocationRequeued: lives.requeued,
            AllocationReady: lives.waits_again,
        }

    def take(self, record: Record) -> None:
        """One more record."""
        state, ledger = self._state, self._ledger
        if self._records and self._is_new_turn(record):
            self._conclude()
        self._timely(record)
        state.position = ledger.position = record.position
        state.at = ledger.at = max(record.at, state.at)
        self._actor, self._cause = record.actor, record.cause
        self._records += 1
        take = self._take.get(type(record.event))
        if take is not None:
            take(record.event)

    def report(self) -> Report:
        """The whole audit; the last record ends the last turn. Ask once."""
        if self._records:
            self._conclude()
            self._nodes.account()
        return Report(
            self._cluster, self._records, len(self._state.workflows), self._ledger.verdicts()
        )

    def _is_new_turn(self, record: Record) -> bool:
        """A turn has one instant: commands first, then what follows of them, then the tick."""
        if record.at != self._state.at:
            return True
        if self._actor == TICK:
            return record.actor != TICK or record.cause != self._cause
        if self._actor == SETTLED and self._cause[:1] == "@":
            return record.cause != self._cause or record.actor not in (TICK, SETTLED)
        return False

    def _timely(self, record: Record) -> None:
        """I12."""
        state, ledger = self._state, self._ledger
        ledger.checked["I12"] += 1
        position = record.position
        ledger.position, ledger.at = position, record.at
        if position != state.position + 1:
            ledger.breach("I12", record.actor, f"position {position} follows on {state.position}")
        if record.at < state.at:
            ledger.breach(
                "I12", record.actor, f"the instant goes back by {state.at - record.at} ms"
            )
        if record.cluster != self._cluster:
            if self._records:
                ledger.breach("I12", record.actor, f"a record of cluster {record.cluster}")
            self._cluster = self._cluster or record.cluster
        cause = record.cause
        if cause != self._cause and record.actor in (TICK, SETTLED) and cause[:1] == "@":
            basis = int(cause[1:]) if cause[1:].isdigit() else -1
            if basis != position - 1:
                ledger.breach(
                    "I12", record.actor, f"it is based on {cause}, and @{position - 1} came before"
                )

    def _conclude(self) -> None:
        """A turn is over."""
        state = self._state
        turn = state.turn
        if turn.touched or turn.ended:
            self._lives.conclude()
        if turn.doomed or turn.nodes:
            self._nodes.conclude()
        if turn.seatable:
            self._attempts.conclude()
        if turn.evicted:
            self._evictions.conclude()
        cut = len(turn.placed) >= int(state.config["scheduler.placementsPerTick"])
        if state.dirty or state.late or state.ranking.moving:
            self._conclusions.conclude(cut)
        if turn.backfilled or turn.passed:
            self._precedence.conclude()
        state.turn = Turn(turn.given if cut else ())


def audit(
    records: Iterable[Record],
    rules: Collection[str] = RULE_IDS,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Audit the records of a whole log. `progress` hears how many were taken, now and then."""
    auditor = Auditor(rules)
    count = 0
    for record in records:
        auditor.take(record)
        count += 1
        if progress is not None and count % PROGRESS_EVERY == 0:
            progress(count)
    return auditor.report()
