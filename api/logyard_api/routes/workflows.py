"""Workflows as they stand: lists, one of them, its stages, what happened to it."""

import msgspec

from logyard_api.bodies import Answer, Count, encode
from logyard_api.errors import invalid
from logyard_api.operations import Routes, ViewQuery
from logyard_api.paging import ListQuery
from logyard_api.texts import parsed
from logyard_api.yard import Yard, no_workflow
from logyard_projections.answers.stages import KINDS, DescribedStage, describe_stage
from logyard_projections.answers.workflows import (
    StatusAnswer,
    WorkflowAnswer,
    WorkflowFacts,
    WorkflowList,
    get_workflow,
    list_workflows,
    workflow_facts,
    workflow_status,
)
from logyard_projections.view import View

GROUP = "default"
SCOPES = ("", "SCOPE_UNSPECIFIED", "SCOPE_USER", "SCOPE_GROUP", "SCOPE_ACCOUNT")

routes = Routes("workflows")
last = Routes("workflows")
"""Operations whose paths fit other operations too: they are tried after all others."""


class WorkflowsQuery(ListQuery, frozen=True):
    """Which workflows.

    requestedStatuses: statuses of which any will do, such as STAGE_STATUS_FAILED
    status: one more of them; the older form
    scope: SCOPE_USER for those of the caller, SCOPE_GROUP for those of the caller's group
    aipFilter: the same as `filter`; both intersect
    """

    requested_statuses: tuple[str, ...] = ()
    status: str = ""
    scope: str = ""
    aip_filter: str = ""


class StatusQuery(ViewQuery, frozen=True):
    """How it stands.

    force: accepted for other clients; the answer is always computed
    """

    force: bool = False


class StageQuery(ViewQuery, frozen=True, kw_only=True):
    """Which stage.

    stageName: its name
    kindFilter: only if it is of this kind, such as STAGE_KIND_JOB
    rank: attempts of this rank; 0 for all
    """

    stage_name: str
    kind_filter: str = ""
    rank: Count = 0


@routes.add("GET", "/v4/workflows")
async def get_workflows(yard: Yard, query: WorkflowsQuery) -> Answer[WorkflowList]:
    """List workflows, newest first."""
    if query.scope not in SCOPES:
        raise invalid(f"query: scope: {query.scope!r} is none of {', '.join(SCOPES[1:])}")
    requested = (*query.requested_statuses, *((query.status,) if query.status else ()))
    both = [text for text in (query.filter, query.aip_filter) if text]

    def question(view: View) -> WorkflowList:
        return list_workflows(
            view,
            cluster=yard.cluster,
            size=query.page_size,
            token=query.page_token,
            order_by=query.order_by,
            filter=" AND ".join(both),
            requested=requested,
            user=yard.user if query.scope == "SCOPE_USER" else "",
            group=GROUP if query.scope in ("SCOPE_GROUP", "SCOPE_ACCOUNT") else "",
        )

    return await yard.look(question)


@routes.add("GET", "/v4/workflows/{id}:status")
async def get_workflow_status(yard: Yard, id: str, query: StatusQuery) -> Answer[StatusAnswer]:
    """How a workflow and its stages stand."""
    return await yard.find(lambda view: workflow_status(view, id), no_workflow(id))


@routes.add("GET", "/v4/workflows/{id}:facts")
async def get_workflow_facts(yard: Yard, id: str, query: ViewQuery) -> Answer[WorkflowFacts]:
    """What is known of a workflow in a few words and counts, however many stages it has."""
    return await yard.find(lambda view: workflow_facts(view, id), no_workflow(id))


@routes.add("GET", "/v4/workflows/{id}:stage")
async def get_workflow_stage(yard: Yard, id: str, query: StageQuery) -> Answer[DescribedStage]:
    """One stage with its attempts, and where its priority comes from."""
    rank = query.rank or None
    kind = _kind(query.kind_filter)

    def question(view: View) -> DescribedStage | None:
        found = describe_stage(view, id, query.stage_name, rank, yard.now())
        return found if found is None or kind in ("", found.stages[0].kind) else None

    absent = f"workflow {id!r} has no stage {query.stage_name!r} of that kind; see its :status"
    return await yard.find(question, absent)


def _kind(text: str) -> str:
    if not text or text.upper().endswith("UNSPECIFIED"):
        return ""
    kind = f"STAGE_KIND_{text.upper().removeprefix('STAGE_KIND_')}"
    known = sorted({*KINDS.values()})
    if kind not in known:
        raise invalid(f"query: kindFilter: {text!r} is none of {', '.join(known)}")
    return kind


@last.add("GET", "/v4/workflows/{id}")
async def get_one_workflow(yard: Yard, id: str, query: ViewQuery) -> Answer[WorkflowAnswer]:
    """One workflow whole: as it was sent, and its stages."""
    answer = await yard.find(
        lambda view: get_workflow(
            view, id, cluster=yard.cluster, specification=lambda definition: b""
        ),
        no_workflow(id),
    )
    # Clients that read it strictly know the form that they sent, not the one that it became.
    sent = encode(parsed(answer.value.raw_specification))
    return Answer(msgspec.structs.replace(answer.value, specification=sent), answer.position)
