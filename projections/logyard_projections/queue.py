"""The queue: stages of which ranks wait, in the order in which they are looked at."""

from typing import Literal

import msgspec

from logyard_domain.events import (
    AllocationPlaced,
    AllocationReady,
    AllocationRequeued,
    StageCanceled,
    StageFailed,
    StageFinished,
    StageReady,
    WorkflowCanceled,
    WorkflowFailed,
    WorkflowFinished,
    WorkflowSubmitted,
)
from logyard_domain.records import Record
from logyard_projections.fold import Projection
from logyard_projections.plans import stages_of
from logyard_projections.rows import Rows
from logyard_projections.stages import DAY_MS, STAGES, Stage, place_of, stage_key
from logyard_projections.tables import Table


class Waiting(msgspec.Struct, array_like=True, kw_only=True, gc=False):
    """A stage in the queue: `pending` until what it needs is there, then `ready`.

    `shape` is 0 while pending; `position` is that of the submission, `index` the stage's place in
    the workflow, `since` when it entered the queue as it is there now. Counts are in the stage's
    own row.
    """

    workflow: str
    stage: str
    position: int
    index: int
    name: str
    organization: str
    group: str
    user: str
    priority: int
    score: int
    queue: Literal["pending", "ready"] = "pending"
    shape: int = 0
    since: int = 0
    since_position: int = 0


WAITING = Table(
    "waiting",
    Waiting,
    columns={
        "queue": str,
        "shape": int,
        "score": int,
        "group": str,
        "user": str,
        "workflow": str,
    },
    indexes=[("queue", "score"), ("user", "queue", "score"), ("shape", "queue", "score")],
)


class Owner(msgspec.Struct, array_like=True, gc=False):
    """What the queue says of a workflow, kept while the workflow is alive."""

    name: str
    organization: str
    group: str
    user: str
    priority: int


OWNERS = Table("owners", Owner)


def waiting_key(position: int, index: int, workflow: str, stage: str) -> str:
    """Sorts among equal scores: first come, first looked at; then by the place in the workflow."""
    return f"{position:016d}.{index:06d}/{workflow}/{stage}"


def key_of(waiting: Waiting) -> str:
    return waiting_key(waiting.position, waiting.index, waiting.workflow, waiting.stage)


def stage_waiting_key(stage: Stage) -> str:
    return waiting_key(stage.submitted_position, stage.index, stage.workflow, stage.name)


def _submitted(rows: Rows, record: Record, event: WorkflowSubmitted) -> None:
    owner = Owner(event.name, event.organization, event.group, event.user, event.priority)
    rows.put(OWNERS, event.workflow, owner)
    score = record.at - event.priority * DAY_MS
    for plan in stages_of(event):
        waiting = _waiting(event.workflow, plan.name, record.position, plan.index, owner, score)
        waiting.since, waiting.since_position = record.at, record.position
        key = waiting_key(record.position, plan.index, event.workflow, plan.name)
        rows.put(WAITING, key, waiting)


def _ready(rows: Rows, record: Record, event: StageReady) -> None:
    stage = rows.get(STAGES, stage_key(event.workflow, event.stage))
    if stage is not None:
        _enter(rows, record, stage)


def _placed(rows: Rows, record: Record, event: AllocationPlaced) -> None:
    stage = rows.get(STAGES, place_of(event.allocation).stage_key)
    if stage is not None and not stage.delayed and not stage.waiting:
        rows.delete(WAITING, stage_waiting_key(stage))


def _again(rows: Rows, record: Record, event: AllocationRequeued | AllocationReady) -> None:
    stage = rows.get(STAGES, place_of(event.allocation).stage_key)
    if stage is not None and rows.get(WAITING, stage_waiting_key(stage)) is None:
        _enter(rows, record, stage)


def _over(rows: Rows, record: Record, event: StageFinished | StageFailed | StageCanceled) -> None:
    stage = rows.get(STAGES, stage_key(event.workflow, event.stage))
    if stage is not None:
        rows.delete(WAITING, stage_waiting_key(stage))


def _ended(
    rows: Rows, record: Record, event: WorkflowFinished | WorkflowFailed | WorkflowCanceled
) -> None:
    rows.delete(OWNERS, event.workflow)


def _enter(rows: Rows, record: Record, stage: Stage) -> None:
    key = stage_waiting_key(stage)
    waiting = rows.edit(WAITING, key)
    if waiting is None:
        owner = rows.get(OWNERS, stage.workflow)
        if owner is None:
            return
        place = (stage.submitted_position, stage.index)
        waiting = _waiting(stage.workflow, stage.name, *place, owner, stage.score)
        rows.put(WAITING, key, waiting)
    waiting.queue = "ready"
    waiting.shape = stage.shape
    waiting.since, waiting.since_position = record.at, record.position


def _waiting(
    workflow: str, stage: str, position: int, index: int, owner: Owner, score: int
) -> Waiting:
    return Waiting(
        workflow=workflow,
        stage=stage,
        position=position,
        index=index,
        name=owner.name,
        organization=owner.organization,
        group=owner.group,
        user=owner.user,
        priority=owner.priority,
        score=score,
    )


PROJECTION = Projection(
    "queue",
    1,
    (WAITING, OWNERS),
    {
        WorkflowSubmitted: _submitted,
        StageReady: _ready,
        AllocationPlaced: _placed,
        AllocationRequeued: _again,
        AllocationReady: _again,
        StageFinished: _over,
        StageFailed: _over,
        StageCanceled: _over,
        WorkflowFinished: _ended,
        WorkflowFailed: _ended,
        WorkflowCanceled: _ended,
    },
)
