"""Numbers with units, and events as lines."""

from datetime import UTC, datetime

import pytest

from logyard_api.cli import sentences
from logyard_api.cli.units import clock, count, hours, many, memory, millis, span
from logyard_domain.codec import GENESIS, encode
from logyard_domain.events import NodeLost
from logyard_domain.identifiers import Millis
from logyard_domain.records import Entry


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0s"),
        (40, "40ms"),
        (1_234, "1.2s"),
        (12_400, "12s"),
        (192_000, "3m 12s"),
        (2_460_000, "41m"),
        (7_800_000, "2h 10m"),
        (360_000_000, "4d 4h"),
        (-5, "0s"),
    ],
)
def test_a_length_of_time_has_two_units_at_most(ms: int, text: str) -> None:
    assert span(ms) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0B"), (1023, "1023B"), (1536, "1.5KiB"), (120 * 2**30, "120GiB"), (2**60, "1024PiB")],
)
def test_a_size_has_the_largest_unit_that_fits(size: int, text: str) -> None:
    assert memory(size) == text


def test_counts_have_thousands_apart_and_their_noun() -> None:
    assert count(48_213) == "48,213"
    assert many(1, "node") == "1 node"
    assert many(2_000, "node") == "2,000 nodes"


def test_instants_are_read_and_missing_ones_are_a_dash() -> None:
    assert millis("1970-01-01T00:00:01.500Z") == 1_500
    assert millis(None) == 0
    assert clock(None) == "-"
    assert clock("1970-01-02T00:00:01.500+00:00").startswith("1970-01-0")


def test_core_hours_are_short() -> None:
    assert [hours(n) for n in (0, 0.001054, 1.5, 99.94, 1204.3)] == [
        "0",
        "0.00105",
        "1.5",
        "99.9",
        "1,204",
    ]


EVENT = {
    "type": "logyard.stage.finished",
    "time": "2026-01-01T00:00:00.000Z",
    "logyardposition": 48_101,
    "data": {"workflow": "wf-1", "stage": "render"},
    "logyardabout": "render",
    "logyardmessage": "finished",
}


def test_a_line_of_a_mixed_stream_names_the_workflow() -> None:
    assert sentences.line(EVENT, workflows=True).split()[1:] == [
        "48,101",
        "wf-1",
        "render",
        "finished",
    ]
    assert sentences.line(EVENT, workflows=False).split()[1:] == ["48,101", "render", "finished"]
    flow = EVENT | {"logyardabout": "workflow"}
    assert sentences.line(flow, workflows=True).split()[2:] == ["wf-1", "finished"]


def test_an_event_without_a_sentence_is_named() -> None:
    bare: dict[str, object] = {"type": "logyard.moon.landed", "subject": "moon", "data": {}}
    line = sentences.line({**EVENT, **bare, "logyardabout": "", "logyardmessage": ""}, True)
    assert line.split()[2:] == ["moon", "moon.landed"]


def test_instants_in_sentences_become_local() -> None:
    sentence = "promised at 2026-01-01T12:30:15.250Z on n01"
    shown = sentences.local(sentence)
    at = datetime(2026, 1, 1, 12, 30, 15, 250_000, UTC).astimezone()
    assert shown == f"promised at {at:%Y-%m-%d %H:%M:%S} on n01"


def test_stored_records_get_their_sentences() -> None:
    stored = sentences.Stored()
    entry = Entry(NodeLost(node="n07", silent_ms=61_000), Millis(0), "engine", "k")
    states, _ = encode([entry], "main", 0, GENESIS)
    event = stored.event(1, states[0])
    assert (event["logyardabout"], event["logyardmessage"]) == (
        "node n07",
        "lost: silent for 1m 1s",
    )
    newer = states[0].replace(b"node.lost", b"moon.lost")
    assert stored.event(2, newer)["logyardmessage"].startswith("moon.lost (not known")
