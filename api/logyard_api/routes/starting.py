"""Starting and stopping workflows."""

from typing import Annotated, Any
from uuid import uuid4

from msgspec import Meta
from starlette.requests import Request

from logyard_api.acting import ACTING, acting_as
from logyard_api.bodies import Answer, Body, Reply
from logyard_api.errors import Code, Failure, invalid, missing
from logyard_api.operations import Routes
from logyard_api.texts import load, text_of
from logyard_api.yard import Yard
from logyard_domain.commands import StopWorkflow, SubmitWorkflow

routes = Routes("workflows")


class StartBody(Body, frozen=True):
    """A workflow to start.

    name: what people call it
    definition: the workflow as an object
    rawSpecification: the text of a workflow file; counts where both are given
    workflowId: idempotency key: the same again gives the same workflow; also as Idempotency-Key
    priority: 0 or lower
    preemptible: may be stopped for work of higher priority
    secretsMap: secrets are not resolved yet
    clusterId: must be empty, or the name of this cluster
    applicationId: applications are not kept yet
    """

    name: str | None = None
    definition: dict[str, Any] | None = None
    raw_specification: str | None = None
    workflow_id: str | None = None
    priority: Annotated[int, Meta(le=0)] | None = None
    preemptible: bool | None = None
    secrets_map: dict[str, Any] | None = None
    cluster_id: str | None = None
    application_id: str | None = None


class Started(Reply, frozen=True):
    """A workflow that is on the log.

    id: of the workflow
    position: of the log, at which it is there
    created: false when the same key had started it before
    warnings: what is doubtful in its file, a sentence each
    """

    id: str
    position: int
    created: bool
    warnings: list[str]


class StopQuery(Body, frozen=True):
    """How to stop.

    force: accepted for other clients; everything is stopped with SIGTERM, then SIGKILL
    """

    force: bool = False


class StopBody(Body, frozen=True):
    """Why it is stopped.

    reason: a sentence for people
    force: as in the query
    """

    reason: str | None = None
    force: bool | None = None


class Named(Reply, frozen=True):
    """What was acted on.

    id: of the workflow
    position: of the log, at which it is there
    """

    id: str
    position: int


@routes.add(
    "POST", "/v4/workflows", headers={"Idempotency-Key": "the same as workflowId", **ACTING}
)
async def start_workflow(request: Request, yard: Yard, body: StartBody) -> Answer[Started]:
    """Start a workflow.

    Answered when it is on disk. A request that is sent again with the same key is answered with the
    workflow that the first one started.
    """
    _supported(yard, body)
    text = text_of(body.definition, body.raw_specification)
    loaded = await load(text)
    key = body.workflow_id or request.headers.get("idempotency-key") or uuid4().hex
    acting = acting_as(request, yard)
    command = SubmitWorkflow(
        key=key,
        name=body.name or "workflow",
        definition=loaded.workflow,
        source=text.source,
        organization=acting.organization,
        group=acting.group,
        user=acting.user,
        priority=body.priority or 0,
        preemptible=bool(body.preemptible) or loaded.workflow.preemptible,
    )
    receipt = await yard.ask(command, key, f"user:{acting.user}")
    started = Started(
        id=receipt.workflow,
        position=receipt.position,
        created=receipt.created,
        warnings=[str(warning) for warning in loaded.warnings],
    )
    return Answer(started, receipt.position)


def _supported(yard: Yard, body: StartBody) -> None:
    if body.secrets_map:
        raise invalid("body: secretsMap: secrets are not resolved yet; leave it out")
    if body.cluster_id and body.cluster_id != yard.cluster:
        raise missing(f"clusterId: this is cluster {yard.cluster!r}, and it has no members")
    if body.application_id:
        raise invalid("body: applicationId: applications are not kept yet; leave it out")


@routes.add("PATCH", "/v4/workflows/{id}:stop")
async def stop_workflow(yard: Yard, id: str, query: StopQuery, body: StopBody) -> Answer[Named]:
    """Stop a workflow: start nothing more of it, end what runs. Twice is as good as once."""
    try:
        receipt = await yard.ask(StopWorkflow(workflow=id, reason=body.reason or ""), f"stop {id}")
    except Failure as failure:
        if failure.code is not Code.MISSING or not await yard.has_ended(id):
            raise
        return Answer(Named(id=id, position=yard.loop.position), yard.loop.position)
    return Answer(Named(id=id, position=receipt.position), receipt.position)
