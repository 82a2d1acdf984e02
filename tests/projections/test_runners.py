"""What every runner does, over memory, SQLite and PostgreSQL."""

from random import Random
from threading import Event, Thread

import msgspec
import pytest

from logyard_domain.records import Record
from logyard_projections.catalog import PROJECTIONS
from logyard_projections.feed import Fed, Unread, read
from logyard_projections.fold import Projection
from logyard_projections.queue import WAITING
from logyard_projections.rows import Rows
from logyard_projections.runners.runner import Gap, OtherLog, Runner
from logyard_projections.stages import ALLOCATIONS, STAGES
from logyard_projections.tables import Table, Value
from logyard_projections.view import BadToken, Page
from logyard_projections.workflows import WORKFLOWS, Workflow
from tests.projections.conftest import Open
from tests.projections.story import Story, random_story, simple, simple_flow

ALL = [table for projection in PROJECTIONS for table in projection.tables]


def rows_of(runner: Runner) -> dict[str, list[object]]:
    """Every row of every table, in the order of keys."""
    found: dict[str, list[object]] = {}
    with runner.read() as view:
        for table in ALL:
            rows: list[object] = []
            token = ""
            while True:
                page = view.scan(table, after=token, limit=500)
                rows += page.rows
                token = page.token
                if not token:
                    break
            found[table.name] = rows
    return found


def expected(records: list[Record]) -> dict[str, list[object]]:
    """The rows that one fold after the other makes, in plain dictionaries, nothing cached."""
    stores: dict[str, dict[str, bytes]] = {table.name: {} for table in ALL}

    def fetch(table: Table[msgspec.Struct], key: str) -> msgspec.Struct | None:
        found = stores[table.name].get(key)
        return None if found is None else table.decode(found)

    def find(table: Table[msgspec.Struct], column: str, value: Value) -> list[str]:
        rows = {key: table.decode(body) for key, body in stores[table.name].items()}
        return [key for key, row in rows.items() if getattr(row, column) == value]

    for record in records:
        rows = Rows(fetch, find)
        for table in ALL:
            rows.open(table)
        for projection in PROJECTIONS:
            projection.fold(rows, record)
        for table, changed in rows.changes():
            for key, row in changed:
                if row is None:
                    stores[table.name].pop(key, None)
                else:
                    stores[table.name][key] = table.encode(row)
    return {
        table.name: [table.decode(body) for _, body in sorted(stores[table.name].items())]
        for table in ALL
    }


@pytest.mark.parametrize("seed", range(6))
def test_any_split_into_batches_gives_the_same_rows(open_runner: Open, seed: int) -> None:
    records = random_story(seed).records
    want = expected(records)
    whole = open_runner("whole")
    assert whole.apply(records) == len(records)
    assert rows_of(whole) == want
    dice = Random(seed)
    # So few rows are kept that most are read back from the store.
    split = open_runner("split", kept=3)
    start = 0
    while start < len(records):
        end = start + dice.choice((1, 2, 5, 40))
        split.apply(records[start:end])
        start = end
    assert rows_of(split) == want


@pytest.mark.parametrize("seed", [11, 12])
def test_a_restart_in_the_middle_changes_nothing(open_runner: Open, kind: str, seed: int) -> None:
    if kind == "memory":
        pytest.skip("memory forgets by design")
    records = random_story(seed).records
    middle = len(records) // 2
    first = open_runner()
    first.apply(records[:middle])
    first.close()
    second = open_runner()
    assert second.position == middle
    assert second.resume(lambda position: records[position - 1].chain) == middle
    second.apply(records[middle:])
    assert rows_of(second) == expected(records)


def test_a_rebuild_gives_the_same_rows(open_runner: Open) -> None:
    records = random_story(21).records
    runner = open_runner()
    runner.apply(records[:50])
    assert runner.rebuild(records) == len(records)
    assert rows_of(runner) == expected(records)


def test_records_that_are_in_the_rows_are_passed_over(open_runner: Open) -> None:
    records = random_story(31).records
    runner = open_runner()
    runner.apply(records[:60])
    runner.apply(records[:60])
    runner.apply(records[40:])
    assert rows_of(runner) == expected(records)


def test_a_gap_names_both_positions_and_changes_nothing(open_runner: Open) -> None:
    records = random_story(31).records
    runner = open_runner()
    runner.apply(records[:10])
    before = rows_of(runner)
    with pytest.raises(Gap, match="at position 10 and were given position 13; they need 11 next"):
        runner.apply(records[12:])
    with pytest.raises(Gap):
        runner.apply([*records[10:12], *records[13:]])
    assert runner.position == 10
    assert rows_of(runner) == before
    runner.apply(records[10:])
    assert rows_of(runner) == expected(records)


