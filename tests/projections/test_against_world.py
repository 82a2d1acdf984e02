"""Rows and answers agree with the world that the scheduler decides from."""

from collections.abc import Sequence
from functools import reduce
from math import isfinite
from operator import add

import msgspec
import pytest

from logyard_domain.rules.priorities import priority_of
from logyard_domain.world import Stage as WorldStage
from logyard_projections.answers import history
from logyard_projections.answers.forecasts import promises_in_force
from logyard_projections.answers.nodes import get_node
from logyard_projections.answers.queue import Asked, QueueEntry, queue_page
from logyard_projections.answers.rooms import on_node
from logyard_projections.answers.stats import stats
from logyard_projections.answers.why import explain
from logyard_projections.catalog import PROJECTIONS
from logyard_projections.nodes import NODES, POOL, POOL_KEY, Pool
from logyard_projections.queue import ACTIVE, LANES, WAITING
from logyard_projections.runners.memory import MemoryRunner
from logyard_projections.stages import ALLOCATIONS, STAGES, place_of, stage_key
from logyard_projections.view import View
from tests.projections.story import Story, busy_story, flood_story, random_story

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
    _all_agrees(random_story(seed, turns))


@pytest.mark.parametrize("seed", range(40))
def test_rows_agree_with_a_full_yard(seed: int) -> None:
    _all_agrees(busy_story(seed, 20 + 2 * seed))


@pytest.mark.parametrize("seed", range(30))
def test_rows_agree_with_a_flood(seed: int) -> None:
    _all_agrees(flood_story(seed, 20 + 5 * seed))


@pytest.mark.parametrize("seed", range(8))
def test_long_histories_are_put_together(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(history, "STRETCHES_MOST", 2)
    story = busy_story(seed, 80)
    with folded(story).read() as view:
        _explanations_hold(view, story)


def _all_agrees(story: Story) -> None:
    with folded(story).read() as view:
        _stages_agree(view, story)
        _nodes_agree(view, story)
        _allocations_agree(view, story)
        _promises_agree(view, story)
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
        assert (row.busy, row.sole) == (node.busy, node.sole)
        assert row.capacity.cores - row.cores_used == node.free_cores
        assert row.capacity.memory - row.memory_used == node.free_memory
        for device, free in node.free_devices.items():
            assert row.capacity.devices.get(device, 0) - row.devices_used.get(device, 0) == free
        assert {one.id for one, _ in on_node(view, node.name, 1000)} == set(held)
        told = get_node(view, node.name, cluster="")
        assert told is not None
        assert told.capacity.cores == told.allocated.cores + told.free.cores - told.owed.cores
    pool = view.get(POOL, POOL_KEY) or Pool({}, {})
    there = [node for node in story.world.nodes.values() if node.status != "lost"]
    assert pool.capacity.get("cores", 0) == sum(node.capacity.cores for node in there)
    used = sum(node.capacity.cores - node.free_cores for node in story.world.nodes.values())
    assert pool.used.get("cores", 0) == used


def _allocations_agree(view: View, story: Story) -> None:
    for one in story.world.allocations.values():
        row = view.get(ALLOCATIONS, place_of(one.id).key)
        assert row is not None
        assert row.seats == {node.name: count for node, count in one.chunks}
        assert (row.since, row.evicts) == (one.since, bool(one.after))
        assert (row.behind != "") == (one.behind is not None)
        assert row.stopping == one.stopping
    for victim, preemptor in story.world.preemptors.items():
        row = view.get(ALLOCATIONS, place_of(preemptor.id).key)
        assert row is not None
        assert victim in row.after


def _promises_agree(view: View, story: Story) -> None:
    held = {one.allocation: one for one in promises_in_force(view)}
    assert set(held) == set(story.world.reservations)
    for name, reservation in story.world.reservations.items():
        row = held[name]
        assert (row.at, row.chunks, row.position) == (
            reservation.at,
            reservation.chunks,
            reservation.position,
        )
        assert row.first_at
        assert row.forecasts[-1].at == row.at


def _order_of(story: Story, stage: WorldStage, at: int) -> tuple[float, int, int]:
    """How the scheduler sorts it."""
    value = priority_of(story.world, story.world.priority, stage, at)
    return (-value, stage.workflow.position, stage.plan.index)


def _queue_agrees(view: View, story: Story) -> None:
    at = story.at + 7
    waiting = [
        stage
        for stage in alive(story)
        if stage.status in ("ready", "started") and stage.waiting + len(stage.delayed)
    ]
    waiting.sort(key=lambda stage: _order_of(story, stage, at))
    want = [(stage.workflow.id, stage.plan.name) for stage in waiting]
    both = queue_page(view, Asked(sections=("ready", "parked")), size=1000, now=at).allocations
    found = [(entry.workflow_id, entry.stage) for entry in both]
    assert sorted(found) == sorted(want)
    for section in ("ready", "parked"):
        part = [(one.workflow_id, one.stage) for one in both if one.section == section]
        assert part == [one for one in want if one in part]
    for stage in waiting:
        entry = both[found.index((stage.workflow.id, stage.plan.name))]
        value = priority_of(story.world, story.world.priority, stage, at)
        assert entry.priority == (value if isfinite(value) else None)
    _pages_agree(view, both, at)
    ranks = queue_page(view, Asked(sections=("ready", "parked"), expand=True), size=1000)
    assert ranks.shown == len(ranks.allocations)
    assert ranks.shown == sum(stage.waiting + len(stage.delayed) for stage in waiting)
    assert len({entry.id for entry in ranks.allocations}) == ranks.shown
    running = queue_page(view, Asked(sections=("running",)), size=1000, now=at).allocations
    assert {one.id for one in running} == set(story.world.allocations)
    stages = [story.world.allocations[one.id].stage for one in running]
    places = [_order_of(story, stage, at) for stage in stages]
    assert places == sorted(places)
    for row in view.scan(ACTIVE).rows:
        told = view.get(STAGES, stage_key(row.workflow, row.stage))
        assert told is not None
        assert (row.inflight, row.preemptible) == (told.inflight, told.preemptible)
    _lanes_agree(view, waiting)


def _pages_agree(view: View, whole: Sequence[QueueEntry], at: int) -> None:
    seen: list[str] = []
    token = ""
    while True:
        asked = Asked(sections=("ready", "parked"))
        page = queue_page(view, asked, size=2, token=token, now=at)
        seen += [one.id for one in page.allocations]
        token = page.page_token
        if not token:
            break
    assert seen == [one.id for one in whole]


def _lanes_agree(view: View, waiting: list[WorldStage]) -> None:
    """Each lane counts what waits in it."""
    lanes = view.scan(LANES).rows
    assert sum(lane.stages for lane in lanes) == len(waiting)
    for lane in lanes:
        assert lane.stages == len(view.scan(WAITING, where={"lane": lane.key}).rows) > 0


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
    for part in (counts.by_organization, counts.by_group, counts.by_user, counts.by_shape):
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
        assert sum(one.ms for one in told.history) == told.waited_ms
        by_reason: dict[str, int] = {}
        for one in told.history:
            by_reason[one.reason] = by_reason.get(one.reason, 0) + one.ms
        assert by_reason == {one.reason: one.ms for one in told.waited}
        values = [term.value for term in told.terms]
        if None not in values:
            total = reduce(add, [value for value in values if value is not None])
            assert total == told.priority
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
