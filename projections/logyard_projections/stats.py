"""Counts of ranks by owner and shape, and how long recent ones waited and ran."""

from functools import lru_cache

import msgspec

from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationReady,
    AllocationRequeued,
    AllocationStarted,
    StageCanceled,
    StageFailed,
    StageReady,
    WorkflowSubmitted,
)
from logyard_domain.records import Record
from logyard_projections.fold import Projection
from logyard_projections.plans import stages_of
from logyard_projections.queue import OWNERS
from logyard_projections.rows import Rows
from logyard_projections.stages import (
    ALLOCATIONS,
    STAGES,
    Stage,
    allocation_key,
    place_of,
    stage_key,
)
from logyard_projections.tables import Table

WINDOW_MS = 300_000
WINDOWS_KEPT = 288
BUCKETS = 148
"""Enough for two years in steps of a quarter of a power of two."""
DIRECTORY_KEY = "windows"


class Tally(msgspec.Struct, array_like=True, gc=False):
    """Ranks of one owner with one shape (0: not ready yet) by where they are; and what was used."""

    organization: str
    group: str
    user: str
    shape: int
    pending: int = 0
    waiting: int = 0
    delayed: int = 0
    placed: int = 0
    running: int = 0
    finished: int = 0
    failed: int = 0
    canceled: int = 0
    attempts: int = 0
    requeued: int = 0
    run_ms: int = 0
    cpu_ms: int = 0


class Window(msgspec.Struct, array_like=True, gc=False):
    """What happened in `WINDOW_MS` from `start` on; `waits` and `runs` count lengths by `slot`."""

    start: int
    placed: int
    waits: list[int]
    runs: list[int]
    finished: int = 0
    failed: int = 0
    canceled: int = 0
    submitted: int = 0

    def __copy__(self) -> "Window":
        return msgspec.structs.replace(self, waits=list(self.waits), runs=list(self.runs))


class Directory(msgspec.Struct, array_like=True, gc=False):
    """The windows that are kept, oldest first."""

    starts: tuple[int, ...]


TALLIES = Table("tallies", Tally)
WINDOWS = Table("windows", Window)
DIRECTORY = Table("window_directory", Directory)


def slot(ms: int) -> int:
    """Where a length of time is counted: quarters of powers of two."""
    if ms < 4:
        return max(ms, 0)
    bits = ms.bit_length()
    return min((bits - 2) * 4 + ((ms >> (bits - 3)) & 3), BUCKETS - 1)


def slot_most(number: int) -> int:
    """The longest time (ms) that is counted in a slot."""
    if number < 4:
        return number
    power, quarter = divmod(number, 4)
    return ((5 + quarter) << (power - 1)) - 1


@lru_cache(maxsize=16)
def window_key(start: int) -> str:
    return f"{start:016d}"


@lru_cache(maxsize=1024)
def tally_key(organization: str, group: str, user: str, shape: int) -> str:
    return "\x1f".join((organization, group, user, str(shape))).replace("\0", "\ufffd")


def _submitted(rows: Rows, record: Record, event: WorkflowSubmitted) -> None:
    total = sum(stage.last - stage.first + 1 for stage in stages_of(event))
    tally = _tally(rows, event.workflow, 0)
    if tally is not None:
        tally.pending += total
    _window(rows, record.at).submitted += 1


def _stage_ready(rows: Rows, record: Record, event: StageReady) -> None:
    stage = rows.get(STAGES, stage_key(event.workflow, event.stage))
    before, after = _tally(rows, event.workflow, 0), _tally(rows, event.workflow, event.shape)
    if stage is not None and before is not None and after is not None:
        before.pending -= stage.total
        after.waiting += stage.total


def _stage_over(rows: Rows, record: Record, event: StageFailed | StageCanceled) -> None:
    stage = rows.get(STAGES, stage_key(event.workflow, event.stage))
    if stage is None:
        return
    tally = _tally(rows, event.workflow, stage.shape)
    if tally is None:
        return
    if stage.was == "waiting":
        tally.pending -= stage.dropped
    else:
        tally.waiting -= stage.dropped
        tally.delayed -= stage.dropped_delayed
    tally.canceled += stage.dropped + stage.dropped_delayed


