"""Sentences about placements, promises and evictions."""

from collections.abc import Callable
from typing import assert_never

from logyard_domain import events
from logyard_domain.configuration import DEFAULTS
from logyard_domain.events import AnyEvent
from logyard_domain.records import Record
from logyard_projections.answers.words import listed, number_of
from logyard_projections.configuration import LATEST, LATEST_KEY
from logyard_projections.instants import lasting, rfc3339
from logyard_projections.promises import BACKFILLS
from logyard_projections.stages import STAGES, place_of
from logyard_projections.view import View

GRACE = "workflow.killGrace"


def nothing(_: int) -> Record | None:
    """Recalls no record."""
    return None


def rank_text(allocation: str) -> str:
    """Stage, rank and attempt as people say them: ``assemble``, ``render 17, attempt 2``."""
    place = place_of(allocation)
    name = f"{place.stage} {place.rank}" if place.rank else place.stage
    return f"{name}, attempt {place.attempt}" if place.attempt > 1 else name


def job_text(allocation: str) -> str:
    """The job of an allocation, by a name that can be asked about: ``wf-x/job``, ``wf-x/a/3``."""
    place = place_of(allocation)
    return f"{place.stage_key}/{place.rank}" if place.rank else place.stage_key


def placed(
    event: events.AllocationPlaced,
    record: Record,
    view: View | None,
    recall: Callable[[int], Record | None],
) -> str:
    """Where it got room, and how: in order, behind an equal one, before its turn, by force."""
    where = nodes_text(event.chunks, event.node)
    if event.behind:
        return f"placed on {where} behind {rank_text(event.behind)}"
    match event.kind:
        case "direct":
            return f"placed on {where}"
        case "backfilled":
            return f"backfilled on {where}{_in_time(event, record, view)}"
        case "preempting":
            victims = listed((_victim(one, event, record, recall) for one in event.after), 4)
            return f"preempted {victims}; starts on {where} once there is room"
        case _:
            assert_never(event.kind)


def nodes_text(chunks: dict[str, int], node: str) -> str:
    """``n01``, or ``n01, n02 (2)`` for several chunks."""
    parts = [name if n == 1 else f"{name} ({n})" for name, n in chunks.items()]
    return listed(parts, 4) if parts else node


def _in_time(event: events.AllocationPlaced, record: Record, view: View | None) -> str:
    """Why nobody is delayed: it ends before what was promised, or takes what that leaves."""
    place = place_of(event.allocation)
    stage = view.get(STAGES, place.stage_key) if view is not None else None
    if stage is None or view is None:
        return ", which delays nothing that was promised"
    revision = view.get(LATEST, LATEST_KEY)
    values = DEFAULTS if revision is None else DEFAULTS | revision.values
    ends = record.at + stage.limit_ms + int(values[GRACE])
    backfill = view.get(BACKFILLS, place.key)
    if backfill is None:
        return f": ends by {rfc3339(ends)}, and delays nothing that was promised"
    promised = job_text(backfill.before)
    if ends <= backfill.at:
        return f": ends by {rfc3339(ends)}, before the promise to {promised}"
    return f": room that the promise to {promised} leaves"


def _victim(
    victim: str,
    event: events.AllocationPlaced,
    record: Record,
    recall: Callable[[int], Record | None],
) -> str:
    # Victims are told to stop just before, one record each.
    for back in range(1, len(event.after) + 1):
        found = recall(record.position - back)
        told = found.event if found is not None else None
        if isinstance(told, events.AllocationStopping) and told.allocation == victim:
            return f"{job_text(victim)} ({_how_far(told)})"
    return job_text(victim)


def _how_far(event: events.AllocationStopping) -> str:
    return f"ran {lasting(event.ran_ms)}, priority gap {event.gap:.1f}"


