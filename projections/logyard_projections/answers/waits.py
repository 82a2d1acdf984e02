"""How long an attempt waited for each reason. The parts sum to the whole, exactly."""

import msgspec

from logyard_projections.shapes import SPANS, passed, shape_timeline, span_key
from logyard_projections.stages import STAGES, Allocation, Stage, stage_key
from logyard_projections.view import View
from logyard_projections.why import LIMIT, LIMITS, SPANS_OF_STAGES, stage_timeline, stretch

NAMES = {
    "nodes_busy": "capacity",
    "behind_higher": "turn",
    "never_fits": "never",
    "no_nodes": "no-nodes",
    "nodes_closed": "closed-nodes",
    "not_evaluated": "not-evaluated",
    "unheld": "not-evaluated",
    LIMIT: "limit",
}
ORDER = ("dependency", "data", "back-off", *NAMES.values(), "eviction")
"""Parts of a wait. `data` is time for which nothing but the staging of data was missing, `eviction`
time in which victims gave the room back.
"""


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
    """The wait of an attempt, or of the ranks that were never placed, until it had a place or `at`.

    A first attempt waits from the submission on, a later one from its requeue on.
    """
    end, end_position = placement_of(view, stage, allocation, at)
    if allocation is not None and allocation.attempt > 1:
        since, position = allocation.queued_at, allocation.queued_position
        eligible, eligible_position = allocation.eligible_at, allocation.eligible_position
        before = "back-off"
    else:
        since, position = stage.submitted_at, stage.submitted_position
        eligible, eligible_position = stage.ready_at, stage.ready_position
        before = "dependency"
    end = max(end, since)
    parts = {before: (eligible or end) - since}
    if before == "dependency":
        parts["data"] = parts[before] - (data_since(view, stage, eligible or end) - since)
        parts[before] -= parts["data"]
    if not eligible:
        return Wait(since, end, _parts(parts), (position,))
    parts |= reasons_between(view, stage, eligible_position, eligible, end_position, end)
    positions: tuple[int, ...] = (position, eligible_position, end_position)
    if allocation is not None and allocation.after and allocation.placed_at:
        seated = allocation.seated_at or allocation.ended_at or max(at, end)
        parts["eviction"] = seated - end
        end = seated
        positions += (allocation.seated_position,) if allocation.seated_position else ()
    return Wait(since, end, _parts(parts), positions)


def reasons_between(
    view: View, stage: Stage, position: int, at: int, until_position: int, until: int
) -> dict[str, int]:
    """How long which reason held the ranks of a stage back between two points of the log."""
    start = _held(view, stage, position, at)
    parts: dict[str, int] = {}
    for reason, ms in _held(view, stage, until_position, until).items():
        name = NAMES.get(reason, reason)
        parts[name] = parts.get(name, 0) + ms - start.get(reason, 0)
    return {name: ms for name, ms in parts.items() if ms}


def placement_of(
    view: View, stage: Stage, allocation: Allocation | None, at: int
) -> tuple[int, int]:
    """When and where on the log a rank was given a place, or given up; else the present."""
    if allocation is not None and allocation.placed_at:
        return allocation.placed_at, allocation.placed_position
    if stage.ended_at:
        return stage.ended_at, stage.ended_position
    return at, view.mark.position


def data_since(view: View, stage: Stage, end: int) -> int:
    """The instant from which on only staged data was missing; `end` where there was none such."""
    since, staged = stage.submitted_at, False
    for need in stage.needs:
        other = view.get(STAGES, stage_key(stage.workflow, need))
        if other is None or other.kind != "job":
            staged = True
        else:
            since = max(since, other.ended_at or end)
    return min(since, end) if staged else end


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
