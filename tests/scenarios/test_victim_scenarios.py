"""How victims are chosen, what they are told, and how they come back."""

from collections import Counter
from itertools import combinations
from math import isfinite
from random import Random

import pytest

from logyard_domain import snapshot
from logyard_domain.commands import UpdateGroup
from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationRequeued,
    AllocationSeated,
    AllocationStarted,
    AllocationStopping,
    AnyEvent,
    WorkflowCanceled,
    WorkflowFailed,
    WorkflowFinished,
)
from logyard_domain.identifiers import allocation_id, allocation_parts
from logyard_domain.rules.priorities import priority_of
from logyard_engine.simulation.nodes import Run
from logyard_projections.answers.stats import stats
from logyard_projections.answers.why import explain
from logyard_projections.catalog import PROJECTIONS
from logyard_projections.runners.memory import MemoryRunner
from tests.engine.work import flow, job
from tests.scenarios import rooms
from tests.scenarios.yards import (
    CROWD,
    FORMULAS,
    GIB,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    SIEGES,
    URGENT,
    brim,
    configured,
    decided,
    events,
    evicting,
    evictions,
    finished,
    grouped,
    logs,
    siege,
    stage_in,
    stage_of,
    walk,
    yard,
)


def following(attempt: str) -> str:
    """The name of the attempt after it."""
    workflow, stage, rank, number = allocation_parts(attempt)
    return allocation_id(workflow, stage, rank, number + 1)


def test_s14_whoever_is_evicted_comes_back_or_ends_for_good() -> None:
    """Every eviction is followed by one placement of the next attempt, or by the end of its
    workflow; never by both attempts at once.
    """
    back = 0
    for name, records in logs():
        evicted: set[str] = set()
        for record in records:
            match record.event:
                case AllocationStopping(reason="preempted", allocation=victim):
                    evicted.add(victim)
                case _:
                    pass
        placed = Counter(
            r.event.allocation for r in records if isinstance(r.event, AllocationPlaced)
        )
        over = {
            r.event.workflow
            for r in records
            if isinstance(r.event, WorkflowFinished | WorkflowFailed | WorkflowCanceled)
        }
        ended = {r.event.allocation for r in records if isinstance(r.event, AllocationEnded)}
        for victim in evicted:
            assert victim in ended, name
            assert placed[following(victim)] == 1 or allocation_parts(victim)[0] in over, name
            back += placed[following(victim)]
    assert back > 40


def test_s15_a_victim_that_ends_slowly_holds_up_its_own_preemptor_alone() -> None:
    """While one victim does not heed SIGTERM, others are evicted and their preemptors start."""
    for nodes in (2, 3, 5):
        slow: list[str] = []

        def run(allocation: str, slow: list[str] = slow) -> Run:
            if stage_of(allocation) == "low" and not slow:
                slow.append(allocation)
            return Run(ms=HOUR_MS, stubborn=allocation in slow)

        y = yard(run, **evicting(False, workflow__killGrace=HOUR_MS))
        grouped(y)
        for number in range(nodes):
            y.node(f"n{number}", 2)
            y.submit(flow(low=job(2)), group="chem", preemptible=True)
        for _ in range(nodes):
            y.submit(flow(urgent=job(2)), group=URGENT)
            y.advance(SECOND_MS)
        seated = events(y, AllocationSeated)
        assert len(seated) == nodes - 1
        assert y.world.allocations[slow[0]].status == "stopping"
        started = [one for one in events(y, AllocationStarted) if "/urgent/" in one.allocation]
        assert len(started) == nodes - 1
        y.ask(configured(y, scheduler__preemption__enabled=False))
        finished(y)
        assert len(events(y, AllocationSeated)) == nodes


def test_s17_both_sides_tell_of_the_eviction() -> None:
    """A victim's end and its next attempt say preempted, never canceled, its stop names the
    preemptor, and views tell the same of both.
    """
    for seed, several in SIEGES:
        y = brim(seed, several)
        by = {one.allocation: one.by for one in events(y, AllocationStopping) if one.by}
        outcomes = {one.allocation: one.outcome for one in events(y, AllocationEnded)}
        reasons = {one.allocation: one.reason for one in events(y, AllocationRequeued)}
        runner = MemoryRunner(PROJECTIONS)
        runner.apply(y.records)
        with runner.read() as view:
            for victim, preemptor in by.items():
                assert outcomes[victim] != "canceled"
                if outcomes[victim] == "preempted":
                    assert reasons[following(victim)] == "preempted"
                told, other = explain(view, victim), explain(view, preemptor)
                assert told is not None and other is not None
                assert told.evicted is not None and told.evicted.by == preemptor
                assert other.here is not None and victim in other.here.evicts


