"""The queue: who is held up by whom, what a pass may touch, and that nothing is overlooked."""

from random import Random

import pytest

from logyard_domain import snapshot
from logyard_domain.commands import (
    AnyCommand,
    CordonNode,
    SubmitWorkflow,
    UncordonNode,
    UpdateGroup,
    UpdateOrganization,
    UpdateUser,
)
from logyard_domain.events import (
    AllocationPlaced,
    AllocationStopping,
    Event,
    ReservationHeld,
    ReservationMoved,
    ReservationReleased,
    ShapeHeld,
    ShapeReleased,
)
from logyard_domain.holds import NeverFits, NodesClosed, NotEvaluated
from logyard_domain.resources import Request
from logyard_domain.rules.priorities import priority_of
from logyard_domain.world import Stage, World
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import Yard
from logyard_engine.turn import Asked
from tests.engine.work import flow, job
from tests.scenarios import rooms
from tests.scenarios.yards import (
    HOUR_MS,
    MINUTE_MS,
    QUIET,
    SECOND_MS,
    decided,
    events,
    finished,
    logs,
    quiet,
    request_of,
    stage_of,
    ticks,
    walk,
    yard,
)

DECISIONS: tuple[type[Event], ...] = (
    AllocationPlaced, AllocationStopping, ReservationHeld, ReservationMoved, ReservationReleased,
    ShapeHeld, ShapeReleased,
)  # fmt: skip


def waiting(world: World) -> list[Stage]:
    """The first stage of each lane in which something waits."""
    return [stage for lane in world.lanes.values() if (stage := lane.head()) is not None]


def reach(world: World, request: Request) -> set[str]:
    """The nodes that are open and eligible for a chunk of the request."""
    return {node.name for node in world.nodes.values() if rooms.eligible(node, request)}


def test_s35_a_pass_touches_only_what_is_its_own() -> None:
    """A pass records decisions and nothing else: it never writes a priority, limit or setting."""
    for name, records in logs():
        for record in records:
            if record.actor == "scheduler":
                assert isinstance(record.event, DECISIONS), (name, record)
                if isinstance(record.event, AllocationStopping):
                    assert record.event.reason == "preempted", (name, record)


@pytest.mark.parametrize("seed", range(8))
def test_s35_a_change_in_the_turn_of_a_pass_holds_in_it_and_after_it(seed: int) -> None:
    """Priorities that are set in the very turn that schedules decide it, and are what they were set
    to afterwards.
    """
    dice = Random(f"change/{seed}")
    y = yard(lambda _: Run(ms=10 * SECOND_MS), {"n1": 1}, scheduler__priority="group.priority")
    for number in range(6):
        y.submit(flow(it=job()), group=f"g{number}", key=f"first{number}")
    for _ in range(30):
        told = {f"g{number}": dice.randint(-9, 9) for number in range(6)}
        asked: list[AnyCommand] = [
            UpdateGroup(group=group, priority=priority) for group, priority in told.items()
        ]
        count = len(y.records)
        asked.append(
            SubmitWorkflow(
                key=f"k{count}", name="more", user="bo", group="g0", definition=flow(it=job())
            )
        )
        y.turn([Asked(one, "user:bo", "together") for one in asked])
        assert {group: y.world.groups["default", group].priority for group in told} == told
        before = [
            (
                -priority_of(y.world, y.world.priority, s, y.clock.ms),
                s.workflow.position,
                s.workflow.id,
            )
            for s in waiting(y.world)
        ]
        place = len(y.records)
        y.advance(10 * SECOND_MS)
        placed = [one.event for one in y.records[place:] if isinstance(one.event, AllocationPlaced)]
        assert placed[0].allocation.split("/")[0] == min(before)[2]


def test_s42_a_blocked_head_holds_up_only_what_contends_with_it() -> None:
    """After every tick, whatever could use none of the nodes of those with a promise, and fits, has
    been placed.
    """
    free = 0
    for name, records in logs():
        for decisions, world in ticks(records):
            kept = {
                node for one in world.reservations for node in reach(world, request_of(world, one))
            }
            for stage in waiting(world):
                request = world.shapes[stage.shape].request
                could = reach(world, request)
                if could and not could & kept:
                    free += 1
                    assert not rooms.fits(world, request), (name, decisions[-1], stage.workflow.id)
    assert free >= 1


