"""What happened to one workflow, as its people read it."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta

from logyard_api.bodies import Answer, Count, Reply
from logyard_api.errors import invalid
from logyard_api.folders import aside
from logyard_api.operations import Routes, ViewQuery
from logyard_api.tail import Read
from logyard_api.telling import recalling
from logyard_api.yard import Yard
from logyard_domain import events
from logyard_domain.codec import tag_of
from logyard_domain.events import AnyEvent
from logyard_domain.records import Record
from logyard_projections.answers.asking import page_size
from logyard_projections.answers.entities import changes_for
from logyard_projections.answers.sentences import Recall, text_for
from logyard_projections.answers.stages import KINDS
from logyard_projections.answers.streams import positions_of
from logyard_projections.instants import rfc3339
from logyard_projections.stages import STAGES, place_of, stage_key
from logyard_projections.view import View
from logyard_projections.workflows import WORKFLOWS

NEAR = 64
"""Records of others that are read along, where that saves another read."""
LOOKED_AT = 1000
Tail = Annotated[int, Meta(ge=0, le=LOOKED_AT)]

TYPES: dict[type, str] = {
    events.WorkflowSubmitted: "PRIORITY_SET",
    events.WorkflowStarted: "WORKFLOW_STARTED",
    events.WorkflowFinished: "WORKFLOW_FINISHED",
    events.WorkflowFailed: "WORKFLOW_FAILED",
    events.WorkflowCanceled: "WORKFLOW_CANCELED",
    events.StageReady: "STAGE_READY",
    events.StageStarted: "STAGE_STARTED",
    events.StageFinished: "STAGE_FINISHED",
    events.StageFailed: "STAGE_FAILED",
    events.StageCanceled: "STAGE_CANCELED",
    events.AllocationPlaced: "RESOURCES_ALLOCATED",
    events.AllocationStarted: "CONTAINER_STARTED",
    events.AllocationEnded: "CONTAINER_EXITED",
    events.ReservationHeld: "RESERVATION_HELD",
    events.OrganizationUpdated: "PRIORITY_UPDATED",
    events.GroupUpdated: "PRIORITY_UPDATED",
    events.UserUpdated: "PRIORITY_UPDATED",
}
"""Names on the wire; what has none there is UNSPECIFIED."""

routes = Routes("workflows")


class ActivityQuery(ViewQuery, frozen=True):
    """Which events.

    stageId: only of this stage, such as wf-3f8mk2qa7c/render
    stageName: only of this stage
    kindFilter: only of stages of this kind, such as STAGE_KIND_JOB
    tail: only the last so many
    cursor: `cursor` of the page before
    pageSize: events of a page; 25 when absent, at most 1000
    """

    stage_id: str = ""
    stage_name: str = ""
    kind_filter: str = ""
    tail: Tail = 0
    cursor: str = ""
    page_size: Count = 0


class StageEvent(Reply, frozen=True):
    """One thing that happened.

    timestamp: of the turn that recorded it
    eventType: STAGE_EVENT_TYPE_...
    stageKind: STAGE_KIND_...
    stageName: the stage; empty for the workflow itself
    stageId: WORKFLOW/STAGE, or the workflow
    message: one line for people
    metadata: position, type, actor and cause; allocation, rank, attempt and node where there are
    """

    timestamp: str
    event_type: str
    stage_kind: str
    stage_name: str
    stage_id: str
    message: str
    metadata: dict[str, str]


class Activity(Reply, frozen=True):
    """A page of events, in order.

    events: what happened
    cursor: for the next page; empty where there is nothing more yet
    """

    events: list[StageEvent]
    cursor: str


@routes.add("GET", "/v4/workflows/{id}:activity")
async def get_workflow_activity(yard: Yard, id: str, query: ActivityQuery) -> Answer[Activity]:
    """What happened to a workflow and its stages, in order."""
    await yard.must_know(id)
    if query.cursor and not (query.cursor.isascii() and query.cursor.isdigit()):
        raise invalid("query: cursor: this is none that was given out; start again without one")
    answer = await yard.look(lambda view: _looked_at(view, id, query))
    records = await aside(lambda: list(_records(yard.read, answer.value)))
    recall = recalling(yard.read, records)
    found = await yard.look(lambda view: _told(view, id, query, records, recall))
    return Answer(found.value, answer.position)


def _looked_at(view: View, workflow: str, query: ActivityQuery) -> list[int]:
    """Positions in order, among which a page is found: of its own events, and of those that
    changed the priority of whom it belongs to.
    """
    row = view.get(WORKFLOWS, workflow)
    changes = changes_for(view, row) if row is not None else []
    if query.tail:
        own = positions_of(view, workflow, 0, LOOKED_AT, newest_first=True)
        return sorted({*own, *changes})[-LOOKED_AT:]
    after = int(query.cursor or 0)
    own = positions_of(view, workflow, after, LOOKED_AT)
    return sorted({*own, *(one for one in changes if one > after)})[:LOOKED_AT]


def _records(read: Read, positions: Sequence[int]) -> Iterator[Record]:
    wanted = set(positions)
    place = 0
    while place < len(positions):
        end = place
        while end + 1 < len(positions) and positions[end + 1] - positions[end] <= NEAR:
            end += 1
        first, last = positions[place], positions[end]
        yield from (one for one in read(first - 1, last - first + 1) if one.position in wanted)
        place = end + 1


def _told(
    view: View, workflow: str, query: ActivityQuery, records: list[Record], recall: Recall
) -> Activity:
    size = page_size(query.page_size)
    found: list[StageEvent] = []
    row = view.get(WORKFLOWS, workflow)
    if query.tail:
        for record in records:
            event = _stage_event(view, workflow, record, text_for(row, record, view, recall))
            if _fits(event, query):
                found.append(event)
        return Activity(events=found[-query.tail :], cursor="")
    for record in records:
        event = _stage_event(view, workflow, record, text_for(row, record, view, recall))
        if _fits(event, query):
            found.append(event)
            if len(found) == size:
                return Activity(events=found, cursor=str(record.position))
    more = len(records) == LOOKED_AT
    return Activity(events=found, cursor=str(records[-1].position) if more else "")


def _stage_event(view: View, workflow: str, record: Record, message: str) -> StageEvent:
    event = record.event
    metadata = {
        "position": str(record.position),
        "type": tag_of(event),
        "actor": record.actor,
        "cause": record.cause,
    }
    allocation = str(getattr(event, "allocation", ""))
    stage = str(getattr(event, "stage", ""))
    if allocation:
        place = place_of(allocation)
        stage = place.stage
        metadata |= {
            "allocation": allocation,
            "rank": str(place.rank),
            "attempt": str(place.attempt),
        }
    if isinstance(event, events.WorkflowFailed):
        metadata["failedStage"] = stage
        stage = ""
    node = getattr(event, "node", "")
    if node:
        metadata["node"] = str(node)
    row = view.get(STAGES, stage_key(workflow, stage)) if stage else None
    return StageEvent(
        timestamp=rfc3339(record.at),
        event_type=f"STAGE_EVENT_TYPE_{_type(event)}",
        stage_kind=KINDS[row.kind] if row is not None else "STAGE_KIND_WORKFLOW",
        stage_name=stage,
        stage_id=f"{workflow}/{stage}" if stage else workflow,
        message=message,
        metadata=metadata,
    )


def _type(event: AnyEvent) -> str:
    match event:
        case events.AllocationPlaced(kind="backfilled"):
            return "BACKFILLED"
        case events.AllocationPlaced(kind="preempting"):
            return "PREEMPT_INITIATED"
        case events.AllocationStopping(reason="preempted"):
            return "PREEMPTED"
        case _:
            return TYPES.get(type(event), "UNSPECIFIED")


def _fits(event: StageEvent, query: ActivityQuery) -> bool:
    kind = query.kind_filter.upper().removeprefix("STAGE_KIND_")
    return (
        (not query.stage_id or event.stage_id == query.stage_id)
        and (not query.stage_name or event.stage_name == query.stage_name)
        and (kind in ("", "UNSPECIFIED") or event.stage_kind == f"STAGE_KIND_{kind}")
    )
