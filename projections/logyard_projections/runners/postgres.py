"""Rows in a schema of a PostgreSQL database, read and written with array parameters."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg import sql
from psycopg_pool import ConnectionPool

from logyard_projections.fold import Projection
from logyard_projections.rows import Rows
from logyard_projections.runners.runner import Runner
from logyard_projections.runners.sql import Dialect, SqlView
from logyard_projections.tables import Table, Value, stored
from logyard_projections.view import Mark, View

_TYPES: dict[type, str] = {str: 'text COLLATE "C"', int: "bigint", float: "double precision"}
_ARRAYS: dict[type, str] = {str: "text[]", int: "bigint[]", float: "float8[]"}
Connection = psycopg.Connection[tuple[Any, ...]]
READERS_MAX = 8
T = TypeVar("T")


class PostgresRunner(Runner):
    """One writing connection and a pool of reading ones.

    `conninfo` names the database, `schema` is where the tables lie (made when it is not there; it
    belongs to this runner). `wait` sees what this runner itself folds.
    """

    def __init__(
        self,
        conninfo: str,
        projections: Sequence[Projection],
        *,
        schema: str = "logyard_views",
        kept: int = 4096,
    ) -> None:
        super().__init__(projections, shared=False, kept=kept)
        if not schema.isidentifier() or not schema.isascii() or schema != schema.lower():
            raise ValueError(f"{schema!r} is no schema name; use small letters, digits and `_`")
        self._schema = schema
        self._dialect = Dialect(mark="%s", types=_TYPES, bytes_type="bytea", schema=f"{schema}.")
        self._conninfo = conninfo
        self._writer: Connection = psycopg.connect(conninfo, autocommit=True)
        try:
            self._open()
        except BaseException:
            self._writer.close()
            raise
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            conninfo,
            min_size=1,
            max_size=READERS_MAX,
            open=True,
            kwargs={"autocommit": True},
            check=ConnectionPool.check_connection,
        )
        self._puts = {table: self._put(table) for table in self.tables}

    @contextmanager
    def read(self) -> Generator[View]:
        with self._pool.connection() as connection, connection.transaction():
            self._run(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            found = self._run(connection, f"SELECT body FROM {self._schema}.mark")

            def select(statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
                return self._run(connection, statement, values)

            yield SqlView(self._dialect, select, _mark(found))

    def close(self) -> None:
        with self._writing:
            self._pool.close()
            self._writer.close()

    def _run(
        self, connection: Connection, statement: str, values: Sequence[Any] = ()
    ) -> list[tuple[Any, ...]]:
        # Names in statements are our own: a checked schema, and tables and columns of the code.
        cursor = connection.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description is not None else []

    def _open(self) -> None:
        writer, schema = self._writer, self._schema
        with writer.transaction():
            self._run(writer, f"CREATE SCHEMA IF NOT EXISTS {schema}")
            self._run(
                writer,
                f"CREATE TABLE IF NOT EXISTS {schema}.checkpoints "
                "(projection text PRIMARY KEY, version text NOT NULL)",
            )
            self._run(
                writer, f"CREATE TABLE IF NOT EXISTS {schema}.mark (position bigint, body bytea)"
            )
            found = dict(self._run(writer, f"SELECT projection, version FROM {schema}.checkpoints"))
            if found == {one.name: one.signature for one in self.projections}:
                self._mark = _mark(self._run(writer, f"SELECT body FROM {schema}.mark"))
                return
        self._clear()

    def _clear(self) -> None:
        writer, schema = self._writer, self._schema
        with writer.transaction():
            names = self._run(
                writer,
                "SELECT tablename FROM pg_tables WHERE schemaname = %s "
                "AND tablename LIKE 'rows!_%%' ESCAPE '!'",
                (schema,),
            )
            for (name,) in names:
                writer.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(schema, name)))
            for table in self.tables:
                for statement in self._dialect.create(table):
                    self._run(writer, statement)
            self._run(writer, f"DELETE FROM {schema}.checkpoints")
            for one in self.projections:
                self._run(
                    writer,
                    f"INSERT INTO {schema}.checkpoints VALUES (%s, %s)",
                    (one.name, one.signature),
                )
            self._run(writer, f"DELETE FROM {schema}.mark")
            self._run(
                writer,
                f"INSERT INTO {schema}.mark VALUES (0, %s)",
                (msgspec.msgpack.encode(Mark()),),
            )

    def _fetch(self, table: Table[Any], key: str) -> Any:
        statement = f"SELECT body FROM {self._dialect.name(table)} WHERE key = %s"
        found = self._surely(lambda: self._run(self._writer, statement, (key,)))
        return table.decode(found[0][0]) if found else None

    def _find(self, table: Table[Any], column: str, value: Value) -> list[str]:
        statement = self._dialect.find(table, column)
        found = self._surely(lambda: self._run(self._writer, statement, (stored(value),)))
        return [key for (key,) in found]

    def _commit(self, rows: Rows, before: Mark, after: Mark) -> None:
        self._surely(lambda: self._commit_once(rows, before, after))

    def _surely(self, work: Callable[[], T]) -> T:
        """Do it, once more over a new connection where the old one was lost."""
        try:
            return work()
        except psycopg.OperationalError:
            if not self._writer.closed:
                raise
            self._writer = psycopg.connect(self._conninfo, autocommit=True)
            return work()

    def _commit_once(self, rows: Rows, before: Mark, after: Mark) -> None:
        writer, schema = self._writer, self._schema
        with writer.transaction():
            moved = writer.execute(
                f"UPDATE {schema}.mark SET position = %s, body = %s WHERE position = %s".encode(),
                (after.position, msgspec.msgpack.encode(after), before.position),
            )
            if moved.rowcount != 1:
                # A connection lost while committing leaves open whether it was committed.
                if _mark(self._run(writer, f"SELECT body FROM {schema}.mark")) == after:
                    return
                raise RuntimeError(
                    f"schema {schema} is no longer at position {before.position}: "
                    "another process writes it"
                )
            with writer.pipeline():
                self._write(rows)

    def _write(self, rows: Rows) -> None:
        writer = self._writer
        for table, changed in rows.changes():
            puts = [(key, row) for key, row in changed if row is not None]
            gone = [key for key, row in changed if row is None]
            if puts:
                columns = zip(*[table.values(row) for _, row in puts], strict=True)
                writer.execute(
                    self._puts[table],
                    (
                        [key for key, _ in puts],
                        *[list(column) for column in columns],
                        [table.encode(row) for _, row in puts],
                    ),
                )
            if gone:
                name = self._dialect.name(table)
                writer.execute(f"DELETE FROM {name} WHERE key = ANY(%s)".encode(), (gone,))

    def _put(self, table: Table[Any]) -> bytes:
        arrays = ["text[]", *[_ARRAYS[kind] for kind in table.columns.values()], "bytea[]"]
        names = ["key", *[f'"{name}"' for name in table.columns], "body"]
        sets = ", ".join(f"{name} = EXCLUDED.{name}" for name in names[1:])
        return (
            f"INSERT INTO {self._dialect.name(table)} ({', '.join(names)}) "
            f"SELECT * FROM unnest({', '.join(f'%s::{array}' for array in arrays)}) "
            f"ON CONFLICT (key) DO UPDATE SET {sets}"
        ).encode()


def _mark(found: list[tuple[Any, ...]]) -> Mark:
    return msgspec.msgpack.decode(found[0][0], type=Mark) if found else Mark()
