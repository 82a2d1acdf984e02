"""Whom an eviction may hit, and what becomes of the room: thrash, livelock, wrong victims."""

from collections import Counter
from random import Random

import pytest

from logyard_domain.commands import UpdateGroup
from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationStopping,
    ConfigSet,
    GroupUpdated,
    WorkflowSubmitted,
)
from logyard_domain.identifiers import allocation_parts
from logyard_engine.simulation.nodes import Run
from tests.engine.work import flow, job
from tests.scenarios import rooms
from tests.scenarios.yards import (
    CROWD,
    FORMULAS,
    GIB,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    URGENT,
    events,
    evicting,
    evictions,
    finished,
    grouped,
    lasting,
    logs,
    pool,
    stage_in,
    ticks,
    walk,
    wanted,
    yard,
)


def test_s01_what_was_freed_is_held_until_the_preemptor_is_seated() -> None:
    """Until a preemptor is seated or withdrawn, nothing is placed into the room that it waits for,
    and nobody evicts it.
    """
    waits = 0
    for name, records in logs():
        for record, world in walk(records):
            event = record.event
            if isinstance(event, AllocationStopping) and event.by:
                assert not world.allocations[event.allocation].after, (name, record)
            if not isinstance(event, AllocationPlaced) or event.behind:
                continue
            nodes = [world.nodes[one] for one in event.chunks or (event.node,)]
            leaving = {victim for one in world.allocations.values() for victim in one.after}
            leaving |= set(event.after)
            stage = stage_in(world, event.allocation)
            request = world.shapes[stage.shape].request
            for node in nodes:
                waits += any(one.after for one, _, _ in rooms.holders(world, node))
                assert rooms.chunks_on(world, node, request, leaving) >= (
                    event.chunks.get(node.name, 1)
                ), (name, record)
    assert waits > 5


@pytest.mark.parametrize("several", [False, True])
def test_s02_a_head_that_can_never_fit_evicts_nobody(several: bool) -> None:
    """What no node can hold leaves what runs alone, however urgent it is."""
    for seed in range(12):
        dice = Random(f"never/{seed}/{several}")
        y = yard(lasting(MINUTE_MS), **evicting(several))
        grouped(y)
        pool(y, dice)
        for _ in range(12):
            y.submit(flow(low=wanted(dice)), group=dice.choice(CROWD), preemptible=True)
        y.submit(flow(huge=job(9)), group=URGENT)
        y.submit(flow(odd=job(1, devices={"fpga": 1})), group=URGENT)
        y.submit(flow(fat=job(1, memory=33 * GIB)), group=URGENT)
        y.submit(flow(many=job(8, nodes=7)), group=URGENT)
        y.advance(HOUR_MS)
        assert not [one for one in events(y, AllocationStopping) if one.reason == "preempted"]
        assert len([shape for shape in y.world.shapes.values() if shape.hold]) == 4


@pytest.mark.parametrize("formula", FORMULAS)
def test_s03_without_arrivals_evictions_come_to_an_end(formula: str) -> None:
    """When nothing comes any more, every attempt is evicted at most once between two ends of
    other kinds, and all work gets done.
    """
    for seed in (0, 2, 3):
        dice = Random(f"stable/{seed}")
        y = yard(
            lasting(MINUTE_MS),
            **evicting(True, scheduler__priority=formula, scheduler__preemption__priorityGap=0.0),
        )
        for group in ("a", "b"):
            y.ask(UpdateGroup(group=group))
        for group, other in ("ab", "ba"):
            y.ask(UpdateGroup(group=group, preempt=(other,)))
        pool(y, dice)
        for _ in range(30):
            y.submit(flow(it=wanted(dice)), group=dice.choice("ab"), preemptible=True)
            y.advance(dice.choice([0, SECOND_MS]))
        last = y.records[-1].position
        finished(y)
        between = 0
        for record, world in walk(y.records):
            if record.position <= last:
                continue
            match record.event:
                case AllocationStopping(by=by) if by:
                    between += 1
                    assert between <= len(world.allocations)
                case AllocationEnded(outcome=outcome) if outcome != "preempted":
                    between = 0
                case _:
                    pass


def test_s05_equal_priority_never_evicts() -> None:
    """Among equals nobody is evicted, whatever the gap; one point more is enough."""
    for seed in range(10):
        dice = Random(f"equal/{seed}")
        evicted: list[int] = []
        for more in (0, 1):
            y = yard(
                lasting(MINUTE_MS),
                **evicting(
                    bool(seed % 2),
                    scheduler__priority="group.priority",
                    scheduler__preemption__priorityGap=0.0,
                ),
            )
            for group in ("a", "b"):
                y.ask(UpdateGroup(group=group, priority=3 + more * (group == "b")))
            for group, other in ("ab", "ba"):
                y.ask(UpdateGroup(group=group, preempt=(other,)))
            y.node("n1", 3)
            for number in range(9):
                y.submit(flow(it=job(1)), group="ab"[number >= 3], preemptible=True)
                y.advance(dice.choice([0, SECOND_MS]))
            finished(y)
            evicted.append(len([one for one in events(y, AllocationStopping) if one.by]))
        assert evicted == [0, 3]


def test_s06_nobody_is_killed_where_the_preemptor_would_not_fit_after_it() -> None:
    """With the victims gone the whole request fits on its seats: annotations, devices, memory,
    exclusive use and the number of nodes, not cores alone.
    """
    count = 0
    for name, records in logs():
        for one in evictions(records):
            count += 1
            chunks = one.placed.chunks or {one.placed.node: 1}
            assert sum(chunks.values()) == one.request.nodes, name
            leaving = {victim for held in one.world.allocations.values() for victim in held.after}
            for node, number in chunks.items():
                free = rooms.chunks_on(
                    one.world, one.world.nodes[node], one.request, leaving | one.victims
                )
                assert free >= number, (name, one.placed)
    assert count > 40


