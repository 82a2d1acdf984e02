"""Recorder in a PostgreSQL database."""

from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from eventsourcing.persistence import (
    InterfaceError,
    OperationalError,
    PersistenceError,
    ProgrammingError,
    StoredEvent,
)
from eventsourcing.postgres import PostgresAggregateRecorder, PostgresDatastore
from eventsourcing.utils import retry
from psycopg import Connection, Cursor
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import DictRow, dict_row, tuple_row
from psycopg.sql import SQL, Composed, Identifier, Literal

from logyard_engine.log.log import CannotOpen

SCHEMA = 1
TABLE = "logyard_log"
MARK = "Logyard log, schema "
"""How the table's comment begins; the schema's number follows."""

CREATION_LOCK = 0x4C4F4759
CONNECT_TIMEOUT_S = 5
PATIENCE_S = (0.0, 0.2, 1.0, 2.0, 5.0)


class Datastore(PostgresDatastore):
    """A few connections, each of which makes its commits durable before it says so."""

    def __init__(self, url: str, connect_timeout_s: float) -> None:
        said = conninfo_to_dict(url)
        super().__init__(
            dbname=str(said.get("dbname") or ""),
            host=str(said.get("host") or ""),
            port=str(said.get("port") or ""),
            user=str(said.get("user") or ""),
            password=str(said.get("password") or ""),
            connect_timeout=connect_timeout_s,
            max_overflow=4,
            originator_id_type="text",
        )
        # With the rest of the URL (sslmode and the like), for which the library has no arguments.
        self.pool.kwargs = {"row_factory": dict_row} | {
            name: value for name, value in said.items() if value
        }

    def after_connect_func(self) -> Callable[[Connection[Any]], None]:
        inherited = super().after_connect_func()

        def after_connect(connection: Connection[Any]) -> None:
            inherited(connection)
            connection.execute(
                "SELECT set_config('synchronous_commit', 'on', false) "
                "WHERE current_setting('synchronous_commit') = 'off'"
            )

        return after_connect


class PostgresRecorder(PostgresAggregateRecorder):
    """Logs of one or more clusters in the table `logyard_log` of the schema `public`.

    No table lock is taken: a batch starts at the position after one that its writer has seen
    committed, and the primary key admits one batch there. So positions become visible in order.
    """

    def __init__(
        self,
        url: str,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        patience_s: Sequence[float] = PATIENCE_S,
    ) -> None:
        super().__init__(Datastore(url, connect_timeout_s), events_table_name=TABLE)
        self.patience_s = patience_s
        # The composite type that the inherited insert is made with is not needed here.
        self.datastore.db_type_names.discard(self.stored_event_type_name)
        self.sql_create_statements = [
            self.sql_create_statements[self.create_table_statement_index],
            SQL("COMMENT ON TABLE {table} IS {mark}").format(
                table=self._table(), mark=Literal(f"{MARK}{SCHEMA}")
            ),
        ]
        self._insert = self._statement(
            "INSERT INTO {table} (originator_id, originator_version, topic, state) "
            "SELECT %t, %b::bigint + place, topic, state "
            "FROM unnest(%t::text[], %b::bytea[]) WITH ORDINALITY AS given(topic, state, place)"
        )
        self._select = self._statement(
            "SELECT originator_version, state FROM {table} WHERE originator_id = %s "
            "AND originator_version > %s AND originator_version <= %s "
            "ORDER BY originator_version LIMIT %s"
        )
        self._select_last = self._statement(
            "SELECT originator_version, state FROM {table} WHERE originator_id = %s "
            "ORDER BY originator_version DESC LIMIT %s"
        )
        self._select_any = self._statement("SELECT originator_id FROM {table} LIMIT 1")

    def _table(self) -> Identifier:
        return Identifier(self.datastore.schema, self.events_table_name)

    def _statement(self, text: Any) -> Composed:
        return SQL(text).format(table=self._table())

    def _create_table(self, curs: Cursor[DictRow]) -> None:
        # Without it, two that create at the same time make the database's catalogue complain.
        curs.execute("SELECT pg_advisory_xact_lock(%s)", (CREATION_LOCK,))
        super()._create_table(curs)

    def insert_states(
        self, cluster: str, first: int, tags: Sequence[str], states: Sequence[bytes]
    ) -> None:
        with self.datastore.get_connection() as connection, connection.cursor() as cursor:
            self._insert_arrays(cursor, cluster, first, tags, states)

    def _insert_stored_events(
        self, curs: Cursor[DictRow], stored_events: Sequence[StoredEvent], **_: Any
    ) -> None:
        first = stored_events[0]
        for place, event in enumerate(stored_events):
            expected = (first.originator_id, first.originator_version + place)
            if (event.originator_id, event.originator_version) != expected:
                raise ProgrammingError("a batch is of one stream, and in its order")
        self._insert_arrays(
            curs,
            str(first.originator_id),
            first.originator_version,
            [event.topic for event in stored_events],
            [event.state for event in stored_events],
        )

    def _insert_arrays(
        self,
        cursor: Cursor[DictRow],
        cluster: str,
        first: int,
        tags: Sequence[str],
        states: Sequence[bytes],
    ) -> None:
        # Outside a transaction block one statement is one transaction, in one round trip.
        cursor.execute(self._insert, (cluster, first - 1, list(tags), list(states)), prepare=True)

    @retry((InterfaceError, OperationalError), max_attempts=2)
    def select_states(
        self, cluster: str, after: int, upto: int, limit: int
    ) -> list[tuple[int, bytes]]:
        # A table without statistics (a new one) is sorted whole unless both ends are near.
        near = min(upto, after + limit)
        rows = self._rows(self._select, (cluster, after, near, limit))
        if rows or near == upto:
            return rows
        return self._rows(self._select, (cluster, after, upto, limit))

    @retry((InterfaceError, OperationalError), max_attempts=2)
    def last_states(self, cluster: str, limit: int) -> list[tuple[int, bytes]]:
        return self._rows(self._select_last, (cluster, limit))[::-1]

    def any_cluster(self) -> str | None:
        with self.datastore.get_connection() as connection:
            row = connection.cursor(row_factory=tuple_row).execute(self._select_any).fetchone()
        return str(row[0]) if row else None

    def close(self) -> None:
        self.datastore.close()

    def _rows(self, statement: Composed, values: Sequence[object]) -> list[tuple[int, bytes]]:
        with (
            self.datastore.get_connection() as connection,
            connection.cursor(binary=True, row_factory=tuple_row) as cursor,
        ):
            return cursor.execute(statement, values, prepare=True).fetchall()


