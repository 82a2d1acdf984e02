"""Rows and answers agree with the world that the scheduler decides from."""

from itertools import pairwise

import msgspec
import pytest

from logyard_domain.world import Stage as WorldStage
from logyard_projections.answers.queue import Asked, queue_page
from logyard_projections.answers.stats import stats
from logyard_projections.answers.why import explain
from logyard_projections.catalog import PROJECTIONS
from logyard_projections.nodes import NODES
from logyard_projections.runners.memory import MemoryRunner
from logyard_projections.stages import STAGES, stage_key
from logyard_projections.view import View
from tests.projections.story import Story, random_story

CASES = [(seed, turns) for seed in range(25) for turns in (15, 40, 90)]


def folded(story: Story) -> MemoryRunner:
    """The story in rows."""
    runner = MemoryRunner(PROJECTIONS)
    runner.apply(story.records)
    return runner


def alive(story: Story) -> list[WorldStage]:
    """Stages of workflows that have not ended."""
    return [stage for flow in story.world.workflows.values() for stage in flow.stages.values()]


@pytest.mark.parametrize(("seed", "turns"), CASES)
def test_rows_agree_with_the_world(seed: int, turns: int) -> None:
    story = random_story(seed, turns)
    with folded(story).read() as view:
        _stages_agree(view, story)
        _nodes_agree(view, story)
        _queue_agrees(view, story)
        _stats_agree(view)
        _explanations_hold(view, story)


def _stages_agree(view: View, story: Story) -> None:
    for stage in alive(story):
        row = view.get(STAGES, stage_key(stage.workflow.id, stage.plan.name))
        assert row is not None
        assert (row.status, row.inflight) == (stage.status, len(stage.holding))
        if stage.status in ("ready", "started"):
            assert row.waiting == stage.waiting
            assert row.delayed == len(stage.delayed)
            assert row.finished == stage.finished
            assert row.failed + row.canceled == stage.failed
            assert row.unplaced == stage.next


def _nodes_agree(view: View, story: Story) -> None:
    rows = {row.name: row for row in view.scan(NODES).rows}
    assert set(rows) == set(story.world.nodes)
    for node in story.world.nodes.values():
        row = rows[node.name]
        held = [one for one in node.running if story.world.allocations[one].behind is None]
        assert (row.state, row.running) == (node.status, len(held))
        assert row.capacity.cores - row.cores_used == node.free_cores
        assert row.capacity.memory - row.memory_used == node.free_memory
        for device, free in node.free_devices.items():
            assert row.capacity.devices.get(device, 0) - row.devices_used.get(device, 0) == free


def _queue_agrees(view: View, story: Story) -> None:
    waiting = [
        stage
        for stage in alive(story)
        if stage.status in ("ready", "started") and stage.waiting + len(stage.delayed)
    ]
    waiting.sort(key=lambda stage: stage.order)
    want = [(stage.workflow.id, stage.plan.name) for stage in waiting]
    both = queue_page(view, Asked(sections=("ready", "parked")), size=1000).allocations
    found = [(entry.workflow_id, entry.stage) for entry in both]
    assert sorted(found) == sorted(want)
    for section in ("ready", "parked"):
        part = [(one.workflow_id, one.stage) for one in both if one.section == section]
        assert part == [one for one in want if one in part]
    ranks = queue_page(view, Asked(sections=("ready", "parked"), expand=True), size=1000)
    assert ranks.shown == len(ranks.allocations)
    assert ranks.shown == sum(stage.waiting + len(stage.delayed) for stage in waiting)
    assert len({entry.id for entry in ranks.allocations}) == ranks.shown
    running = queue_page(view, Asked(sections=("running",)), size=1000).allocations
    assert {one.id for one in running} == set(story.world.allocations)
    assert all(before.priority >= after.priority for before, after in pairwise(running))


def _stats_agree(view: View) -> None:
    counts = stats(view)
    rows = [row for row in view.scan(STAGES).rows]
    total = counts.totals
    assert total.pending == sum(row.total for row in rows if row.status == "waiting")
    assert total.ready + total.parked == sum(row.waiting for row in rows)
    assert total.backing_off == sum(row.delayed for row in rows)
    assert total.placed == sum(row.placed for row in rows)
    assert total.running == sum(row.running for row in rows)
    assert total.finished == sum(row.finished for row in rows)
    assert total.failed == sum(row.failed for row in rows)
    assert total.canceled == sum(row.canceled for row in rows)
    everything = msgspec.structs.astuple(total)
    assert sum(everything) == sum(row.total for row in rows)
    for part in (counts.by_group, counts.by_user, counts.by_shape):
        summed = [
            sum(column) for column in zip(*(_numbers(one.counts) for one in part), strict=True)
        ]
        assert not part or tuple(summed) == everything
    assert sum(counts.waiting_by_reason.values()) == total.ready + total.parked


def _numbers(counts: msgspec.Struct) -> tuple[int, ...]:
    return tuple(int(value) for value in msgspec.structs.astuple(counts))


def _explanations_hold(view: View, story: Story) -> None:
    names = [stage_key(row.workflow, row.name) for row in view.scan(STAGES).rows]
    names += list(story.world.allocations)
    names += [row.workflow for row in view.scan(STAGES, where={"index": 0}).rows]
    for name in names:
        told = explain(view, name, now=story.at + 7)
        assert told is not None
        assert sum(part.ms for part in told.waited) == told.waited_ms
        assert all(part.ms > 0 for part in told.waited)
        assert sum(term.value for term in told.terms) == told.priority
        assert told.blockers[0].kind == told.kind
        if told.pool:
            assert sum(one.nodes for one in told.pool) == told.pool_nodes == len(story.world.nodes)
        cited = [position for line in told.lines for position in line.positions]
        cited += [position for one in told.blockers for position in one.positions]
        assert all(0 < position <= told.position for position in cited)
        assert msgspec.json.decode(msgspec.json.encode(told), type=type(told)) == told
        again = explain(view, told.allocation_id, now=story.at + 7)
        assert again is not None
        assert again.kind == told.kind
