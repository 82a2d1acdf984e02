"""Statements that SQLite and PostgreSQL share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from logyard_projections.tables import Table, Value
from logyard_projections.view import LIMIT_MAX, Mark, Page, Query, Wanted, query, token

R = TypeVar("R", bound=msgspec.Struct)
_AFTER_ALL = "\U0010ffff"
_KEYS_AT_ONCE = 512
Select = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
"""Runs a statement and gives all its rows."""


class Dialect(msgspec.Struct, frozen=True):
    """How a database writes things. `tail` ends CREATE TABLE, `schema` precedes table names."""

    mark: str
    types: dict[type, str]
    bytes_type: str
    tail: str = ""
    schema: str = ""

    def name(self, table: Table[Any]) -> str:
        """The table's name in the database."""
        return f"{self.schema}rows_{table.name}"

    def create(self, table: Table[Any]) -> list[str]:
        """Statements that make the table and its indexes."""
        columns = "".join(f', "{name}" {self.types[kind]}' for name, kind in table.columns.items())
        made = [
            f"CREATE TABLE {self.name(table)} (key {self.types[str]} PRIMARY KEY{columns}, "
            f"body {self.bytes_type} NOT NULL){self.tail}"
        ]
        for number, index in enumerate(table.indexes):
            some = " AND ".join(f'"{column}" IS NOT NULL' for column in index)
            quoted = ", ".join(f'"{column}"' for column in index)
            made.append(
                f"CREATE INDEX rows_{table.name}_{number} ON {self.name(table)} ({quoted}, key) "
                f"WHERE {some}"
            )
        return made

    def drop(self, table: Table[Any]) -> str:
        """Statement that removes the table."""
        return f"DROP TABLE IF EXISTS {self.name(table)}"

    def find(self, table: Table[Any], column: str) -> str:
        """Statement for the keys of rows that have a value in a column."""
        return f'SELECT key FROM {self.name(table)} WHERE "{column}" = {self.mark}'

    def select(self, table: Table[Any], asked: Query) -> tuple[str, list[Any]]:
        """Statement and parameters for one row more than the page holds."""
        mark, conditions, values = self.mark, list[str](), list[Any]()
        for name, wanted in asked.where.items():
            if isinstance(wanted, tuple):
                conditions.append(_among(name, "IN", mark, wanted))
                values.extend(wanted)
            else:
                conditions.append(f'"{name}" = {mark}')
                values.append(wanted)
        for name, unwanted in asked.unless.items():
            if unwanted:
                conditions.append(_among(name, "NOT IN", mark, unwanted))
                values.extend(unwanted)
            conditions.append(f'"{name}" IS NOT NULL')
        if asked.prefix or asked.most:
            conditions.append(f"key >= {mark} AND key <= {mark}")
            values.extend((asked.prefix, asked.most or asked.prefix + _AFTER_ALL))
        way, beyond = (" DESC", "<") if asked.descending else ("", ">")
        place = f'"{asked.order}"' if asked.order else ""
        if place:
            conditions.append(f"{place} IS NOT NULL")
        if asked.after is not None and place:
            conditions.append(f"({place}, key) {beyond} ({mark}, {mark})")
            values.extend(asked.after)
        elif asked.after is not None:
            conditions.append(f"key {beyond} {mark}")
            values.append(asked.after[1])
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        order = f"{place}{way}, key{way}" if place else f"key{way}"
        values.append(asked.limit + 1)
        return (
            f"SELECT key, body{', ' + place if place else ''} FROM {self.name(table)}{where} "
            f"ORDER BY {order} LIMIT {mark}"
        ), values


def _among(name: str, word: str, mark: str, values: tuple[Value, ...]) -> str:
    if not values:
        return "FALSE"
    return f'"{name}" {word} ({", ".join(mark for _ in values)})'


class SqlView:
    """Reads within one transaction of a connection."""

    def __init__(self, dialect: Dialect, select: Select, mark: Mark) -> None:
        self._dialect = dialect
        self._select = select
        self._mark = mark

    @property
    def mark(self) -> Mark:
        return self._mark

    def get(self, table: Table[R], key: str) -> R | None:
        dialect = self._dialect
        found = self._select(
            f"SELECT body FROM {dialect.name(table)} WHERE key = {dialect.mark}", (key,)
        )
        return table.decode(found[0][0]) if found else None

    def get_many(self, table: Table[R], keys: Iterable[str]) -> dict[str, R]:
        wanted, found = list(dict.fromkeys(keys)), dict[str, R]()
        for start in range(0, len(wanted), _KEYS_AT_ONCE):
            some = wanted[start : start + _KEYS_AT_ONCE]
            # A few lengths of the list let each statement be prepared once.
            some += some[-1:] * ((1 << (len(some) - 1).bit_length()) - len(some))
            marks = ", ".join(self._dialect.mark for _ in some)
            statement = f"SELECT key, body FROM {self._dialect.name(table)} WHERE key IN ({marks})"
            for key, body in self._select(statement, some):
                found[key] = table.decode(body)
        return found

    def scan(
        self,
        table: Table[R],
        *,
        where: Mapping[str, Wanted] | None = None,
        unless: Mapping[str, tuple[Value, ...]] | None = None,
        prefix: str = "",
        most: str = "",
        order: str = "",
        descending: bool = False,
        after: str = "",
        limit: int = LIMIT_MAX,
    ) -> Page[R]:
        asked = query(table, where, unless, prefix, most, order, descending, after, limit)
        found = self._select(*self._dialect.select(table, asked))
        rows = tuple([table.decode(one[1]) for one in found[: asked.limit]])
        if len(found) <= asked.limit:
            return Page(rows, "")
        last = found[asked.limit - 1]
        value = last[2] if order else None
        return Page(rows, token(table, order, descending, value, last[0]))
