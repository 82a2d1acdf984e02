"""Counts of ranks by owner and shape, how long recent ones waited and ran, how full nodes were."""

from functools import lru_cache

import msgspec

from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationReady,
    AllocationRequeued,
    AllocationStarted,
    NodeLost,
    NodeRegistered,
    NodeRemoved,
    NodeReturned,
    StageCanceled,
    StageFailed,
    StageReady,
    WorkflowSubmitted,
)
from logyard_domain.records import Record
from logyard_projections.fold import Projection
from logyard_projections.nodes import POOL, POOL_KEY, grown
from logyard_projections.plans import stages_of
from logyard_projections.queue import OWNERS
from logyard_projections.rows import Rows
from logyard_projections.spread import BUCKETS, slot
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
DIRECTORY_KEY = "windows"
TOTAL_KEY = "total"
LOAD_KEY = "load"


class Tally(msgspec.Struct, array_like=True, gc=False):
    """Ranks of one owner with one shape (0: not ready yet) by where they are; and what was used.

    `waits` counts how long those that were placed had waited, by `spread.slot`. The total over all
    owners and shapes is kept in the same form.
    """

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
    preempted: int = 0
    waits: dict[int, int] = {}


class Window(msgspec.Struct, array_like=True, gc=False):
    """What happened in `WINDOW_MS` from `start` on; `waits` and `runs` count lengths by `slot`.

    `used` and `offered` are amounts times milliseconds, of cores, MiB of memory, and devices.
    """

    start: int
    placed: int
    waits: list[int]
    runs: list[int]
    finished: int = 0
    failed: int = 0
    canceled: int = 0
    submitted: int = 0
    backfilled: int = 0
    preempting: int = 0
    evicted: int = 0
    used: dict[str, int] = {}
    offered: dict[str, int] = {}

    def __copy__(self) -> "Window":
        return msgspec.structs.replace(self, waits=list(self.waits), runs=list(self.runs))


class Directory(msgspec.Struct, array_like=True, gc=False):
    """The windows that are kept, oldest first."""

    starts: tuple[int, ...]


class Load(msgspec.Struct, array_like=True, gc=False):
    """How much of the nodes is in use since the instant `since`, as the pool had it then."""

    since: int
    used: dict[str, int]
    capacity: dict[str, int]


TALLIES = Table("tallies", Tally, columns={"shape": int}, indexes=[("shape",)])
TOTALS = Table("totals", Tally)
LOAD = Table("load", Load)
WINDOWS = Table("windows", Window)
DIRECTORY = Table("window_directory", Directory)


@lru_cache(maxsize=16)
def window_key(start: int) -> str:
    return f"{start:016d}"


@lru_cache(maxsize=1024)
def tally_key(organization: str, group: str, user: str, shape: int) -> str:
    return "\x1f".join((organization, group, user, str(shape))).replace("\0", "\ufffd")


def _submitted(rows: Rows, record: Record, event: WorkflowSubmitted) -> None:
    total = sum(stage.last - stage.first + 1 for stage in stages_of(event))
    for tally in _tallies(rows, event.workflow, 0):
        tally.pending += total
    _window(rows, record.at).submitted += 1


def _stage_ready(rows: Rows, record: Record, event: StageReady) -> None:
    stage = rows.get(STAGES, stage_key(event.workflow, event.stage))
    if stage is None:
        return
    for tally in _tallies(rows, event.workflow, 0):
        tally.pending -= stage.total
    for tally in _tallies(rows, event.workflow, event.shape):
        tally.waiting += stage.total


def _stage_over(rows: Rows, record: Record, event: StageFailed | StageCanceled) -> None:
    stage = rows.get(STAGES, stage_key(event.workflow, event.stage))
    if stage is None:
        return
    for tally in _tallies(rows, event.workflow, stage.shape):
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
    _loaded(rows, record)
    waited = slot(allocation.placed_at - (allocation.eligible_at or allocation.queued_at))
    for tally in _tallies(rows, place.workflow, allocation.shape):
        if allocation.was == "delayed":
            tally.delayed -= 1
        else:
            tally.waiting -= 1
        tally.placed += 1
        tally.attempts += 1
        tally.waits = {**tally.waits, waited: tally.waits.get(waited, 0) + 1}
    window = _window(rows, record.at)
    window.placed += 1
    window.waits[waited] += 1
    window.backfilled += event.kind == "backfilled"
    window.preempting += event.kind == "preempting"