def test_s06_enough_cores_in_the_wrong_rack_are_not_enough() -> None:
    """Cores on nodes without the annotation, or without a free device, evict nobody."""
    for urgent in (
        job(2, annotations={"rack": "b"}),
        job(2, devices={"gpu": 2}),
        job(2, memory=21 * GIB, annotations={"rack": "b"}),
    ):
        y = yard(lambda _: Run(ms=MINUTE_MS), **evicting(True))
        grouped(y)
        y.node("n1", 4, annotations={"rack": "a"}, devices={"gpu": 1}, memory=24 * GIB)
        y.node("n2", 4, annotations={"rack": "b"}, devices={"gpu": 2}, memory=24 * GIB)
        # What n2 has is held by work that may not be evicted.
        y.submit(flow(kept=job(1, memory=5 * GIB, annotations={"rack": "b"}, devices={"gpu": 1})))
        y.submit(flow(kept=job(3, annotations={"rack": "b"})))
        for _ in range(4):
            y.submit(flow(low=job(1, memory=5 * GIB)), group="chem", preemptible=True)
        y.submit(flow(urgent=urgent), group=URGENT)
        assert not events(y, AllocationStopping), urgent
        finished(y)


def test_s07_victims_lie_on_the_nodes_of_the_final_placement() -> None:
    """Every victim leaves room on a node that the preemptor gets, and it starts on just those."""
    count = 0
    for name, records in logs():
        for one in evictions(records):
            seats = set(one.placed.chunks or (one.placed.node,))
            for victim in one.victims:
                count += 1
                held = {node.name for node, _ in one.world.allocations[victim].chunks}
                assert held & seats, (name, victim, one.placed)
    assert count > 50


def test_s09_every_victim_is_needed() -> None:
    """Give any one victim back, and the preemptor does not fit."""
    several = 0
    for name, records in logs():
        for one in evictions(records):
            several += len(one.victims) > 1
            for victim in one.victims:
                assert not rooms.fits(one.world, one.request, one.victims - {victim}), (name, one)
    assert several > 5


def test_s10_exactly_the_recorded_victims_are_stopped() -> None:
    """Those told to stop are those in the preemptor's placement, and only they end as preempted."""
    for name, records in logs():
        told: dict[str, set[str]] = {}
        for one in evictions(records):
            told[one.placed.allocation] = one.victims
            assert set(one.placed.after) == one.victims and one.placed.kind == "preempting", name
        by_rule = set[str]().union(*told.values())
        asked = {
            record.event.allocation
            for record in records
            if isinstance(record.event, AllocationStopping) and record.event.reason == "preempted"
        }
        ended = {
            record.event.allocation
            for record in records
            if isinstance(record.event, AllocationEnded) and record.event.outcome == "preempted"
        }
        assert by_rule <= asked and ended <= asked, name


def test_s11_nothing_changes_twice_in_one_tick() -> None:
    """In a tick each rank is placed or evicted once at most, and no victim comes back in it."""
    for name, records in logs():
        for decisions, _ in ticks(records):
            changed = Counter(
                record.event.allocation.rpartition("#")[0]
                for record in decisions
                if isinstance(record.event, AllocationPlaced | AllocationStopping)
            )
            assert set(changed.values()) <= {1}, (name, changed)


def test_s13_lost_work_is_bounded_by_rate_and_run_time() -> None:
    """No victim ran for less than the minimum, no tick evicts more than the limit, and what a
    victim loses is at most its own limit.
    """
    for name, records in logs():
        in_tick: Counter[int] = Counter()
        for one in evictions(records):
            config = one.world.config
            several = bool(config["scheduler.preemption.multiVictim.enabled"])
            most = int(config["scheduler.preemption.maxEvictionsPerTick"]) if several else 1
            for stop in one.stops:
                victim = one.world.allocations[stop.allocation]
                assert stop.ran_ms == one.at - victim.since, name
                assert stop.ran_ms >= int(config["scheduler.preemption.minRuntime"]), name
                assert one.at <= rooms.latest_end(one.world, victim), name
        for decisions, world in ticks(records):
            stops = [r for r in decisions if isinstance(r.event, AllocationStopping)]
            if stops:
                in_tick[stops[0].position] = len(stops)
                config = world.config
                several = bool(config["scheduler.preemption.multiVictim.enabled"])
                most = int(config["scheduler.preemption.maxEvictionsPerTick"]) if several else 1
                assert len(stops) <= most, name


@pytest.mark.parametrize("several", [False, True])
def test_s13_every_eviction_is_paid_by_an_arrival(several: bool) -> None:
    """While no priority changes, each urgent arrival evicts at most as many as it may at once: the
    lost work is bounded by arrivals, not by time.
    """
    for name, records in logs(several):
        if not name.startswith("brim"):
            continue
        last = max(r.position for r in records if isinstance(r.event, ConfigSet | GroupUpdated))
        urgent = [r for r in records if isinstance(r.event, WorkflowSubmitted)]
        assert last < urgent[0].position
        by = Counter(
            allocation_parts(r.event.by)[:2]
            for r in records
            if isinstance(r.event, AllocationStopping) and r.event.by
        )
        assert all(count <= (5 if several else 1) * 9 for count in by.values()), (name, by)


def test_s22_nobody_is_evicted_while_the_preemptor_fits_without() -> None:
    """Room that is idle comes before room that is taken from somebody."""
    for name, records in logs():
        for one in evictions(records):
            assert not rooms.fits(one.world, one.request), (name, one.placed)
