"""Proofs: every tick of a sound log comes out once more, one that was tampered with does not."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise

import pytest

from logyard_domain import snapshot
from logyard_domain.commands import UpdateGroup
from logyard_domain.events import AllocationPlaced, AllocationStopping, AnyEvent
from logyard_domain.evolve import replay
from logyard_domain.identifiers import allocation_parts
from logyard_domain.records import Record
from logyard_domain.world import World
from logyard_engine.advice.proof import Proof, prove, stand
from logyard_engine.advice.runners_up import Placement, placement_of
from logyard_engine.log.opening import open_log
from logyard_engine.scheduler.fit import fits
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import Yard
from tests.advice.past import Tick, ticks, waiting
from tests.audit import bad_evictions, faults
from tests.audit.planting import relinked
from tests.audit.yards import contended, play
from tests.engine.work import flow, job

GIB = 1 << 30
HOUR = 3_600_000
KINDS = ("", "single", "multi")
Fault = Callable[[Sequence[Record]], Iterator[list[Record]]]


@lru_cache
def log(seed: int) -> tuple[Record, ...]:
    """A random one: every fourth of a yard in which much is evicted."""
    if seed % 4 == 3:
        return tuple(contended(seed).records)
    return tuple(play(seed, steps=60, preemption=KINDS[seed % 3]).records)


def proved(tick: Tick) -> Proof:
    """The tick made once more."""
    data, records = tick
    return prove(snapshot.restore(data), records[0].at, [record.event for record in records])


def placements(tick: Tick) -> Iterator[tuple[int, AllocationPlaced, Placement]]:
    """Every placement of a tick, and how it was found."""
    data, records = tick
    events: list[AnyEvent] = [record.event for record in records]
    for place, event in enumerate(events):
        if isinstance(event, AllocationPlaced):
            found = placement_of(snapshot.restore(data), events, place, records[0].at)
            yield place, event, found


@pytest.mark.parametrize("seed", range(8))
def test_every_tick_comes_out_once_more(seed: int) -> None:
    decided = 0
    for tick in ticks(log(seed)):
        found = proved(tick)
        assert found.equal, found.differences
        assert found.recorded == found.found == len(tick[1])
        assert found.basis.position == tick[1][0].position - 1
        decided += found.recorded
    assert decided


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_the_chosen_node_is_the_first_that_fits_and_the_runners_up_fit(seed: int) -> None:
    compared = 0
    for tick in ticks(log(seed)):
        for place, event, found in placements(tick):
            assert found.first, event
            world = snapshot.restore(tick[0])
            for record in tick[1][:place]:
                replay(world, record)
            workflow, name, _, _ = allocation_parts(event.allocation)
            request = world.shapes[world.workflows[workflow].stages[name].shape].request
            for other in found.runners_up:
                node = world.nodes[other.node]
                assert node.status == "up"
                assert fits(request, node)
                assert other.node not in (event.chunks or {event.node: 1})
                compared += 1
    assert compared


@pytest.mark.parametrize(
    "fault",
    [
        faults.oversubscribed,
        faults.unfit,
        faults.unpromised,
        faults.mispromised,
        faults.taken,
        faults.out_of_turn,
        faults.not_behind,
        faults.misparked,
        bad_evictions.wrong,
        bad_evictions.needless,
    ],
    ids=lambda value: value.__name__,
)
def test_a_decision_that_was_tampered_with_does_not(fault: Fault) -> None:
    tried = 0
    for seed in (3, 7) if fault.__module__ == bad_evictions.__name__ else range(6):
        for edited in islice(fault(log(seed)), 2):
            found = [proved(tick) for tick in ticks(relinked(edited))]
            wrong = [one for one in found if not one.equal]
            assert wrong
            assert all(one.differences for one in wrong)
            tried += 1
    assert tried


def yard(**nodes: int) -> Yard:
    """Nodes on which work lasts for its whole limit of an hour."""
    return Yard(open_log("memory:", "test"), nodes, lambda _: Run(ms=HOUR))


def last_placement(one: Yard) -> Placement:
    """How the last placement on the log was found."""
    tick = [*ticks(one.records)][-1]
    return [*placements(tick)][-1][2]


def test_runners_up_come_after_for_what_they_have_to_spare() -> None:
    one = yard()
    one.node("large", 16)
    one.node("gpus", 4, devices={"gpu": 2})
    one.node("racked", 4, annotations={"rack": "a"})
    one.node("first", 4)
    one.node("second", 4)
    one.submit(flow(a=job(2, timeout_ms=HOUR)))
    found = last_placement(one)
    assert found.fitted == 5
    told = [(other.node, other.cause, other.chosen, other.own) for other in found.runners_up]
    assert told == [
        ("second", "order", 0, 1),
        ("large", "cores", 4, 16),
        ("racked", "annotations", 0, 1),
    ]


def test_what_is_backfilled_goes_where_something_is_promised() -> None:
    one = yard(n1=4, n2=4)
    one.submit(flow(a=job(1, timeout_ms=HOUR)))
    one.submit(flow(a=job(3, nodes=2, timeout_ms=2 * HOUR)))
    one.submit(flow(a=job(4, nodes=2, timeout_ms=HOUR)))
    one.submit(flow(a=job(1, timeout_ms=60_000)))
    found = last_placement(one)
    assert found.first
    assert found.fitted == 1
    assert not found.runners_up


def test_a_node_that_nothing_is_promised_on_is_kept_free() -> None:
    one = yard(n1=4, n2=4)
    one.submit(flow(a=job(3, timeout_ms=HOUR)))
    one.submit(flow(a=job(2, timeout_ms=2 * HOUR)))
    one.submit(flow(a=job(4, timeout_ms=HOUR)))
    one.submit(flow(a=job(1, timeout_ms=60_000)))
    found = last_placement(one)
    assert found.fitted == 2
    (other,) = found.runners_up
    assert (other.node, other.cause) == ("n2", "kept")


def test_evictions_are_proved_too() -> None:
    evicting = 0
    for tick in ticks(log(3)):
        if any(isinstance(record.event, AllocationStopping) for record in tick[1]):
            assert proved(tick).equal
            evicting += 1
    assert evicting


def test_what_waits_is_left_unplaced_for_the_reason_on_the_log() -> None:
    stood = 0
    world = World("test")
    records = log(1)
    for record, following in pairwise(records):
        replay(world, record)
        if following.at == record.at or not world.lanes:
            continue
        data = snapshot.dump(world)
        for stage in waiting(world)[:3]:
            rank, attempt = stage.first_waiting()
            name = f"{stage.workflow.id}/{stage.plan.name}/{rank}#{attempt}"
            found = stand(snapshot.restore(data), name, world.at)
            assert found is not None
            assert not found.outcome.placed
            assert found.hold == found.outcome.hold
            assert found.promised_at == found.outcome.promised_at
            stood += 1
    assert stood


def test_a_world_in_which_it_would_start_says_so() -> None:
    one = yard(n1=4)
    one.ask(UpdateGroup(group="chem"))
    first = one.submit(flow(a=job(4, timeout_ms=HOUR)))
    world = World("test")
    for record in one.records:
        if isinstance(record.event, AllocationPlaced):
            break
        replay(world, record)
    data = snapshot.dump(world)
    found = stand(snapshot.restore(data), f"{first}/a/0#1", world.at)
    assert found is not None
    assert found.outcome.placed == 1
    assert found.basis.waiting == 1
    assert found.basis.nodes_up == 1
    assert stand(one.world, f"{first}/a/0#1", world.at) is None
