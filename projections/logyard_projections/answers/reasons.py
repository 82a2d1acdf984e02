"""Why something waits: one class of reason, the word on the wire, a few words for people."""

from typing import Literal

import msgspec

from logyard_domain.holds import (
    BehindHigher,
    NeverFits,
    NodesBusy,
    NodesClosed,
    NoNodes,
    NotEvaluated,
)
from logyard_projections.answers.forecasts import start_text
from logyard_projections.answers.situation import Situation
from logyard_projections.answers.words import held, job_name, listed, number_of
from logyard_projections.instants import lasting, rfc3339
from logyard_projections.promises import BACKFILLS, Promise
from logyard_projections.shapes import Shape
from logyard_projections.stages import (
    ALLOCATIONS,
    OVER,
    STAGES,
    Allocation,
    Stage,
    place_of,
    stage_key,
)
from logyard_projections.view import View

Kind = Literal[
    "never",
    "until-someone-acts",
    "capacity",
    "turn",
    "dependency",
    "back-off",
    "limit",
    "not-evaluated",
    "running",
    "ended",
]
"""The classes: what would have to change before it runs."""
BACKFILL = "scheduler.backfill.enabled"

WIRE: dict[Kind, str] = {
    "never": "INSUFFICIENT_RESOURCES",
    "until-someone-acts": "INSUFFICIENT_RESOURCES",
    "capacity": "INSUFFICIENT_RESOURCES",
    "turn": "BLOCKED_BY_RESERVATION",
    "dependency": "WAITING_DEPENDENCY",
    "back-off": "READY_TO_SCHEDULE",
    "limit": "READY_TO_SCHEDULE",
    "not-evaluated": "READY_TO_SCHEDULE",
    "running": "RUNNING",
    "ended": "FINISHED",
}
WOULD_DELAY = "BACKFILL_INELIGIBLE_WOULD_DELAY_HEAD"
NO_FIT = "BACKFILL_NO_FIT"


class Reason(msgspec.Struct, frozen=True):
    """One reason. `positions` are what it rests on; `wire` the word for it on the wire."""

    kind: Kind
    text: str
    positions: tuple[int, ...]
    wire: str = ""

    @property
    def word(self) -> str:
        """The word on the wire, without its prefix."""
        return self.wire or WIRE[self.kind]


def reasons(
    situation: Situation, stage: Stage, allocation: Allocation | None, first: bool = True
) -> list[Reason]:
    """Every reason why a rank of the stage is not running, the one that counts most first.

    `allocation` is the attempt that is asked for, where there is one; `first` tells whether the
    rank is the next one of its stage, to which a promise may have been made.
    """
    view, shape = situation.view, situation.shape(stage.shape)
    if allocation is not None and allocation.state not in ("waiting", "delayed"):
        return [_allocation_reason(situation, allocation)]
    if stage.status in OVER:
        text = (
            f"the stage {stage.status}" if stage.status != "canceled" else "the stage was canceled"
        )
        text += f": {stage.error}" if stage.error else ""
        return [Reason("ended", text, (stage.ended_position,))]
    if stage.status == "waiting":
        return _dependencies(view, stage)
    found: list[Reason] = []
    if stage.failed:
        text = "another rank of the stage failed, so no further ones start"
        found.append(Reason("never", text, (stage.ready_position,)))
    delayed = allocation.state == "delayed" if allocation is not None else not stage.waiting
    if delayed and stage.delayed:
        found.append(_back_off(stage, allocation, situation.at))
    if stage.inflight >= stage.concurrency:
        text = f"the stage runs at most {number_of(stage.concurrency, 'rank')} at once"
        found.append(Reason("limit", text, (stage.ready_position,)))
    if shape is not None and shape.hold is not None:
        found += _hold_reasons(situation, stage, shape, first)
    if not found:
        text = "not evaluated yet" if stage.waiting else "nothing of it waits"
        found.append(Reason("not-evaluated", text, (stage.ready_position,)))
    return found


def _allocation_reason(situation: Situation, allocation: Allocation) -> Reason:
    if allocation.state == "ended":
        text = {
            "finished": "finished",
            "failed": "failed",
            "timeout": "ran longer than its time limit",
            "canceled": "was canceled",
            "lost": f"was lost with node {allocation.node}",
            "preempted": "was preempted",
        }.get(allocation.outcome, allocation.outcome)
        if allocation.outcome == "preempted":
            text += by_text(allocation)
        text += f": {allocation.error}" if allocation.error else ""
        return Reason("ended", text, (allocation.ended_position,))
    position = allocation.started_position or allocation.placed_position
    where = listed(allocation.seats, 3)
    if allocation.state == "stopping":
        text = f"is being stopped on {where} ({allocation.stopping}{by_text(allocation)})"
        return Reason("running", text, (allocation.stopping_position,))
    if allocation.state == "running":
        return Reason("running", f"runs on {where}", (position,))
    if allocation.behind:
        text = f"queues on {where} behind {_before(situation, allocation)}"
        return Reason("running", text, (position,))
    if allocation.evicts:
        names = listed(map(job_name, allocation.after), 3)
        text = f"has its room on {where}, and starts when {names} gave it back"
        return Reason("running", text, (position,))
    return Reason("running", f"placed on {where}, not running yet", (position,))