def test_another_log_is_noticed_and_starts_from_zero(open_runner: Open) -> None:
    mine, other = random_story(1).records, random_story(2).records
    runner = open_runner()
    runner.apply(mine[:20])
    with pytest.raises(OtherLog, match="position 20"):
        runner.apply([msgspec.structs.replace(mine[19], chain="x" * 32), *mine[20:]])
    assert runner.resume(lambda position: mine[position - 1].chain) == 20
    assert runner.resume(lambda position: other[position - 1].chain) == 0
    runner.apply(other)
    assert rows_of(runner) == expected(other)
    assert runner.resume(lambda position: None) == 0


def test_another_version_of_a_projection_starts_from_zero(open_runner: Open, kind: str) -> None:
    if kind == "memory":
        pytest.skip("memory forgets by design")
    records = random_story(3).records
    first = open_runner()
    first.apply(records)
    first.close()
    old = PROJECTIONS[-1]
    newer = Projection(old.name, old.version + 1, old.tables, old.handlers)
    second = open_runner("views", (*PROJECTIONS[:-1], newer))
    assert second.position == 0
    second.apply(records)
    assert rows_of(second) == expected(records)


def test_an_unknown_event_makes_the_view_stale_and_it_goes_on(open_runner: Open) -> None:
    state = (
        b'{"at":1,"cluster":"test","actor":"a","cause":"c","event":{"type":"comet.seen"},'
        b'"chain":"' + b"B" * 32 + b'"}'
    )
    story = simple()
    records: list[Fed] = list(story.records)
    unread = read(len(records) + 1, state)
    assert unread == Unread(len(records) + 1, "comet.seen", "B" * 32)
    runner = open_runner()
    runner.apply([*records, unread])
    assert runner.position == len(records) + 1
    with runner.read() as view:
        assert [one.tag for one in view.mark.stale] == ["comet.seen"]
        assert view.mark.position == len(records) + 1
    assert runner.resume(lambda _: "B" * 32) == len(records) + 1


def test_a_release_that_knows_the_event_starts_from_zero(open_runner: Open) -> None:
    records: list[Fed] = list(simple().records)
    runner = open_runner()
    runner.apply([*records, Unread(len(records) + 1, "node.lost", "B" * 32)])
    assert runner.resume(lambda _: "B" * 32) == 0


def test_waiting_ends_when_the_position_is_in_the_rows(open_runner: Open) -> None:
    records = simple().records
    runner = open_runner()
    seen: list[bool] = []
    waiting = Event()

    def wait() -> None:
        waiting.set()
        seen.append(runner.wait(len(records), 30))

    thread = Thread(target=wait)
    thread.start()
    assert waiting.wait(30)
    runner.apply(records)
    thread.join(30)
    assert seen == [True]
    assert not runner.wait(len(records) + 1, 0.01)
    assert runner.wait(len(records))


def test_a_reader_sees_one_position_while_the_writer_goes_on(open_runner: Open, kind: str) -> None:
    if kind == "memory":
        pytest.skip("in memory a reader holds the writer off")
    records = random_story(5).records
    runner = open_runner()
    runner.apply(records[:30])
    before = rows_of(runner)
    with runner.read() as view:
        assert view.mark.position == 30
        runner.apply(records[30:])
        assert runner.position == len(records)
        page = view.scan(STAGES)
        assert list(page.rows) == before["stages"]
        assert view.mark.position == 30


def test_what_was_handed_out_does_not_change(open_runner: Open) -> None:
    records = random_story(6).records
    runner = open_runner()
    runner.apply(records[:80])
    with runner.read() as view:
        rows = [row for table in ALL for row in view.scan(table).rows]
    frozen = [msgspec.msgpack.encode(row) for row in rows]
    runner.apply(records[80:])
    assert [msgspec.msgpack.encode(row) for row in rows] == frozen


def pages(runner: Runner, limit: int, descending: bool, order: str = "created") -> list[str]:
    """All workflow ids, page by page."""
    ids: list[str] = []
    token = ""
    while True:
        with runner.read() as view:
            page = view.scan(
                WORKFLOWS, order=order, descending=descending, after=token, limit=limit
            )
        assert len(page.rows) <= limit
        ids += [row.id for row in page.rows]
        token = page.token
        if not token:
            return ids