def stopping(event: events.AllocationStopping) -> str:
    """Why it has to end."""
    match event.reason:
        case "preempted":
            if not event.by:
                return f"preempted by an administrator (ran {lasting(event.ran_ms)})"
            return f"preempted by {job_text(event.by)} ({_how_far(event)})"
        case "canceled":
            return "is being stopped: its workflow was"
        case "timeout":
            return "is being stopped: its time limit has passed"
        case "drained":
            return "is being stopped: its node is drained"
        case _:
            assert_never(event.reason)


def requeued(event: events.AllocationRequeued) -> str:
    """Why it queues again."""
    match event.reason:
        case "retry":
            return "queues again: it failed and may be tried again"
        case "lost":
            return "queues again: its node was lost"
        case "preempted":
            return "queues again: it was preempted"
        case "drained":
            return "queues again: its node is drained"
        case _:
            assert_never(event.reason)


def promised(
    event: events.ReservationHeld | events.ReservationMoved | events.ReservationReleased,
    recall: Callable[[int], Record | None],
) -> str:
    """What the first in line was told, or was told anew, or is told no more."""
    match event:
        case events.ReservationHeld():
            return f"head of the queue: promised at {rfc3339(event.at)} {_seats(event.chunks)}"
        case events.ReservationMoved():
            found = recall(event.because) if event.because else None
            why = slip_text(event.cause, found.event if found is not None else None)
            return f"promise moved to {rfc3339(event.at)} {_seats(event.chunks)}: {why}"
        case events.ReservationReleased():
            return f"promise taken back: {_released(event)}"
        case _:
            assert_never(event)


def _seats(chunks: dict[str, int]) -> str:
    names = list(chunks)
    return f"on {names[0]}" if len(names) == 1 else f"on {number_of(len(names), 'node')}"


def _released(event: events.ReservationReleased) -> str:
    match event.cause:
        case "outranked":
            return "another one is first in line now"
        case "withdrawn":
            return "it waits no longer"
        case "never":
            return "it could not start even if all that runs ended"
        case _:
            assert_never(event.cause)


def slip_text(cause: events.SlipCause, because: AnyEvent | None) -> str:
    """Why a promise moved, where that is known by the event that did it."""
    match cause:
        case "earlier":
            if isinstance(because, events.AllocationEnded):
                return f"{job_text(because.allocation)} ended before it had to"
            if isinstance(because, events.AllocationStopping):
                return f"{job_text(because.allocation)} is being stopped"
            return "something ended before it had to"
        case "node":
            return _node_change(because)
        case "overrun":
            return "what runs there takes longer than it may"
        case "outranked":
            if isinstance(because, events.AllocationPlaced):
                return f"{job_text(because.allocation)}, of higher priority, was placed"
            return "one of higher priority was placed"
        case "policy":
            return _policy_change(because)
        case _:
            assert_never(cause)


def _node_change(because: AnyEvent | None) -> str:
    match because:
        case events.NodeLost():
            return f"node {because.node} was lost"
        case events.NodeReturned():
            return f"node {because.node} was heard again"
        case events.NodeRegistered():
            return f"node {because.node} registered"
        case events.NodeCordoned():
            return f"node {because.node} was cordoned"
        case events.NodeUncordoned():
            return f"node {because.node} was opened"
        case events.NodeDraining():
            return f"node {because.node} is being drained"
        case events.NodeRemoved():
            return f"node {because.node} was removed"
        case _:
            return "the nodes changed"


def _policy_change(because: AnyEvent | None) -> str:
    match because:
        case events.ConfigSet():
            return f"configuration r{because.revision} is in force"
        case events.OrganizationUpdated():
            return f"organization {because.organization} has priority {because.priority}"
        case events.GroupUpdated():
            return f"group {because.group} has priority {because.priority}"
        case events.GroupDeleted():
            return f"group {because.group} was deleted"
        case events.UserUpdated():
            return f"user {because.user} has priority {because.priority}"
        case _:
            return "the configuration or a priority changed"
