"""Forecasts of a start: what is promised, how sure that is, what moved it, how true they came."""

import msgspec

from logyard_projections.answers.stages import instant
from logyard_projections.instants import lasting, rfc3339
from logyard_projections.promises import (
    HORIZONS_MS,
    PROMISES,
    SCORES,
    Promise,
    Score,
    horizon,
    score_key,
)
from logyard_projections.spread import slot_most
from logyard_projections.view import View

SAMPLES_LEAST = 5
"""Forecasts of a horizon that must have come true or not before their error is told."""
CAUSES = {
    "held": "promised",
    "earlier": "something ended before it had to",
    "node": "nodes were lost, closed, opened or changed",
    "overrun": "something runs longer than it may",
    "outranked": "one of higher priority was placed",
    "policy": "the configuration or a priority changed",
    "released: outranked": "taken back: another one is first in line",
    "released: withdrawn": "taken back: it waits no longer",
    "released: idle": "taken back: nobody else waits who could get in its way",
    "released: never": "taken back: it could not start even if all that runs ended",
}


class Slip(msgspec.Struct, frozen=True, rename="camel"):
    """A promise was made, moved or taken back at `at`: by `by_ms` (later than 0 is worse).

    `start` is what was promised from then on. `because` is the position of what did it (0: time
    alone); `positions` are its own, and that one.
    """

    at: str | None
    start: str | None
    by_ms: int
    cause: str
    text: str
    because: int
    positions: tuple[int, ...]


class Forecast(msgspec.Struct, frozen=True, rename="camel"):
    """The start that an allocation was promised: `start` now, `first_start` at first.

    Of `samples` earlier forecasts that looked as far ahead, 80% came true between `early` and
    `late`; both are absent where there were too few. `nodes` are those promised, with how many
    chunks. `actual` is when it started.
    """

    allocation_id: str
    start: str | None
    first_start: str | None
    within_ms: int
    early: str | None
    late: str | None
    samples: int
    nodes: dict[str, int]
    in_force: bool
    actual: str | None
    slips: tuple[Slip, ...]
    positions: tuple[int, ...]


class HorizonError(msgspec.Struct, frozen=True, rename="camel"):
    """How true forecasts came that looked ahead up to `ahead_ms` (0: further than all others).

    `kept` of `count` started by the forecast. Errors are starts minus forecasts: below 0 is early.
    """

    ahead_ms: int
    count: int
    kept: int
    mean_ms: int
    p10_ms: int
    p50_ms: int
    p90_ms: int


def promises_in_force(view: View) -> tuple[Promise, ...]:
    """All of them; few, as there is one for each set of nodes at most."""
    return view.scan(PROMISES, where={"held": 1}).rows


def forecast_of(view: View, promise: Promise, now: int) -> Forecast:
    """A promise for people and programs, at an instant."""
    held = promise.state == "held"
    error = error_of(view, promise.at - now) if held else None
    slips = tuple(_slips(promise))
    return Forecast(
        allocation_id=promise.allocation,
        start=instant(promise.at) if promise.state != "released" else None,
        first_start=instant(promise.first_at),
        within_ms=max(promise.at - now, 0) if held else 0,
        early=instant(max(promise.at + error[0], now)) if error is not None else None,
        late=instant(max(promise.at + error[1], now)) if error is not None else None,
        samples=error[2] if error is not None else 0,
        nodes=promise.chunks,
        in_force=held,
        actual=instant(promise.started_at),
        slips=slips,
        positions=(promise.position,),
    )


def error_of(view: View, ahead_ms: int) -> tuple[int, int, int] | None:
    """Between which errors 80% of the forecasts came that looked as far ahead, of how many."""
    score = view.get(SCORES, score_key(horizon(max(ahead_ms, 0))))
    if score is None or score.count < SAMPLES_LEAST:
        return None
    return _error(score, 0.1), _error(score, 0.9), score.count


def start_text(view: View, promise: Promise, now: int) -> str:
    """``starts ~14:52 (+-6m)``, or ``starts by 14:52`` where nothing is known of errors."""
    error = error_of(view, promise.at - now)
    start = rfc3339(promise.at)
    if error is None:
        return f"starts by {start}"
    return f"starts ~{start} (+-{lasting(max(abs(error[0]), abs(error[1])))})"


def forecast_text(forecast: Forecast) -> str:
    """The start, how sure, and what was promised at first."""
    if not forecast.in_force:
        text = f"promised {forecast.first_start} at first"
        if forecast.actual is not None:
            return f"started {forecast.actual}; {text}"
        return f"nothing is promised now; {text}"
    text = f"by {forecast.start}"
    if forecast.early is not None:
        text += f", 80% between {forecast.early} and {forecast.late} ({forecast.samples:,} like it)"
    if forecast.first_start != forecast.start:
        text += f"; promised {forecast.first_start} at first"
    return text


def horizon_errors(view: View) -> tuple[HorizonError, ...]:
    """The errors of all forecasts that are over, by how far they looked ahead."""
    found: list[HorizonError] = []
    for number in range(len(HORIZONS_MS) + 1):
        score = view.get(SCORES, score_key(number))
        if score is not None:
            ahead = HORIZONS_MS[number] if number < len(HORIZONS_MS) else 0
            shares = (_error(score, 0.1), _error(score, 0.5), _error(score, 0.9))
            mean = score.error_ms // score.count
            found.append(HorizonError(ahead, score.count, score.kept, mean, *shares))
    return tuple(found)


def _error(score: Score, share: float) -> int:
    """The error that a share of the forecasts does not exceed, the earliest first."""
    ordered = [(-slot_most(number), count) for number, count in score.early.items()]
    ordered += [(slot_most(number), count) for number, count in score.late.items()]
    ordered.sort()
    seen = 0
    for error, count in ordered:
        seen += count
        if seen >= share * score.count:
            return error
    return 0


def _slips(promise: Promise) -> list[Slip]:
    found: list[Slip] = []
    before = 0
    for move in promise.moves:
        by = move.at - before if before and move.at else 0
        text = CAUSES.get(move.cause, move.cause)
        if move.cause == "held" and found:
            text = "promised again"
        elif by:
            text = f"moved {'+' if by > 0 else '-'}{lasting(abs(by))}: {text}"
        positions = (move.position, *((move.because,) if move.because else ()))
        found.append(
            Slip(
                at=instant(move.made),
                start=instant(move.at),
                by_ms=by,
                cause=move.cause,
                text=text,
                because=move.because,
                positions=positions,
            )
        )
        before = move.at or before
    return found
