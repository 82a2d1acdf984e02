"""Logs as JSON lines, and back."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from logyard_domain import codec
from logyard_engine.log.log import Log
from logyard_engine.log.opening import open_log
from logyard_engine.log.transfer import BATCH_ROWS, CannotImport, export_log, import_log
from logyard_engine.log.verify import verify
from tests.log.conftest import Storage
from tests.log.entries import CLUSTER, cordoned, some


def _filled(count: int) -> Log:
    log = open_log("memory:", CLUSTER)
    log.append(some(count))
    log.append([cordoned("ü\u2028\u0001n", 'a "quoted"\nline')])
    return log


def _exported(log: Log) -> bytes:
    out = io.BytesIO()
    export_log(log, out)
    return out.getvalue()


def test_a_log_comes_back_byte_for_byte(storage: Storage) -> None:
    source = _filled(300)
    exported = _exported(source)
    log = storage.open()
    verified = import_log(io.BytesIO(exported), log)
    assert (verified.position, verified.chain) == (301, source.chain) == (log.position, log.chain)
    assert list(log.read_states()) == list(source.read_states())
    assert log.read(0, 1_000) == source.read(0, 1_000)
    assert _exported(log) == exported
    log.append(some(1))
    assert verify(log.read_states()).count == 302


def test_lines_are_readable_json() -> None:
    lines = _exported(_filled(2)).split(b"\n")
    assert lines.pop() == b""
    rows = [json.loads(line) for line in lines]
    assert [row["position"] for row in rows] == [1, 2, 3]
    assert rows[0]["event"]["type"] == "allocation.placed"
    assert rows[2]["event"]["reason"] == 'a "quoted"\nline'


def test_a_part_can_be_exported() -> None:
    log = _filled(20)
    out = io.BytesIO()
    assert export_log(log, out, after=5, upto=9) == 4
    assert out.getvalue().splitlines() == _exported(log).splitlines()[5:9]
    with pytest.raises(CannotImport, match=r"line 1: position 1: missing; .* position 6"):
        import_log(io.BytesIO(out.getvalue()), open_log("memory:", CLUSTER))


def test_progress_is_told() -> None:
    log = _filled(2 * BATCH_ROWS)
    heard: list[int] = []
    out = io.BytesIO()
    export_log(log, out, heard.append)
    assert heard == [10_000]
    heard.clear()
    out.seek(0)
    import_log(out, open_log("memory:", CLUSTER), heard.append)
    assert heard == [BATCH_ROWS, 2 * BATCH_ROWS, 2 * BATCH_ROWS + 1]


def test_an_import_needs_an_empty_log() -> None:
    log = _filled(3)
    with pytest.raises(CannotImport, match="'main' is not empty: it ends at position 4"):
        import_log(io.BytesIO(_exported(log)), log)


def _blank(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], b"", *lines[3:]]


def _removed(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], *lines[4:]]


def _swapped(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], lines[4], lines[3], *lines[5:]]


def _changed(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b"n1", b"n2"), *lines[2:]]


def _cut(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], lines[-1][:-9]]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (_blank, "line 4: this is no exported record"),
        (_removed, "line 4: position 4: missing"),
        (_swapped, "line 4: position 4: missing"),
        (_changed, "line 2: position 2: the chain does not hold"),
        (_cut, "line 9: position 9: these bytes are no record"),
    ],
)
def test_wrong_lines_are_named_and_nothing_is_written(
    wrong: Callable[[list[bytes]], list[bytes]], said: str, tmp_path: Path
) -> None:
    lines = _exported(_filled(8)).splitlines()
    log = open_log(tmp_path / "log.sqlite", CLUSTER)
    with pytest.raises(CannotImport, match=said):
        import_log(io.BytesIO(b"\n".join(wrong(lines))), log)
    assert log.position == 0
    assert list(log.read_states()) == []
    log.close()


def test_what_this_release_does_not_know_is_refused() -> None:
    states, _ = codec.encode(some(1), CLUSTER, 0, codec.GENESIS)
    body = states[0].replace(b"allocation.placed", b"allocation.blessed")[:-44]
    chain = codec.link(codec.GENESIS.encode(), body)
    line = b'{"position":1,' + body[1:] + b',"chain":"' + chain + b'"}\n'
    with pytest.raises(CannotImport, match=r"line 1: .*'allocation\.blessed' is not known"):
        import_log(io.BytesIO(line), open_log("memory:", CLUSTER))


def test_another_clusters_log_is_refused() -> None:
    with pytest.raises(CannotImport, match=r"line 1: .* of cluster 'main'; the log is of 'other'"):
        import_log(io.BytesIO(_exported(_filled(2))), open_log("memory:", "other"))
