"""Why something waits: one class of reason, the word on the wire, a few words for people."""

from typing import Literal

import msgspec

from logyard_domain.holds import BehindHigher, NeverFits, NodesBusy, NodesClosed, NoNodes
from logyard_projections.answers.words import held, listed, number_of
from logyard_projections.instants import lasting
from logyard_projections.shapes import SHAPES, Shape, shape_key
from logyard_projections.stages import OVER, STAGES, Allocation, Stage, stage_key
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


class Reason(msgspec.Struct, frozen=True):
    """One reason. `positions` are what it rests on."""

    kind: Kind
    text: str
    positions: tuple[int, ...]


def shape_of(view: View, stage: Stage) -> Shape | None:
    """The shape of a stage that is or was ready."""
    return view.get(SHAPES, shape_key(stage.shape)) if stage.shape else None


def reasons(
    view: View, stage: Stage, shape: Shape | None, allocation: Allocation | None, at: int
) -> list[Reason]:
    """Every reason why a rank of the stage is not running, the one that counts most first.

    `shape` is that of the stage; `allocation` the attempt that is asked for, where there is one.
    """
    if allocation is not None and allocation.state not in ("waiting", "delayed"):
        return [_allocation_reason(allocation)]
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
        found.append(_back_off(stage, allocation, at))
    if stage.inflight >= stage.concurrency:
        text = f"the stage runs at most {number_of(stage.concurrency, 'rank')} at once"
        found.append(Reason("limit", text, (stage.ready_position,)))
    if shape is not None and shape.hold is not None:
        found.append(_hold_reason(shape))
    if not found:
        text = "not evaluated yet" if stage.waiting else "nothing of it waits"
        found.append(Reason("not-evaluated", text, (stage.ready_position,)))
    return found


def _allocation_reason(allocation: Allocation) -> Reason:
    if allocation.state == "ended":
        text = {
            "finished": "finished",
            "failed": "failed",
            "timeout": "ran longer than its time limit",
            "canceled": "was canceled",
            "lost": f"was lost with node {allocation.node}",
            "preempted": "was preempted",
        }.get(allocation.outcome, allocation.outcome)
        text += f": {allocation.error}" if allocation.error else ""
        return Reason("ended", text, (allocation.ended_position,))
    text = {
        "placed": f"placed on {allocation.node}, not running yet",
        "running": f"runs on {allocation.node}",
        "stopping": f"is being stopped on {allocation.node} ({allocation.stopping})",
    }[allocation.state]
    position = allocation.started_position or allocation.placed_position
    return Reason("running", text, (position,))


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


def _hold_reason(shape: Shape) -> Reason:
    hold = shape.hold
    assert hold is not None
    kind: Kind
    match hold:
        case NeverFits():
            kind = "never"
        case NoNodes() | NodesClosed():
            kind = "until-someone-acts"
        case NodesBusy():
            kind = "capacity"
        case BehindHigher():
            kind = "turn"
    return Reason(kind, held(hold, shape.request), (shape.since_position,))


def needs_of(view: View, stage: Stage) -> tuple[str, ...]:
    """Names of the stages that it still waits for."""
    return tuple(
        need
        for need in stage.needs
        if (other := view.get(STAGES, stage_key(stage.workflow, need))) is None
        or other.status != "finished"
    )


def summary(found: list[Reason]) -> str:
    """All reasons in one line."""
    return listed([one.text for one in found], 3)
