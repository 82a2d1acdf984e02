"""Numbers with units, and events as sentences."""

import pytest

from logyard_api.cli import sentences
from logyard_api.cli.units import clock, count, many, memory, millis, span
from logyard_domain.codec import TAGS


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


def test_every_event_has_a_sentence() -> None:
    assert set(sentences.SENTENCES) == set(TAGS)


@pytest.mark.parametrize("tag", sorted(TAGS))
def test_sentences_can_do_without_fields_that_are_left_out(tag: str) -> None:
    told = sentences.told({"type": f"logyard.{tag}", "data": {}, "subject": "x"})
    assert told.sentence
    assert "None" not in told.sentence or tag in {"server.started", "server.stopped", "config.set",
                                                  "stage.ready", "allocation.placed",
                                                  "allocation.stopping", "allocation.requeued",
                                                  "workflow.failed"}  # fmt: skip


@pytest.mark.parametrize(
    ("tag", "data", "about", "sentence"),
    [
        (
            "workflow.submitted",
            {"workflow": "wf-1", "name": "tiles", "user": "ana", "group": "chem", "priority": -2},
            "workflow",
            "tiles started by ana (group chem), priority -2",
        ),
        (
            "allocation.placed",
            {"allocation": "wf-1/render/17#2", "node": "n1"},
            "render 17, attempt 2",
            "placed on n1",
        ),
        (
            "allocation.ended",
            {"allocation": "wf-1/build/0#1", "outcome": "failed", "exit_code": 3, "run_ms": 1200},
            "build",
            "failed (exit code 3, ran 1.2s)",
        ),
        (
            "allocation.ended",
            {
                "allocation": "wf-1/build/0#1",
                "outcome": "failed",
                "signal": 9,
                "error": "no memory",
            },
            "build",
            "failed (signal 9): no memory",
        ),
        (
            "shape.held",
            {"shape": 4, "hold": {"type": "never_fits", "misfits": ["cores", "device gpu"]}},
            "shape 4",
            "waits: never: no node offers cores, device gpu",
        ),
        (
            "shape.declared",
            {"shape": 4, "request": {"cores": 8, "memory": 2**30, "devices": [["gpu", 1]]}},
            "shape 4",
            "declared: 8 cpu, 1GiB, 1 gpu",
        ),
        ("node.lost", {"node": "n07", "silent_ms": 61_000}, "node n07", "lost: silent for 1m 1s"),
        (
            "node.registered",
            {"node": "n07", "capacity": {"cores": 1, "memory": 2**31}},
            "node n07",
            "registered with 1 core, 2GiB",
        ),
    ],
)
def test_events_are_told(tag: str, data: dict[str, object], about: str, sentence: str) -> None:
    told = sentences.told({"type": f"logyard.{tag}", "data": data, "subject": ""})
    assert told == (about, sentence)


def test_an_event_of_a_newer_release_is_named() -> None:
    told = sentences.told({"type": "logyard.moon.landed", "data": {}, "subject": "wf-1"})
    assert told.about == "wf-1"
    assert told.sentence.startswith("moon.landed (not known")


def test_a_line_of_a_mixed_stream_names_the_workflow() -> None:
    event = {
        "type": "logyard.stage.finished",
        "time": "2026-01-01T00:00:00.000Z",
        "logyardposition": 48_101,
        "data": {"workflow": "wf-1", "stage": "render"},
    }
    assert sentences.line(event, workflows=True).split()[1:] == [
        "48,101",
        "wf-1",
        "render",
        "finished",
    ]
    assert sentences.line(event, workflows=False).split()[1:] == ["48,101", "render", "finished"]
