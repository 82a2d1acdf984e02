"""`logyard report`: a log in, a page out."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from logyard_engine.log.opening import open_log
from tests.cli.terminal import Terminal, terminal
from tests.report.days import eventful

__all__ = ["terminal"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with the log of an eventful day."""
    place = tmp_path / "yard"
    place.mkdir()
    with closing(open_log(place, "day")) as log:
        eventful(log)
    return place


def embedded(page: Path) -> dict[str, object]:
    """The data in a page."""
    text = page.read_text(encoding="utf-8")
    _, _, rest = text.partition('<script type="application/json" id="data">')
    found: dict[str, object] = json.loads(rest.partition("</script>")[0])
    return found


def test_all_places_of_a_log_give_the_same_page(terminal: Terminal, folder: Path) -> None:
    done = terminal.run("report", folder, "--out", "one.html")
    assert done.code == 0, done.err
    assert done.err == ""
    assert done.out.startswith("one.html: 19 allocations on 3 nodes in 3h 7m, positions 1 to ")
    one = terminal.home / "one.html"
    exported = folder.parent / "day.jsonl"
    terminal.run("log", "export", "--data", folder, exported)
    told = terminal.run("report", exported, "--json").json
    assert (terminal.home / "report.html").read_bytes() == one.read_bytes()
    assert told["bytes"] == one.stat().st_size
    assert (told["cluster"], told["allocations"], told["nodes"]) == ("day", 19, 3)
    assert told["policies"] == [{"revision": 1, "since": "2027-01-15T08:00:00.000Z", "position": 2}]
    assert sum(group["allocations"] for group in told["groups"]) == 19
    by_default = terminal.run("report", "--out", "two.html", more={"LOGYARD_DATA": str(folder)})
    assert by_default.code == 0, by_default.err
    assert (terminal.home / "two.html").read_bytes() == one.read_bytes()


def test_a_log_on_postgresql_gives_it_too(
    terminal: Terminal, folder: Path, postgres_url: str
) -> None:
    with closing(open_log(postgres_url, "day")) as log:
        eventful(log)
    told = terminal.run("report", postgres_url, "--json").json
    assert terminal.run("report", folder, "--out", "two.html").code == 0
    assert told["allocations"] == 19
    page = (terminal.home / "two.html").read_bytes()
    assert (terminal.home / "report.html").read_bytes() == page


def test_a_span_is_named_by_position_time_or_length(terminal: Terminal, folder: Path) -> None:
    def part(*options: str) -> tuple[str, str]:
        told = terminal.run("report", folder, "--json", *options).json
        return told["from"][11:19], told["to"][11:19]

    whole = part()
    assert whole == ("08:00:00", "11:07:00")
    assert part("--from", "2027-01-15T08:30", "--to", "2027-01-15 09:00:30") == (
        "08:30:00",
        "09:00:30",
    )
    assert part("--from", "30m") == ("10:37:00", "11:07:00")
    told = terminal.run("report", folder, "--json", "--to", "100").json
    assert told["position"] >= 100
    data = embedded(terminal.home / "report.html")
    assert data["until"] == 1_800_000_000_000 + _ms(told["to"][11:19])


def _ms(clock: str) -> int:
    hour, minute, second = map(int, clock.split(":"))
    return ((hour - 8) * 3600 + minute * 60 + second) * 1000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--from", "noon"), "--from 'noon' is neither a position, nor a time, nor how long"),
        (("--to", "99999"), "--to 99999: the log has positions 1 to "),
        (("--from", "2027-01-16"), "nothing lies between --from and --to: the log goes from "),
        (("--bars", "1"), "--bars"),
    ],
)
def test_what_makes_no_sense_is_said(
    terminal: Terminal, folder: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = terminal.run("report", folder, *arguments)
    assert done.code == 2
    assert words in done.err
    assert not (terminal.home / "report.html").exists()


def test_what_is_no_log_is_said(terminal: Terminal, tmp_path: Path) -> None:
    missing = terminal.run("report", tmp_path / "nothing")
    assert (missing.code, "there is no log" in missing.err) == (1, True)
    text = tmp_path / "notes.txt"
    text.write_text("hello\nworld\n", encoding="utf-8")
    wrong = terminal.run("report", text)
    assert (wrong.code, wrong.err) == (1, f"{text}: line 1: this is no exported record\n")
    text.write_bytes(b"")
    assert terminal.run("report", text).err == f"{text}: the file is empty\n"


def test_a_log_with_a_gap_is_not_drawn(terminal: Terminal, folder: Path) -> None:
    exported = folder.parent / "day.jsonl"
    terminal.run("log", "export", "--data", folder, exported)
    lines = exported.read_bytes().splitlines(keepends=True)
    exported.write_bytes(b"".join(lines[:9] + lines[10:]))
    done = terminal.run("report", exported)
    assert done.code == 1
    assert "position 10: missing; the next record has position 11" in done.err
