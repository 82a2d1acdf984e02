"""Jobs on several nodes, devices that lie apart, slots that must come back."""

from collections import Counter
from random import Random

import pytest

from logyard_domain.commands import UpdateGroup
from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationRequeued,
    AllocationStarted,
    AllocationStopping,
    WorkflowFinished,
)
from logyard_domain.rules.priorities import priority_of
from logyard_domain.world import World
from logyard_engine.recovery import recover
from logyard_engine.simulation.nodes import Run
from logyard_projections.answers.why import explain
from logyard_projections.catalog import PROJECTIONS
from logyard_projections.runners.memory import MemoryRunner
from tests.engine.work import flow, job
from tests.scenarios import rooms
from tests.scenarios.yards import (
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    events,
    evicting,
    evictions,
    finished,
    lasting,
    logs,
    pool,
    request_of,
    stage_in,
    stage_of,
    ticks,
    walk,
    wanted,
    yard,
)


def holds_all_or_nothing(world: World) -> bool:
    """Whether every allocation has all of its chunks, on just the nodes that know of it."""
    there = {name: Counter[str]() for name in world.allocations}
    for node in world.nodes.values():
        for name in node.running:
            there[name][node.name] += 1
    return all(
        set(there[one.id]) == {node.name for node, _ in one.chunks}
        and sum(count for _, count in one.chunks) == world.shapes[one.stage.shape].request.nodes
        for one in world.allocations.values()
    )


def test_s48_nobody_ever_holds_half_of_what_he_needs() -> None:
    """After every placement and end each allocation has all of its chunks, or none."""
    gangs = 0
    for name, records in logs():
        for record, world in walk(records):
            if isinstance(record.event, AllocationPlaced | AllocationEnded):
                assert holds_all_or_nothing(world), (name, record)
                gangs += isinstance(record.event, AllocationPlaced) and len(record.event.chunks) > 1
    assert gangs > 30