def _placed(rows: Rows, record: Record, event: AllocationPlaced) -> None:
    place = place_of(event.allocation)
    allocation = rows.get(ALLOCATIONS, place.key)
    if allocation is None:
        return
    tally = _tally(rows, place.workflow, allocation.shape)
    if tally is None:
        return
    if allocation.was == "delayed":
        tally.delayed -= 1
    else:
        tally.waiting -= 1
    waited = allocation.placed_at - (allocation.eligible_at or allocation.queued_at)
    tally.placed += 1
    tally.attempts += 1
    window = _window(rows, record.at)
    window.placed += 1
    window.waits[slot(waited)] += 1


def _started(rows: Rows, record: Record, event: AllocationStarted) -> None:
    place = place_of(event.allocation)
    stage = rows.get(STAGES, place.stage_key)
    tally = _tally(rows, place.workflow, stage.shape) if stage is not None else None
    if tally is not None:
        tally.placed -= 1
        tally.running += 1


def _ended(rows: Rows, record: Record, event: AllocationEnded) -> None:
    place = place_of(event.allocation)
    allocation = rows.get(ALLOCATIONS, place.key)
    if allocation is None:
        return
    tally = _tally(rows, place.workflow, allocation.shape)
    if tally is None:
        return
    if allocation.started_position:
        tally.running -= 1
    else:
        tally.placed -= 1
    tally.run_ms += event.run_ms
    tally.cpu_ms += event.cpu_ms
    window = _window(rows, record.at)
    window.runs[slot(event.run_ms)] += 1
    _count(tally, event.outcome, 1)
    _count(window, event.outcome, 1)


def _requeued(rows: Rows, record: Record, event: AllocationRequeued) -> None:
    place = place_of(event.allocation)
    before = allocation_key(place.workflow, place.stage, place.rank, place.attempt - 1)
    previous, allocation = rows.get(ALLOCATIONS, before), rows.get(ALLOCATIONS, place.key)
    stage = rows.get(STAGES, place.stage_key)
    if previous is None or allocation is None or stage is None:
        return
    tally = _tally(rows, place.workflow, stage.shape)
    if tally is None:
        return
    _count(tally, previous.outcome, -1)
    tally.requeued += 1
    if allocation.state == "delayed":
        tally.delayed += 1
    else:
        tally.waiting += 1


def _ready(rows: Rows, record: Record, event: AllocationReady) -> None:
    place = place_of(event.allocation)
    stage: Stage | None = rows.get(STAGES, place.stage_key)
    allocation = rows.get(ALLOCATIONS, place.key)
    if stage is None or allocation is None or allocation.was != "delayed":
        return
    tally = _tally(rows, place.workflow, stage.shape)
    if tally is not None:
        tally.delayed -= 1
        tally.waiting += 1


def _count(row: Tally | Window, outcome: str, change: int) -> None:
    if outcome == "finished":
        row.finished += change
    elif outcome == "canceled":
        row.canceled += change
    else:
        row.failed += change


def _tally(rows: Rows, workflow: str, shape: int) -> Tally | None:
    owner = rows.get(OWNERS, workflow)
    if owner is None:
        return None
    key = tally_key(owner.organization, owner.group, owner.user, shape)
    tally = rows.edit(TALLIES, key)
    if tally is None:
        tally = Tally(owner.organization, owner.group, owner.user, shape)
        rows.put(TALLIES, key, tally)
    return tally


def _window(rows: Rows, at: int) -> Window:
    start = at - at % WINDOW_MS
    key = window_key(start)
    window = rows.edit(WINDOWS, key)
    if window is None:
        window = Window(start, 0, [0] * BUCKETS, [0] * BUCKETS)
        rows.put(WINDOWS, key, window)
        _keep(rows, start)
    return window


def _keep(rows: Rows, start: int) -> None:
    directory = rows.get(DIRECTORY, DIRECTORY_KEY)
    starts = (*(directory.starts if directory is not None else ()), start)
    for old in starts[:-WINDOWS_KEPT]:
        rows.delete(WINDOWS, window_key(old))
    rows.put(DIRECTORY, DIRECTORY_KEY, Directory(starts[-WINDOWS_KEPT:]))


PROJECTION = Projection(
    "stats",
    1,
    (TALLIES, WINDOWS, DIRECTORY),
    {
        WorkflowSubmitted: _submitted,
        StageReady: _stage_ready,
        StageFailed: _stage_over,
        StageCanceled: _stage_over,
        AllocationPlaced: _placed,
        AllocationStarted: _started,
        AllocationEnded: _ended,
        AllocationRequeued: _requeued,
        AllocationReady: _ready,
    },
)
