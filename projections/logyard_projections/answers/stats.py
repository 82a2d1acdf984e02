"""Answers about numbers: counts by owner, shape and reason; waits, runs and throughput of late."""

from collections.abc import Iterator

import msgspec

from logyard_projections.answers.forecasts import HorizonError, horizon_errors
from logyard_projections.answers.stages import instant
from logyard_projections.answers.words import wants
from logyard_projections.nodes import POOL, POOL_KEY
from logyard_projections.shapes import SHAPES, Shape, reason_of, shape_key
from logyard_projections.spread import BUCKETS, dense, percentile
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
    found = _sum([total], set())
    return msgspec.structs.replace(found, ready=found.ready - parked, parked=parked)


def stats(view: View, window_ms: int = 3_600_000) -> Stats:
    """Everything in numbers. `window_ms` is rounded up to whole windows of five minutes."""
    tallies = list(_tallies(view))
    shapes = {one.id: one for one in _shapes(view, tallies)}
    parked = {one.id for one in shapes.values() if one.parked}
    late = _late(view, window_ms)
    waits, runs = _spread(late, "waits"), _spread(late, "runs")
    covered = -(-window_ms // WINDOW_MS) * WINDOW_MS
    reasons: dict[str, int] = {}
    for tally in tallies:
        if tally.waiting:
            shape = shapes.get(tally.shape)
            reason = reason_of(shape.hold if shape is not None else None)
            reasons[reason] = reasons.get(reason, 0) + tally.waiting
    ended = sum(one.finished + one.failed + one.canceled for one in late)
    return Stats(
        position=view.mark.position,
        at=instant(view.mark.at),
        totals=_sum(tallies, parked),
        by_organization=_by(tallies, [one.organization for one in tallies], parked),
        by_group=_by(tallies, [one.group for one in tallies], parked),
        by_user=_by(tallies, [one.user for one in tallies], parked),
        by_shape=_by(tallies, [_shape_name(one, shapes) for one in tallies], parked),
        waiting_by_reason=dict(sorted(reasons.items())),
        window_ms=covered,
        waits=waits,
        runs=runs,
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


def _shapes(view: View, tallies: list[Tally]) -> Iterator[Shape]:
    for number in {tally.shape for tally in tallies if tally.shape}:
        shape = view.get(SHAPES, shape_key(number))
        if shape is not None:
            yield shape


def _shape_name(tally: Tally, shapes: dict[int, Shape]) -> str:
    shape = shapes.get(tally.shape)
    return f"{shape.id}: {wants(shape.request)}" if shape is not None else "not ready yet"


def _sum(tallies: list[Tally], parked: set[int]) -> Totals:
    return Totals(
        pending=sum(one.pending for one in tallies),
        ready=sum(one.waiting for one in tallies if one.shape not in parked),
        parked=sum(one.waiting for one in tallies if one.shape in parked),
        backing_off=sum(one.delayed for one in tallies),
        placed=sum(one.placed for one in tallies),
        running=sum(one.running for one in tallies),
        finished=sum(one.finished for one in tallies),
        failed=sum(one.failed for one in tallies),
        canceled=sum(one.canceled for one in tallies),
    )


def _by(tallies: list[Tally], names: list[str], parked: set[int]) -> tuple[Counted, ...]:
    groups: dict[str, list[Tally]] = {}
    for tally, name in zip(tallies, names, strict=True):
        groups.setdefault(name, []).append(tally)
    return tuple(
        Counted(
            name,
            _sum(members, parked),
            sum(one.attempts for one in members),
            sum(one.requeued for one in members),
            sum(one.preempted for one in members),
            _waits(members),
            sum(one.run_ms for one in members),
            sum(one.cpu_ms for one in members),
        )
        for name, members in sorted(groups.items())
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


def _waits(tallies: list[Tally]) -> Spread:
    counts: dict[int, int] = {}
    for tally in tallies:
        for number, count in tally.waits.items():
            counts[number] = counts.get(number, 0) + count
    return _of(dense(counts))


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


def _spread(windows: list[Window], what: str) -> Spread:
    counts = [0] * BUCKETS
    for window in windows:
        for number, count in enumerate(window.waits if what == "waits" else window.runs):
            counts[number] += count
    return _of(counts)


def _of(counts: list[int]) -> Spread:
    return Spread(
        sum(counts), percentile(counts, 0.5), percentile(counts, 0.9), percentile(counts, 0.99)
    )
