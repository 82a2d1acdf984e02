"""How long an attempt waited for each reason. The parts sum to the whole, exactly."""

import msgspec

from logyard_projections.shapes import SPANS, passed, shape_timeline, span_key
from logyard_projections.stages import Allocation, Stage, stage_key
from logyard_projections.view import View
from logyard_projections.why import LIMIT, LIMITS, SPANS_OF_STAGES, stage_timeline, stretch

NAMES = {
    "nodes_busy": "capacity",
    "behind_higher": "turn",
    "never_fits": "never",
    "no_nodes": "no-nodes",
    "nodes_closed": "closed-nodes",
    "unheld": "not-evaluated",
    LIMIT: "limit",
}
ORDER = ("dependency", "back-off", *NAMES.values())


class Waited(msgspec.Struct, frozen=True, rename="camel"):
    """Time that was spent waiting for one reason."""

    reason: str
    ms: int


class Wait(msgspec.Struct, frozen=True):
    """The parts of a wait from `since` to `until`, and the positions that they rest on."""

    since: int
    until: int
    parts: tuple[Waited, ...]
    positions: tuple[int, ...]

    @property
    def total_ms(self) -> int:
        """The whole wait."""
        return self.until - self.since


def wait_of(view: View, stage: Stage, allocation: Allocation | None, at: int) -> Wait:
    """The wait of an attempt, or of the ranks that were never placed, until it was placed or `at`.

    A first attempt waits from the submission on, a later one from its requeue on.
    """
    end, end_position = at, view.mark.position
    if allocation is not None and allocation.placed_at:
        end, end_position = allocation.placed_at, allocation.placed_position
    elif stage.ended_at:
        end, end_position = stage.ended_at, stage.ended_position
    if allocation is not None and allocation.attempt > 1:
        since, position = allocation.queued_at, allocation.queued_position
        eligible, eligible_position = allocation.eligible_at, allocation.eligible_position
        before = "back-off"
    else:
        since, position = stage.submitted_at, stage.submitted_position
        eligible, eligible_position = stage.ready_at, stage.ready_position
        before = "dependency"
    end = max(end, since)
    if not eligible:
        parts = {before: end - since}
        return Wait(since, end, _parts(parts), (position,))
    parts = {before: eligible - since}
    start = _held(view, stage, eligible_position, eligible)
    for reason, ms in _held(view, stage, end_position, end).items():
        name = NAMES.get(reason, reason)
        parts[name] = parts.get(name, 0) + ms - start.get(reason, 0)
    return Wait(since, end, _parts(parts), (position, eligible_position, end_position))


def _parts(parts: dict[str, int]) -> tuple[Waited, ...]:
    names = sorted(parts, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    return tuple(Waited(name, parts[name]) for name in names if parts[name])


def _held(view: View, stage: Stage, position: int, at: int) -> dict[str, int]:
    """How long each reason was in force for ranks of the stage, since its shape was declared."""
    totals = dict(_shape_totals(view, stage, position, at))
    for reason, ms in _limit_totals(view, stage, position, at).items():
        totals[reason] = totals.get(reason, 0) + (ms if reason == LIMIT else -ms)
    return totals


def _shape_totals(view: View, stage: Stage, position: int, at: int) -> dict[str, int]:
    timeline = shape_timeline(stage.shape)
    found = view.scan(
        SPANS,
        prefix=f"{timeline}@",
        most=span_key(timeline, position),
        descending=True,
        limit=1,
    ).rows
    return passed(found[0].totals, found[0].reason, found[0].at, at) if found else {}


def _limit_totals(view: View, stage: Stage, position: int, at: int) -> dict[str, int]:
    key = stage_key(stage.workflow, stage.name)
    limit = view.get(LIMITS, key)
    if limit is None:
        return {}
    if limit.entered_position <= position:
        if limit.left and limit.left_position <= position:
            return stretch(limit.totals, limit.entered_totals, limit.left_totals)
        here = _shape_totals(view, stage, position, at)
        return stretch(limit.totals, limit.entered_totals, here)
    timeline = stage_timeline(key)
    found = view.scan(
        SPANS_OF_STAGES,
        prefix=f"{timeline}@",
        most=span_key(timeline, position),
        descending=True,
        limit=1,
    ).rows
    if not found:
        return {}
    span = found[0]
    if span.reason != LIMIT:
        return span.totals
    there = _shape_totals(view, stage, span.position, span.at)
    return stretch(span.totals, there, _shape_totals(view, stage, position, at))
