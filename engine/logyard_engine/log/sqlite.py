"""Recorder in one SQLite file, in WAL mode with an fsync for each append."""

import os
import sqlite3
from collections.abc import Sequence
from itertools import chain, repeat
from pathlib import Path
from urllib.parse import quote

from eventsourcing.persistence import (
    IntegrityError,
    InterfaceError,
    OperationalError,
    PersistenceError,
)
from eventsourcing.sqlite import (
    SQLITE3_DEFAULT_LOCK_TIMEOUT,
    SQLiteAggregateRecorder,
    SQLiteConnection,
    SQLiteConnectionPool,
    SQLiteCursor,
    SQLiteDatastore,
)

from logyard_engine.log.log import CannotOpen

SCHEMA = 1
APPLICATION_ID = 0x4C4F4759
"""`LOGY`: in the file's header, so that no other program's database is taken for a log."""

TABLE = "logyard_log"
ROWS_AT_ONCE = 50
"""Rows of one INSERT statement. More are not faster; one by one costs a third more time."""


class Pool(SQLiteConnectionPool):
    """Connections to the log's file that sync every commit, or that cannot write at all."""

    def __init__(self, path: Path, mode: str) -> None:
        super().__init__(db_name=str(path))
        self.mode = mode

    def _create_connection(self) -> SQLiteConnection:
        try:
            connection = sqlite3.connect(
                f"file:{quote(self.db_name)}?{self.mode}",
                uri=True,
                check_same_thread=False,
                isolation_level=None,
                timeout=SQLITE3_DEFAULT_LOCK_TIMEOUT,
            )
        except sqlite3.Error as trouble:
            raise InterfaceError(trouble) from trouble
        try:
            if self.mode == WRITING:
                connection.execute("PRAGMA journal_mode=WAL").fetchone()
                connection.execute("PRAGMA synchronous=FULL")
            else:
                # A reader that may write still must not; reading a WAL needs its shared memory.
                connection.execute("PRAGMA query_only=ON")
        except sqlite3.Error as trouble:
            connection.close()
            raise OperationalError(trouble) from trouble
        connection.row_factory = sqlite3.Row
        return SQLiteConnection(sqlite_conn=connection, max_age=self.max_age)


WRITING = "mode=rwc"
READING = "mode=rw"
READING_ONLY = "mode=ro"
READING_UNSHARED = "mode=ro&immutable=1"


class Datastore(SQLiteDatastore):
    def __init__(self, path: Path, mode: str) -> None:
        super().__init__(str(path), originator_id_type="text")
        self.pool = Pool(path, mode)


class SQLiteRecorder(SQLiteAggregateRecorder):
    """One cluster's log in a file.

    The position is the row's own key: rows lie in the order of the log, in one tree, and a file
    holds one cluster's log only.
    """

    patience_s: Sequence[float] = ()

    def __init__(self, path: Path, mode: str = WRITING) -> None:
        super().__init__(Datastore(path, mode), events_table_name=TABLE)
        row = "(?,?,?,?)"
        self._inserts = [
            f"INSERT INTO {TABLE} VALUES {','.join([row] * count)}"
            for count in range(1, ROWS_AT_ONCE + 1)
        ]

    def construct_create_table_statements(self) -> list[str]:
        return [
            f"CREATE TABLE IF NOT EXISTS {TABLE} ("
            "originator_id TEXT NOT NULL, "
            "originator_version INTEGER PRIMARY KEY, "
            "topic TEXT NOT NULL, "
            "state BLOB NOT NULL)",
            f"PRAGMA application_id={APPLICATION_ID}",
            f"PRAGMA user_version={SCHEMA}",
        ]

    def insert_states(
        self, cluster: str, first: int, tags: Sequence[str], states: Sequence[bytes]
    ) -> None:
        count = len(states)
        values: list[object] = list(
            chain.from_iterable(
                zip(repeat(cluster, count), range(first, first + count), tags, states, strict=True)
            )
        )
        if count <= ROWS_AT_ONCE:
            self._insert_few(count, values)
            return
        with self.datastore.transaction(commit=True) as cursor:
            for start in range(0, count, ROWS_AT_ONCE):
                rows = min(ROWS_AT_ONCE, count - start)
                cursor.execute(self._inserts[rows - 1], values[4 * start : 4 * (start + rows)])

    def _insert_few(self, count: int, values: list[object]) -> None:
        # One statement is a transaction by itself; each further one would let other threads of
        # this process get in between.
        with self.datastore.get_connection(commit=True) as connection:
            try:
                connection.cursor().execute(self._inserts[count - 1], values)
            except sqlite3.IntegrityError as conflict:
                raise IntegrityError(conflict) from conflict
            except sqlite3.Error as trouble:
                raise OperationalError(trouble) from trouble

    def select_states(
        self, cluster: str, after: int, upto: int, limit: int
    ) -> list[tuple[int, bytes]]:
        return self._rows(
            f"SELECT originator_version, state FROM {TABLE} WHERE originator_version > ? "
            "AND originator_version <= ? AND originator_id = ? "
            "ORDER BY originator_version LIMIT ?",
            (after, upto, cluster, limit),
        )

    def last_states(self, cluster: str, limit: int) -> list[tuple[int, bytes]]:
        newest = self._rows(
            f"SELECT originator_version, state FROM {TABLE} WHERE originator_id = ? "
            "ORDER BY originator_version DESC LIMIT ?",
            (cluster, limit),
        )
        return newest[::-1]

    def any_cluster(self) -> str | None:
        with self.datastore.transaction(commit=False) as cursor:
            cursor.execute(f"SELECT originator_id FROM {TABLE} LIMIT 1")
            row = cursor.fetchone()
        return str(row[0]) if row else None

    def close(self) -> None:
        self.datastore.close()

    def _rows(self, statement: str, values: Sequence[object]) -> list[tuple[int, bytes]]:
        with self.datastore.transaction(commit=False) as cursor:
            cursor.sqlite_cursor.row_factory = None
            cursor.execute(statement, values)
            rows: list[tuple[int, bytes]] = cursor.fetchall()
        return rows


