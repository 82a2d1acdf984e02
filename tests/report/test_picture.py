"""The picture says what happened: against a day that is known, and against the other views."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import pytest

from logyard_domain.events import WorkflowSubmitted
from logyard_domain.records import Record
from logyard_engine.log.opening import open_log
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import EPOCH_MS, Yard
from logyard_projections.answers.waits import wait_of
from logyard_projections.catalog import PROJECTIONS
from logyard_projections.feed import Unread
from logyard_projections.picture import Painter, Picture
from logyard_projections.picture.grid import Course, Grid
from logyard_projections.picture.picture import Bar
from logyard_projections.picture.slots import Slots
from logyard_projections.runners.memory import MemoryRunner
from logyard_projections.stages import ALLOCATIONS, STAGES, Allocation, stage_key
from logyard_projections.view import View
from tests.engine.work import flow, job
from tests.projections.story import busy_story, random_story
from tests.report.days import HOUR_MS, MINUTE_MS, eventful

STORIES = [(kind, seed) for kind in (random_story, busy_story) for seed in range(30)]


def painted(
    records: Iterable[Record], since: int = 0, until: int = 0, bars_most: int = 10_000
) -> Picture:
    """The picture of a span of these records, of all of them by default."""
    kept = list(records)
    painter = Painter(since or kept[0].at, until or kept[-1].at, bars_most)
    for record in kept:
        if not until or record.at <= until:
            painter.take(record)
    return painter.picture()


def called(picture: Picture, name: str, stage: str) -> list[Bar]:
    """Bars of a stage, by the name of its workflow."""
    return [bar for bar in picture.bars if (bar.owner.name, bar.stage) == (name, stage)]


def minutes(instant: int) -> float:
    """Since the beginning of virtual time."""
    return (instant - EPOCH_MS) / MINUTE_MS


def name_of(bar: Bar) -> str:
    """The allocation."""
    return f"{bar.owner.id}/{bar.stage}/{bar.rank}#{bar.attempt}"


@pytest.fixture(scope="module")
def day() -> Picture:
    y = eventful(open_log("memory:", "day"))
    y.check()
    return painted(y.records)


def test_every_attempt_that_had_room_is_a_bar(day: Picture) -> None:
    assert day.cluster == "day"
    assert [(row.name, row.cores) for row in day.nodes] == [("n1", 8), ("n2", 8), ("n3", 4)]
    shards = called(day, "climate", "shards")
    assert [bar.rank for bar in shards] == [0, 1, 2, 3, 4, 5]
    assert [minutes(bar.begin) for bar in shards] == [25, 25, 25, 37, 37, 37]
    assert {minutes(bar.end) - minutes(bar.begin) for bar in shards} == {12}
    assert sum(one.allocations for one in day.groups.values()) == len(day.bars)
    assert day.shaded == day.unknown == day.waiting == 0
    assert {bar.revision for bar in day.bars} == {1}


def test_victims_and_preemptors_know_each_other(day: Picture) -> None:
    [urgent] = called(day, "triage", "urgent")
    assert urgent.kind == "preempting"
    first, second = called(day, "folding", "fold")
    assert urgent.after == (name_of(first),)
    assert first.stop is not None
    assert (first.stop.reason, first.stop.by) == ("preempted", name_of(urgent))
    assert first.stop.gap == pytest.approx(10 - 45 / 1440)
    assert first.end <= urgent.begin
    assert (second.attempt, second.requeued, second.queued) == (2, "preempted", first.end)
    assert day.groups[("default", "clinic")].preempting == 1
    assert day.groups[("default", "physics")].preempted == 1


def test_what_is_lost_with_its_node_runs_elsewhere(day: Picture) -> None:
    lost, again = called(day, "climate", "merge")
    assert (lost.outcome, lost.attempt, again.attempt) == ("lost", 1, 2)
    assert [day.nodes[bar.pieces[0].node].name for bar in (lost, again)] == ["n3", "n2"]
    assert (again.requeued, again.queued, again.outcome) == ("lost", lost.end, "finished")
    assert day.groups[("default", "chem")].bad == 1


def test_what_was_promised_is_kept_with_what_came(day: Picture) -> None:
    [probe] = [bar for bar in called(day, "probe", "quick") if bar.cores == 2]
    assert probe.kind == "backfilled"
    [wide] = called(day, "train", "wide")
    # It was promised a start and lost that when a node was closed.
    assert wide.promise is None
    again = called(day, "folding", "fold")[1]
    assert again.promise is not None
    assert again.promise.moves == 0
    assert again.begin < again.promise.last == again.promise.first
    assert [day.nodes[piece.node].name for piece in wide.pieces] == ["n1", "n2"]
    assert [piece.cores for piece in wide.pieces] == [6, 6]


def test_nodes_are_drawn_as_they_were(day: Picture) -> None:
    spans = [(day.nodes[one.node].name, one.state, minutes(one.since)) for one in day.spans]
    assert {span[:2] for span in spans} == {
        ("n1", "up"),
        ("n2", "up"),
        ("n2", "cordoned"),
        ("n3", "up"),
        ("n3", "lost"),
    }
    [lost] = [one for one in day.spans if one.state == "lost"]
    [cores] = [load for load in day.loads if load.name == "cores"]
    while_lost = (lost.since + lost.until) // 2
    assert cores.offered[(while_lost - day.since) // day.width] == 16
    assert cores.offered[0] == 20


def test_waits_are_told_by_reason_and_sum_up(day: Picture) -> None:
    merge = called(day, "climate", "merge")[0]
    assert dict(merge.waits) == {"dependency": 49 * MINUTE_MS}
    late = called(day, "climate", "shards")[3]
    assert dict(late.waits) == {"dependency": 25 * MINUTE_MS, "limit": 12 * MINUTE_MS}
    totals: dict[str, int] = {}
    for bar in day.bars:
        assert sum(ms for _, ms in bar.waits) == bar.begin - bar.queued
        for reason, ms in bar.waits:
            totals[reason] = totals.get(reason, 0) + ms
    # All that waited was placed in the end, so what was summed over time is what the bars waited.
    assert {one.reason: one.total_ms for one in day.waits} == totals
    for one in day.waits:
        assert len(one.counts) == day.steps
        assert max(one.counts) <= one.peak


def test_use_is_what_the_bars_take(day: Picture) -> None:
    taken = sum((bar.end - bar.begin) * bar.cores for bar in day.bars)
    [cores] = [load for load in day.loads if load.name == "cores"]
    tail = day.until - day.since - (day.steps - 1) * day.width
    widths = [day.width] * (day.steps - 1) + [tail]
    used = sum(mean * width for mean, width in zip(cores.used, widths, strict=True))
    assert used == pytest.approx(taken)
    assert sum(one.core_ms for one in day.groups.values()) == taken
    assert disjoint(day)


def disjoint(picture: Picture) -> bool:
    """Whether no two bars are drawn on the same core at the same time."""
    taken: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for bar in picture.bars:
        for piece in bar.pieces:
            for core in range(piece.low, piece.low + piece.cores):
                taken.setdefault((piece.node, core), []).append((bar.begin, bar.end))
    for spans in taken.values():
        spans.sort()
        if any(end > begin for (_, end), (begin, _) in pairwise(spans)):
            return False
    return True


def test_a_span_shows_what_touches_it(day: Picture) -> None:
    y = eventful(open_log("memory:", "day"))
    since, until = EPOCH_MS + 30 * MINUTE_MS, EPOCH_MS + 40 * MINUTE_MS
    part = painted(y.records, since, until)
    meant = [bar for bar in day.bars if bar.begin <= until and bar.end >= since]
    assert [name_of(bar) for bar in part.bars] == [name_of(bar) for bar in meant]
    running = [bar for bar in part.bars if not bar.end_position]
    assert running
    assert {bar.end for bar in running} == {until}
    assert {bar.outcome for bar in running} == {""}
    [limit] = [one for one in part.waits if one.reason == "limit"]
    assert limit.total_ms == 3 * 7 * MINUTE_MS


def test_work_behind_other_work_begins_when_the_room_changes_hands() -> None:
    y = Yard(open_log("memory:", "test"), {"n1": 2}, lambda _: Run(ms=40))
    y.submit(flow(short=job(1, array=(0, 199), timeout_ms=HOUR_MS)))
    y.run()
    picture = painted(y.records)
    assert len(picture.bars) == 200
    behind = [bar for bar in picture.bars if bar.behind]
    assert len(behind) > 100
    by_name = {name_of(bar): bar for bar in picture.bars}
    for bar in behind:
        before = by_name[bar.behind]
        assert (bar.begin, bar.pieces) == (before.end, before.pieces)
        assert bar.placed <= before.end
    assert disjoint(picture)


def test_the_shortest_become_shade_when_there_are_too_many() -> None:
    def script(allocation: str) -> Run:
        return Run(ms=1_000 + 10 * int(allocation.split("/")[2].split("#")[0]))

    y = Yard(open_log("memory:", "test"), {"n1": 3, "n2": 1}, script)
    y.submit(flow(many=job(1, array=(0, 299), timeout_ms=HOUR_MS)))
    y.run()
    whole, part = painted(y.records), painted(y.records, bars_most=100)
    assert len(part.bars) <= 100
    assert len(part.bars) + part.shaded == len(whole.bars) == 300
    shortest = min(bar.end - bar.begin for bar in part.bars)
    kept = {name_of(bar) for bar in part.bars}
    gone = [bar for bar in whole.bars if name_of(bar) not in kept]
    assert all(bar.end - bar.begin <= shortest for bar in gone)
    tail = part.until - part.since - (part.steps - 1) * part.width
    shaded = sum(
        mean * (part.width if step < part.steps - 1 else tail)
        for means in part.shade.values()
        for step, mean in enumerate(means)
    )
    assert shaded == pytest.approx(sum(bar.end - bar.begin for bar in gone))
    assert whole.groups == part.groups


def test_what_a_newer_release_wrote_is_counted_and_passed_over() -> None:
    painter = Painter(0, 10)
    painter.take(Unread(1, "moon.risen", "x"))
    assert painter.picture().unknown == 1


def test_a_log_that_begins_in_the_middle_is_drawn_from_there() -> None:
    records = eventful(open_log("memory:", "day")).records
    picture = painted(records[len(records) // 2 :])
    assert picture.first == records[len(records) // 2].position
    later = records[len(records) // 2 :]
    known = {r.event.workflow for r in later if isinstance(r.event, WorkflowSubmitted)}
    assert {bar.owner.id for bar in picture.bars} == known
    assert all(bar.pieces for bar in picture.bars)
    assert disjoint(picture)


@pytest.mark.parametrize(("kind", "seed"), STORIES, ids=lambda one: getattr(one, "__name__", one))
def test_bars_say_what_the_other_views_say(kind: object, seed: int) -> None:
    story = (random_story if kind is random_story else busy_story)(seed)
    picture = painted(story.records)
    runner = MemoryRunner(PROJECTIONS)
    runner.apply(story.records)
    bars = {name_of(bar): bar for bar in picture.bars}
    with runner.read() as view:
        rows = list(every(view))
        for row in rows:
            bar = bars.get(row.id)
            if not row.since:
                assert bar is None, row
                continue
            assert bar is not None, row
            assert (bar.placed, bar.placed_position) == (row.placed_at, row.placed_position)
            assert (bar.begin, bar.kind, bar.outcome) == (row.since, row.kind, row.outcome)
            assert bar.end_position == row.ended_position
            stage = view.get(STAGES, stage_key(row.workflow, row.stage))
            assert stage is not None
            said = {one.reason: one.ms for one in wait_of(view, stage, row, story.at).parts}
            drawn = {reason: ms for reason, ms in bar.waits if reason != "behind"}
            assert drawn == said, row
    assert len(bars) == sum(row.since > 0 for row in rows)
    assert disjoint(picture)


def every(view: View) -> Iterator[Allocation]:
    """All attempts."""
    token = ""
    while True:
        page = view.scan(ALLOCATIONS, after=token)
        yield from page.rows
        token = page.token
        if not token:
            return


def test_a_course_keeps_what_lasted() -> None:
    grid = Grid(1_000, 2_000, 10)
    course = Course(grid)
    course.change(500, 2)
    course.change(1_150, 2)
    course.change(1_150, 5)
    course.change(1_150, -5)
    course.change(1_250, -4)
    assert course.total(2_000) == 2 * 150 + 4 * 100
    assert course.peak == 4
    assert course.means(2_000) == (2, 3, 2, 0, 0, 0, 0, 0, 0, 0)


def test_slots_are_filled_from_the_bottom_and_given_back() -> None:
    slots = Slots(4)
    assert (slots.take(2), slots.take(1), slots.take(1)) == (((0, 2),), ((2, 1),), ((3, 1),))
    slots.give(((0, 2),))
    slots.give(((3, 1),))
    assert slots.take(3) == ((0, 2), (3, 1))
    assert slots.take(2) == ((4, 2),)
    assert slots.top == 6
    assert slots.take(0) == ((0, 0),)
