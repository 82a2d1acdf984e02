"""`logyard audit` as people run it: what it prints, and its exit codes."""

from pathlib import Path

import pytest

from logyard_domain.codec import GENESIS, encode
from logyard_domain.records import Entry
from logyard_engine.audit.rules import RULE_IDS
from logyard_engine.log.transfer import export_log
from tests.audit import faults
from tests.audit.planting import relinked
from tests.audit.yards import play
from tests.cli.terminal import Terminal, terminal

__all__ = ["terminal"]

STEPS = 40


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exported log without a fault."""
    path = tmp_path_factory.mktemp("sound") / "log.jsonl"
    with path.open("wb") as out:
        export_log(play(1, steps=STEPS).engine.log, out)
    return path


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One in which something is placed on a full node; its chain holds."""
    path = tmp_path_factory.mktemp("faulty") / "log.jsonl"
    edited = relinked(next(faults.oversubscribed(play(1, steps=STEPS).records)))
    entries = [
        Entry(event=one.event, at=one.at, actor=one.actor, cause=one.cause) for one in edited
    ]
    states, _ = encode(entries, edited[0].cluster, 0, GENESIS)
    lines = [b'{"position":%d,%b\n' % (place, state[1:]) for place, state in enumerate(states, 1)]
    path.write_bytes(b"".join(lines))
    return path


def test_a_log_that_keeps_the_rules(terminal: Terminal, sound: Path) -> None:
    done = terminal.run("audit", sound)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("every rule was kept: ")
    rows = [line.split() for line in lines if line[:1] == "I"]
    assert [row[0] for row in rows] == list(RULE_IDS)
    assert {row[-1] for row in rows} == {"0"}
    told = terminal.run("audit", sound, "--json").json
    assert told["clean"] is True
    assert told["records"] == sound.read_bytes().count(b"\n")
    assert [verdict["rule"] for verdict in told["verdicts"]] == list(RULE_IDS)


def test_a_log_in_a_data_folder(terminal: Terminal, sound: Path, tmp_path: Path) -> None:
    done = terminal.run("log", "import", sound, "--data", tmp_path / "data")
    assert done.code == 0, done.err
    for place in (tmp_path / "data", tmp_path / "data" / "log.sqlite"):
        assert terminal.run("audit", place).code == 0
    here = terminal.run("audit", "--json", more={"LOGYARD_DATA": str(tmp_path / "data")})
    assert here.json == terminal.run("audit", sound, "--json").json


def test_a_log_that_breaks_a_rule(terminal: Terminal, faulty: Path) -> None:
    done = terminal.run("audit", faulty, "--rule", "I1")
    assert done.code == 1
    lines = done.out.splitlines()
    assert "violation" in lines[0]
    broken = [line for line in lines if line.startswith("  position ")]
    assert broken and "cores of node" in broken[0] and "are given away" in broken[0]
    told = terminal.run("audit", faulty, "--rule", "i1, I12", "--json")
    assert told.code == 1
    verdicts = told.json["verdicts"]
    assert [one["rule"] for one in verdicts] == ["I1", "I12"]
    assert verdicts[0]["found"] >= 1
    assert set(verdicts[0]["violations"][0]) == {"position", "at", "subject", "what"}
    assert terminal.run("audit", faulty, "--rule", "I12").code == 0


def test_wrong_usage(terminal: Terminal, sound: Path, tmp_path: Path) -> None:
    unknown = terminal.run("audit", sound, "--rule", "I4,I15")
    assert (unknown.code, unknown.out) == (2, "")
    assert "'I15' is no rule" in unknown.err
    nothing = terminal.run("audit", tmp_path / "none")
    assert (nothing.code, nothing.out) == (2, "")
    assert "none" in nothing.err


def test_a_damaged_log(terminal: Terminal, sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(sound.read_bytes() + b'{"position":999999,"at":"never"}\n')
    done = terminal.run("audit", path)
    assert (done.code, done.out) == (1, "")
    assert "position 999999" in done.err and "logyard log verify" in done.err
