"""Promises of a start: what was said at first, what moved it, and how true it came.

Each promise is a forecast of the start from the moment at which it was made or moved. When the
allocation is placed, all forecasts of it are scored by how far ahead they looked.
"""

from typing import Literal

import msgspec

from logyard_domain.events import (
    AllocationPlaced,
    AllocationSeated,
    ReservationHeld,
    ReservationMoved,
    ReservationReleased,
)
from logyard_domain.records import Record
from logyard_projections.fold import Projection
from logyard_projections.nodes import NODES, misfit_of
from logyard_projections.rows import Rows
from logyard_projections.shapes import SHAPES, shape_key
from logyard_projections.spread import slot
from logyard_projections.stages import ALLOCATIONS, STAGES, Place, place_of
from logyard_projections.tables import Table

PromiseState = Literal["held", "seating", "kept", "released"]
MOVES_KEPT = 64
FRESH_KEPT = 1000
IN_FORCE_KEY = "in force"
HORIZONS_MS = (60_000, 600_000, 3_600_000, 21_600_000, 86_400_000)
"""Forecasts are scored apart by how far ahead they look: up to each of these, and beyond."""


class Move(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A promise was made (``held``), moved (its cause), or taken back (``released: CAUSE``).

    At `position` and instant `made`; the start was promised by `at` from then on (0: no more).
    `because` is the position of what did it, 0 where time alone did.
    """

    position: int
    made: int
    at: int
    cause: str
    because: int


class Promise(msgspec.Struct, array_like=True, kw_only=True, gc=False):
    """What an allocation was promised: a start by `at` on `chunks` (node -> how many).

    `first_at` is what was promised at first. `moves` are the last `MOVES_KEPT` of `moved` in all;
    those from number `since_move` on are of the promise that is or was in force. `started_at` is
    when it got its room (0: not yet).
    """

    allocation: str
    workflow: str
    stage: str
    shape: int
    at: int
    chunks: dict[str, int]
    first_at: int
    position: int
    revision: int
    state: PromiseState = "held"
    moves: tuple[Move, ...] = ()
    moved: int = 0
    since_move: int = 0
    started_at: int = 0
    started_position: int = 0

    @property
    def held(self) -> int | None:
        """1 while it is in force."""
        return 1 if self.state == "held" else None

    @property
    def forecasts(self) -> tuple[Move, ...]:
        """What was forecast since the promise was last held anew, as far as it is kept."""
        skipped = self.moved - len(self.moves)
        return tuple(
            move
            for number, move in enumerate(self.moves, skipped)
            if number >= self.since_move and move.at
        )


class InForce(msgspec.Struct, array_like=True, gc=False):
    """Keys of the promises in force, in the order in which they were made; and what was backfilled
    at the instant `fresh_at` before the promise that it was placed in front of was on the log.
    """

    promises: tuple[str, ...]
    fresh_at: int
    fresh: tuple[str, ...]


class Backfill(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An allocation was placed before `before`, which was promised a start by `at` (`position`)."""

    before: str
    at: int
    position: int


class Score(msgspec.Struct, array_like=True, gc=False):
    """How true forecasts came of one horizon: `count` of them, `kept` of which were not too early.

    `early` and `late` count the errors by `spread.slot`: how much sooner, or later, than forecast
    it started.
    """

    count: int
    kept: int
    error_ms: int
    early: dict[int, int]
    late: dict[int, int]


PROMISES = Table("promises", Promise, columns={"held": int, "workflow": str}, indexes=[("held",)])
IN_FORCE = Table("promises_in_force", InForce)
BACKFILLS = Table("backfills", Backfill)
SCORES = Table("forecast_scores", Score)


def horizon(ahead_ms: int) -> int:
    """Number of the horizon of a forecast that looks so far ahead."""
    return next((n for n, most in enumerate(HORIZONS_MS) if ahead_ms <= most), len(HORIZONS_MS))


def score_key(number: int) -> str:
    return f"{number}"


def _held(rows: Rows, record: Record, event: ReservationHeld) -> None:
    place = place_of(event.allocation)
    stage = rows.get(STAGES, place.stage_key)
    promise = rows.edit(PROMISES, place.key)
    if promise is None:
        promise = Promise(
            allocation=event.allocation,
            workflow=place.workflow,
            stage=place.stage,
            shape=stage.shape if stage is not None else 0,
            at=event.at,
            chunks=event.chunks,
            first_at=event.at,
            position=record.position,
            revision=event.revision,
        )
        rows.put(PROMISES, place.key, promise)
    promise.state = "held"
    promise.since_move = promise.moved
    _promise(promise, record, event, "held", 0)
    force = _in_force(rows)
    force.promises = (*force.promises, place.key)
    if force.fresh and force.fresh_at == record.at:
        left = [key for key in force.fresh if not _in_front(rows, key, promise)]
        force.fresh = tuple(left)


def _moved(rows: Rows, record: Record, event: ReservationMoved) -> None:
    promise = rows.edit(PROMISES, place_of(event.allocation).key)
    if promise is not None:
        _promise(promise, record, event, event.cause, event.because)


def _promise(
    promise: Promise,
    record: Record,
    event: ReservationHeld | ReservationMoved,
    cause: str,
    because: int,
) -> None:
    promise.at, promise.chunks = event.at, event.chunks
    promise.position, promise.revision = record.position, event.revision
    _note(promise, Move(record.position, record.at, event.at, cause, because))


def _note(promise: Promise, move: Move) -> None:
    promise.moves = (*promise.moves, move)[-MOVES_KEPT:]
    promise.moved += 1


def _released(rows: Rows, record: Record, event: ReservationReleased) -> None:
    key = place_of(event.allocation).key
    promise = rows.edit(PROMISES, key)
    if promise is not None:
        promise.state = "released"
        promise.position = record.position
        _note(promise, Move(record.position, record.at, 0, f"released: {event.cause}", 0))
        _no_more(rows, key)


def _placed(rows: Rows, record: Record, event: AllocationPlaced) -> None:
    place = place_of(event.allocation)
    force = rows.get(IN_FORCE, IN_FORCE_KEY)
    if force is not None and place.key in force.promises:
        promise = rows.edit(PROMISES, place.key)
        _no_more(rows, place.key)
        if promise is not None:
            promise.state = "seating"
            if not event.after:
                _started(rows, record, promise)
    if event.kind == "backfilled":
        _backfilled(rows, record, place)


def _seated(rows: Rows, record: Record, event: AllocationSeated) -> None:
    promise = rows.edit(PROMISES, place_of(event.allocation).key)
    if promise is not None and promise.state == "seating":
        _started(rows, record, promise)


def _started(rows: Rows, record: Record, promise: Promise) -> None:
    promise.state = "kept"
    promise.started_at, promise.started_position = record.at, record.position
    for move in promise.forecasts:
        key = score_key(horizon(move.at - move.made))
        score = rows.edit(SCORES, key)
        if score is None:
            score = Score(0, 0, 0, {}, {})
            rows.put(SCORES, key, score)
        error = record.at - move.at
        score.count += 1
        score.kept += error <= 0
        score.error_ms += abs(error)
        if error <= 0:
            score.early = _one_more(score.early, slot(-error))
        else:
            score.late = _one_more(score.late, slot(error))


def _one_more(counts: dict[int, int], number: int) -> dict[int, int]:
    return {**counts, number: counts.get(number, 0) + 1}


def _backfilled(rows: Rows, record: Record, place: Place) -> None:
    force = rows.get(IN_FORCE, IN_FORCE_KEY)
    for key in force.promises if force is not None else ():
        promise = rows.get(PROMISES, key)
        if promise is not None and _in_front(rows, place.key, promise):
            break
    # A promise that the same pass makes, maybe instead of that one, is recorded at its end.
    force = _in_force(rows)
    if force.fresh_at != record.at:
        force.fresh_at, force.fresh = record.at, ()
    force.fresh = (*force.fresh, place.key)[-FRESH_KEPT:]


def _in_front(rows: Rows, key: str, promise: Promise) -> bool:
    """Note that the allocation is before the promised one, where both could use its node."""
    allocation = rows.get(ALLOCATIONS, key)
    shape = rows.get(SHAPES, shape_key(promise.shape))
    if allocation is None or shape is None:
        return False
    for name in allocation.seats:
        node = rows.get(NODES, name)
        if node is not None and not misfit_of(node, shape.request):
            rows.put(BACKFILLS, key, Backfill(promise.allocation, promise.at, promise.position))
            return True
    return False


def _in_force(rows: Rows) -> InForce:
    force = rows.edit(IN_FORCE, IN_FORCE_KEY)
    if force is None:
        force = InForce((), 0, ())
        rows.put(IN_FORCE, IN_FORCE_KEY, force)
    return force


def _no_more(rows: Rows, key: str) -> None:
    force = _in_force(rows)
    force.promises = tuple(one for one in force.promises if one != key)


PROJECTION = Projection(
    "promises",
    1,
    (PROMISES, IN_FORCE, BACKFILLS, SCORES),
    {
        ReservationHeld: _held,
        ReservationMoved: _moved,
        ReservationReleased: _released,
        AllocationPlaced: _placed,
        AllocationSeated: _seated,
    },
)
