"""The page: one file, whole and right, whatever names it has to show; and it runs in a browser."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from logyard_api.report.columns import columns_of
from logyard_api.report.page import REASONS, page_of
from logyard_domain.records import Record
from logyard_engine.log.opening import open_log
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import Yard
from logyard_projections.picture import Painter, Picture
from logyard_projections.picture import picture as pictures
from tests.engine.work import flow, job
from tests.report.days import MINUTE_MS, eventful

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


class Seen(HTMLParser):
    """What is on a page: its texts by tag, its ids, and what it would load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: dict[str, list[str]] = {}
        self.ids: dict[str, str] = {}
        self.loads: list[str] = []
        self._open: list[tuple[str, str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self.loads += [told[key] or "" for key in ("src", "href") if key in told]
        self._open.append((tag, told.get("id") or ""))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open:
            tag, name = self._open[-1]
            self.texts.setdefault(tag, []).append(data)
            if name:
                self.ids[name] = self.ids.get(name, "") + data


def painted(records: list[Record], bars_most: int = 1_000) -> Picture:
    """The picture of all of these records."""
    painter = Painter(records[0].at, records[-1].at, bars_most)
    for record in records:
        painter.take(record)
    return painter.picture()


@pytest.fixture(scope="module")
def day() -> Picture:
    return painted(eventful(open_log("memory:", "day")).records)


def data_of(page: str) -> dict[str, Any]:
    """What is embedded in a page."""
    found: dict[str, Any] = json.loads(Seen(page).ids["data"])
    return found


def column(values: list[int] | int, count: int) -> list[int]:
    """A column with an entry for each row."""
    return values if isinstance(values, list) else [values] * count


def test_a_page_says_what_it_shows(day: Picture) -> None:
    seen = Seen(page_of(day))
    [title] = seen.texts["title"]
    assert title.startswith("Cluster day, 2027-01-15T08:00:00.000Z to ")
    text = " ".join("".join(seen.texts["p"] + seen.texts["b"]).split())
    assert "policy" in text
    assert "r1" in seen.texts["b"]
    assert f"{len(day.bars)} allocations" in seen.texts["b"]
    assert f"{day.position:,}" in seen.texts["b"]
    cells = seen.texts["td"]
    assert {"physics", "chem", "clinic", "cores"} <= set(cells)
    assert REASONS["capacity"] in cells


def test_a_page_needs_nothing_else(day: Picture) -> None:
    page = page_of(day)
    assert Seen(page).loads == ["data:,"]
    assert "default-src 'none'" in page
    assert not re.search(r"\b(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", page.partition("<script>")[2])
    assert "{{" not in page.replace("}}{{", "")


def test_columns_hold_every_bar(day: Picture) -> None:
    data = data_of(page_of(day))
    bars, count = data["bars"], data["bars"]["count"]
    assert data == json.loads(json.dumps(columns_of(day)))
    assert count == len(day.bars)
    at = position = 0
    seats = iter(bars["seats"])
    for row, bar in enumerate(day.bars):
        at += column(bars["placed"], count)[row]
        position += column(bars["placedAt"], count)[row]
        assert (day.since + at, position) == (bar.placed, bar.placed_position)
        assert column(bars["begin"], count)[row] == bar.begin - bar.placed
        assert column(bars["end"], count)[row] == bar.end - bar.placed
        owner = column(bars["owner"], count)[row]
        assert data["owners"]["id"][owner] == bar.owner.id
        assert data["words"][column(bars["stage"], count)[row]] == bar.stage
        drawn: set[tuple[int, int, int]] = set()
        for _ in range(column(bars["runs"], count)[row]):
            first, many, low, cores = (next(seats) for _ in range(4))
            drawn |= {(node, low, cores) for node in range(first, first + many)}
        assert drawn == {(piece.node, piece.low, piece.cores) for piece in bar.pieces}
    assert next(seats, None) is None
    [victim] = [row for row, bar in enumerate(day.bars) if bar.stop]
    [[row, stop]] = bars["stop"]
    assert (row, data["words"][stop[0]]) == (victim, "preempted")
    assert len(data["running"]) == data["steps"]
    assert all(len(wait["counts"]) == data["steps"] for wait in data["waits"])


def test_names_cannot_break_out_of_the_page() -> None:
    evil = "</script><script>alert(1)</script><!-- &amp; {{data}}"
    y = Yard(open_log("memory:", "a<b>"), {"n1": 2}, lambda _: Run(ms=MINUTE_MS))
    y.submit(flow(work=job(1)), evil, group="<i>g</i>", user="u&u")
    y.run()
    page = page_of(painted(y.records))
    seen = Seen(page)
    assert page.count("<script") == 2
    assert evil in data_of(page)["words"]
    assert "<i>g</i>" in seen.texts["td"]
    assert "i" not in seen.texts
    assert "Cluster a<b>" in "".join(seen.texts["h1"])


def test_every_reason_has_words() -> None:
    assert set(REASONS) == set(pictures.REASONS)


def test_an_empty_span_is_a_page_too() -> None:
    y = Yard(open_log("memory:", "still"), {"n1": 2})
    picture = painted(y.records)
    data = data_of(page_of(picture))
    assert data["bars"]["count"] == 0
    assert data["nodes"]["name"] == ["n1"]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("bars_most", [1_000, 4])
def test_a_browser_runs_it(day: Picture, tmp_path: Path, bars_most: int) -> None:
    assert CHROMIUM is not None
    picture = day if bars_most > 4 else painted(eventful(open_log("memory:", "d")).records, 4)
    # The script reports what went wrong in it where the test can see it.
    page = page_of(picture).replace(
        "<script>",
        "<script>window.onerror = told => { document.title = `wrong: ${told}`; };</script><script>",
        1,
    )
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=3000",
            "--dump-dom",
            file.as_uri(),
        ],
        capture_output=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    seen = Seen(done.stdout.decode())
    assert seen.texts["title"][0].startswith("Cluster d")
    assert seen.ids["r-nodes"].startswith(f"{len(picture.bars)} allocations drawn on 3 nodes")
    assert f"all ({len(picture.bars)})" in seen.texts["option"]
    assert any(re.fullmatch(r"\w+ \(\d+\)", text) for text in seen.texts["button"])
    assert "capacity" in "".join(seen.texts["span"])
