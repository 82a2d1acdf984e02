"""What happened, in one line for people: the one place where events become sentences.

Instants stand in a sentence in full (RFC 3339, UTC), so that whoever shows it can put them into the
reader's own time.
"""

from collections.abc import Callable
from typing import assert_never

from logyard_domain import events
from logyard_domain.events import AnyEvent
from logyard_domain.records import Record
from logyard_projections.answers import scheduling
from logyard_projections.answers.configuration import change_text
from logyard_projections.answers.entities import priorities_of
from logyard_projections.answers.scheduling import nothing, rank_text
from logyard_projections.answers.words import held, listed, number_of, size, wants
from logyard_projections.configuration import REVISIONS, revision_key
from logyard_projections.entities import OF_ENTITY
from logyard_projections.instants import lasting
from logyard_projections.shapes import SHAPES, shape_key
from logyard_projections.streams import workflow_of
from logyard_projections.view import View
from logyard_projections.workflows import WORKFLOWS, Workflow

Recall = Callable[[int], Record | None]
"""Gives the record at a position, where it can."""
CHANGES_MAX = 4


def about(event: AnyEvent) -> str:
    """What an event is about: ``render 17, attempt 2``, ``assemble``, ``workflow``, ``node n07``,
    ``group chem``, ``shape 4``, ``cluster``.
    """
    allocation = str(getattr(event, "allocation", ""))
    if allocation:
        return rank_text(allocation)
    stage = "" if isinstance(event, events.WorkflowFailed) else str(getattr(event, "stage", ""))
    if stage:
        return stage
    if workflow_of(event):
        return "workflow"
    for kind in ("node", "group", "organization", "user", "shape"):
        name = getattr(event, kind, "")
        if name:
            return f"{kind} {name}"
    return "cluster"


def text(record: Record, view: View | None = None, recall: Recall = nothing) -> str:
    """What happened. A view and earlier records add what the event itself does not say."""
    event = record.event
    match event:
        case events.ServerStarted():
            return f"server {event.version} took the log, term {event.term}"
        case events.ServerStopped():
            return f"server stopped in good order, term {event.term}"
        case events.ConfigSet():
            return _configuration(event, view)
        case (
            events.OrganizationUpdated()
            | events.GroupUpdated()
            | events.GroupDeleted()
            | events.UserUpdated()
        ):
            return _of_entity(event)
        case (
            events.NodeRegistered()
            | events.NodeCordoned()
            | events.NodeUncordoned()
            | events.NodeDraining()
            | events.NodeDrained()
            | events.NodeLost()
            | events.NodeReturned()
            | events.NodeRemoved()
        ):
            return _of_node(event)
        case (
            events.WorkflowSubmitted()
            | events.WorkflowStarted()
            | events.WorkflowStopping()
            | events.WorkflowFinished()
            | events.WorkflowFailed()
            | events.WorkflowCanceled()
            | events.VolumesRemoved()
        ):
            return _of_workflow(event, record, view)
        case events.StageReady():
            priority = _priority(event.workflow, record.position, view)
            return priority or f"ready: queues as shape {event.shape}"
        case events.StageStarted():
            return "began"
        case events.StageFinished():
            return "finished"
        case events.StageFailed():
            return _with("failed", event.error)
        case events.StageCanceled():
            return _with("canceled", event.reason)
        case events.ShapeDeclared():
            return f"declared: {wants(event.request)}"
        case events.ShapeHeld():
            shape = view.get(SHAPES, shape_key(event.shape)) if view is not None else None
            if shape is None:
                return f"waits: {str(event.hold.__struct_config__.tag).replace('_', ' ')}"
            return f"waits: {held(event.hold, shape.request)}"
        case events.ShapeReleased():
            return "waits for nothing any more"
        case events.AllocationPlaced():
            return scheduling.placed(event, record, view, recall)
        case events.AllocationSeated():
            return "all that it preempted has ended: it may start"
        case events.ReservationHeld() | events.ReservationMoved() | events.ReservationReleased():
            return scheduling.promised(event, recall)
        case events.AllocationStarted():
            return "runs"
        case events.AllocationStopping():
            return scheduling.stopping(event)
        case events.AllocationEnded():
            return _ended(event)
        case events.AllocationRequeued():
            return scheduling.requeued(event)
        case events.AllocationReady():
            return "queues again after its back-off"
        case _:
            assert_never(event)


