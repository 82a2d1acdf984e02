"""Promises: starvation, slips without a cause, plans that do not hold, plans that are forgotten."""

from random import Random

import pytest

from logyard_domain.commands import StopWorkflow, UpdateGroup
from logyard_domain.definition import Job
from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationStarted,
    ConfigSet,
    GroupDeleted,
    GroupUpdated,
    NodeCordoned,
    NodeDrained,
    NodeDraining,
    NodeLost,
    NodeRegistered,
    NodeRemoved,
    NodeReturned,
    NodeUncordoned,
    OrganizationUpdated,
    ReservationHeld,
    ReservationMoved,
    UserUpdated,
)
from logyard_domain.holds import NeverFits
from logyard_engine.recovery import recover
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import EPOCH_MS, Yard
from tests.audit.yards import play
from tests.engine.work import flow, job
from tests.scenarios import rooms
from tests.scenarios.yards import (
    FORMULAS,
    HOUR_MS,
    MINUTE_MS,
    QUIET,
    SECOND_MS,
    decided,
    events,
    finished,
    logs,
    pool,
    quiet,
    request_of,
    sound,
    stage_in,
    stage_of,
    ticks,
    walk,
    wanted,
    yard,
)

FLEET = (
    NodeRegistered, NodeCordoned, NodeUncordoned, NodeDraining, NodeDrained, NodeLost, NodeReturned,
    NodeRemoved,
)  # fmt: skip
POLICY = (ConfigSet, OrganizationUpdated, GroupUpdated, GroupDeleted, UserUpdated)


