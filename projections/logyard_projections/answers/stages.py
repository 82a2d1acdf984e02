"""Answers about stages and their allocations."""

from collections.abc import Iterator
from typing import Any

import msgspec

from logyard_domain.expressions import printed
from logyard_projections.answers.ranking import Ranker, Term, finite
from logyard_projections.answers.words import wants
from logyard_projections.entities import ENTITIES, entity_key
from logyard_projections.instants import rfc3339
from logyard_projections.shapes import SHAPES, shape_key
from logyard_projections.stages import (
    ALLOCATIONS,
    OVER,
    STAGES,
    Allocation,
    Stage,
    allocation_key,
    stage_key,
)
from logyard_projections.view import LIMIT_MAX, Page, View

STATUS = {
    "pending": "STAGE_STATUS_UNSPECIFIED",
    "waiting": "STAGE_STATUS_UNSPECIFIED",
    "ready": "STAGE_STATUS_UNSPECIFIED",
    "delayed": "STAGE_STATUS_UNSPECIFIED",
    "placed": "STAGE_STATUS_UNSPECIFIED",
    "started": "STAGE_STATUS_STARTED",
    "running": "STAGE_STATUS_STARTED",
    "stopping": "STAGE_STATUS_STARTED",
    "finished": "STAGE_STATUS_FINISHED",
    "failed": "STAGE_STATUS_FAILED",
    "timeout": "STAGE_STATUS_FAILED",
    "lost": "STAGE_STATUS_FAILED",
    "preempted": "STAGE_STATUS_CANCELED",
    "canceled": "STAGE_STATUS_CANCELED",
}
"""States of workflows, stages, allocations and outcomes as statuses on the wire."""
KINDS = {
    "job": "STAGE_KIND_JOB",
    "volume": "STAGE_KIND_VOLUME",
    "ingress": "STAGE_KIND_FILE",
    "egress": "STAGE_KIND_FILE",
}


class WorkflowStage(msgspec.Struct, frozen=True, rename="camel"):
    """A stage, or one rank of it, on the wire. `details` holds what only Logyard knows."""

    id: str
    name: str
    status: str
    kind: str
    error: str
    create_time: str | None
    start_time: str | None
    end_time: str | None
    details: dict[str, Any]
    rank: int


class StagePriorityDetails(msgspec.Struct, frozen=True, rename="camel"):
    """Where its place in the queue comes from: `terms`, added from the first to the last, give
    `effective_priority` (0 and not `computed` where the expression gives no finite number), by
    `priority_expression`, in force as revision `policy_revision` since `policy_position`.
    """

    allocation_id: str
    effective_priority: float
    computed: bool
    weight: int
    workflow_priority: int
    organization_priority: int
    account_priority: int
    user_priority: int
    priority_expression: str
    create_time: str | None
    queue: str
    queue_time: str | None
    preemptible: bool
    terms: tuple[Term, ...]
    policy_revision: int
    policy_position: int


class DescribedStage(msgspec.Struct, frozen=True, rename="camel"):
    """Ranks of a stage, and its priority."""

    stages: tuple[WorkflowStage, ...]
    priority: StagePriorityDetails | None
    priority_unavailable_reason: str


def instant(at: int) -> str | None:
    """On the wire; None for what has not come."""
    return rfc3339(at) if at else None


def stages_of(view: View, workflow: str) -> Iterator[Stage]:
    """All stages of a workflow, in its order."""
    token = ""
    while True:
        page = view.scan(STAGES, where={"workflow": workflow}, order="index", after=token)
        yield from page.rows
        token = page.token
        if not token:
            return


def stage_answers(view: View, workflow: str) -> tuple[WorkflowStage, ...]:
    """Every stage of a workflow with the counts of its ranks."""
    return tuple(stage_answer(view, stage) for stage in stages_of(view, workflow))


def stage_answer(view: View, stage: Stage) -> WorkflowStage:
    """One stage with the counts of its ranks."""
    shape = view.get(SHAPES, shape_key(stage.shape)) if stage.shape else None
    return WorkflowStage(
        id=stage_key(stage.workflow, stage.name),
        name=stage.name,
        status=STATUS[stage.status],
        kind=KINDS[stage.kind],
        error=stage.error,
        create_time=instant(stage.submitted_at),
        start_time=instant(stage.started_at),
        end_time=instant(stage.ended_at),
        details={
            "title": stage.title,
            "kind": stage.kind,
            "state": stage.status,
            "needs": list(stage.needs),
            "array": stage.array,
            "firstRank": stage.first,
            "lastRank": stage.last,
            "concurrency": min(stage.concurrency, stage.total),
            "ranks": counts(stage),
            "attempts": stage.attempts,
            "shape": stage.shape,
            "wants": wants(shape.request) if shape is not None else "",
            "readyTime": instant(stage.ready_at),
            "limitMs": stage.limit_ms,
        },
        rank=0,
    )