def open_database(url: str) -> PostgresRecorder:
    """The recorder of the logs in the database at `url`, its table made now if it is not there.

    Raises CannotOpen.
    """
    there = _has_log(url)
    recorder = _recorder(url)
    if not there:
        try:
            recorder.create_table()
        except PersistenceError as trouble:
            recorder.close()
            raise CannotOpen(f"{_named(url)}: {_said(trouble)}") from trouble
    return recorder


def open_database_for_reading(url: str) -> PostgresRecorder:
    """The recorder of the logs in the database at `url`. Raises CannotOpen, also when it has
    none.
    """
    if not _has_log(url):
        raise CannotOpen(f"{_named(url)}: there is no log in this database")
    return _recorder(url)


def _recorder(url: str) -> PostgresRecorder:
    try:
        return PostgresRecorder(url)
    except PersistenceError as trouble:
        raise CannotOpen(f"{_named(url)}: {_said(trouble)}") from trouble


def _has_log(url: str) -> bool:
    # A connection of its own: the pool would only say that it got none in time, not why.
    try:
        said = conninfo_to_dict(url)
    except psycopg.ProgrammingError as trouble:
        raise CannotOpen(f"this is no PostgreSQL URL: {_said(trouble)}") from trouble
    timeout = said.get("connect_timeout") or CONNECT_TIMEOUT_S
    try:
        with psycopg.connect(make_conninfo(url, connect_timeout=timeout)) as connection:
            row = connection.execute(
                "SELECT obj_description(oid, 'pg_class') FROM pg_class WHERE oid = to_regclass(%s)",
                (f"public.{TABLE}",),
            ).fetchone()
    except psycopg.Error as trouble:
        raise CannotOpen(f"{_named(url)}: {_said(trouble)}") from trouble
    if row is None:
        return False
    mark = str(row[0] or "")
    number = mark.removeprefix(MARK)
    if number == mark or not number.isdecimal():
        raise CannotOpen(f"{_named(url)}: its table {TABLE} is no Logyard log")
    if int(number) > SCHEMA:
        raise CannotOpen(
            f"{_named(url)}: a newer release wrote this log (its schema is {number}; "
            f"this release knows {SCHEMA})"
        )
    return True


def _named(url: str) -> str:
    """The database without user and password."""
    said = conninfo_to_dict(url)
    place = str(said.get("host") or "localhost")
    return f"PostgreSQL database {said.get('dbname') or '(default)'} at {place}"


def _said(trouble: BaseException) -> str:
    return " ".join(str(trouble).split()) or type(trouble).__name__
