"""How long stages were at their own limit of ranks in flight: waits that no hold explains.

Everything else that an explanation needs is folded by the projections before this one.
"""

import msgspec

from logyard_domain.events import AllocationEnded, AllocationPlaced
from logyard_domain.records import Record
from logyard_projections.fold import Projection
from logyard_projections.rows import Rows
from logyard_projections.shapes import SHAPES, Span, passed, reason_of, shape_key, span_key
from logyard_projections.stages import STAGES, Stage, place_of
from logyard_projections.tables import Table

LIMIT = "limit"
"""The reason of time during which a stage had as many ranks in flight as it may have."""


class Limit(msgspec.Struct, array_like=True, gc=False):
    """The last time that a stage was at its limit: from `entered` to `left` (0: it still is).

    `entered_totals` and `left_totals` are the totals of its shape's timeline at these instants,
    `totals` those of the stage's own timeline before `entered`: for how long it was at its limit,
    and which reasons held its shape meanwhile.
    """

    entered: int
    entered_position: int
    entered_totals: dict[str, int]
    left: int
    left_position: int
    left_totals: dict[str, int]
    totals: dict[str, int]


LIMITS = Table("limits", Limit)


def stage_timeline(stage_key: str) -> str:
    """Name of the timeline on which a stage comes to its limit and leaves it."""
    return f"stage/{stage_key}"


def stretch(
    totals: dict[str, int], before: dict[str, int], after: dict[str, int]
) -> dict[str, int]:
    """Totals of a stage after a stretch at its limit, given its shape's totals around it."""
    grown = dict(totals)
    length = 0
    for reason, ms in after.items():
        passed_ms = ms - before.get(reason, 0)
        if passed_ms:
            grown[reason] = grown.get(reason, 0) + passed_ms
            length += passed_ms
    if length:
        grown[LIMIT] = grown.get(LIMIT, 0) + length
    return grown


def _placed(rows: Rows, record: Record, event: AllocationPlaced) -> None:
    key = place_of(event.allocation).stage_key
    stage = rows.get(STAGES, key)
    if stage is None or stage.placed + stage.running < stage.concurrency or not stage.waiting:
        return
    limit = rows.edit(LIMITS, key)
    if limit is None:
        limit = Limit(0, 0, {}, 0, 0, {}, {})
        rows.put(LIMITS, key, limit)
    elif not limit.left:
        return
    elif limit.left == record.at:
        # It ended one rank and placed the next in the same turn: it never left its limit.
        limit.left = limit.left_position = 0
        return
    if limit.entered_position:
        _write(rows, key, limit)
    limit.entered, limit.entered_position = record.at, record.position
    limit.entered_totals = _shape_totals(rows, stage, record.at)
    limit.left = limit.left_position = 0


def _ended(rows: Rows, record: Record, event: AllocationEnded) -> None:
    key = place_of(event.allocation).stage_key
    stage = rows.get(STAGES, key)
    if stage is None or stage.placed + stage.running != stage.concurrency - 1:
        return
    limit = rows.edit(LIMITS, key)
    if limit is not None and not limit.left:
        limit.left, limit.left_position = record.at, record.position
        limit.left_totals = _shape_totals(rows, stage, record.at)


def _write(rows: Rows, key: str, limit: Limit) -> None:
    """Put the last stretch on the timeline."""
    timeline = stage_timeline(key)
    entered = Span(limit.entered_position, limit.entered, LIMIT, limit.totals)
    rows.put(SPANS_OF_STAGES, span_key(timeline, limit.entered_position), entered)
    limit.totals = stretch(limit.totals, limit.entered_totals, limit.left_totals)
    left = Span(limit.left_position, limit.left, "", limit.totals)
    rows.put(SPANS_OF_STAGES, span_key(timeline, limit.left_position), left)


def _shape_totals(rows: Rows, stage: Stage, at: int) -> dict[str, int]:
    shape = rows.get(SHAPES, shape_key(stage.shape))
    if shape is None:
        return {}
    return passed(shape.totals, reason_of(shape.hold), shape.since, at)


SPANS_OF_STAGES = Table("limit_spans", Span)


PROJECTION = Projection(
    "why",
    1,
    (LIMITS, SPANS_OF_STAGES),
    {AllocationPlaced: _placed, AllocationEnded: _ended},
)