@pytest.mark.parametrize("seed", range(6))
def test_s42_heads_of_one_kind_leave_the_other_kind_alone(seed: int) -> None:
    """Behind a long line for devices, work that needs none starts the moment it comes."""
    dice = Random(f"kinds/{seed}")
    y = yard(lambda name: Run(ms=HOUR_MS if stage_of(name) == "train" else SECOND_MS))
    y.node("gpu", 8, devices={"gpu": 2})
    for number in range(dice.randint(1, 3)):
        y.node(f"rack{number}", 4, annotations={"rack": "a"})
    for _ in range(12):
        y.submit(flow(train=job(dice.choice([1, 8]), devices={"gpu": dice.choice([1, 2])})))
    for _ in range(20):
        y.submit(flow(plain=job(dice.choice([1, 2, 4]), annotations={"rack": "a"})))
        assert not [one for one in waiting(y.world) if one.plan.name == "plain"]
        y.advance(SECOND_MS)
    assert len(events(y, ReservationHeld)) == 1
    finished(y)


@pytest.mark.parametrize("seed", QUIET[3::2])
def test_s43_nothing_that_fits_is_overlooked_behind_stuck_heads(seed: int) -> None:
    """After every turn a pass that remembers nothing of those that were stuck before finds no more
    to place than the one that did.
    """
    looked = 0
    cause = ""
    for record, world in walk(quiet(seed).records):
        begins = record.actor not in ("scheduler", "engine") and record.cause != cause
        cause = record.cause
        if not begins or len(world.lanes) < 2:
            continue
        copy = snapshot.restore(snapshot.dump(world))
        missed = [one for one in decided(copy, world.at) if isinstance(one, AllocationPlaced)]
        assert not missed, (record.position, missed[:2])
        looked += 1
    assert looked > 50


@pytest.mark.parametrize("stuck", [1, 40, 200])
def test_s43_progress_needs_one_pass_however_many_are_stuck(stuck: int) -> None:
    """One that fits is placed in the first pass, though the pass may place but one, and any number
    of others before it cannot be.
    """
    y = yard(lambda _: Run(ms=HOUR_MS), {"n1": 4}, scheduler__backfill__depth=1)
    y.submit(flow(holds=job(3, timeout_ms=2 * HOUR_MS)))
    for number in range(stuck):
        y.submit(
            flow(stuck=job(2 + number % 3, timeout_ms=HOUR_MS + number)), user=f"u{number % 9}"
        )
    y.submit(flow(fits=job(1, timeout_ms=MINUTE_MS)))
    assert "fits" in {stage_of(one) for one in y.world.allocations}


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_s45_what_a_pass_did_not_come_to_says_so_and_comes_next_in_order(depth: int) -> None:
    """Beyond the depth of a pass a shape is held as not evaluated, never with another reason; the
    next passes place the rest in order of priority.
    """
    y = yard(lambda _: Run(ms=HOUR_MS), {"n1": 20}, scheduler__backfill__depth=depth)
    y.submit(flow(holds=job(10, timeout_ms=2 * HOUR_MS)))
    y.ask(CordonNode(node="n1"))
    y.submit(flow(head=job(20, timeout_ms=HOUR_MS)))
    for number in range(6):
        small = job(1, memory=(number + 1) << 20, timeout_ms=MINUTE_MS)
        y.submit(flow(**{f"s{number}": small}), priority=-number)
    y.ask(UncordonNode(node="n1"))
    left = [f"s{number}" for number in range(6)]
    for _ in range(3):
        placed = [stage_of(one.allocation) for one in events(y, AllocationPlaced)][1:]
        left = [f"s{number}" for number in range(6)][len(placed) :]
        assert placed == [f"s{number}" for number in range(len(placed))]
        held = {
            stage.plan.name: y.world.shapes[stage.shape].hold
            for stage in waiting(y.world)
            if stage.plan.name != "head"
        }
        assert held == dict.fromkeys(left, NotEvaluated())
        y.ask(UpdateUser(user="ana", priority=len(y.records)))
    assert len(left) == max(0, 6 - 3 * depth)


def reopenings(y: Yard, dice: Random) -> dict[str, tuple[dict[str, object], AnyCommand | None]]:
    """Requests that cannot run yet, by name, with what opens the yard to them."""
    return {
        "wide": ({"cores": 16}, None),
        "fast": ({"devices": {"fpga": 1}}, None),
        "far": ({"annotations": {"rack": "z"}}, None),
        "fat": ({"memory": 100 << 30}, None),
        "many": ({"nodes": 3 + dice.randint(0, 2), "cores": 4}, None),
    }