def test_pages_are_complete_in_both_directions(open_runner: Open) -> None:
    story = Story()
    for number in range(23):
        story.pass_time(number % 3)
        story.submit(f"k{number}", simple_flow(), user=f"u{number % 2}", priority=-(number % 4))
    runner = open_runner()
    runner.apply(story.records)
    want = sorted((row.submitted_at, row.id) for row in story.world.workflows.values())
    for limit in (1, 4, 23, 100):
        assert pages(runner, limit, False) == [id for _, id in want]
        assert pages(runner, limit, True) == [id for _, id in reversed(want)]
    by_user = sorted((row.user, row.id) for row in story.world.workflows.values())
    assert pages(runner, 5, False, "user") == [id for _, id in by_user]


def test_conditions_hold_together(open_runner: Open) -> None:
    story = Story()
    for number in range(12):
        group = "bio" if number % 3 else "chem"
        story.submit(f"k{number}", simple_flow(), user=f"u{number % 2}", group=group)
    runner = open_runner()
    runner.apply(story.records)
    alive = story.world.workflows.values()
    with runner.read() as view:

        def asked(page: Page[Workflow]) -> set[str]:
            return {row.id for row in page.rows}

        both = view.scan(WORKFLOWS, where={"user": "u1", "group": "bio"}, order="created")
        assert asked(both) == {one.id for one in alive if (one.user, one.group) == ("u1", "bio")}
        either = view.scan(WORKFLOWS, where={"group": ("bio", "chem")})
        assert len(either.rows) == 12
        assert not view.scan(WORKFLOWS, where={"group": ()}).rows
        rest = view.scan(WORKFLOWS, unless={"group": ("bio",)})
        assert asked(rest) == {one.id for one in alive if one.group == "chem"}
        some = next(iter(alive)).id
        assert [row.name for row in view.scan(STAGES, prefix=f"{some}/").rows] == ["only"]
        assert view.get(WORKFLOWS, some) is not None
        assert view.get(WORKFLOWS, "wf-none") is None
        assert not view.scan(ALLOCATIONS, where={"on": "n1"}).rows
        with pytest.raises(ValueError, match="waiting cannot be asked by 'colour'; there are: qu"):
            view.scan(WAITING, where={"colour": "red"})


def test_the_largest_key_can_be_found(open_runner: Open) -> None:
    records = random_story(9).records
    runner = open_runner()
    runner.apply(records)
    with runner.read() as view:
        keys = [f"{row.workflow}/{row.name}" for row in view.scan(STAGES).rows]
        assert len(keys) > 4
        most = keys[3]
        found = view.scan(STAGES, most=most, descending=True, limit=2).rows
        assert [f"{row.workflow}/{row.name}" for row in found] == [keys[3], keys[2]]


def test_a_token_of_another_question_is_refused(open_runner: Open) -> None:
    story = Story()
    for number in range(3):
        story.submit(f"k{number}", simple_flow())
    runner = open_runner()
    runner.apply(story.records)
    with runner.read() as view:
        token = view.scan(WORKFLOWS, order="created", limit=1).token
        assert token
        for order, descending in (("name", False), ("created", True), ("", False)):
            with pytest.raises(BadToken, match="another question"):
                view.scan(WORKFLOWS, after=token, order=order, descending=descending)
        with pytest.raises(BadToken, match="cannot be read"):
            view.scan(WORKFLOWS, after="%%%", limit=1)


def test_odd_text_is_kept_and_found(open_runner: Open) -> None:
    story = Story()
    long = "g" * 500
    story.submit("a", simple_flow(), user="nul\0user", group=long)
    story.submit("b", simple_flow(), user="ünïcode \U0001f600", group="it's")
    runner = open_runner()
    runner.apply(story.records)
    with runner.read() as view:
        for where in (
            {"user": "nul\0user"},
            {"group": long},
            {"user": "ünïcode \U0001f600"},
            {"group": "it's"},
        ):
            found = view.scan(WORKFLOWS, where=where).rows
            assert len(found) == 1
            for column, value in where.items():
                assert getattr(found[0], column) == value


def test_memory_does_not_grow_with_history(open_runner: Open, kind: str) -> None:
    if kind == "memory":
        pytest.skip("memory keeps everything by design")
    story = Story()
    story.node("n1", 4)
    runner = open_runner(kept=10)
    for number in range(40):
        story.submit(f"k{number}", simple_flow())
        story.begin(*story.placed())
        story.end(*story.running())
    for start in range(0, len(story.records), 7):
        runner.apply(story.records[start : start + 7])
    kept = runner.kept()
    assert kept
    assert max(kept.values()) <= 2 * (10 + 7 * 3)
    assert rows_of(runner) == expected(story.records)
