"""Answers about workflows."""

from collections.abc import Callable, Sequence

import msgspec

from logyard_domain.definition import Workflow as Definition
from logyard_projections.answers.asking import conditions, ordering, page_size
from logyard_projections.answers.stages import STATUS, WorkflowStage, instant, stage_answers
from logyard_projections.tables import Value
from logyard_projections.view import View, Wanted
from logyard_projections.workflows import SOURCES, WORKFLOWS, Status, Workflow

ORDER = {
    "createTime": "created",
    "name": "name",
    "status": "status",
    "userId": "user",
    "priority": "priority",
}
FILTER = {
    "status": "status",
    "user": "user",
    "userId": "user",
    "group": "group",
    "accountId": "group",
    "organization": "organization",
    "name": "name",
}
_STATES: dict[str, tuple[Status, ...]] = {
    "UNSPECIFIED": ("pending",),
    "PENDING": ("pending",),
    "STARTED": ("started",),
    "RUNNING": ("started",),
    "FINISHED": ("finished",),
    "FAILED": ("failed",),
    "CANCELED": ("canceled",),
    "CANCELLED": ("canceled",),
}


class WorkflowAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """A workflow on the wire. `specification` is the definition as base64 of JSON."""

    id: str
    create_time: str | None
    start_time: str | None
    end_time: str | None
    error: str
    user_id: str
    specification: bytes
    status: str
    email: str
    name: str
    cluster_id: str
    raw_specification: str
    account_id: str
    jobs: tuple[WorkflowStage, ...]
    total_jobs: int
    priority: int


class WorkflowList(msgspec.Struct, frozen=True, rename="camel"):
    """A page of workflows, without their definitions and jobs."""

    workflows: tuple[WorkflowAnswer, ...]
    page_token: str


class Stages(msgspec.Struct, frozen=True, rename="camel"):
    stages: tuple[WorkflowStage, ...]


class StatusAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Where a workflow stands, with all its stages."""

    status: Stages
    create_time: str | None
    start_time: str | None
    end_time: str | None
    error: str
    user_id: str
    workflow_status: str
    email: str
    name: str


class WorkflowFacts(msgspec.Struct, frozen=True, rename="camel"):
    """A workflow in our own words: what lists for people show, without a look at its stages."""

    id: str
    name: str
    status: str
    stopping: bool
    reason: str
    organization: str
    group: str
    user: str
    priority: int
    preemptible: bool
    created: str
    started: str | None
    ended: str | None
    error: str
    failed_stage: str
    stages: int
    running_stages: int
    finished_stages: int
    failed_stages: int
    canceled_stages: int
    jobs: int
    finished_jobs: int
    ranks: int
    position: int


def statuses(names: Sequence[str]) -> tuple[Status, ...]:
    """Statuses by their names on the wire, with or without prefix.

    Raises ValueError with those that there are.
    """
    found: list[Status] = []
    for name in names:
        states = _STATES.get(name.upper().removeprefix("STAGE_STATUS_"))
        if states is None:
            raise ValueError(f"status {name!r} is not known; there are {', '.join(_STATES)}")
        found.extend(states)
    return tuple(dict.fromkeys(found))


def list_workflows(
    view: View,
    *,
    cluster: str,
    size: int = 0,
    token: str = "",
    order_by: str = "",
    filter: str = "",
    requested: Sequence[str] = (),
    user: str = "",
    group: str = "",
) -> WorkflowList:
    """A page of workflows that fulfil every condition, newest first where no order is asked.

    `requested` are statuses of which any will do. Raises ValueError (BadToken for a page token).
    """
    where: dict[str, Wanted] = dict(conditions(filter, FILTER))
    states = statuses([str(where.pop("status"))]) if "status" in where else ()
    wanted = statuses(requested)
    if wanted and states:
        wanted = tuple(state for state in wanted if state in states)
        where["status"] = wanted
    elif wanted or states:
        where["status"] = _single(wanted or states)
    for column, value in (("user", user), ("group", group)):
        if value and where.setdefault(column, value) != value:
            where[column] = ()
    order, descending = ordering(order_by, ORDER, "createTime desc")
    page = view.scan(
        WORKFLOWS,
        where=where,
        order=order,
        descending=descending,
        after=token,
        limit=page_size(size),
    )
    rows = tuple(_answer(row, cluster, b"", "", ()) for row in page.rows)
    return WorkflowList(rows, page.token)


def get_workflow(
    view: View, id: str, *, cluster: str, specification: Callable[[Definition], bytes]
) -> WorkflowAnswer | None:
    """One workflow whole. `specification` writes its definition as JSON."""
    row, source = view.get(WORKFLOWS, id), view.get(SOURCES, id)
    if row is None or source is None:
        return None
    stages = stage_answers(view, id)
    return _answer(row, cluster, specification(source.definition), source.text, stages)


def workflow_status(view: View, id: str) -> StatusAnswer | None:
    """Where it stands."""
    row = view.get(WORKFLOWS, id)
    if row is None:
        return None
    return StatusAnswer(
        status=Stages(stage_answers(view, id)),
        create_time=instant(row.created),
        start_time=instant(row.started),
        end_time=instant(row.ended),
        error=row.error,
        user_id=row.user,
        workflow_status=STATUS[row.status],
        email="",
        name=row.name,
    )


def workflow_facts(view: View, id: str) -> WorkflowFacts | None:
    """A workflow in our own words."""
    row = view.get(WORKFLOWS, id)
    if row is None:
        return None
    return WorkflowFacts(
        id=row.id,
        name=row.name,
        status=row.status,
        stopping=row.stopping,
        reason=row.reason,
        organization=row.organization,
        group=row.group,
        user=row.user,
        priority=row.priority,
        preemptible=row.preemptible,
        created=instant(row.created) or "",
        started=instant(row.started),
        ended=instant(row.ended),
        error=row.error,
        failed_stage=row.failed_stage,
        stages=row.stages,
        running_stages=row.running_stages,
        finished_stages=row.finished_stages,
        failed_stages=row.failed_stages,
        canceled_stages=row.canceled_stages,
        jobs=row.jobs,
        finished_jobs=row.finished_jobs,
        ranks=row.ranks,
        position=view.mark.position,
    )


def _single(values: tuple[Value, ...]) -> Wanted:
    return values[0] if len(values) == 1 else values


def _answer(
    row: Workflow, cluster: str, specification: bytes, text: str, stages: tuple[WorkflowStage, ...]
) -> WorkflowAnswer:
    return WorkflowAnswer(
        id=row.id,
        create_time=instant(row.created),
        start_time=instant(row.started),
        end_time=instant(row.ended),
        error=row.error,
        user_id=row.user,
        specification=specification,
        status=STATUS[row.status],
        email="",
        name=row.name,
        cluster_id=cluster,
        raw_specification=text,
        account_id=row.group,
        jobs=stages,
        total_jobs=row.jobs,
        priority=row.priority,
    )