def trickle(seed: int, formula: str, grace_ms: int, wide: int) -> Yard:
    """Small jobs without end, and into them, after a while, one that needs `wide` whole nodes."""
    dice = Random(f"trickle/{seed}")
    limit = dice.choice([20, 60]) * SECOND_MS

    def run(allocation: str) -> Run:
        if stage_of(allocation) == "wide":
            return Run(ms=30 * SECOND_MS)
        one = Random(f"{seed}/{allocation}")
        return Run(ms=one.choice([limit // 3, limit, 2 * limit]), stubborn=one.random() < 0.2)

    y = yard(run, scheduler__priority=formula, workflow__killGrace=grace_ms)
    for number in range(wide):
        y.node(f"n{number}", 4)
    y.ask(UpdateGroup(group="wide", priority=1))
    for step in range(120):
        small = job(dice.choice([1, 1, 2, 3]), timeout_ms=limit)
        y.submit(flow(small=small), user=dice.choice(["ana", "eve"]))
        if step == 30:
            y.submit(flow(wide=job(4, nodes=wide, timeout_ms=MINUTE_MS)), group="wide")
        y.advance(dice.choice([500, 1_000, 2_000]))
    return y


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_s27_a_wide_job_starts_by_its_first_promise(seed: int, formula: str) -> None:
    """Though small jobs keep coming for ever, one that needs all nodes starts no later than it was
    first promised.
    """
    y = trickle(seed, formula, grace_ms=(seed % 2) * 5 * SECOND_MS, wide=2 + seed % 3)
    [promised, *_] = [one.at for one in events(y, ReservationHeld) if "/wide/" in one.allocation]
    [started] = [
        record.at
        for record in y.records
        if isinstance(record.event, AllocationPlaced) and "/wide/" in record.event.allocation
    ]
    assert started <= promised
    assert y.world.lanes, "small jobs should be waiting still"
    moved = [one for one in events(y, ReservationMoved) if "/wide/" in one.allocation]
    assert {one.cause for one in moved} <= {"earlier"}
    finished(y)


def test_s29_a_promise_slips_only_for_an_event_that_it_names() -> None:
    """A later promise names a cause that lies between the last word and this one, and the position
    of an event of that kind; time alone moves it only while somebody is overdue.
    """
    kinds: dict[str, int] = {}
    known: dict[str, tuple[int, int]] = {}
    plays = [(f"play {seed}", play(seed, steps=120).records) for seed in range(4)]
    for name, records in [*logs(), *plays]:
        late = False
        for record, world in walk(records):
            event = record.event
            if isinstance(event, ReservationHeld | ReservationMoved):
                before = known.get(event.allocation, (event.at, 0))
                known[event.allocation] = (event.at, record.position)
                if isinstance(event, ReservationHeld):
                    continue
                kinds[event.cause] = kinds.get(event.cause, 0) + 1
                assert (event.cause == "earlier") == (event.at <= before[0]), (name, record)
                cited = records[event.because - 1] if event.because else None
                match event.cause:
                    case "earlier":
                        assert cited is None
                    case "overrun":
                        late = bool(rooms.overdue(world, record.at))
                        assert cited is None and late, (name, record)
                    case "outranked":
                        assert cited is not None and cited.cause == record.cause, (name, record)
                        assert isinstance(cited.event, AllocationPlaced), (name, record)
                    case "node":
                        assert cited is not None and cited.position > before[1], (name, record)
                        assert isinstance(cited.event, FLEET), (name, record)
                    case "policy":
                        assert cited is not None and cited.position > before[1], (name, record)
                        assert isinstance(cited.event, POLICY), (name, record)
        known.clear()
    assert kinds["earlier"] > 50 and kinds["outranked"] > 5 and kinds["node"] >= 1, kinds


@pytest.mark.parametrize("seed", QUIET)
def test_s29_in_a_quiet_yard_no_promise_ever_slips(seed: int) -> None:
    """Where all keep to their limits and nothing is changed, the promise of the first in order only
    gets nearer, and is kept, however often the queue is looked at.
    """
    y = sound(quiet(seed))
    promised: dict[str, int] = {}
    for record, world in walk(y.records):
        event = record.event
        if isinstance(event, ReservationHeld | ReservationMoved):
            stage = stage_in(world, event.allocation)
            waiting = [lane.head() for lane in world.lanes.values()]
            first = min(one.workflow.position for one in waiting if one is not None)
            if event.allocation in promised or stage.workflow.position == first:
                assert event.at <= promised.get(event.allocation, event.at), record
                promised[event.allocation] = event.at
        elif isinstance(event, AllocationPlaced) and event.allocation in promised:
            assert record.at <= promised[event.allocation]
    assert len(promised) > 3


def test_s30_what_is_at_its_own_limit_or_can_never_start_reserves_nothing() -> None:
    """A stage at its limit of ranks, or one that no node could hold, has no promise; and each that
    there is lies no later than the end of all that runs.
    """
    for name, records in logs():
        for record, world in walk(records):
            event = record.event
            if not isinstance(event, ReservationHeld | ReservationMoved):
                continue
            stage = stage_in(world, event.allocation)
            assert len(stage.holding) < stage.plan.concurrency, (name, record)
            assert not isinstance(world.shapes[stage.shape].hold, NeverFits), (name, record)
            ends = [rooms.latest_end(world, one) for one in world.allocations.values()]
            if not rooms.overdue(world, record.at):
                assert record.at < event.at <= max(ends), (name, record)


def test_s30_a_blocked_array_does_not_block_the_plan() -> None:
    """An array that waits for its own limit has no promise, and what comes later starts at once."""
    y = yard(lambda _: Run(ms=MINUTE_MS), {"n1": 4})
    y.submit(flow(array=job(1, array=(1, 9), concurrency=2)))
    huge = y.submit(flow(huge=job(99)))
    y.submit(flow(later=job(2)))
    assert sorted(stage_of(one) for one in y.world.allocations) == ["array", "array", "later"]
    assert not y.world.reservations
    y.ask(StopWorkflow(workflow=huge))
    finished(y)


@pytest.mark.parametrize("seed", range(6))
def test_s31_plans_of_milliseconds_do_not_overlap(seed: int) -> None:
    """With limits of a few milliseconds promises are kept, and no node is promised or given away
    twice.
    """
    dice = Random(f"brief/{seed}")
    y = yard(lambda _: Run(ms=dice.choice([0, 1, 2, 5])))
    pool(y, dice)
    for _ in range(80):
        y.submit(flow(it=wanted(dice, timeout_ms=dice.choice([1, 2, 3, 7]), retries=0)))
        y.advance(dice.choice([0, 0, 1, 2]))
    finished(y)
    for _, world in ticks(y.records):
        promised = [name for one in world.reservations.values() for name in one.chunks]
        assert len(promised) == len(set(promised))
        for node in world.nodes.values():
            assert node.free_cores >= 0 and node.free_memory >= 0
            assert all(free >= 0 for free in node.free_devices.values())


@pytest.mark.parametrize("seed", range(8))
def test_s33_what_runs_elsewhere_does_not_move_a_promise(seed: int) -> None:
    """The promise for a node with devices stays as it is, whatever starts, ends or overruns on
    nodes without.
    """
    dice = Random(f"elsewhere/{seed}")
    y = yard(lambda name: Run(ms=HOUR_MS if "gpu" in stage_of(name) else MINUTE_MS))
    y.node("gpu", 4, devices={"gpu": 1})
    for number in range(3):
        y.node(f"cpu{number}", 4)
    for stage in ("gpu", "gpunext"):
        y.submit(flow(**{stage: job(4, devices={"gpu": 1}, timeout_ms=HOUR_MS)}))
    [promise] = y.world.reservations.values()
    first = (promise.at, promise.chunks)
    for _ in range(40):
        y.submit(
            flow(plain=job(dice.choice([1, 2, 4]), timeout_ms=dice.choice([5, 90]) * SECOND_MS))
        )
        y.advance(dice.choice([1, 20]) * SECOND_MS)
    y.leave("cpu1")
    y.advance(2 * MINUTE_MS)
    found = next(one for name, one in y.world.reservations.items() if "/gpunext/" in name)
    assert (found.at, found.chunks) == first == (EPOCH_MS + HOUR_MS, {"gpu": 1})


@pytest.mark.parametrize("seed", range(6))
def test_s34_what_waits_for_something_scarce_gets_a_future_start(seed: int) -> None:
    """Whoever waits for devices that others hold has a promise for when they are given back, not
    none; the earliest at which there are enough.
    """
    dice = Random(f"scarce/{seed}")
    y = yard(lambda _: Run(ms=HOUR_MS))
    y.node("n1", 64, devices={"gpu": 4})
    for _ in range(4):
        limit = dice.randint(1, 50) * MINUTE_MS
        y.submit(flow(holds=job(1, devices={"gpu": 1}, timeout_ms=limit)))
    count = dice.randint(1, 4)
    y.submit(flow(waits=job(1, devices={"gpu": count})))
    [(name, promise)] = y.world.reservations.items()
    limits = sorted(one.stage.limit_ms for one in y.world.allocations.values())
    assert stage_of(name) == "waits"
    assert promise.at == EPOCH_MS + limits[count - 1]
    y.submit(flow(plain=job(1)))
    assert "plain" in {stage_of(one) for one in y.world.allocations}
    finished(y)


def test_s37_a_restart_rebuilds_every_promise_and_decides_nothing_new() -> None:
    """At any moment the promises of a world that is recovered from the log are those of the live
    one, and the first look after a restart changes none of them.
    """
    held = 0
    for seed in range(5):
        dice = Random(f"restart/{seed}")
        y = yard(lambda name: Run(ms=(5 + 50 * (len(name) % 2)) * SECOND_MS))
        pool(y, dice)
        for _ in range(40):
            y.submit(flow(it=wanted(dice)))
            y.advance(dice.choice([0, 1, 2]) * SECOND_MS)
            live = {
                name: (one.at, one.chunks, one.position)
                for name, one in y.world.reservations.items()
            }
            world = recover(y.engine.log)
            assert live == {
                name: (one.at, one.chunks, one.position) for name, one in world.reservations.items()
            }
            held += len(live)
            assert decided(world, y.clock.ms) == []
            if dice.random() < 0.1:
                before = len(y.records)
                y.crash(y.engine.log)
                again = [type(one.event).__name__ for one in y.records[before:]]
                assert again == ["ServerStarted"]
        finished(y)
    assert held > 50


def test_s39_no_start_behind_a_promise_delays_it() -> None:
    """After every tick, what has a promise would still fit by then if all that runs took as long as
    it may: found by brute force over all ends.
    """
    looked = backfilled = 0
    for name, records in logs():
        for decisions, world in ticks(records):
            now = decisions[-1].at
            backfilled += sum(
                isinstance(one.event, AllocationPlaced) and one.event.kind == "backfilled"
                for one in decisions
            )
            if rooms.overdue(world, now) or not world.lanes:
                continue
            for allocation, promise in world.reservations.items():
                looked += 1
                request = request_of(world, allocation)
                assert rooms.earliest(world, request, now) <= promise.at, (name, decisions[-1])
    assert looked > 100 and backfilled > 50


def test_s39_backfill_costs_the_first_in_order_nothing() -> None:
    """Where all run as long as they say, the first that is blocked starts at the very instant at
    which it does when nobody is let through before it.
    """
    passed = 0
    for seed in range(30):
        dice = Random(f"exact/{seed}")
        limits = {f"j{number}": dice.choice([1, 2, 5, 9]) * MINUTE_MS for number in range(9)}
        jobs = {
            name: job(dice.choice([1, 2, 3]), nodes=dice.choice([1, 1, 2]), timeout_ms=limit)
            for name, limit in limits.items()
        }
        with_it, without = _raced(jobs, limits, True), _raced(jobs, limits, False)
        assert with_it[:2] == without[:2], seed
        passed += with_it[2]
    assert passed > 10


def _raced(jobs: dict[str, Job], limits: dict[str, int], backfill: bool) -> tuple[str, int, bool]:
    """The first that is blocked, when it starts, and whether anybody was let through."""
    y = yard(
        lambda name: Run(ms=limits[stage_of(name)] - 1),
        {"n1": 4, "n2": 4},
        scheduler__backfill__enabled=backfill,
    )
    for name, one in jobs.items():
        y.submit(flow(**{name: one}))
    first = min(y.world.reservations, key=lambda name: int(stage_of(name)[1:]))
    finished(y)
    placed = {
        record.event.allocation: record.at
        for record in y.records
        if isinstance(record.event, AllocationPlaced)
    }
    passed = any(one.kind == "backfilled" for one in events(y, AllocationPlaced))
    return stage_of(first), placed[first], passed


def test_s41_nothing_is_planned_or_started_in_the_past() -> None:
    """Promises lie after they are made, starts after placements; and a clock that is set back does
    not take the log with it.
    """
    for name, records in logs():
        placed: dict[str, int] = {}
        for record in records:
            event = record.event
            if isinstance(event, ReservationHeld | ReservationMoved):
                assert event.at > record.at, (name, record)
            elif isinstance(event, AllocationPlaced):
                placed[event.allocation] = record.at
            elif isinstance(event, AllocationStarted):
                assert event.started_at >= placed[event.allocation], (name, record)
                assert record.at >= event.started_at, (name, record)
    dice = Random("steps")
    y = yard(lambda _: Run(ms=5 * SECOND_MS))
    pool(y, dice)
    for _ in range(30):
        y.submit(flow(it=wanted(dice)))
        y.clock.ms += dice.choice([-3_600, -5, 0, 1, 5]) * SECOND_MS
        y.turn()
    assert [one.at for one in y.records] == sorted(one.at for one in y.records)
    y.clock.ms = max(y.clock.ms, y.world.at)
    y.run()
    y.check()


def test_s46_nobody_outlives_his_limit_at_the_cost_of_others() -> None:
    """Whatever runs too long is ended at its limit and the grace; while it cannot be told so, the
    promise that it delays slips as `overrun`, and gets no other cause.
    """
    y = yard(
        lambda name: Run(ms=HOUR_MS, stubborn=True),
        {"n1": 2, "n2": 2},
        workflow__killGrace=30 * SECOND_MS,
        node__lostAfter=20 * MINUTE_MS,
    )
    for _ in range(2):
        y.submit(flow(long=job(2, timeout_ms=10 * MINUTE_MS)))
    y.submit(flow(wide=job(2, nodes=2)))
    node = y.nodes["n1"]
    y.leave("n1")
    y.advance(15 * MINUTE_MS)
    moved = events(y, ReservationMoved)
    assert moved and {one.cause for one in moved} == {"overrun"}
    y.add(node)
    finished(y)
    runs = [one.run_ms for one in events(y, AllocationEnded) if "/long/" in one.allocation]
    assert len(runs) == 2 and max(runs) == 10 * MINUTE_MS + 30 * SECOND_MS


@pytest.mark.parametrize("days", [1, 30, 365])
def test_s47_no_limit_is_too_long_for_a_promise(days: int) -> None:
    """There is no horizon: behind work that may run for a year the wide job has its promise, and
    small work still passes where it fits beside it.
    """
    long = days * 24 * HOUR_MS
    y = yard(
        lambda name: Run(ms=long if stage_of(name) == "long" else MINUTE_MS), {"n1": 4, "n2": 4}
    )
    y.submit(flow(long=job(3, timeout_ms=long)))
    y.submit(flow(wide=job(4, nodes=2, timeout_ms=HOUR_MS)))
    [promise] = y.world.reservations.values()
    assert promise.at == EPOCH_MS + long
    for _ in range(50):
        y.submit(flow(small=job(1, timeout_ms=HOUR_MS)))
        y.advance(HOUR_MS)
    assert len([one for one in events(y, AllocationEnded) if "/small/" in one.allocation]) == 50
    finished(y)
    starts = [
        r.at
        for r in y.records
        if isinstance(r.event, AllocationPlaced) and "/wide/" in r.event.allocation
    ]
    assert starts == [EPOCH_MS + long]
