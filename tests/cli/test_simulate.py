"""`logyard simulate`: a trace in, a table, three files and an exit code out."""

import csv
import json
from pathlib import Path

import pytest

from logyard_api.cli.main import ending
from tests.cli.terminal import Terminal, terminal

__all__ = ["terminal"]

SWF = """; MaxProcs: 4
1 0 -1 100 3 -1 -1 3 100 -1 1 1 1 -1 -1 -1 -1 -1
2 1 -1 50 4 -1 -1 4 60 -1 1 2 2 -1 -1 -1 -1 -1
3 2 -1 500 1 -1 -1 1 500 -1 1 1 1 -1 -1 -1 -1 -1
4 3 -1 90 1 -1 -1 1 97 -1 1 1 1 -1 -1 -1 -1 -1
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "work.swf"
    path.write_text(SWF, encoding="ascii")
    return path


def test_a_simulation_leaves_a_log_a_table_and_a_summary(terminal: Terminal, trace: Path) -> None:
    out = trace.parent / "out"
    done = terminal.run("simulate", trace, "--nodes", "4", "--cores-per-node", "1", "--out", out)
    assert done.code == 0, done.err
    assert "4 ran" in done.out and "bounded slowdown" in done.out
    assert done.err == ""
    with (out / "jobs.csv").open(encoding="utf-8") as file:
        table = list(csv.reader(file))
    assert table == [
        ["id", "submit", "start", "end", "nodes", "kind"],
        ["1", "0", "0", "100", "n1 n2 n3", "direct"],
        ["2", "1", "100", "150", "n1 n2 n3 n4", "direct"],
        ["3", "2", "150", "650", "n1", "direct"],
        ["4", "3", "3", "93", "n4", "backfilled"],
    ]
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert summary["jobs"] == 4
    assert summary["mean_wait_s"] == (99 + 148) / 4
    assert summary["mean_bounded_slowdown"] == pytest.approx((1 + 149 / 50 + 648 / 500 + 1) / 4)
    assert summary["utilization"] == pytest.approx((300 + 200 + 500 + 90) / (4 * 650))
    assert (summary["backfilled"], summary["preempted"]) == (1, 0)
    assert summary["jobs_per_second"] > 0
    verified = terminal.run("log", "verify", "--log", out / "log.sqlite", "--json").json
    assert (verified["holds"], verified["position"]) == (True, summary["events"])
    shown = terminal.run("log", "show", "--log", out / "log.sqlite", "--tail", "3")
    assert shown.code == 0 and "server" in shown.out


def test_settings_and_owners_change_what_comes_of_it(terminal: Terminal, trace: Path) -> None:
    run = ("simulate", trace, "--nodes", "4", "--json")
    assert terminal.run(*run, "--set", "scheduler.backfill.enabled=false").json["backfilled"] == 0
    short = terminal.run(*run, "--set", "scheduler.priority=-request.limit_seconds").json
    assert short["settings"]["set"]["scheduler.priority"] == "-request.limit_seconds"
    assert short["mean_wait_s"] == (99 + 148) / 4
    evicted = terminal.run(
        *run, "--preemptible", "--group", "g2=9>g1", "--user", "u2=1",
        "--set", "scheduler.preemption.enabled=true",
        "--set", "scheduler.preemption.minRuntime=0",
        "--set", "scheduler.preemption.utilizationThreshold=0.5",
    ).json  # fmt: skip
    assert evicted["preempted"] == 1
    assert terminal.run(*run, "--estimate", "run", "--limit", "2").json["jobs"] == 2
    assert terminal.run(*run, "--compress", "2").json["makespan_s"] < 700


def test_without_nodes_the_trace_says_how_many(terminal: Terminal, trace: Path) -> None:
    found = terminal.run("simulate", trace, "--cores-per-node", "3", "--json").json
    assert (found["nodes"], found["cores"]) == (2, 6)


def test_an_earlier_simulation_is_kept_unless_told(terminal: Terminal, trace: Path) -> None:
    out = trace.parent / "out"
    assert terminal.run("simulate", trace, "--out", out).code == 0
    again = terminal.run("simulate", trace, "--out", out)
    assert again.code == 2
    assert "there is a log already; choose another --out, or --force" in again.err
    assert terminal.run("simulate", trace, "--out", out, "--force").code == 0
    (out / "server.lock").touch()
    server = terminal.run("simulate", trace, "--out", out, "--force")
    assert server.code == 2
    assert "this is the data folder of a server" in server.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--set", "scheduler.prio=1"), "no such setting; did you mean scheduler.priority?"),
        (("--set", "scheduler.lookahead"), "write KEY=VALUE"),
        (("--set", "scheduler.lookahead=soon"), "scheduler.lookahead: `soon` is no duration"),
        (("--set", "scheduler.priority=queue.agehours"), "queue.age_hours"),
        (("--group", "chem"), "write NAME=PRIORITY, such as chem=5"),
        (("--nodes", "0"), "a cluster has at least one node"),
        (("--memory-per-node", "4QB"), "--memory-per-node: "),
        (("--nodes", "none.csv"), "only an openb trace has a table of nodes"),
    ],
)
def test_wrong_use_is_told_apart(
    capsys: pytest.CaptureFixture[str], trace: Path, more: tuple[str, ...], said: str
) -> None:
    assert ending(["simulate", str(trace), *more]) == 2
    assert said in capsys.readouterr().err


def test_a_file_that_is_no_trace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("buy milk\n", encoding="ascii")
    assert ending(["simulate", str(path)]) == 2
    assert "this is no trace that can be read" in capsys.readouterr().err