def text_for(
    workflow: Workflow | None, record: Record, view: View, recall: Recall = nothing
) -> str:
    """The same to somebody who looks at one workflow: what changed for it."""
    if workflow is not None and isinstance(record.event, OF_ENTITY):
        after = priorities_of(view, workflow, record.position)
        if after != priorities_of(view, workflow, record.position - 1):
            return priority_text(after)
    return text(record, view, recall)


def priority_text(priorities: dict[str, int]) -> str:
    """``priority set (workflow: 0, organization: 5, group: 2, user: 1)``."""
    return f"priority set ({', '.join(f'{kind}: {n}' for kind, n in priorities.items())})"


def _priority(workflow: str, position: int, view: View | None) -> str:
    row = view.get(WORKFLOWS, workflow) if view is not None else None
    return "" if row is None or view is None else priority_text(priorities_of(view, row, position))


def _configuration(event: events.ConfigSet, view: View | None) -> str:
    name = f"configuration r{event.revision}"
    row = view.get(REVISIONS, revision_key(event.revision)) if view is not None else None
    if row is None:
        return f"{name}: {number_of(len(event.values), 'setting')}"
    return f"{name}: {listed(map(change_text, row.changes), CHANGES_MAX) or 'as it was'}"


def _of_entity(
    event: events.OrganizationUpdated
    | events.GroupUpdated
    | events.GroupDeleted
    | events.UserUpdated,
) -> str:
    match event:
        case events.GroupDeleted():
            return "deleted, and gone from the preempt lists of all others"
        case events.GroupUpdated(preempts=preempts) if preempts:
            return f"priority {event.priority}; may preempt {', '.join(preempts)}"
        case _:
            return f"priority {event.priority}"


def _of_node(
    event: events.NodeRegistered
    | events.NodeCordoned
    | events.NodeUncordoned
    | events.NodeDraining
    | events.NodeDrained
    | events.NodeLost
    | events.NodeReturned
    | events.NodeRemoved,
) -> str:
    match event:
        case events.NodeRegistered(capacity=capacity):
            devices = [f"{count} {name}" for name, count in capacity.devices.items()]
            parts = [number_of(capacity.cores, "core"), size(capacity.memory), *devices]
            return f"registered with {', '.join(parts)}"
        case events.NodeCordoned():
            return _with("cordoned", event.reason)
        case events.NodeUncordoned():
            return "open for work again"
        case events.NodeDraining():
            how = "draining, what runs is evicted" if event.evict else "draining"
            return _with(how, event.reason)
        case events.NodeDrained():
            return "drained: nothing runs there any more"
        case events.NodeLost():
            return f"lost: silent for {lasting(event.silent_ms)}"
        case events.NodeReturned():
            return "heard again"
        case events.NodeRemoved():
            return "removed from the cluster"


def _of_workflow(
    event: events.WorkflowSubmitted
    | events.WorkflowStarted
    | events.WorkflowStopping
    | events.WorkflowFinished
    | events.WorkflowFailed
    | events.WorkflowCanceled
    | events.VolumesRemoved,
    record: Record,
    view: View | None,
) -> str:
    match event:
        case events.WorkflowSubmitted():
            priority = _priority(event.workflow, record.position, view)
            if not priority and event.priority:
                priority = f"priority {event.priority}"
            parts = [f"{event.name} started by {event.user} (group {event.group})", priority]
            parts.append("preemptible" if event.preemptible else "")
            return ", ".join(part for part in parts if part)
        case events.WorkflowStarted():
            return "its first stage began"
        case events.WorkflowStopping():
            return _with("is being stopped", event.reason)
        case events.WorkflowFinished():
            return "finished"
        case events.WorkflowFailed():
            return _with(f"failed at {event.stage}", event.error)
        case events.WorkflowCanceled():
            return "canceled"
        case events.VolumesRemoved():
            return "its ephemeral volumes are removed"


def _ended(event: events.AllocationEnded) -> str:
    facts: list[str] = []
    if event.signal is not None:
        facts.append(f"signal {event.signal}")
    elif event.exit_code:
        facts.append(f"exit code {event.exit_code}")
    if event.run_ms:
        facts.append(f"ran {lasting(event.run_ms)}")
    if event.peak_bytes:
        facts.append(f"peak {size(event.peak_bytes)}")
    outcome = "timed out" if event.outcome == "timeout" else event.outcome
    return _with(outcome + (f" ({', '.join(facts)})" if facts else ""), event.error)


def _with(words: str, reason: str) -> str:
    return f"{words}: {reason}" if reason else words
