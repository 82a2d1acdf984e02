"""Shapes: what equal requests ask for, why they wait, and how long they waited for each reason."""

from functools import lru_cache

import msgspec

from logyard_domain.events import ShapeDeclared, ShapeHeld, ShapeReleased
from logyard_domain.holds import Hold, NeverFits
from logyard_domain.records import Record
from logyard_domain.resources import Request
from logyard_projections.fold import Projection
from logyard_projections.rows import Rows
from logyard_projections.tables import Table

UNHELD = "unheld"
"""The reason of time without a hold: nothing waited, or it was not looked at yet."""


class Shape(msgspec.Struct, array_like=True, gc=False):
    """Equal requests: the hold in force since `since` (an instant) and `since_position`.

    `totals` is how long each reason was in force before that, in milliseconds. `declared` is the
    position at which the shape was first seen.
    """

    id: int
    request: Request
    declared: int
    hold: Hold | None
    since: int
    since_position: int
    totals: dict[str, int]

    @property
    def parked(self) -> int | None:
        """1 where no node could ever hold it."""
        return 1 if isinstance(self.hold, NeverFits) else None


class Span(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A stretch of a timeline: `reason` is in force from `at` (at `position`) to the next stretch.

    `totals` is how long each reason was in force on this timeline before.
    """

    position: int
    at: int
    reason: str
    totals: dict[str, int]


SHAPES = Table("shapes", Shape, columns={"parked": int}, indexes=[("parked",)])
SPANS = Table("spans", Span)


@lru_cache(maxsize=1024)
def shape_key(shape: int) -> str:
    return f"{shape:010d}"


def span_key(timeline: str, position: int) -> str:
    return f"{timeline}@{position:016d}"


def shape_timeline(shape: int) -> str:
    """Name of the timeline on which the holds of a shape follow each other."""
    return f"shape/{shape_key(shape)}"


def reason_of(hold: Hold | None) -> str:
    """The fixed word for a hold, such as ``nodes_busy``."""
    return UNHELD if hold is None else str(hold.__struct_config__.tag)


def passed(totals: dict[str, int], reason: str, since: int, at: int) -> dict[str, int]:
    """The totals with `reason` in force from `since` to `at`."""
    grown = max(at - since, 0)
    return {**totals, reason: totals.get(reason, 0) + grown} if grown else totals


def _declared(rows: Rows, record: Record, event: ShapeDeclared) -> None:
    shape = Shape(event.shape, event.request, record.position, None, record.at, record.position, {})
    rows.put(SHAPES, shape_key(event.shape), shape)
    _write_span(rows, shape)


def _held(rows: Rows, record: Record, event: ShapeHeld) -> None:
    _change(rows, record, event.shape, event.hold)


def _released(rows: Rows, record: Record, event: ShapeReleased) -> None:
    _change(rows, record, event.shape, None)


def _change(rows: Rows, record: Record, number: int, hold: Hold | None) -> None:
    shape = rows.edit(SHAPES, shape_key(number))
    if shape is None:
        return
    shape.totals = passed(shape.totals, reason_of(shape.hold), shape.since, record.at)
    shape.hold = hold
    shape.since = max(record.at, shape.since)
    shape.since_position = record.position
    _write_span(rows, shape)


def _write_span(rows: Rows, shape: Shape) -> None:
    span = Span(shape.since_position, shape.since, reason_of(shape.hold), shape.totals)
    rows.put(SPANS, span_key(shape_timeline(shape.id), shape.since_position), span)


PROJECTION = Projection(
    "shapes",
    1,
    (SHAPES, SPANS),
    {ShapeDeclared: _declared, ShapeHeld: _held, ShapeReleased: _released},
)
