"""What is particular to the log in an SQLite file."""

import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from eventsourcing.persistence import IntegrityError, StoredEvent

from logyard_domain import codec
from logyard_engine.log import opening
from logyard_engine.log.log import AppendFailed, CannotOpen, Log, ReadFailed
from logyard_engine.log.opening import open_for_reading, open_log
from logyard_engine.log.recorded import RecordedLog
from logyard_engine.log.sqlite import ROWS_AT_ONCE, TABLE, SQLiteRecorder, open_file
from logyard_engine.log.verify import verify
from tests.log.entries import CLUSTER, encoded, some


def _open(path: Path) -> Log:
    return open_log(path, CLUSTER)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


def test_every_connection_syncs_each_commit(path: Path) -> None:
    recorder = open_file(path)
    with (
        recorder.datastore.get_connection(commit=True) as first,
        recorder.datastore.get_connection(commit=False) as second,
    ):
        for connection in (first, second):
            cursor = connection.cursor()
            cursor.execute("PRAGMA synchronous")
            assert cursor.fetchone()[0] == 2
            cursor.execute("PRAGMA journal_mode")
            assert cursor.fetchone()[0] == "wal"
    recorder.close()


@pytest.mark.parametrize("count", [1, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, 2 * ROWS_AT_ONCE + 3])
def test_rows_are_those_that_the_library_would_write(path: Path, count: int) -> None:
    states = [state for _, state in encoded(count)]
    tags = [f"tag.{number}" for number in range(count)]
    recorder = open_file(path)
    recorder.insert_states(CLUSTER, 1, tags, states)
    events = [
        StoredEvent(CLUSTER, position, tag, state)
        for position, (tag, state) in enumerate(zip(tags, states, strict=True), 1)
    ]
    assert recorder.select_events(CLUSTER) == events
    stock = [StoredEvent(CLUSTER, count + 1, "tag.next", b"{}")]
    recorder.insert_events(stock)
    assert recorder.select_events(CLUSTER, gt=count) == stock
    with pytest.raises(IntegrityError):
        recorder.insert_events(stock)
    recorder.close()


def test_a_file_holds_one_cluster(path: Path) -> None:
    recorder = open_file(path)
    recorder.insert_states("a", 1, ["t"], [b"{}"])
    with pytest.raises(IntegrityError):
        recorder.insert_states("b", 1, ["t"], [b"{}"])
    recorder.close()


def test_a_folder_means_the_log_in_it(tmp_path: Path) -> None:
    log = open_log(tmp_path, CLUSTER)
    log.append(some(1))
    log.close()
    assert (tmp_path / opening.FILE).is_file()
    reader = open_for_reading(f"sqlite:{tmp_path / opening.FILE}")
    assert (reader.cluster, reader.position) == (CLUSTER, 1)
    reader.close()


@pytest.mark.parametrize("name", ["a b.sqlite", "50%?x=1#y", "file:z", "ü.sqlite"])
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    log = open_log(tmp_path / name, CLUSTER)
    log.append(some(1))
    log.close()
    assert [found.name for found in tmp_path.iterdir()] == [name]


def test_what_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"These are notes of mine, and no log at all." * 100)
    before = path.read_bytes()
    with pytest.raises(CannotOpen, match=r"log\.sqlite: file is not a database"):
        open_log(path, CLUSTER)
    with pytest.raises(CannotOpen, match=r"log\.sqlite: file is not a database"):
        open_for_reading(path)
    assert path.read_bytes() == before