def test_s18_the_terms_of_a_priority_sum_to_it() -> None:
    """Whatever the formula, the parts that `why` shows of a priority add up to the priority by
    which it is ordered, and all are finite.
    """
    told = 0
    for seed, several in SIEGES:
        records = siege(seed, several).records
        dice = Random(f"terms/{seed}")
        runner = MemoryRunner(PROJECTIONS)
        for position in sorted(dice.sample(range(len(records) // 4, len(records)), 8)):
            runner.apply(records[int(runner.position) : position])
            world = next(w for r, w in walk(records) if r.position == position + 1)
            waiting = [stage for lane in world.lanes.values() if (stage := lane.head())]
            with runner.read() as view:
                for stage in waiting[:4]:
                    name = allocation_id(stage.workflow.id, stage.plan.name, *stage.first_waiting())
                    found = explain(view, name, world.at)
                    assert found is not None and found.priority is not None
                    values = [term.value for term in found.terms if term.value is not None]
                    assert len(values) == len(found.terms) and all(map(isfinite, values))
                    total = sum(values)
                    assert total == pytest.approx(found.priority, abs=1e-6)
                    right = priority_of(world, world.priority, stage, world.at)
                    assert found.priority == pytest.approx(right, abs=1e-6)
                    told += 1
    assert told > 30


@pytest.mark.parametrize("seed", range(10))
def test_s19_a_victim_resumes_before_the_fillers(seed: int) -> None:
    """A preemptor that overruns is ended at its limit, and then its victim comes before all that
    were submitted after it, though they wait for the same room.
    """
    dice = Random(f"fillers/{seed}")
    limit = dice.choice([5, 10]) * MINUTE_MS
    y = yard(
        lambda name: Run(ms=HOUR_MS if stage_of(name) == "urgent" else 2 * MINUTE_MS),
        **evicting(workflow__killGrace=dice.choice([0, SECOND_MS])),
    )
    grouped(y)
    y.node("n1", 4)
    y.submit(flow(victim=job(dice.choice([3, 4]))), group="chem", preemptible=True)
    y.advance(SECOND_MS)
    y.submit(flow(urgent=job(4, timeout_ms=limit)), group=URGENT)
    for _ in range(12):
        y.submit(flow(fill=job(dice.choice([2, 3, 4]), timeout_ms=HOUR_MS)), group="chem")
        y.advance(dice.choice([0, SECOND_MS]))
    finished(y)
    assert [one.outcome for one in events(y, AllocationEnded) if "/urgent/" in one.allocation] == [
        "timeout"
    ]
    order = [stage_of(one.allocation) for one in events(y, AllocationPlaced)]
    assert order[:3] == ["victim", "urgent", "victim"]


def test_s21_who_is_evicted_does_not_depend_on_how_the_world_is_laid_out() -> None:
    """Candidates that began at the same instant are told apart by their names: a world whose
    allocations lie in another order decides the same, to the byte.
    """
    compared = 0
    for name, records in logs():
        moments = {one.placed.allocation: one.at for one in evictions(records)}
        for record, world in walk(records):
            event = record.event
            if not isinstance(event, AllocationStopping) or event.by not in moments:
                continue
            found: list[list[AnyEvent]] = []
            for reverse in (False, True):
                copy = snapshot.restore(snapshot.dump(world))
                names = sorted(copy.allocations, reverse=reverse)
                copy.allocations = {one: copy.allocations[one] for one in names}
                for node in copy.nodes.values():
                    node.running = dict.fromkeys(sorted(node.running, reverse=reverse))
                found.append(decided(copy, record.at))
            assert found[0] == found[1], (name, record)
            compared += 1
    assert compared > 40


@pytest.mark.parametrize("seed", range(20))
def test_s23_the_choice_is_near_the_best_there_is(seed: int) -> None:
    """Against brute force over at most eight candidates: who is evicted could be; where one victim
    is enough one goes, the lowest; and where no set of them makes room nobody goes.
    """
    dice = Random(f"brute/{seed}")
    y = yard(lambda _: Run(ms=HOUR_MS), **evicting(True, scheduler__priority=FORMULAS[2]))
    grouped(y)
    for number in range(dice.randint(2, 3)):
        y.node(f"n{number}", 4, memory=16 * GIB)
    for _ in range(8):
        small = job(dice.choice([1, 1, 2, 3]), memory=dice.choice([0, 4]) * GIB)
        group, priority = dice.choice(CROWD), dice.choice([0, -1, -2, -3])
        y.submit(flow(low=small), group=group, preemptible=True, priority=priority)
    urgent = job(dice.choice([2, 3, 4]), memory=dice.choice([0, 8, 16]) * GIB)
    if dice.random() < 0.3:
        urgent = job(dice.choice([2, 4]), nodes=2)
    before = snapshot.restore(snapshot.dump(y.world))
    y.submit(flow(urgent=urgent), group=URGENT)
    stage = next(
        s for w in y.world.workflows.values() for s in w.stages.values() if s.plan.name == "urgent"
    )
    request = y.world.shapes[stage.shape].request
    rank = {
        one.id: (priority_of(before, before.priority, one.stage, before.at), one.id)
        for one in before.allocations.values()
    }
    sets = [
        set(chosen)
        for size in range(0, 9)
        for chosen in combinations(sorted(rank), size)
        if rooms.fits(before, request, chosen)
    ]
    stopped = {one.allocation for one in events(y, AllocationStopping)}
    if not sets or not sets[0]:
        assert not stopped
        return
    best = len(sets[0])
    if best == 1:
        singles = [chosen for chosen in sets if len(chosen) == 1]
        lowest = min(rank[next(iter(chosen))][0] for chosen in singles)
        [victim] = stopped
        assert rank[victim][0] == lowest
    else:
        assert stopped in sets, (best, rank)
        assert len(stopped) <= 5


@pytest.mark.parametrize(
    ("run", "outcome", "attempts"),
    [
        (Run(ms=HOUR_MS), "preempted", 2),
        (Run(ms=90 * SECOND_MS, stubborn=True), "finished", 1),
        (Run(ms=90 * SECOND_MS, stubborn=True, exit_code=1), "failed", 2),
    ],
)
def test_s25_a_victim_that_ends_by_itself_meanwhile_counts_once(
    run: Run, outcome: str, attempts: int
) -> None:
    """However a victim ends in its grace, it is counted as evicted once and requeued once, unless
    it finished: then it is done, and no work was lost. Its retries are not touched.
    """

    def script(allocation: str) -> Run:
        first = stage_of(allocation) == "victim" and allocation.endswith("#1")
        return run if first else Run(ms=MINUTE_MS)

    y = yard(script, **evicting(workflow__killGrace=5 * MINUTE_MS))
    grouped(y)
    y.node("n1", 1)
    y.submit(flow(victim=job()), group="chem", preemptible=True)
    y.advance(MINUTE_MS)
    y.submit(flow(urgent=job()), group=URGENT)
    y.advance(MINUTE_MS)
    finished(y)
    ends = [one for one in events(y, AllocationEnded) if "/victim/" in one.allocation]
    assert [one.outcome for one in ends] == [outcome, "finished"][:attempts]
    assert [one.reason for one in events(y, AllocationRequeued)] == ["preempted"] * (attempts - 1)
    runner = MemoryRunner(PROJECTIONS)
    runner.apply(y.records)
    with runner.read() as view:
        assert (stats(view).evicted, stats(view).preempting) == (attempts - 1, 1)


def test_s25_no_eviction_is_counted_or_requeued_twice() -> None:
    """Each attempt is stopped once and ends once; its next attempt is made once at most, and none
    is made of one that finished.
    """
    for name, records in logs():
        stops = Counter(
            r.event.allocation
            for r in records
            if isinstance(r.event, AllocationStopping) and r.event.reason == "preempted"
        )
        ends = Counter(r.event.allocation for r in records if isinstance(r.event, AllocationEnded))
        again = Counter(
            r.event.allocation for r in records if isinstance(r.event, AllocationRequeued)
        )
        finished_ones = {
            r.event.allocation
            for r in records
            if isinstance(r.event, AllocationEnded) and r.event.outcome == "finished"
        }
        assert {*stops.values(), *ends.values(), *again.values()} == {1}, name
        assert not {following(one) for one in finished_ones} & set(again), name


def test_s26_the_gap_decides_to_the_point() -> None:
    """Just below the gap nobody is evicted, at the gap somebody is; and what counts is the priority
    in the very turn that decides.
    """
    for gap in (1.0, 2.5, 7.0):
        for step in (-0.25, 0.0, 0.25):
            formula = "group.priority / 4"
            y = yard(
                lambda _: Run(ms=MINUTE_MS),
                **evicting(
                    False, scheduler__priority=formula, scheduler__preemption__priorityGap=gap
                ),
            )
            grouped(y, priority=int((gap + step) * 4))
            y.node("n1", 1)
            y.submit(flow(low=job()), group="chem", preemptible=True)
            y.submit(flow(urgent=job()), group=URGENT)
            stops = events(y, AllocationStopping)
            assert [one.gap for one in stops] == ([gap + step] if step >= 0 else [])
            y.ask(UpdateGroup(group="chem", priority=-4))
            assert len(events(y, AllocationStopping)) == 1
            finished(y)


def test_s26_every_recorded_gap_is_that_of_its_moment() -> None:
    """The gap on the log is that of the priorities as they are when it is decided."""
    for name, records in logs():
        for one in evictions(records):
            world = one.world
            stage = stage_in(world, one.placed.allocation)
            mine = priority_of(world, world.priority, stage, one.at)
            for stop in one.stops:
                victim = world.allocations[stop.allocation].stage
                gap = mine - priority_of(world, world.priority, victim, one.at)
                assert stop.gap == pytest.approx(gap, abs=1e-9), name
                assert stop.gap >= float(world.config["scheduler.preemption.priorityGap"]), name
