"""Answers about numbers: counts by owner, shape and reason; waits, runs and throughput of late."""

from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple, TypeVar

import msgspec

from logyard_projections.answers.forecasts import HorizonError, horizon_errors
from logyard_projections.answers.stages import instant
from logyard_projections.answers.words import wants
from logyard_projections.nodes import POOL, POOL_KEY
from logyard_projections.shapes import SHAPES, Shape, reason_of, shape_key
from logyard_projections.spread import percentile
from logyard_projections.stats import (
    DIRECTORY,
    DIRECTORY_KEY,
    LOAD,
    LOAD_KEY,
    TALLIES,
    TOTAL_KEY,
    TOTALS,
    WINDOW_MS,
    WINDOWS,
    Tally,
    Window,
    window_key,
)
from logyard_projections.view import View

K = TypeVar("K", bound=Hashable)
_NOTHING = (0,) * 14
_WAITING = 1
"""Where the number of those that wait is among those of `_Counts`."""


class Totals(msgspec.Struct, frozen=True, rename="camel"):
    """Allocations by where they are. `ready` ones could be placed, `parked` ones never."""

    pending: int = 0
    ready: int = 0
    parked: int = 0
    backing_off: int = 0
    placed: int = 0
    running: int = 0
    finished: int = 0
    failed: int = 0
    canceled: int = 0


class Counted(msgspec.Struct, frozen=True, rename="camel"):
    """The counts of one organization, group, user or shape; `waits` are those of all that were
    ever placed.
    """

    name: str
    counts: Totals
    attempts: int
    requeued: int
    preempted: int
    waits: "Spread"
    run_ms: int
    cpu_ms: int


class Spread(msgspec.Struct, frozen=True, rename="camel"):
    """Lengths of time in milliseconds, each at most a quarter above the true one."""

    count: int
    p50_ms: int
    p90_ms: int
    p99_ms: int


class Use(msgspec.Struct, frozen=True, rename="camel"):
    """Which share of the nodes was in use from `start` on for `ms`, by ``cores``, ``memory`` and
    devices. Above 1 while victims still ran on room that was given away.
    """

    start: str | None
    ms: int
    share: dict[str, float]


class Stats(msgspec.Struct, frozen=True, rename="camel"):
    """The queue in numbers as of a position. What happened of late is of the last `window_ms`.

    `used_now` and `use` are shares of all nodes that are not lost: now, and in windows of five
    minutes, the oldest first. `forecasts` tells how true all forecasts so far came.
    """

    position: int
    at: str | None
    totals: Totals
    by_organization: tuple[Counted, ...]
    by_group: tuple[Counted, ...]
    by_user: tuple[Counted, ...]
    by_shape: tuple[Counted, ...]
    waiting_by_reason: dict[str, int]
    window_ms: int
    waits: Spread
    runs: Spread
    submitted: int
    placed: int
    finished: int
    failed: int
    canceled: int
    backfilled: int
    preempting: int
    evicted: int
    ended_per_second: float
    used_now: dict[str, float]
    use: tuple[Use, ...]
    forecasts: tuple[HorizonError, ...]


class _Counts(NamedTuple):
    """What is counted of some ranks: the numbers of a `Tally` from `pending` to `preempted`, those
    that are parked, and how long they had waited.
    """

    numbers: tuple[int, ...]
    waits: dict[int, int]


class _Owner(NamedTuple):
    organization: str
    group: str
    user: str


def totals(view: View) -> Totals:
    """Allocations by where they are."""
    total = view.get(TOTALS, TOTAL_KEY)
    if total is None:
        return Totals()
    parked = 0
    for shape in _parked(view):
        token = ""
        while True:
            page = view.scan(TALLIES, where={"shape": shape}, after=token)
            parked += sum(one.waiting for one in page.rows)
            token = page.token
            if not token:
                break
    found = _totals(_counts(total, set()))
    return msgspec.structs.replace(found, ready=found.ready - parked, parked=parked)