@pytest.mark.parametrize("seed", range(10))
def test_s48_two_gangs_never_hold_half_each(seed: int) -> None:
    """Gangs that each need more than half of the nodes all get done, one after the other, and none
    waits with nodes in its hands.
    """
    dice = Random(f"gangs/{seed}")
    y = yard(lambda _: Run(ms=MINUTE_MS))
    nodes = dice.randint(3, 6)
    for number in range(nodes):
        y.node(f"n{number}", 2)
    for _ in range(dice.randint(1, nodes)):
        y.submit(flow(single=job(dice.choice([1, 2]), timeout_ms=dice.randint(2, 9) * MINUTE_MS)))
    for _ in range(8):
        wide = dice.randint(nodes // 2 + 1, nodes)
        y.submit(flow(gang=job(2, nodes=wide, timeout_ms=dice.randint(2, 9) * MINUTE_MS)))
        y.advance(dice.choice([0, 30]) * SECOND_MS)
    finished(y)
    assert len(events(y, WorkflowFinished)) == len(events(y, AllocationEnded))
    for _, world in ticks(y.records):
        running = [one for one in world.allocations.values() if stage_of(one.id) == "gang"]
        assert len(running) <= 1


@pytest.mark.parametrize("seed", range(3))
def test_s50_evictions_of_one_pass_go_one_way(seed: int) -> None:
    """Between groups that may evict each other no pass evicts whom it placed, nobody evicts his own
    preemptor, and the preemptor is always the higher one: there is no circle.
    """
    dice = Random(f"mutual/{seed}")
    y = yard(lasting(5 * MINUTE_MS), **evicting(True))
    for group in ("a", "b"):
        y.ask(UpdateGroup(group=group))
    for group, other in ("ab", "ba"):
        y.ask(UpdateGroup(group=group, preempt=(other,)))
    pool(y, dice)
    for _ in range(60):
        priority = dice.choice([0, -2, -4, -6])
        y.submit(
            flow(it=wanted(dice)), group=dice.choice("ab"), preemptible=True, priority=priority
        )
        y.advance(dice.choice([0, 1, 20]) * SECOND_MS)
    finished(y)
    for decisions, _ in ticks(y.records):
        stops = [one.event for one in decisions if isinstance(one.event, AllocationStopping)]
        assert not {one.allocation for one in stops} & {one.by for one in stops}
    made_room: set[tuple[str, str]] = set()
    for one in evictions(y.records):
        mine = priority_of(
            one.world, one.world.priority, stage_in(one.world, one.placed.allocation), one.at
        )
        for victim in one.victims:
            stage = one.world.allocations[victim].stage
            assert priority_of(one.world, one.world.priority, stage, one.at) < mine
            pair = (victim.rpartition("#")[0], one.placed.allocation.rpartition("#")[0])
            assert pair[::-1] not in made_room
            made_room.add(pair)
    assert len(made_room) > 5


@pytest.mark.parametrize("seed", range(8))
def test_s51_a_gang_that_loses_a_node_is_requeued_whole(seed: int) -> None:
    """When any node of a gang is lost or starts anew, the whole gang ends once, gives back all of
    its nodes, and comes back as one attempt with all of its chunks.
    """
    dice = Random(f"broken/{seed}")
    y = yard(lambda _: Run(ms=HOUR_MS), node__lostAfter=30 * SECOND_MS)
    for number in range(6):
        y.node(f"n{number}", 4)
    for _ in range(2):
        y.submit(flow(gang=job(4, nodes=3, timeout_ms=2 * HOUR_MS)))
    y.advance(MINUTE_MS)
    gang = dice.choice(list(y.world.allocations.values()))
    name = dice.choice([node.name for node, _ in gang.chunks])
    lost = y.nodes[name]
    if dice.random() < 0.5:
        lost.restart(f"{name}.again")
        y.join(lost)
    else:
        y.leave(name)
        y.advance(MINUTE_MS)
        assert gang.id not in y.world.allocations
        assert not [n for n in y.world.nodes.values() if gang.id in n.running]
        y.add(lost)
    ended = [one for one in events(y, AllocationEnded) if one.allocation == gang.id]
    again = [one for one in events(y, AllocationRequeued)]
    assert [one.outcome for one in ended] == ["lost"]
    assert [(one.allocation, one.reason) for one in again] == [(gang.id[:-1] + "2", "lost")]
    assert holds_all_or_nothing(y.world)
    finished(y)
    whole = [one for one in events(y, AllocationPlaced) if one.allocation == again[0].allocation]
    assert [sum(one.chunks.values()) for one in whole] == [3]


@pytest.mark.parametrize("each", [1, 2, 3])
def test_s53_why_tells_room_that_lies_apart_from_room_that_is_short(each: int) -> None:
    """With devices free on every node and not enough on any, `why` shows that together there are
    enough, that no node has them, and how many the nearest is short of.
    """
    y = yard(lambda _: Run(ms=HOUR_MS))
    for number in range(4):
        y.node(f"n{number}", 8, devices={"gpu": 4})
    y.submit(flow(one=job(5, devices={"gpu": 4 - each}, array=(1, 4))))
    name = y.submit(flow(waits=job(1, devices={"gpu": each + 1})))
    runner = MemoryRunner(PROJECTIONS)
    runner.apply(y.records)
    with runner.read() as view:
        told = explain(view, name, y.clock.ms)
    assert told is not None
    [gpus] = [one for one in told.needs if one.dimension == "gpu"]
    assert (gpus.need, gpus.free, gpus.short) == (each + 1, each, 1)
    assert gpus.could_hold_free == 4 * each >= gpus.need
    assert f"no node has {each + 1} gpu free" in told.summary
    assert {one.cause: one.nodes for one in told.pool} == {"busy": 4}
    finished(y)


def test_s54_who_needs_no_device_leaves_them_alone_while_he_can() -> None:
    """In order, a job without devices is placed on a node that has some only when it fits on no
    node that has none.
    """
    passed = 0
    for name, records in logs():
        for record, world in walk(records):
            event = record.event
            if not isinstance(event, AllocationPlaced) or event.kind != "direct" or event.behind:
                continue
            request = request_of(world, event.allocation)
            if request.devices or request.nodes > 1:
                continue
            plain = [n for n in world.nodes.values() if not n.capacity.devices]
            if world.nodes[event.node].capacity.devices:
                assert not any(rooms.chunks_on(world, node, request) for node in plain), (
                    name,
                    record,
                )
            passed += 1
    assert passed > 100


@pytest.mark.parametrize("seed", range(8))
def test_s58_slots_of_an_array_are_those_of_the_log_after_any_restart(seed: int) -> None:
    """However the server dies and nodes are lost, an array has no more ranks in flight than it may,
    who holds a slot is what the log says, and no slot is lost: all ranks get done.
    """
    dice = Random(f"slots/{seed}")
    most = dice.choice([1, 2, 3])
    y = yard(
        lambda name: Run(ms=dice.choice([1, 20]) * SECOND_MS, exit_code=int("/1#1" in name)),
        {"n1": 4, "n2": 4},
        node__lostAfter=30 * SECOND_MS,
        scheduler__lookahead=0,
    )
    y.submit(flow(it=job(1, array=(1, 20), concurrency=most, retries=1)))
    for step in range(40):
        y.advance(dice.choice([1, 5]) * SECOND_MS)
        node = y.nodes[dice.choice(["n1", "n2"])]
        match dice.randrange(5):
            case 0:
                y.crash(y.engine.log)
            case 1:
                node.restart(f"{node.facts.node}.r{step}")
                y.join(node)
            case _:
                pass
        live = {
            s.plan.name: set(s.holding)
            for w in y.world.workflows.values()
            for s in w.stages.values()
        }
        again = recover(y.engine.log)
        assert live == {
            s.plan.name: set(s.holding) for w in again.workflows.values() for s in w.stages.values()
        }
        assert all(len(held) <= most for held in live.values())
    finished(y)
    done = [one for one in events(y, AllocationEnded) if one.outcome == "finished"]
    assert len(done) == 20
    assert len(events(y, AllocationStarted)) >= 20
