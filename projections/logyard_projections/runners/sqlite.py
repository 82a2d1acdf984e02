"""Rows in an SQLite file of their own. The file is disposable: the log makes it anew."""

import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from logyard_projections.fold import Projection
from logyard_projections.rows import Rows
from logyard_projections.runners.runner import Runner
from logyard_projections.runners.sql import Dialect, SqlView
from logyard_projections.tables import Table, Value, stored
from logyard_projections.view import Mark, View

_DIALECT = Dialect(
    mark="?",
    types={str: "TEXT", int: "INTEGER", float: "REAL"},
    bytes_type="BLOB",
    tail=" WITHOUT ROWID",
)
# NORMAL keeps the file whole when the machine stops. The last transactions may be gone then, and
# are folded again from the log.
_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    "PRAGMA wal_autocheckpoint=4000",
    "PRAGMA busy_timeout=10000",
)
_READERS_KEPT = 8
_ROWS_AT_ONCE = (32, 8, 2, 1)
"""Rows that one statement writes. Between two statements other threads may take the interpreter
away; a few sizes let each be prepared once.
"""
_STATEMENTS_KEPT = 256


class SqliteRunner(Runner):
    """One writing connection, and a reading one for each reader: neither waits for the other."""

    def __init__(self, path: Path, projections: Sequence[Projection], *, kept: int = 4096) -> None:
        super().__init__(projections, shared=False, kept=kept)
        self.path = path
        self._lock = Lock()
        self._readers: list[sqlite3.Connection] = []
        self._closed = False
        try:
            self._writer = self._open()
        except sqlite3.DatabaseError:
            # It is no database, or a damaged one. Nothing in it is lost with it.
            for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
                path.with_name(name).unlink(missing_ok=True)
            self._writer = self._open()
        self._puts = {
            table: {count: _put(table, count) for count in _ROWS_AT_ONCE} for table in self.tables
        }
        self._deletes = {
            table: f"DELETE FROM {_DIALECT.name(table)} WHERE key = ?" for table in self.tables
        }

    @contextmanager
    def read(self) -> Generator[View]:
        connection = self._reader()
        try:
            connection.execute("BEGIN")
            mark = _mark(connection.execute("SELECT body FROM mark").fetchone())

            def select(statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
                return connection.execute(statement, values).fetchall()

            yield SqlView(_DIALECT, select, mark)
        finally:
            with suppress(sqlite3.Error):
                connection.rollback()
            self._give_back(connection)

    def copy(self, path: Path) -> bool:
        copied(self.path, path)
        return True

    def close(self) -> None:
        with self._writing, self._lock:
            self._closed = True
            for connection in self._readers:
                connection.close()
            self._readers.clear()
            self._writer.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_STATEMENTS_KEPT,
        )
        try:
            for pragma in _PRAGMAS:
                connection.execute(pragma)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _open(self) -> sqlite3.Connection:
        connection = self._connect()
        try:
            connection.execute("PRAGMA cache_size=-16384")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS checkpoints "
                "(projection TEXT PRIMARY KEY, version TEXT NOT NULL)"
            )
            connection.execute("CREATE TABLE IF NOT EXISTS mark (position INTEGER, body BLOB)")
            found = dict(
                connection.execute("SELECT projection, version FROM checkpoints").fetchall()
            )
            if found == {one.name: one.signature for one in self.projections}:
                self._mark = _mark(connection.execute("SELECT body FROM mark").fetchone())
            else:
                self._recreate(connection)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _recreate(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            names = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' "
                "AND name LIKE 'rows!_%' ESCAPE '!'"
            ).fetchall()
            for (name,) in names:
                connection.execute(f'DROP TABLE "{name}"')
            for table in self.tables:
                for statement in _DIALECT.create(table):
                    connection.execute(statement)
            connection.execute("DELETE FROM checkpoints")
            connection.executemany(
                "INSERT INTO checkpoints VALUES (?, ?)",
                [(one.name, one.signature) for one in self.projections],
            )
            connection.execute("DELETE FROM mark")
            connection.execute("INSERT INTO mark VALUES (0, ?)", (msgspec.msgpack.encode(Mark()),))
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    def _fetch(self, table: Table[Any], key: str) -> Any:
        found = self._writer.execute(
            f"SELECT body FROM {_DIALECT.name(table)} WHERE key = ?", (key,)
        ).fetchone()
        return None if found is None else table.decode(found[0])

    def _find(self, table: Table[Any], column: str, value: Value) -> list[str]:
        found = self._writer.execute(_DIALECT.find(table, column), (stored(value),)).fetchall()
        return [key for (key,) in found]

    def _commit(self, rows: Rows, before: Mark, after: Mark) -> None:
        writer = self._writer
        writer.execute("BEGIN IMMEDIATE")
        try:
            moved = writer.execute(
                "UPDATE mark SET position = ?, body = ? WHERE position = ?",
                (after.position, msgspec.msgpack.encode(after), before.position),
            )
            if moved.rowcount != 1:
                raise RuntimeError(
                    f"{self.path} is no longer at position {before.position}: "
                    "another process writes it"
                )
            for table, changed in rows.changes():
                encode, values = table.encode, table.values
                puts = [(k, *values(row), encode(row)) for k, row in changed if row is not None]
                for start, count in _chunks(len(puts)):
                    some = chain.from_iterable(puts[start : start + count])
                    writer.execute(self._puts[table][count], tuple(some))
                if len(puts) < len(changed):
                    gone = [(key,) for key, row in changed if row is None]
                    writer.executemany(self._deletes[table], gone)
            writer.execute("COMMIT")
        except BaseException:
            writer.execute("ROLLBACK")
            raise

    def _clear(self) -> None:
        self._recreate(self._writer)

    def _reader(self) -> sqlite3.Connection:
        with self._lock:
            if self._closed:
                raise RuntimeError(f"the views in {self.path} are closed")
            if self._readers:
                return self._readers.pop()
        return self._connect()

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._closed and len(self._readers) < _READERS_KEPT:
                self._readers.append(connection)
                return
        connection.close()


def copied(source: Path, target: Path) -> None:
    """Copy the rows in one file, which may be in use, to another. Complete or not at all."""
    part = target.with_name(f"{target.name}.part")
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(part)) as new:
        old.backup(new)
    part.replace(target)


def _put(table: Table[Any], count: int) -> str:
    marks = ", ".join("?" for _ in range(len(table.columns) + 2))
    rows = ", ".join(f"({marks})" for _ in range(count))
    return f"INSERT OR REPLACE INTO {_DIALECT.name(table)} VALUES {rows}"


def _chunks(count: int) -> Iterator[tuple[int, int]]:
    """Where statements start, and how many rows each writes."""
    start = 0
    for size in _ROWS_AT_ONCE:
        while count - start >= size:
            yield start, size
            start += size


def _mark(found: tuple[bytes] | None) -> Mark:
    return Mark() if found is None else msgspec.msgpack.decode(found[0], type=Mark)
