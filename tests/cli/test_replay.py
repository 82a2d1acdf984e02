"""`logyard replay` as a process, on a log that a simulation wrote."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TRACE = """; MaxProcs: 4
; MaxNodes: 4
1 0 -1 100 3 -1 -1 3 200 -1 1 1 1 -1 -1 -1 -1 -1
2 1 -1 100 4 -1 -1 4 100 -1 1 2 1 -1 -1 -1 -1 -1
3 2 -1 50 1 -1 -1 1 60 -1 1 3 1 -1 -1 -1 -1 -1
"""


def logyard(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command."""
    command = [sys.executable, "-m", "logyard", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replay")
    trace = folder / "three.swf"
    trace.write_text(TRACE)
    made = logyard("simulate", str(trace), "--out", str(folder / "out"))
    assert made.returncode == 0, made.stderr
    return folder / "out" / "log.sqlite"


def test_without_changes_nothing_changes(log: Path) -> None:
    found = json.loads(logyard("replay", str(log), "--json").stdout)
    assert (found["changed"], found["total"]["ranks"]) == (0, 3)


def test_another_policy_tells_who_gains_and_who_loses(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = logyard(
        "replay", str(log), "--set", "scheduler.backfill.enabled=false", "--out", str(out)
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("1 rank of 3 would have waited another time: 0 less, 1 more")
    found = json.loads((out / "differences.json").read_text())
    assert found["backfilled"] == [1, 0]
    assert logyard("log", "verify", "--log", str(out / "log.sqlite")).returncode == 0
    again = logyard("replay", str(log), "--out", str(out))
    assert again.returncode == 2 and "there is a log already" in again.stderr


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("scheduler.backfil.enabled=true", "did you mean scheduler.backfill.enabled?"),
        ("scheduler.priority=grup.priority", "grup.priority is not a variable"),
    ],
)
def test_a_wrong_setting_is_named(log: Path, setting: str, said: str) -> None:
    told = logyard("replay", str(log), "--set", setting)
    assert told.returncode == 2
    assert said in told.stderr


def test_no_log_is_said(tmp_path: Path) -> None:
    told = logyard("replay", str(tmp_path / "none.sqlite"))
    assert told.returncode == 1
    assert "none.sqlite" in told.stderr
