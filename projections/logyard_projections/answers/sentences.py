"""What happened, in one line for people."""

from typing import assert_never

from logyard_domain import events
from logyard_domain.events import AnyEvent
from logyard_projections.answers.streams import subject_of
from logyard_projections.answers.words import held, listed, number_of, size, wants
from logyard_projections.instants import lasting
from logyard_projections.shapes import SHAPES, shape_key
from logyard_projections.stages import place_of
from logyard_projections.streams import OF_ALLOCATION, workflow_of
from logyard_projections.view import View


def what(event: AnyEvent) -> str:
    """The short name of what an event is about, for the third column of ``workflow events``."""
    if type(event) in OF_ALLOCATION:
        place = place_of(str(getattr(event, "allocation", "")))
        return f"{place.stage} {place.rank}"
    if isinstance(event, events.WorkflowFailed):
        return "workflow"
    stage: str = getattr(event, "stage", "")
    if stage:
        return stage
    return "workflow" if workflow_of(event) else subject_of(event)


def text(event: AnyEvent, view: View | None = None) -> str:
    """What happened, in one line. A view adds what is not in the event itself."""
    match event:
        case events.ServerStarted():
            return f"server {event.version} took the log (term {event.term})"
        case events.ServerStopped():
            return f"server ended in good order (term {event.term})"
        case events.ConfigSet():
            return f"configuration r{event.revision}: {number_of(len(event.values), 'setting')}"
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
            return _of_workflow(event)
        case events.StageReady():
            return f"ready: what it needs is there (shape {event.shape})"
        case events.StageStarted():
            return "started"
        case events.StageFinished():
            return "finished"
        case events.StageFailed():
            return f"failed: {event.error}"
        case events.StageCanceled():
            return _with("canceled", event.reason)
        case events.ShapeDeclared():
            return f"shape {event.shape} is {wants(event.request)}"
        case events.ShapeHeld():
            shape = view.get(SHAPES, shape_key(event.shape)) if view is not None else None
            if shape is None:
                return f"waits: {str(event.hold.__struct_config__.tag).replace('_', ' ')}"
            return f"waits: {held(event.hold, shape.request)}"
        case events.ShapeReleased():
            return "waits for nothing any more"
        case (
            events.AllocationPlaced()
            | events.AllocationStarted()
            | events.AllocationStopping()
            | events.AllocationEnded()
            | events.AllocationRequeued()
            | events.AllocationReady()
        ):
            return _of_allocation(event)
        case _:
            assert_never(event)


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
            parts = [f"{capacity.cores} cpu", size(capacity.memory), *devices]
            return f"registered with {', '.join(parts)}"
        case events.NodeCordoned():
            return _with("cordoned", event.reason)
        case events.NodeUncordoned():
            return "open for placements again"
        case events.NodeDraining():
            how = "draining, what runs is requeued" if event.evict else "draining"
            return _with(how, event.reason)
        case events.NodeDrained():
            return "drained: nothing runs there"
        case events.NodeLost():
            return f"lost: silent for {lasting(event.silent_ms)}"
        case events.NodeReturned():
            return "heard again"
        case events.NodeRemoved():
            return "removed"


def _of_workflow(
    event: events.WorkflowSubmitted
    | events.WorkflowStarted
    | events.WorkflowStopping
    | events.WorkflowFinished
    | events.WorkflowFailed
    | events.WorkflowCanceled
    | events.VolumesRemoved,
) -> str:
    match event:
        case events.WorkflowSubmitted():
            priority = f", priority {event.priority}" if event.priority else ""
            return f"submitted by {event.user} (group {event.group}{priority})"
        case events.WorkflowStarted():
            return "started"
        case events.WorkflowStopping():
            return _with("being stopped", event.reason)
        case events.WorkflowFinished():
            return "finished"
        case events.WorkflowFailed():
            return f"failed in {event.stage}: {event.error}"
        case events.WorkflowCanceled():
            return "canceled"
        case events.VolumesRemoved():
            return "its ephemeral volumes are removed"


def _of_allocation(
    event: events.AllocationPlaced
    | events.AllocationStarted
    | events.AllocationStopping
    | events.AllocationEnded
    | events.AllocationRequeued
    | events.AllocationReady,
) -> str:
    attempt = place_of(event.allocation).attempt
    again = f", attempt {attempt}" if attempt > 1 else ""
    match event:
        case events.AllocationPlaced():
            behind = f" behind {event.behind.partition('/')[2]}" if event.behind else ""
            return f"placed on {event.node}{behind}{again}"
        case events.AllocationStarted():
            return f"runs{again}"
        case events.AllocationStopping():
            return f"being stopped: {event.reason}"
        case events.AllocationEnded():
            return _ended(event)
        case events.AllocationRequeued():
            return f"requeued as attempt {attempt}: {event.reason}"
        case events.AllocationReady():
            return f"queued again after its back-off, attempt {attempt}"


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
    return _with(outcome + (f" ({listed(facts)})" if facts else ""), event.error)


def _with(words: str, reason: str) -> str:
    return f"{words}: {reason}" if reason else words
