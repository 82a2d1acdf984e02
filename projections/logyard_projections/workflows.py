"""Workflows: who sent them, where they stand, what became of their stages."""

from typing import Literal

import msgspec

from logyard_domain.definition import Workflow as Definition
from logyard_domain.events import (
    StageCanceled,
    StageFailed,
    StageFinished,
    StageStarted,
    WorkflowCanceled,
    WorkflowFailed,
    WorkflowFinished,
    WorkflowStarted,
    WorkflowStopping,
    WorkflowSubmitted,
)
from logyard_domain.records import Record
from logyard_projections.fold import Projection
from logyard_projections.plans import stages_of
from logyard_projections.rows import Rows
from logyard_projections.stages import STAGES, stage_key
from logyard_projections.tables import Table

Status = Literal["pending", "started", "finished", "failed", "canceled"]
ENDED: frozenset[str] = frozenset(("finished", "failed", "canceled"))


class Workflow(msgspec.Struct, array_like=True, kw_only=True, gc=False):
    """One workflow. `stopping` tells that somebody asked to stop it.

    Counts are of stages; `jobs` of those that are jobs. `failed_stage` failed first. `position` is
    the last one that changed it.
    """

    id: str
    name: str
    key: str
    organization: str
    group: str
    user: str
    priority: int
    preemptible: bool
    timeout_ms: int
    created: int
    submitted_position: int
    position: int
    stages: int
    jobs: int
    ranks: int
    status: Status = "pending"
    started: int = 0
    ended: int = 0
    running_stages: int = 0
    finished_stages: int = 0
    failed_stages: int = 0
    canceled_stages: int = 0
    finished_jobs: int = 0
    stopping: bool = False
    reason: str = ""
    failed_stage: str = ""
    error: str = ""


class Source(msgspec.Struct, array_like=True, gc=False):
    """What was sent: the definition as loaded, and the text."""

    definition: Definition
    text: str


WORKFLOWS = Table(
    "workflows",
    Workflow,
    columns={
        "status": str,
        "organization": str,
        "group": str,
        "user": str,
        "name": str,
        "created": int,
        "priority": int,
    },
    indexes=[
        ("created",),
        ("status", "created"),
        ("user", "created"),
        ("group", "created"),
    ],
)
SOURCES = Table("sources", Source)


def _submitted(rows: Rows, record: Record, event: WorkflowSubmitted) -> None:
    stages = stages_of(event)
    workflow = Workflow(
        id=event.workflow,
        name=event.name,
        key=event.key,
        organization=event.organization,
        group=event.group,
        user=event.user,
        priority=event.priority,
        preemptible=event.preemptible,
        timeout_ms=event.timeout_ms,
        created=record.at,
        submitted_position=record.position,
        position=record.position,
        stages=len(stages),
        jobs=sum(stage.kind == "job" for stage in stages),
        ranks=sum(stage.last - stage.first + 1 for stage in stages if stage.kind == "job"),
    )
    rows.put(WORKFLOWS, event.workflow, workflow)
    rows.put(SOURCES, event.workflow, Source(event.definition, event.source))


def _started(rows: Rows, record: Record, event: WorkflowStarted) -> None:
    workflow = _touched(rows, record, event.workflow)
    if workflow is not None:
        workflow.status = "started"
        workflow.started = record.at


def _stopping(rows: Rows, record: Record, event: WorkflowStopping) -> None:
    workflow = _touched(rows, record, event.workflow)
    if workflow is not None:
        workflow.stopping = True
        workflow.reason = event.reason


def _finished(rows: Rows, record: Record, event: WorkflowFinished) -> None:
    _over(rows, record, event.workflow, "finished")


def _failed(rows: Rows, record: Record, event: WorkflowFailed) -> None:
    workflow = _over(rows, record, event.workflow, "failed")
    if workflow is not None:
        workflow.failed_stage = event.stage
        workflow.error = event.error


def _canceled(rows: Rows, record: Record, event: WorkflowCanceled) -> None:
    _over(rows, record, event.workflow, "canceled")


def _stage_started(rows: Rows, record: Record, event: StageStarted) -> None:
    workflow = _touched(rows, record, event.workflow)
    if workflow is not None:
        workflow.running_stages += 1


def _stage_finished(rows: Rows, record: Record, event: StageFinished) -> None:
    workflow = _stage_over(rows, record, event)
    if workflow is not None:
        workflow.finished_stages += 1
        stage = rows.get(STAGES, stage_key(event.workflow, event.stage))
        workflow.finished_jobs += stage is not None and stage.kind == "job"


def _stage_failed(rows: Rows, record: Record, event: StageFailed) -> None:
    workflow = _stage_over(rows, record, event)
    if workflow is not None:
        workflow.failed_stages += 1
        if not workflow.failed_stage:
            workflow.failed_stage = event.stage
            workflow.error = event.error


def _stage_canceled(rows: Rows, record: Record, event: StageCanceled) -> None:
    workflow = _stage_over(rows, record, event)
    if workflow is not None:
        workflow.canceled_stages += 1


def _stage_over(
    rows: Rows, record: Record, event: StageFinished | StageFailed | StageCanceled
) -> Workflow | None:
    workflow = _touched(rows, record, event.workflow)
    stage = rows.get(STAGES, stage_key(event.workflow, event.stage))
    if workflow is not None and stage is not None and stage.started_at:
        workflow.running_stages -= 1
    return workflow


def _over(rows: Rows, record: Record, id: str, status: Status) -> Workflow | None:
    workflow = _touched(rows, record, id)
    if workflow is not None:
        workflow.status = status
        workflow.ended = record.at
    return workflow


def _touched(rows: Rows, record: Record, id: str) -> Workflow | None:
    workflow = rows.edit(WORKFLOWS, id)
    if workflow is not None:
        workflow.position = record.position
    return workflow


PROJECTION = Projection(
    "workflows",
    1,
    (WORKFLOWS, SOURCES),
    {
        WorkflowSubmitted: _submitted,
        WorkflowStarted: _started,
        WorkflowStopping: _stopping,
        WorkflowFinished: _finished,
        WorkflowFailed: _failed,
        WorkflowCanceled: _canceled,
        StageStarted: _stage_started,
        StageFinished: _stage_finished,
        StageFailed: _stage_failed,
        StageCanceled: _stage_canceled,
    },
)