def open_file(path: Path) -> SQLiteRecorder:
    """The recorder of the log at `path`, made now if nothing is there. Raises CannotOpen."""
    folder = path.parent
    if not folder.is_dir():
        raise CannotOpen(f"{path}: the folder {folder} does not exist")
    if not os.access(folder, os.W_OK):
        raise CannotOpen(f"{path}: the folder {folder} cannot be written to by this user")
    fresh = not path.exists()
    recorder = SQLiteRecorder(path)
    try:
        if not _is_log(recorder, path):
            recorder.create_table()
    except PersistenceError as trouble:
        recorder.close()
        raise CannotOpen(f"{path}: {trouble}") from trouble
    except CannotOpen:
        recorder.close()
        raise
    if fresh:
        # The file's own fsyncs do not make its name last.
        _sync_folder(folder)
    return recorder


def open_file_for_reading(path: Path) -> SQLiteRecorder:
    """The recorder of the log at `path`, to be read, also while a server writes to it.

    Raises CannotOpen, also when there is no log yet.
    """
    if not path.is_file():
        raise CannotOpen(f"{path}: there is no log")
    recorder = SQLiteRecorder(path, _reading_mode(path))
    try:
        if not _is_log(recorder, path):
            raise CannotOpen(f"{path}: there is no log in this file")
    except PersistenceError as trouble:
        recorder.close()
        raise CannotOpen(f"{path}: {trouble}") from trouble
    except CannotOpen:
        recorder.close()
        raise
    return recorder


def _reading_mode(path: Path) -> str:
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        return READING
    # Shared memory cannot be made here, and is not needed when nobody has the file open.
    return READING_ONLY if Path(f"{path}-wal").exists() else READING_UNSHARED


def _is_log(recorder: SQLiteRecorder, path: Path) -> bool:
    """Whether the log's table is there; False when the file is empty."""
    with recorder.datastore.transaction(commit=False) as cursor:
        application = _number(cursor, "PRAGMA application_id")
        schema = _number(cursor, "PRAGMA user_version")
        tables = _number(cursor, "SELECT count(*) FROM sqlite_master")
    if application == APPLICATION_ID:
        if schema > SCHEMA:
            raise CannotOpen(
                f"{path}: a newer release wrote this log (its schema is {schema}; "
                f"this release knows {SCHEMA})"
            )
        return True
    if tables or application:
        raise CannotOpen(f"{path}: an SQLite database of something else, not a Logyard log")
    return False


def _number(cursor: SQLiteCursor, statement: str) -> int:
    cursor.execute(statement)
    return int(cursor.fetchone()[0])


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