def counts(stage: Stage) -> dict[str, int]:
    """Ranks by where they are; they sum to `total`."""
    pending = stage.total if stage.status == "waiting" else 0
    return {
        "total": stage.total,
        "pending": pending,
        "waiting": stage.waiting,
        "delayed": stage.delayed,
        "placed": stage.placed,
        "running": stage.running,
        "finished": stage.finished,
        "failed": stage.failed,
        "canceled": stage.canceled,
    }


def allocation_answer(view: View, allocation: Allocation, stage: Stage) -> WorkflowStage:
    """One attempt of a rank."""
    state = standing(allocation, stage)
    return WorkflowStage(
        id=allocation.id,
        name=allocation.stage,
        status=STATUS[state],
        kind=KINDS[stage.kind],
        error=allocation.error,
        create_time=instant(allocation.queued_at),
        start_time=instant(allocation.started_at),
        end_time=instant(allocation.ended_at),
        details={
            "attempt": allocation.attempt,
            "state": allocation.state if allocation.state != "ended" else state,
            "nodeId": allocation.node,
            "nodes": allocation.seats,
            "placement": allocation.kind,
            "shape": allocation.shape,
            "outcome": allocation.outcome,
            "exitCode": allocation.exit_code,
            "signal": allocation.signal,
            "runMs": allocation.run_ms,
            "cpuMs": allocation.cpu_ms,
            "peakBytes": allocation.peak_bytes,
            "requeued": allocation.requeued,
            "preemptedBy": allocation.by,
            "preempts": list(allocation.after),
            "notBefore": instant(allocation.not_before),
            "placedTime": instant(allocation.placed_at),
            "placedPosition": allocation.placed_position,
            "endedPosition": allocation.ended_position,
        },
        rank=allocation.rank,
    )


def standing(allocation: Allocation, stage: Stage) -> str:
    """State or outcome; what waited when its stage was given up is canceled."""
    if allocation.state == "ended":
        return allocation.outcome
    if allocation.state in ("waiting", "delayed") and stage.status in OVER:
        return "canceled"
    return allocation.state


def allocations_of(
    view: View,
    workflow: str,
    *,
    stage: str = "",
    rank: int | None = None,
    token: str = "",
    limit: int = LIMIT_MAX,
) -> Page[WorkflowStage]:
    """Attempts of a workflow, of one stage or of one rank, by stage, rank and attempt.

    Ranks that were never placed have none yet. Raises BadToken.
    """
    prefix = f"{workflow}/"
    if stage:
        prefix = f"{workflow}/{stage}/"
        if rank is not None:
            prefix = allocation_key(workflow, stage, rank, 0).partition("#")[0] + "#"
    page = view.scan(ALLOCATIONS, prefix=prefix, after=token, limit=limit)
    stages: dict[str, Stage | None] = {}
    found: list[WorkflowStage] = []
    for allocation in page.rows:
        key = stage_key(allocation.workflow, allocation.stage)
        if key not in stages:
            stages[key] = view.get(STAGES, key)
        row = stages[key]
        if row is not None:
            found.append(allocation_answer(view, allocation, row))
    return Page(tuple(found), page.token)


def describe_stage(
    view: View, workflow: str, name: str, rank: int | None = None, now: int = 0
) -> DescribedStage | None:
    """The stage, then the attempts of the rank (without one: of the first thousand attempts)."""
    stage = view.get(STAGES, stage_key(workflow, name))
    if stage is None:
        return None
    page = allocations_of(view, workflow, stage=name, rank=rank)
    priority = priority_of(view, stage, now)
    reason = "" if priority is not None else f"stage {name} is over"
    return DescribedStage((stage_answer(view, stage), *page.rows), priority, reason)


def priority_of(view: View, stage: Stage, now: int = 0) -> StagePriorityDetails | None:
    """The terms of its priority at the instant of the view, or at `now` where that is later."""
    ranker = Ranker(view, max(view.mark.at, now))
    owner = ranker.owner_of(stage.workflow)
    if owner is None or stage.status in OVER:
        return None
    if stage.status == "waiting":
        queue = "PENDING"
    else:
        queue = "READY" if stage.waiting + stage.delayed else "RUNNING"
    value = finite(ranker.of_stage(stage, owner))
    standings = [
        ranker.get(ENTITIES, key)
        for key in (
            entity_key("organization", owner.organization),
            entity_key("group", owner.group, owner.organization),
            entity_key("user", owner.user),
        )
    ]
    organization, group, user = (one.priority if one is not None else 0 for one in standings)
    return StagePriorityDetails(
        allocation_id=f"{stage.workflow}/{stage.name}/{stage.first}#1",
        effective_priority=value or 0.0,
        computed=value is not None,
        weight=1,
        workflow_priority=owner.priority,
        organization_priority=organization,
        account_priority=group,
        user_priority=user,
        priority_expression=printed(ranker.formula.tree),
        create_time=instant(stage.submitted_at),
        queue=f"ALLOCATION_QUEUE_{queue}",
        queue_time=instant(stage.ready_at or stage.submitted_at),
        preemptible=stage.preemptible,
        terms=ranker.terms(stage, owner),
        policy_revision=ranker.formula.revision,
        policy_position=ranker.formula.position,
    )