def _started(rows: Rows, record: Record, event: AllocationStarted) -> None:
    place = place_of(event.allocation)
    stage = rows.get(STAGES, place.stage_key)
    for tally in _tallies(rows, place.workflow, stage.shape) if stage is not None else ():
        tally.placed -= 1
        tally.running += 1


def _ended(rows: Rows, record: Record, event: AllocationEnded) -> None:
    place = place_of(event.allocation)
    allocation = rows.get(ALLOCATIONS, place.key)
    if allocation is None:
        return
    _loaded(rows, record)
    evicted = allocation.stopping == "preempted" and event.outcome != "finished"
    for tally in _tallies(rows, place.workflow, allocation.shape):
        if allocation.started_position:
            tally.running -= 1
        else:
            tally.placed -= 1
        tally.run_ms += event.run_ms
        tally.cpu_ms += event.cpu_ms
        tally.preempted += evicted
        _count(tally, event.outcome, 1)
    window = _window(rows, record.at)
    window.runs[slot(event.run_ms)] += 1
    window.evicted += evicted
    _count(window, event.outcome, 1)


def _requeued(rows: Rows, record: Record, event: AllocationRequeued) -> None:
    place = place_of(event.allocation)
    before = allocation_key(place.workflow, place.stage, place.rank, place.attempt - 1)
    previous, allocation = rows.get(ALLOCATIONS, before), rows.get(ALLOCATIONS, place.key)
    stage = rows.get(STAGES, place.stage_key)
    if previous is None or allocation is None or stage is None:
        return
    for tally in _tallies(rows, place.workflow, stage.shape):
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
    for tally in _tallies(rows, place.workflow, stage.shape):
        tally.delayed -= 1
        tally.waiting += 1


def _count(row: Tally | Window, outcome: str, change: int) -> None:
    if outcome == "finished":
        row.finished += change
    elif outcome == "canceled":
        row.canceled += change
    else:
        row.failed += change


def _tallies(rows: Rows, workflow: str, shape: int) -> tuple[Tally, ...]:
    """The counts of the owner with the shape, and the total; nothing for an unknown workflow."""
    owner = rows.get(OWNERS, workflow)
    if owner is None:
        return ()
    key = tally_key(owner.organization, owner.group, owner.user, shape)
    tally = rows.edit(TALLIES, key)
    if tally is None:
        tally = Tally(owner.organization, owner.group, owner.user, shape)
        rows.put(TALLIES, key, tally)
    total = rows.edit(TOTALS, TOTAL_KEY)
    if total is None:
        total = Tally("", "", "", 0)
        rows.put(TOTALS, TOTAL_KEY, total)
    return tally, total


def _offered(
    rows: Rows, record: Record, event: NodeRegistered | NodeLost | NodeReturned | NodeRemoved
) -> None:
    _loaded(rows, record)


def _loaded(rows: Rows, record: Record) -> None:
    """Charge what was in use until now to the windows that it was in use in."""
    pool = rows.get(POOL, POOL_KEY)
    if pool is None:
        return
    load = rows.edit(LOAD, LOAD_KEY)
    if load is None:
        load = Load(record.at, {}, {})
        rows.put(LOAD, LOAD_KEY, load)
    # Windows before these would be dropped at once.
    since = max(load.since, record.at - record.at % WINDOW_MS - (WINDOWS_KEPT - 1) * WINDOW_MS)
    while since < record.at and (load.used or load.capacity):
        until = min(record.at, since - since % WINDOW_MS + WINDOW_MS)
        window = _window(rows, since)
        window.used = grown(window.used, load.used, until - since)
        window.offered = grown(window.offered, load.capacity, until - since)
        since = until
    load.since = record.at
    load.used, load.capacity = pool.used, pool.capacity


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
    if len(starts) > 1 and starts[-2] > start:
        starts = tuple(sorted(starts))
    for old in starts[:-WINDOWS_KEPT]:
        rows.delete(WINDOWS, window_key(old))
    rows.put(DIRECTORY, DIRECTORY_KEY, Directory(starts[-WINDOWS_KEPT:]))


PROJECTION = Projection(
    "stats",
    2,
    (TALLIES, TOTALS, WINDOWS, DIRECTORY, LOAD),
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
        NodeRegistered: _offered,
        NodeLost: _offered,
        NodeReturned: _offered,
        NodeRemoved: _offered,
    },
)
