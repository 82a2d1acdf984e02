"""The queue: stages of which ranks wait, and those of which ranks run, in the order of priority."""

from functools import lru_cache
from hashlib import blake2b
from typing import Literal

import msgspec

from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationReady,
    AllocationRequeued,
    ConfigSet,
    GroupDeleted,
    GroupUpdated,
    OrganizationUpdated,
    StageCanceled,
    StageFailed,
    StageFinished,
    StageReady,
    UserUpdated,
    WorkflowCanceled,
    WorkflowFailed,
    WorkflowFinished,
    WorkflowSubmitted,
)
from logyard_domain.expressions import DEFAULT_PRIORITY
from logyard_domain.records import Record
from logyard_projections.configuration import REVISIONS, revision_key
from logyard_projections.fold import Projection
from logyard_projections.plans import stages_of
from logyard_projections.priorities import SETTING, Formula, formula_in_force, value_of
from logyard_projections.rows import Rows
from logyard_projections.shapes import SHAPES, shape_key
from logyard_projections.stages import ALLOCATIONS, STAGES, Stage, place_of, stage_key
from logyard_projections.tables import Table


class Waiting(msgspec.Struct, array_like=True, kw_only=True, gc=False):
    """A stage in the queue: `pending` until what it needs is there, then `ready`; in the table of
    what runs, `running`.

    `position` is that of the submission, `index` the stage's place in the workflow, `since` when
    it entered the queue as it is there now. `priority` is the workflow's. `shape` is 0 while
    pending. Counts are in the stage's own row.

    What is ready and equal in everything but its age is one `lane` (see `Lane`). `score` is minus
    the priority that it would have had at the epoch: where priorities only grow with age, all by
    the same rate, it sorts the queue at any instant. It is 0 under other expressions.

    Of what runs, `inflight` ranks hold resources, and `preemptible` tells whether they may be
    evicted.
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
    submitted_at: int
    queue: Literal["pending", "ready", "running"] = "pending"
    shape: int = 0
    limit_ms: int = 0
    since: int = 0
    since_position: int = 0
    lane: str | None = None
    score: float | None = None
    inflight: int = 0
    preemptible: bool = False


class Lane(msgspec.Struct, array_like=True, gc=False):
    """What can make a difference to the priority of what waits, except its age; and how many
    stages wait alike.
    """

    key: str
    shape: int
    organization: str
    group: str
    user: str
    priority: int
    limit_ms: int
    stages: int


class Owner(msgspec.Struct, array_like=True, gc=False):
    """What the queue says of a workflow, kept while the workflow is alive."""

    name: str
    organization: str
    group: str
    user: str
    priority: int


_COLUMNS: dict[str, type[str | int | float]] = {
    "queue": str,
    "shape": int,
    "score": float,
    "organization": str,
    "group": str,
    "user": str,
    "workflow": str,
    "lane": str,
}
WAITING = Table(
    "waiting",
    Waiting,
    columns=_COLUMNS,
    indexes=[
        ("queue",),
        ("queue", "score"),
        ("group", "queue", "score"),
        ("user", "queue", "score"),
        ("workflow", "queue", "score"),
        ("shape", "queue", "score"),
        ("lane",),
    ],
)
ACTIVE = Table("active", Waiting, columns=_COLUMNS, indexes=[("score",)])
"""Stages of which ranks are placed or run."""
LANES = Table("lanes", Lane, columns={"shape": int, "user": str, "group": str})
OWNERS = Table("owners", Owner)


def waiting_key(position: int, index: int, workflow: str, stage: str) -> str:
    """Sorts among equal scores: first come, first looked at; then by the place in the workflow."""
    return f"{position:016d}.{index:06d}/{workflow}/{stage}"


def key_of(waiting: Waiting) -> str:
    return waiting_key(waiting.position, waiting.index, waiting.workflow, waiting.stage)


def stage_waiting_key(stage: Stage) -> str:
    return waiting_key(stage.submitted_position, stage.index, stage.workflow, stage.name)


@lru_cache(maxsize=4096)
def lane_key(
    shape: int, organization: str, group: str, user: str, priority: int, limit_ms: int
) -> str:
    """A short name for what waits alike."""
    whole = repr((shape, organization, group, user, priority, limit_ms))
    return blake2b(whole.encode(), digest_size=12).hexdigest()


def _submitted(rows: Rows, record: Record, event: WorkflowSubmitted) -> None:
    owner = Owner(event.name, event.organization, event.group, event.user, event.priority)
    rows.put(OWNERS, event.workflow, owner)
    for plan in stages_of(event):
        key = waiting_key(record.position, plan.index, event.workflow, plan.name)
        limit_ms = plan.limit_ms or event.timeout_ms
        waiting = Waiting(
            workflow=event.workflow,
            stage=plan.name,
            position=record.position,
            index=plan.index,
            name=event.name,
            organization=event.organization,
            group=event.group,
            user=event.user,
            priority=event.priority,
            submitted_at=record.at,
            limit_ms=limit_ms,
            since=record.at,
            since_position=record.position,
        )
        rows.put(WAITING, key, waiting)


def _ready(rows: Rows, record: Record, event: StageReady) -> None:
    stage = rows.get(STAGES, stage_key(event.workflow, event.stage))
    if stage is not None:
        _enter(rows, record, stage)


def _placed(rows: Rows, record: Record, event: AllocationPlaced) -> None:
    stage = rows.get(STAGES, place_of(event.allocation).stage_key)
    if stage is None:
        return
    key = stage_waiting_key(stage)
    active = rows.edit(ACTIVE, key)
    waiting = (rows.get(WAITING, key) or _told(rows, stage)) if active is None else None
    if waiting is not None:
        active = msgspec.structs.replace(waiting, queue="running", lane=None)
        active.since, active.since_position = record.at, record.position
        active.preemptible = stage.preemptible
        rows.put(ACTIVE, key, active)
    if active is not None:
        active.inflight = stage.inflight
    if not stage.delayed and not stage.waiting:
        _leave(rows, key)


def _ended(rows: Rows, record: Record, event: AllocationEnded) -> None:
    stage = rows.get(STAGES, place_of(event.allocation).stage_key)
    if stage is None:
        return
    key = stage_waiting_key(stage)
    if not stage.placed + stage.running:
        rows.delete(ACTIVE, key)
    elif (active := rows.edit(ACTIVE, key)) is not None:
        active.inflight = stage.inflight
    _hand_on(rows, stage, event)


def _hand_on(rows: Rows, stage: Stage, event: AllocationEnded) -> None:
    """Its room is that of the one behind it, which may be of another workflow."""
    ended = rows.get(ALLOCATIONS, place_of(event.allocation).key)
    following = rows.get(ALLOCATIONS, ended.follower) if ended and ended.follower else None
    if following is None or (following.workflow, following.stage) == (stage.workflow, stage.name):
        return
    other = rows.get(STAGES, stage_key(following.workflow, following.stage))
    active = rows.edit(ACTIVE, stage_waiting_key(other)) if other is not None else None
    if other is not None and active is not None:
        active.inflight = other.inflight


def _again(rows: Rows, record: Record, event: AllocationRequeued | AllocationReady) -> None:
    stage = rows.get(STAGES, place_of(event.allocation).stage_key)
    if stage is not None and rows.get(WAITING, stage_waiting_key(stage)) is None:
        _enter(rows, record, stage)


def _over(rows: Rows, record: Record, event: StageFinished | StageFailed | StageCanceled) -> None:
    stage = rows.get(STAGES, stage_key(event.workflow, event.stage))
    if stage is not None:
        _leave(rows, stage_waiting_key(stage))


def _workflow_ended(
    rows: Rows, record: Record, event: WorkflowFinished | WorkflowFailed | WorkflowCanceled
) -> None:
    rows.delete(OWNERS, event.workflow)


def _enter(rows: Rows, record: Record, stage: Stage) -> None:
    key = stage_waiting_key(stage)
    waiting = rows.edit(WAITING, key)
    if waiting is None:
        waiting = _told(rows, stage)
        if waiting is None:
            return
        rows.put(WAITING, key, waiting)
    waiting.queue = "ready"
    waiting.shape = stage.shape
    waiting.since, waiting.since_position = record.at, record.position
    waiting.score = _score(rows, formula_in_force(rows), waiting)
    alike = (waiting.shape, waiting.organization, waiting.group, waiting.user, waiting.priority)
    waiting.lane = lane_key(*alike, waiting.limit_ms)
    lane = rows.edit(LANES, waiting.lane)
    if lane is None:
        lane = Lane(waiting.lane, *alike, waiting.limit_ms, 0)
        rows.put(LANES, waiting.lane, lane)
    lane.stages += 1


def _leave(rows: Rows, key: str) -> None:
    waiting = rows.get(WAITING, key)
    if waiting is None:
        return
    rows.delete(WAITING, key)
    lane = rows.edit(LANES, waiting.lane) if waiting.lane else None
    if lane is not None and waiting.lane:
        lane.stages -= 1
        if not lane.stages:
            rows.delete(LANES, waiting.lane)


def _told(rows: Rows, stage: Stage) -> Waiting | None:
    """What the queue says of a stage of a living workflow that is not in it."""
    owner = rows.get(OWNERS, stage.workflow)
    if owner is None:
        return None
    waiting = Waiting(
        workflow=stage.workflow,
        stage=stage.name,
        position=stage.submitted_position,
        index=stage.index,
        name=owner.name,
        organization=owner.organization,
        group=owner.group,
        user=owner.user,
        priority=owner.priority,
        submitted_at=stage.submitted_at,
        shape=stage.shape,
        limit_ms=stage.limit_ms,
    )
    waiting.score = _score(rows, formula_in_force(rows), waiting)
    return waiting


def _configured(rows: Rows, record: Record, event: ConfigSet) -> None:
    before = rows.get(REVISIONS, revision_key(event.revision - 1))
    old = before.formulas.get(SETTING) if before is not None else None
    if (old or DEFAULT_PRIORITY) == event.formulas.get(SETTING, DEFAULT_PRIORITY):
        return
    formula = formula_in_force(rows)
    _rescore(rows, formula, WAITING, rows.matching(WAITING, "queue", "ready"))
    _rescore(rows, formula, ACTIVE, rows.matching(ACTIVE, "queue", "running"))


def _organization(rows: Rows, record: Record, event: OrganizationUpdated) -> None:
    _ranked(rows, "organization", event.organization)


def _group(rows: Rows, record: Record, event: GroupUpdated | GroupDeleted) -> None:
    _ranked(rows, "group", event.group, event.organization)


def _user(rows: Rows, record: Record, event: UserUpdated) -> None:
    _ranked(rows, "user", event.user)


def _ranked(rows: Rows, column: str, name: str, organization: str = "") -> None:
    """A priority has changed: it reaches what waits and what runs."""
    formula = formula_in_force(rows)
    if formula.moving or f"{column}.priority" not in formula.variables:
        return
    for table in (WAITING, ACTIVE):
        _rescore(rows, formula, table, rows.matching(table, column, name), organization)


def _rescore(
    rows: Rows, formula: Formula, table: Table[Waiting], keys: list[str], organization: str = ""
) -> None:
    for key in keys:
        row = rows.get(table, key)
        if row is None or row.score is None or organization not in ("", row.organization):
            continue
        score = _score(rows, formula, row)
        if score != row.score and (changed := rows.edit(table, key)) is not None:
            changed.score = score


def _score(rows: Rows, formula: Formula, row: Waiting) -> float:
    shape = rows.get(SHAPES, shape_key(row.shape))
    if formula.moving or shape is None:
        return 0.0
    owner = (row, shape.request, row.limit_ms, row.submitted_at)
    return -value_of(rows, formula, *owner, 0)


PROJECTION = Projection(
    "queue",
    3,
    (WAITING, ACTIVE, LANES, OWNERS),
    {
        WorkflowSubmitted: _submitted,
        StageReady: _ready,
        AllocationPlaced: _placed,
        AllocationEnded: _ended,
        AllocationRequeued: _again,
        AllocationReady: _again,
        StageFinished: _over,
        StageFailed: _over,
        StageCanceled: _over,
        WorkflowFinished: _workflow_ended,
        WorkflowFailed: _workflow_ended,
        WorkflowCanceled: _workflow_ended,
        ConfigSet: _configured,
        OrganizationUpdated: _organization,
        GroupUpdated: _group,
        GroupDeleted: _group,
        UserUpdated: _user,
    },
)
