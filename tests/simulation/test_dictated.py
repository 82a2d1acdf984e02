"""A log that another process writes: read back at any time, and its troubles are told."""

import sqlite3
from pathlib import Path

import pytest

from logyard_domain.events import NodeCordoned
from logyard_domain.identifiers import Millis
from logyard_domain.records import Entry
from logyard_engine.log.log import AppendFailed, CannotOpen
from logyard_engine.log.opening import open_for_reading
from logyard_engine.log.verify import verify
from logyard_engine.simulation.buffered import PIECE
from logyard_engine.simulation.dictated import DictatedLog


def _entries(count: int, first: int = 0) -> list[Entry]:
    return [
        Entry(NodeCordoned(node=f"n{number}"), Millis(number), "user:ana", f"c{number}")
        for number in range(first, first + count)
    ]


def test_what_was_appended_can_be_read_at_any_time(tmp_path: Path) -> None:
    log = DictatedLog(tmp_path / "log.sqlite", "c")
    log.append(_entries(3))
    assert (log.position, list(log.last)) == (3, _entries(3))
    assert [record.event for record in log.read(1, 9)] == [e.event for e in _entries(2, 1)]
    log.append(_entries(2 * PIECE, 3))
    assert log.position == 2 * PIECE + 3
    found = verify(log.read_states())
    assert (found.position, found.chain) == (log.position, log.chain)
    log.append(_entries(1))
    log.close()
    log.close()
    with_all = open_for_reading(tmp_path / "log.sqlite")
    assert with_all.position == 2 * PIECE + 4
    with_all.close()


def test_a_file_that_is_no_log_is_told_at_once(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.sqlite") as other:
        other.execute("CREATE TABLE cheese (name TEXT)")
    other.close()
    with pytest.raises(CannotOpen, match="not a Logyard log"):
        DictatedLog(tmp_path / "other.sqlite", "c")
    with pytest.raises(CannotOpen, match="does not exist"):
        DictatedLog(tmp_path / "nowhere" / "log.sqlite", "c")


def test_another_writer_ends_it(tmp_path: Path) -> None:
    one, two = (DictatedLog(tmp_path / "log.sqlite", "c") for _ in range(2))
    for log in (one, two):
        log.flush()
    one.append(_entries(2))
    one.close()
    two.append(_entries(1))
    with pytest.raises(AppendFailed, match="another writer has appended"):
        two.flush()
    with pytest.raises(AppendFailed, match="another writer has appended"):
        two.append(_entries(PIECE))
    two.close()


def test_records_are_not_taken_as_they_are(tmp_path: Path) -> None:
    log = DictatedLog(tmp_path / "log.sqlite", "c")
    with pytest.raises(AppendFailed, match="not taken as they are"):
        log.take([b"{}"])
    log.close()
