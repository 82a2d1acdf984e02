"""`logyard log`: the log where it lies, while a server runs and after somebody touched it."""

import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal, terminal
from tests.services.server import YardServer

__all__ = ["terminal"]

HELLO = "version: v4\njobs:\n  hello:\n    script: echo hello\n"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YardServer]:
    """A server whose log has one finished workflow."""
    server = YardServer(tmp_path_factory.mktemp("yard"), {"node-cores": 1, "node-memory": "1GiB"})
    server.start()
    server.outcome(str(server.submit(HELLO)["id"]))
    yield server
    server.kill()


@pytest.fixture
def data(yard: YardServer) -> Path:
    return Path(yard.flags["data"])


def test_the_log_is_read_while_the_server_runs(terminal: Terminal, data: Path) -> None:
    shown = terminal.run("log", "show", more={"LOGYARD_DATA": str(data)})
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert re.search(r"  1  cluster +server \S+ took the log, term 1$", lines[0])
    assert any(" finished" in line for line in lines)
    records = terminal.run("log", "show", "--data", data, "--json").lines
    assert [one["position"] for one in records] == list(range(1, len(records) + 1))
    assert set(records[0]) == {"position", "at", "cluster", "actor", "cause", "event", "chain"}
    part = terminal.run("log", "show", "--data", data, "--after", "1", "--upto", "3", "--json")
    assert part.lines == records[1:3]
    assert (
        terminal.run("log", "show", "--data", data, "--tail", "2", "--json").lines == records[-2:]
    )


def test_a_log_that_holds_is_said_to_hold(terminal: Terminal, data: Path) -> None:
    done = terminal.run("log", "verify", "--data", data)
    assert done.code == 0
    found = re.fullmatch(
        r"the log holds: (\d+) records of cluster main, none changed\n"
        r"keep this to check it later: --expect (\d+:\S+)\n",
        done.out,
    )
    assert found is not None
    assert terminal.run("log", "verify", "--data", data, "--expect", found[2]).code == 0
    further = f"{int(found[1]) + 999}:{'A' * 32}"
    missing = terminal.run("log", "verify", "--data", data, "--expect", further)
    assert missing.code == 1
    assert "missing; the log went on to position" in missing.err
    assert terminal.run("log", "verify", "--data", data, "--expect", "x").code == 2


def test_a_log_goes_out_and_comes_in_again(terminal: Terminal, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    assert terminal.run("log", "export", file, "--data", data).code == 0
    piped = terminal.run("log", "export", "--data", data)
    assert piped.out == file.read_text()
    copy = tmp_path / "copy"
    done = terminal.run("log", "import", file, "--data", copy)
    assert done.code == 0, done.err
    assert re.search(r"^\d+ records of cluster main imported into ", done.out)
    assert terminal.run("log", "export", "--data", copy).out == piped.out
    second = terminal.run("log", "import", "-", "--data", copy, typed=piped.out)
    assert second.code == 1
    assert "is not empty" in second.err
    busy = terminal.run("log", "import", file, "--data", data)
    assert busy.code == 1
    assert "in use by the server" in busy.err


def test_a_server_goes_on_from_an_imported_log(
    terminal: Terminal, data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "log.jsonl"
    assert terminal.run("log", "export", file, "--data", data).code == 0
    folder = tmp_path / "server"
    folder.mkdir()
    assert terminal.run("log", "import", file, "--data", folder / "data").code == 0
    server = YardServer(folder, {"nodes": 0}).start()
    try:
        terminal.server = server.url
        told = terminal.run("workflow", "list", "--json").json
        assert [one["status"] for one in told["workflows"]] == ["STAGE_STATUS_FINISHED"]
    finally:
        assert server.stop() == 0
    assert terminal.run("log", "verify", "--data", folder / "data").code == 0


def test_a_changed_byte_is_found(terminal: Terminal, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    assert terminal.run("log", "export", file, "--data", data).code == 0
    copy = tmp_path / "copy"
    assert terminal.run("log", "import", file, "--data", copy).code == 0
    with sqlite3.connect(copy / "log.sqlite") as database:
        (table,) = (
            name
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if "logyard" in name
        )
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        assert {"originator_version", "state"} <= set(columns)
        changed = database.execute(
            f"UPDATE {table} SET state = replace(CAST(state AS TEXT), '\"term\":1', '\"term\":2')"
            " WHERE originator_version = 1"
        )
        assert changed.rowcount == 1
    database.close()
    done = terminal.run("log", "verify", "--data", copy)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("the log does not hold: position 1: ")
    told = terminal.run("log", "verify", "--data", copy, "--json")
    assert told.code == 1
    assert (told.json["holds"], told.json["position"]) == (False, 1)


def test_a_broken_export_imports_nothing(terminal: Terminal, data: Path, tmp_path: Path) -> None:
    text = terminal.run("log", "export", "--data", data).out
    lines = text.splitlines(keepends=True)
    for broken in (
        "".join(lines[:1] + lines[2:]),
        text.replace('"term":1', '"term":3', 1),
        "".join([lines[1], lines[0], *lines[2:]]),
    ):
        done = terminal.run("log", "import", "-", "--data", tmp_path / "x", typed=broken)
        assert (done.code, done.out) == (1, "")
        assert "nothing was imported" in done.err
    strange = terminal.run("log", "import", "-", "--data", tmp_path / "x", typed="hello\n")
    assert strange.code == 2
    assert "line 1 is no exported record" in strange.err


def test_where_there_is_no_log_it_is_said(terminal: Terminal, tmp_path: Path) -> None:
    done = terminal.run("log", "verify", "--data", tmp_path)
    assert (done.code, done.out) == (1, "")
    assert str(tmp_path) in done.err
    both = terminal.run("log", "show", "--data", tmp_path, "--log", "postgresql://x/y")
    assert both.code == 2
    assert terminal.run("log", "import", tmp_path / "none", "--data", tmp_path).code == 2


def test_the_server_tells_the_same_records(
    terminal: Terminal, yard: YardServer, data: Path
) -> None:
    there = yard.get("/v4/log", limit=1000)["records"]
    here = terminal.run(
        "log", "show", "--data", data, "--upto", str(there[-1]["position"]), "--json"
    )
    assert json.dumps(here.lines, sort_keys=True) == json.dumps(there, sort_keys=True)
