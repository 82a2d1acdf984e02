"""Which workflow, group and node a record belongs to, and where the records of a workflow are."""

from functools import lru_cache
from typing import Any

import msgspec

from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationReady,
    AllocationRequeued,
    AllocationSeated,
    AllocationStarted,
    AllocationStopping,
    AnyEvent,
    NodeCordoned,
    NodeDrained,
    NodeDraining,
    NodeLost,
    NodeRegistered,
    NodeRemoved,
    NodeReturned,
    NodeUncordoned,
    ReservationHeld,
    ReservationMoved,
    ReservationReleased,
    StageCanceled,
    StageFailed,
    StageFinished,
    StageReady,
    StageStarted,
    VolumesRemoved,
    WorkflowCanceled,
    WorkflowFailed,
    WorkflowFinished,
    WorkflowStarted,
    WorkflowStopping,
    WorkflowSubmitted,
)
from logyard_domain.records import Record
from logyard_projections.fold import Handler, Projection
from logyard_projections.rows import Rows
from logyard_projections.tables import Table

OF_WORKFLOW: tuple[type[Any], ...] = (
    WorkflowSubmitted,
    WorkflowStarted,
    WorkflowStopping,
    WorkflowFinished,
    WorkflowFailed,
    WorkflowCanceled,
    VolumesRemoved,
    StageReady,
    StageStarted,
    StageFinished,
    StageFailed,
    StageCanceled,
)
OF_ALLOCATION: tuple[type[Any], ...] = (
    AllocationPlaced,
    AllocationSeated,
    AllocationStarted,
    AllocationStopping,
    AllocationEnded,
    AllocationRequeued,
    AllocationReady,
    ReservationHeld,
    ReservationMoved,
    ReservationReleased,
)
OF_NODE: tuple[type[Any], ...] = (
    NodeRegistered,
    NodeCordoned,
    NodeUncordoned,
    NodeDraining,
    NodeDrained,
    NodeLost,
    NodeReturned,
    NodeRemoved,
)
_IN_WORKFLOW = frozenset(OF_WORKFLOW)
_IN_ALLOCATION = frozenset(OF_ALLOCATION)
SPAN_BITS = 10
"""Positions are kept in maps of 1024 bits."""


class Activity(msgspec.Struct, array_like=True, gc=False):
    """Which positions from `start` on belong to a workflow: bit n of `positions` is `start` + n."""

    start: int
    positions: bytearray

    def __copy__(self) -> "Activity":
        return Activity(self.start, bytearray(self.positions))


ACTIVITY = Table("activity", Activity)


def workflow_of(event: AnyEvent) -> str:
    """The workflow that an event belongs to, or nothing."""
    kind = type(event)
    if kind in _IN_ALLOCATION:
        allocation: str = getattr(event, "allocation", "")
        return allocation.partition("/")[0]
    workflow: str = getattr(event, "workflow", "") if kind in _IN_WORKFLOW else ""
    return workflow


def activity_prefix(workflow: str) -> str:
    """Keys of a workflow's activity begin so."""
    return f"{workflow}/"


@lru_cache(maxsize=1024)
def activity_key(workflow: str, span: int) -> str:
    return f"{activity_prefix(workflow)}{span:013d}"


def _submitted(rows: Rows, record: Record, event: WorkflowSubmitted) -> None:
    # Nothing of this workflow was noted before, so nothing has to be looked up.
    _put(rows, activity_key(event.workflow, record.position >> SPAN_BITS), record.position)
    _note(rows, event.workflow, record.position)


def _of_workflow(rows: Rows, record: Record, event: Any) -> None:
    _note(rows, event.workflow, record.position)


def _of_allocation(rows: Rows, record: Record, event: Any) -> None:
    _note(rows, event.allocation.partition("/")[0], record.position)


def _stopping(rows: Rows, record: Record, event: AllocationStopping) -> None:
    workflow, preemptor = event.allocation.partition("/")[0], event.by.partition("/")[0]
    _note(rows, workflow, record.position)
    if preemptor and preemptor != workflow:
        # An eviction belongs to both sides.
        _note(rows, preemptor, record.position)


def _note(rows: Rows, workflow: str, position: int) -> None:
    key = activity_key(workflow, position >> SPAN_BITS)
    activity = rows.edit(ACTIVITY, key)
    if activity is None:
        activity = _put(rows, key, position)
    bit = position - activity.start
    activity.positions[bit >> 3] |= 1 << (bit & 7)


def _put(rows: Rows, key: str, position: int) -> Activity:
    start = position >> SPAN_BITS << SPAN_BITS
    activity = Activity(start, bytearray(1 << SPAN_BITS - 3))
    rows.put(ACTIVITY, key, activity)
    return activity


_HANDLERS: dict[type, Handler] = {
    **dict.fromkeys(OF_WORKFLOW, _of_workflow),
    **dict.fromkeys(OF_ALLOCATION, _of_allocation),
    WorkflowSubmitted: _submitted,
    AllocationStopping: _stopping,
}

PROJECTION = Projection("streams", 2, (ACTIVITY,), _HANDLERS)
