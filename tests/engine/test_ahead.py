"""Short work queues behind equal work, also of other workflows, and nobody is lost by it."""

from collections.abc import Sequence
from random import Random

import pytest

from logyard_domain import snapshot
from logyard_domain.commands import DeclareLost, StopWorkflow
from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    WorkflowFailed,
    WorkflowFinished,
)
from logyard_domain.evolve import evolve
from logyard_domain.records import Record
from logyard_domain.world import World
from logyard_engine.advice.proof import prove
from logyard_engine.audit.auditor import audit
from logyard_engine.log.opening import open_log
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import Yard
from tests.advice.past import ticks
from tests.engine.work import flow, job
from tests.projections.story import flood_story


def across(records: Sequence[Record]) -> int:
    """How many were placed behind one of another workflow."""
    placed = [r.event for r in records if isinstance(r.event, AllocationPlaced)]
    return sum(
        bool(one.behind) and one.behind.split("/")[0] != one.allocation.split("/")[0]
        for one in placed
    )


def flood(seed: int) -> Yard:
    """Many equal short workflows; some are stopped, some fail, nodes go, the engine crashes."""
    dice = Random(seed)

    def script(name: str) -> Run:
        luck = Random(f"{seed} {name}")
        return Run(ms=luck.choice((4, 10, 20)), exit_code=int(luck.random() < 0.05))

    yard = Yard(
        open_log("memory:", "test"), {f"n{n}": dice.choice((1, 2)) for n in range(3)}, script
    )
    kinds = (
        flow(a=job()),
        flow(a=job(array=(1, 3))),
        flow(a=job(array=(1, 4), concurrency=2), b=job(after=("a",))),
        flow(a=job(retries=1)),
    )
    names: list[str] = []
    for _ in range(80):
        for _ in range(dice.randint(0, 4)):
            user = dice.choice(("ana", "ana", "bo"))
            names.append(yard.submit(dice.choice(kinds), user=user))
        yard.advance(dice.choice((0, 1, 5, 10)))
        chance = dice.random()
        alive = [name for name in names if name in yard.world.workflows]
        if chance < 0.1 and alive:
            yard.ask(StopWorkflow(workflow=dice.choice(alive)))
        elif chance < 0.13:
            yard.ask(DeclareLost(node="n0", silent_ms=60_000))
        elif chance < 0.16:
            yard.crash(yard.engine.log)
    yard.run()
    return yard


@pytest.mark.parametrize("seed", range(12))
def test_a_flood_keeps_the_rules(seed: int) -> None:
    yard = flood(seed)
    report = audit(yard.records)
    assert report.clean, [v for verdict in report.verdicts for v in verdict.violations][:3]
    assert across(yard.records)
    assert not yard.world.workflows
    yard.check()


@pytest.mark.parametrize("seed", range(12))
def test_every_tick_of_a_flood_is_made_again_from_a_snapshot(seed: int) -> None:
    """What a tick does depends on the log alone, not on what ticks before it looked at."""
    made = 0
    for data, records in ticks(flood(seed).records):
        proof = prove(snapshot.restore(data), records[0].at, [one.event for one in records])
        assert proof.equal, proof.differences[:2]
        made += 1
    assert made > 30


@pytest.mark.parametrize("seed", range(12))
def test_a_flood_comes_back_from_a_snapshot(seed: int) -> None:
    story = flood_story(seed, 120)
    world = World("test")
    for record in story.records:
        evolve(world, record.event, record.at, record.position)
    data = snapshot.dump(story.world)
    assert snapshot.dump(world) == data
    assert snapshot.dump(snapshot.restore(data)) == data


def test_floods_of_the_views_queue_behind_other_workflows() -> None:
    assert sum(across(flood_story(seed, 120).records) for seed in range(12)) > 20


def flooded(count: int = 12) -> tuple[Yard, list[str]]:
    """One core, and workflows of one short job each, of which the first has ended."""
    yard = Yard(open_log("memory:", "test"), {"n1": 1}, lambda _: Run(ms=10))
    names = [yard.submit(flow(a=job())) for _ in range(count)]
    yard.advance(10)
    return yard, names


def test_equal_workflows_queue_on_the_node_behind_each_other() -> None:
    yard, names = flooded()
    lined = [one for one in yard.world.allocations.values() if one.behind is not None]
    assert len(lined) == 6
    assert len({one.stage.workflow.id for one in lined}) == 6
    assert not any(one.stage.holding for one in lined)
    yard.run()
    finished = [r.event.workflow for r in yard.records if isinstance(r.event, WorkflowFinished)]
    assert finished == names
    yard.check()


def test_one_that_queues_is_stopped_and_its_line_goes_on() -> None:
    yard, names = flooded()
    lined = [one for one in yard.world.allocations.values() if one.behind is not None]
    stopped = lined[2]
    yard.ask(StopWorkflow(workflow=stopped.stage.workflow.id))
    yard.run()
    ends = [r.event for r in yard.records if isinstance(r.event, AllocationEnded)]
    assert [one.outcome for one in ends if one.allocation == stopped.id] == ["canceled"]
    finished = {r.event.workflow for r in yard.records if isinstance(r.event, WorkflowFinished)}
    assert finished == set(names) - {stopped.stage.workflow.id}
    assert audit(yard.records).clean
    yard.check()


def test_one_that_fails_takes_nobody_with_it() -> None:
    yard = Yard(
        open_log("memory:", "test"),
        {"n1": 1},
        lambda name: Run(ms=10, exit_code=int(name.startswith(failing))),
    )
    failing = "nobody"
    names = [yard.submit(flow(a=job())) for _ in range(8)]
    failing = names[2]
    yard.run()
    failed = [r.event.workflow for r in yard.records if isinstance(r.event, WorkflowFailed)]
    assert failed == [failing]
    finished = [r.event.workflow for r in yard.records if isinstance(r.event, WorkflowFinished)]
    assert finished == [name for name in names if name != failing]
    assert audit(yard.records).clean
    yard.check()


def test_nobody_queues_behind_the_work_of_somebody_else() -> None:
    yard = Yard(open_log("memory:", "test"), {"n1": 1}, lambda _: Run(ms=10))
    for number in range(8):
        yard.submit(flow(a=job()), user=f"u{number}")
    yard.run()
    assert not any(r.event.behind for r in yard.records if isinstance(r.event, AllocationPlaced))
    yard.check()