@pytest.mark.parametrize("seed", range(5))
def test_s55_every_change_of_capacity_reopens_what_was_parked(seed: int) -> None:
    """What no node could hold starts as soon as one comes that can; what needs a closed node starts
    as soon as it is opened, comes back, or is announced with more.
    """
    dice = Random(f"reopen/{seed}")
    y = yard(lambda _: Run(ms=HOUR_MS), {"n0": 4, "n1": 4}, node__lostAfter=30 * SECOND_MS)
    asked = reopenings(y, dice)
    for name, (request, _) in asked.items():
        y.submit(flow(**{name: job(**request)}))  # type: ignore[arg-type]
    holds = {stage.plan.name: y.world.shapes[stage.shape].hold for stage in waiting(y.world)}
    assert set(holds) == set(asked)
    assert all(isinstance(hold, NeverFits) for hold in holds.values())
    order = list(asked)
    dice.shuffle(order)
    for name in order:
        match name:
            case "wide":
                y.node("big", 16)
            case "fast":
                y.node("odd", 1, devices={"fpga": 1})
            case "far":
                y.node("out", 1, annotations={"rack": "z"})
            case "fat":
                y.node("rich", 1, memory=128 << 30)
            case _:
                for number in range(2, 5):
                    y.node(f"n{number}", 4)
        assert name in {stage_of(one) for one in y.world.allocations}, name


def test_s55_closed_nodes_that_open_again_are_used_at_once() -> None:
    """Cordoned, lost, restarted or announced with more: each opening starts what waited for it."""
    y = yard(lambda _: Run(ms=SECOND_MS), {"n1": 4}, node__lostAfter=30 * SECOND_MS)
    y.ask(CordonNode(node="n1"))
    y.submit(flow(a=job(4)))
    assert [s.hold for s in y.world.shapes.values()] == [NodesClosed()]
    y.ask(UncordonNode(node="n1"))
    assert len(y.world.allocations) == 1
    y.run()
    node = y.nodes["n1"]
    y.leave("n1")
    y.advance(MINUTE_MS)
    y.submit(flow(b=job(4)))
    assert not y.world.allocations
    y.add(node)
    assert len(y.world.allocations) == 1
    y.run()
    y.submit(flow(c=job(8)))
    assert not y.world.allocations
    y.node("n1", 8)
    assert len(y.world.allocations) == 1
    finished(y)


def test_s57_nothing_waits_for_work_of_another_workflow() -> None:
    """Room aside, stages wait for stages of their own workflow alone, which has one priority and
    one age: a more urgent one never waits for a lower one while those between run.
    """
    y = yard(lambda _: Run(ms=10 * SECOND_MS), {"n1": 1})
    y.ask(UpdateOrganization(organization="default", priority=1))
    y.submit(flow(low=job()), priority=-9)
    chain = flow(a=job(), b=job(after=("a",)), c=job(after=("b",)))
    y.submit(chain, priority=0)
    for _ in range(8):
        y.submit(flow(middle=job()), priority=-5)
    y.advance(5 * SECOND_MS)
    stages = [s for w in y.world.workflows.values() for s in w.stages.values()]
    for stage in stages:
        assert all(one.workflow is stage.workflow for one in stage.dependants)
    finished(y)
    placed = [stage_of(one.allocation) for one in events(y, AllocationPlaced)]
    # No stage of the middle comes between those of the more urgent chain.
    assert placed == ["low", "a", "b", "c", *["middle"] * 8]


def test_s57_who_holds_the_room_of_a_more_urgent_one_is_on_his_way_out() -> None:
    """Every victim that a preemptor waits for has been told to stop, and is gone, by the log, when
    its own limit is over at the latest (and its node, where that is away, is given up).
    """
    waits = 0
    for name, records in logs():
        for decisions, world in ticks(records):
            for allocation in world.allocations.values():
                for one in allocation.after:
                    victim = world.allocations[one]
                    assert victim.status == "stopping", name
                    latest = victim.since + victim.stage.limit_ms + MINUTE_MS
                    assert decisions[-1].at <= latest, (name, decisions[-1])
                    waits += 1
    assert waits > 10