def by_text(allocation: Allocation) -> str:
    """For whom an allocation was evicted: `` by wf-x/job``; nothing where it was not."""
    if allocation.stopping != "preempted":
        return ""
    return f" by {job_name(allocation.by)}" if allocation.by else " by an administrator"


def standing_text(situation: Situation, allocation: Allocation) -> str:
    """How an allocation came to its room, in the words of the queue."""
    if allocation.state == "stopping":
        return f"being stopped: {allocation.stopping}{by_text(allocation)}"
    if allocation.behind:
        return f"queued behind {_before(situation, allocation)}"
    if allocation.kind == "preempting":
        names = listed(map(job_name, allocation.after), 2)
        return f"evicts {names}" if allocation.evicts else f"evicted {names}"
    if allocation.kind == "backfilled":
        backfill = situation.ranker.get(BACKFILLS, place_of(allocation.id).key)
        return f"backfilled before {job_name(backfill.before)}" if backfill else "backfilled"
    return "started by order"


def _before(situation: Situation, allocation: Allocation) -> str:
    """Whose room an allocation gets next."""
    ahead = situation.view.get(ALLOCATIONS, allocation.behind)
    return job_name(ahead.id) if ahead is not None else "another one"


def _dependencies(view: View, stage: Stage) -> list[Reason]:
    found: list[Reason] = []
    for need in stage.needs:
        other = view.get(STAGES, stage_key(stage.workflow, need))
        if other is None or other.status == "finished":
            continue
        text = f"waits for {other.title}"
        if other.status == "started":
            text += f" ({other.finished:,} of {other.total:,} done)"
        position = other.ended_position or other.ready_position or other.submitted_position
        found.append(Reason("dependency", text, (position,)))
    if not found:
        found.append(Reason("not-evaluated", "not evaluated yet", (stage.submitted_position,)))
    return found


def _back_off(stage: Stage, allocation: Allocation | None, at: int) -> Reason:
    if allocation is None:
        text = f"{number_of(stage.delayed, 'rank')} back off before the next attempt"
        return Reason("back-off", text, (stage.ready_position,))
    left = max(allocation.not_before - at, 0)
    text = f"backs off for another {lasting(left)} before attempt {allocation.attempt}"
    return Reason("back-off", text, (allocation.queued_position,))


def _hold_reasons(situation: Situation, stage: Stage, shape: Shape, first: bool) -> list[Reason]:
    hold, request = shape.hold, shape.request
    here = (shape.since_position,)
    match hold:
        case NeverFits():
            return [Reason("never", held(hold, request), here)]
        case NoNodes() | NodesClosed():
            return [Reason("until-someone-acts", held(hold, request), here)]
        case NodesBusy():
            return _busy(situation, stage, shape, first)
        case BehindHigher():
            return [_behind(situation, situation.promised_to(hold.shape), here)]
        case NotEvaluated():
            return [Reason("not-evaluated", held(hold, request), here)]
        case None:
            return []


def _busy(situation: Situation, stage: Stage, shape: Shape, first: bool) -> list[Reason]:
    """No room; or room, but for what was promised to another one; or neither."""
    here = (shape.since_position,)
    own = situation.promise_of(stage.workflow, stage.name)
    if own is not None:
        text = situation.rooms.scarce(shape.request)
        start = start_text(situation.view, own, situation.at)
        text = f"head: {start}" if first else f"{text}; the first of its stage {start}"
        return [Reason("capacity", text, (*here, own.position))]
    other = situation.in_line_before(stage.workflow, stage.name, shape.request)
    if other is not None and situation.rooms.free(shape.request) == shape.request.nodes:
        return [_behind(situation, other, here)]
    text = situation.rooms.scarce(shape.request)
    if other is None:
        return [Reason("capacity", text, here)]
    behind = f"{job_name(other.allocation)} is first in line, and may not be delayed"
    return [
        Reason("capacity", text, here, NO_FIT),
        Reason("turn", behind, (other.position,)),
    ]


def _behind(situation: Situation, head: Promise | None, here: tuple[int, ...]) -> Reason:
    if head is None:
        return Reason("turn", "its nodes are kept for work before it in the queue", here)
    name, positions = job_name(head.allocation), (*here, head.position)
    if not situation.setting(BACKFILL):
        text = f"waits behind {name}: backfill is off"
        return Reason("turn", text, positions)
    text = f"would delay {name}, promised {rfc3339(head.at)}"
    return Reason("turn", text, positions, WOULD_DELAY)


def needs_of(view: View, stage: Stage) -> tuple[str, ...]:
    """Names of the stages that it still waits for."""
    return tuple(
        need
        for need in stage.needs
        if (other := view.get(STAGES, stage_key(stage.workflow, need))) is None
        or other.status != "finished"
    )


def summary(found: list[Reason]) -> str:
    """The reason that counts most, in the words of the queue."""
    if found[0].kind in ("capacity", "turn", "never", "until-someone-acts"):
        return found[0].text
    return listed([one.text for one in found], 3)