def test_another_programs_database_is_refused(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (a)")
    connection.close()
    for opened in (_open, open_for_reading):
        with pytest.raises(CannotOpen, match="of something else, not a Logyard log"):
            opened(path)


def test_a_newer_schema_is_refused(path: Path) -> None:
    open_log(path, CLUSTER).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=7")
    connection.close()
    for opened in (_open, open_for_reading):
        with pytest.raises(CannotOpen, match=r"newer release wrote this log \(its schema is 7"):
            opened(path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CannotOpen, match="nowhere does not exist"):
        open_log(tmp_path / "nowhere" / "log.sqlite", CLUSTER)


def test_reading_needs_a_log(path: Path) -> None:
    with pytest.raises(CannotOpen, match="there is no log"):
        open_for_reading(path)
    assert not path.exists()
    path.touch()
    with pytest.raises(CannotOpen, match="there is no log in this file"):
        open_for_reading(path)
    path.unlink()
    open_log(path, CLUSTER).close()
    with pytest.raises(CannotOpen, match="the log is empty"):
        open_for_reading(path)
    empty = open_for_reading(path, CLUSTER)
    assert empty.position == 0
    empty.close()
    with pytest.raises(CannotOpen, match="only by the process that holds it"):
        open_for_reading("memory:")
    with pytest.raises(CannotOpen, match="mysql:// is no kind of log"):
        open_log("mysql://a", CLUSTER)


def test_a_reader_cannot_write(path: Path) -> None:
    log = open_log(path, CLUSTER)
    log.append(some(3))
    recorder = SQLiteRecorder(path, "mode=rw")
    with pytest.raises(Exception, match="readonly"):
        recorder.insert_states(CLUSTER, 4, ["t"], [b"{}"])
    recorder.close()
    log.append(some(1))
    log.close()


_OTHER_USER = """
import os, sys
from logyard_engine.log.log import CannotOpen
from logyard_engine.log.opening import open_for_reading, open_log
os.setuid(65534)
reader = open_for_reading(sys.argv[1])
print(reader.position, len(reader.read(0, 100)))
try:
    open_log(sys.argv[1], "main")
except CannotOpen as trouble:
    print(trouble)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_may_read_and_not_write() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        log = open_log(folder, CLUSTER)
        log.append(some(4))
        for opened in (True, False):
            if not opened:
                log.close()
            done = subprocess.run(
                [sys.executable, "-c", _OTHER_USER, folder],
                capture_output=True,
                text=True,
            )
            assert done.stderr == ""
            first, second = done.stdout.splitlines()
            assert first == "4 4"
            assert second.endswith(f"the folder {folder} cannot be written to by this user")


def test_a_full_disk_stops_the_writer(path: Path) -> None:
    recorder = open_file(path)
    log = RecordedLog(recorder, CLUSTER)
    log.append(some(3))
    with recorder.datastore.get_connection(commit=True) as connection:
        # The same error as a full disk gives.
        connection.cursor().execute("PRAGMA max_page_count=8")
    with pytest.raises(AppendFailed, match=r"nothing was appended after position 3.*full"):
        log.append(some(5_000))
    with pytest.raises(AppendFailed, match="accepts no more appends"):
        log.append(some(1))
    assert verify(log.read_states()).position == 3
    log.close()


def test_a_damaged_end_is_found_when_opened(path: Path) -> None:
    log = open_log(path, CLUSTER)
    log.append(some(5))
    log.close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"UPDATE {TABLE} SET state = CAST(replace(state, 'n1', 'n2') AS BLOB)")
    connection.execute(f"DELETE FROM {TABLE} WHERE originator_version = 3")
    with pytest.raises(codec.Damaged) as found:
        open_log(path, CLUSTER)
    assert found.value.position == 5
    reader = open_for_reading(path)
    with pytest.raises(codec.Damaged, match="position 3: missing; the next record has position 4"):
        reader.read(0, 100)
    reader.close()
    connection.execute(f"DELETE FROM {TABLE} WHERE originator_version < 5")
    with pytest.raises(codec.Damaged, match="position 4: missing"):
        open_log(path, CLUSTER)
    connection.execute(f"INSERT INTO {TABLE} SELECT 'main', 3, topic, state FROM {TABLE}")
    with pytest.raises(codec.Damaged, match="position 4: missing"):
        open_log(path, CLUSTER)
    connection.close()


def test_pages_that_were_overwritten_are_a_clear_error(path: Path) -> None:
    log = open_log(path, CLUSTER)
    log.append(some(2_000))
    log.close()
    with path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xff" * 4096 * 20)
    reader = open_for_reading(path, CLUSTER)
    with pytest.raises(ReadFailed, match="cluster 'main' cannot be read after position 0"):
        list(reader.read_states())
    reader.close()


def test_a_backup_is_the_same_log(path: Path, tmp_path: Path) -> None:
    log = open_log(path, CLUSTER)
    log.append(some(300))
    copy = sqlite3.connect(tmp_path / "copy.sqlite")
    source = sqlite3.connect(path)
    copy.executescript("\n".join(source.iterdump()))
    copy.execute("PRAGMA application_id=0x4C4F4759")
    copy.execute("PRAGMA user_version=1")
    copy.close()
    source.close()
    restored = open_log(tmp_path / "copy.sqlite", CLUSTER)
    assert list(restored.read_states()) == list(log.read_states())
    restored.append(some(2))
    restored.close()
    log.close()