def stats(view: View, window_ms: int = 3_600_000) -> Stats:
    """Everything in numbers. `window_ms` is rounded up to whole windows of five minutes."""
    tallies = list(_tallies(view))
    shapes = _shapes(view, tallies)
    parked = {one.id for one in shapes.values() if one.parked}
    counted = [_counts(tally, parked) for tally in tallies]
    by_shape = _together(
        (tally.shape, counts) for tally, counts in zip(tallies, counted, strict=True)
    )
    owners = [_Owner(tally.organization, tally.group, tally.user) for tally in tallies]
    by_owner = _together(zip(owners, counted, strict=True))
    late = _late(view, window_ms)
    covered = -(-window_ms // WINDOW_MS) * WINDOW_MS
    reasons: dict[str, int] = {}
    for number, counts in by_shape.items():
        if counts.numbers[_WAITING]:
            shape = shapes.get(number)
            reason = reason_of(shape.hold if shape is not None else None)
            reasons[reason] = reasons.get(reason, 0) + counts.numbers[_WAITING]
    ended = sum(one.finished + one.failed + one.canceled for one in late)
    return Stats(
        position=view.mark.position,
        at=instant(view.mark.at),
        totals=_totals(_sum(by_owner.values())),
        by_organization=_by((one.organization, counts) for one, counts in by_owner.items()),
        by_group=_by((one.group, counts) for one, counts in by_owner.items()),
        by_user=_by((one.user, counts) for one, counts in by_owner.items()),
        by_shape=_by((_shape_name(shapes.get(one)), counts) for one, counts in by_shape.items()),
        waiting_by_reason=dict(sorted(reasons.items())),
        window_ms=covered,
        waits=_lengths(one.waits for one in late),
        runs=_lengths(one.runs for one in late),
        submitted=sum(one.submitted for one in late),
        placed=sum(one.placed for one in late),
        finished=sum(one.finished for one in late),
        failed=sum(one.failed for one in late),
        canceled=sum(one.canceled for one in late),
        backfilled=sum(one.backfilled for one in late),
        preempting=sum(one.preempting for one in late),
        evicted=sum(one.evicted for one in late),
        used_now=_used_now(view),
        use=_use(view, late),
        forecasts=horizon_errors(view),
        ended_per_second=round(ended * 1000 / covered, 3) if covered else 0.0,
    )


def _tallies(view: View) -> Iterator[Tally]:
    token = ""
    while True:
        page = view.scan(TALLIES, after=token)
        yield from page.rows
        token = page.token
        if not token:
            return


def _parked(view: View) -> set[int]:
    return {shape.id for shape in view.scan(SHAPES, where={"parked": 1}).rows}


def _shapes(view: View, tallies: list[Tally]) -> dict[int, Shape]:
    keys = {shape_key(tally.shape) for tally in tallies if tally.shape}
    return {shape.id: shape for shape in view.get_many(SHAPES, keys).values()}


def _shape_name(shape: Shape | None) -> str:
    return f"{shape.id}: {wants(shape.request)}" if shape is not None else "not ready yet"


def _counts(tally: Tally, parked: set[int]) -> _Counts:
    _, _, _, shape, *numbers, waits = msgspec.structs.astuple(tally)
    return _Counts((*numbers, tally.waiting if shape in parked else 0), waits)


def _sum(some: Iterable[_Counts]) -> _Counts:
    numbers = list[tuple[int, ...]]([_NOTHING])
    waits: dict[int, int] = {}
    for one in some:
        numbers.append(one.numbers)
        for number, count in one.waits.items():
            waits[number] = waits.get(number, 0) + count
    return _Counts(tuple(map(sum, zip(*numbers, strict=True))), waits)


def _together(named: Iterable[tuple[K, _Counts]]) -> dict[K, _Counts]:
    """The sums of what bears the same name."""
    groups: dict[K, list[_Counts]] = {}
    for name, counts in named:
        groups.setdefault(name, []).append(counts)
    return {name: _sum(some) for name, some in groups.items()}


def _totals(counts: _Counts) -> Totals:
    pending, waiting, delayed, placed, running, finished, failed, canceled = counts.numbers[:8]
    parked = counts.numbers[-1]
    return Totals(
        pending=pending,
        ready=waiting - parked,
        parked=parked,
        backing_off=delayed,
        placed=placed,
        running=running,
        finished=finished,
        failed=failed,
        canceled=canceled,
    )


def _by(named: Iterable[tuple[str, _Counts]]) -> tuple[Counted, ...]:
    return tuple(_counted(name, counts) for name, counts in sorted(_together(named).items()))


def _counted(name: str, counts: _Counts) -> Counted:
    attempts, requeued, run_ms, cpu_ms, preempted = counts.numbers[8:13]
    return Counted(
        name=name,
        counts=_totals(counts),
        attempts=attempts,
        requeued=requeued,
        preempted=preempted,
        waits=_spread(counts.waits),
        run_ms=run_ms,
        cpu_ms=cpu_ms,
    )


def _late(view: View, window_ms: int) -> list[Window]:
    directory = view.get(DIRECTORY, DIRECTORY_KEY)
    first = view.mark.at - window_ms
    found = [
        view.get(WINDOWS, window_key(start))
        for start in (directory.starts if directory is not None else ())
        if start > first
    ]
    return [window for window in found if window is not None]


def _used_now(view: View) -> dict[str, float]:
    pool = view.get(POOL, POOL_KEY)
    return _shares(pool.used, pool.capacity) if pool is not None else {}


def _use(view: View, late: list[Window]) -> tuple[Use, ...]:
    """By window; in the present one up to the last event that changed anything."""
    load = view.get(LOAD, LOAD_KEY)
    end = load.since if load is not None else 0
    return tuple(
        Use(
            instant(one.start),
            min(max(end - one.start, 0), WINDOW_MS),
            _shares(one.used, one.offered),
        )
        for one in late
        if one.offered
    )


def _shares(used: dict[str, int], offered: dict[str, int]) -> dict[str, float]:
    return {
        name: round(used.get(name, 0) / amount, 4)
        for name, amount in sorted(offered.items())
        if amount
    }


def _lengths(lists: Iterable[list[int]]) -> Spread:
    return _spread(dict(enumerate(map(sum, zip(*lists, strict=True)))))


def _spread(counts: dict[int, int]) -> Spread:
    return Spread(
        sum(counts.values()),
        percentile(counts, 0.5),
        percentile(counts, 0.9),
        percentile(counts, 0.99),
    )
