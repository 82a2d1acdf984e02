"""The reasons for which an attempt waited, one after the other."""

import msgspec

from logyard_projections.answers.stages import instant
from logyard_projections.answers.waits import (
    NAMES,
    data_since,
    placement_of,
    reasons_between,
)
from logyard_projections.shapes import SPANS, Span, shape_timeline, span_key
from logyard_projections.stages import Allocation, Stage, stage_key
from logyard_projections.view import View
from logyard_projections.why import LIMIT, LIMITS, SPANS_OF_STAGES, stage_timeline

STRETCHES_MOST = 200
"""Changes of the reason that are told one by one, the latest."""


class Stretch(msgspec.Struct, frozen=True, rename="camel"):
    """For `ms` from `since` on it waited for one reason. `position` is that of the event from
    which on it did.

    Where there were too many to be told one by one, the earliest of them are put together: then
    `together`, and `ms` is the part of the time until `until` that was spent on the reason.
    """

    reason: str
    since: str | None
    until: str | None
    ms: int
    position: int
    together: bool = False


class _Part(msgspec.Struct, frozen=True):
    """A reason between two instants, from a position on."""

    reason: str
    since: int
    until: int
    position: int


def history_of(
    view: View, stage: Stage, allocation: Allocation | None, at: int
) -> tuple[Stretch, ...]:
    """What the wait of an attempt was made of; the lengths sum to it (see `waits.wait_of`)."""
    end, end_position = placement_of(view, stage, allocation, at)
    parts: list[_Part] = []
    if allocation is not None and allocation.attempt > 1:
        since, position = allocation.queued_at, allocation.queued_position
        eligible, eligible_position = allocation.eligible_at, allocation.eligible_position
        parts.append(_Part("back-off", since, eligible or max(end, since), position))
    else:
        since, position = stage.submitted_at, stage.submitted_position
        eligible, eligible_position = stage.ready_at, stage.ready_position
        until = eligible or max(end, since)
        data = data_since(view, stage, until)
        parts.append(_Part("dependency", since, data, position))
        parts.append(_Part("data", data, until, position))
    together: list[Stretch] = []
    if eligible:
        held, cut = _held(
            view, stage, eligible, eligible_position, max(end, eligible), end_position
        )
        if cut is not None:
            between = reasons_between(
                view, stage, eligible_position, eligible, cut.position, cut.at
            )
            together = [
                Stretch(name, instant(eligible), instant(cut.at), ms, eligible_position, True)
                for name, ms in between.items()
            ]
        parts += held
    if allocation is not None and allocation.after and allocation.placed_at:
        seated = allocation.seated_at or allocation.ended_at or max(at, end)
        parts.append(_Part("eviction", allocation.placed_at, seated, allocation.placed_position))
    told = [_told(part) for part in _joined(parts)]
    before = [one for one in told if one.reason in ("dependency", "data", "back-off")]
    return (*before, *together, *told[len(before) :])


def _told(part: _Part) -> Stretch:
    since, until = instant(part.since), instant(part.until)
    return Stretch(part.reason, since, until, part.until - part.since, part.position)


def _joined(parts: list[_Part]) -> list[_Part]:
    """Without what lasted no time, and equal neighbours as one."""
    found: list[_Part] = []
    for part in parts:
        if part.until <= part.since:
            continue
        last = found[-1] if found else None
        if last is not None and last.reason == part.reason and last.until == part.since:
            found[-1] = msgspec.structs.replace(last, until=part.until)
        else:
            found.append(part)
    return found


def _held(
    view: View, stage: Stage, since: int, position: int, end: int, end_position: int
) -> tuple[list[_Part], Span | None]:
    """Reasons from when the rank could be placed; and where they begin, if not there."""
    spans, cut = _spans(view, stage, position, end_position)
    start, first = (since, position) if cut is None else (cut.at, cut.position)
    changes = [
        *((span.at, 0, span.position, NAMES.get(span.reason, span.reason)) for span in spans),
        *_limits(view, stage, start),
    ]
    # In the order of the log: at one instant a limit may be left and come to again.
    changes.sort(key=lambda change: change[2])
    parts: list[_Part] = []
    reason, limited = NAMES["unheld"], ""
    at, here = start, first
    for when, kind, where, name in changes:
        if when > end:
            break
        if when > at:
            parts.append(_Part(limited or reason, at, when, here))
            at = when
        if kind:
            limited = name
        else:
            reason = name
        here = max(where, first)
    parts.append(_Part(limited or reason, at, end, here))
    return parts, cut


def _spans(view: View, stage: Stage, position: int, end: int) -> tuple[list[Span], Span | None]:
    """The holds of its shape between two positions, the one in force at the first one first; and
    the one that they begin with where there are too many.
    """
    timeline = shape_timeline(stage.shape)
    found: list[Span] = []
    token = ""
    while True:
        page = view.scan(
            SPANS,
            prefix=f"{timeline}@",
            most=span_key(timeline, end),
            descending=True,
            after=token,
            limit=STRETCHES_MOST,
        )
        for span in page.rows:
            found.append(span)
            if span.position <= position:
                return found[::-1], None
            if len(found) == STRETCHES_MOST:
                return found[::-1], span
        token = page.token
        if not token:
            return found[::-1], None


def _limits(view: View, stage: Stage, since: int) -> list[tuple[int, int, int, str]]:
    """When the stage came to its own limit of ranks, and left it, since an instant."""
    key = stage_key(stage.workflow, stage.name)
    limit = view.get(LIMITS, key)
    if limit is None:
        return []
    found = [(limit.entered, 1, limit.entered_position, LIMIT)]
    if limit.left:
        found.append((limit.left, 1, limit.left_position, ""))
    token = ""
    prefix = f"{stage_timeline(key)}@"
    while True:
        page = view.scan(SPANS_OF_STAGES, prefix=prefix, descending=True, after=token, limit=100)
        for span in page.rows:
            found.append((span.at, 1, span.position, LIMIT if span.reason == LIMIT else ""))
            if span.at <= since:
                return found
        token = page.token
        if not token:
            return found
