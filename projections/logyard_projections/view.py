"""How views are asked: rows as of one position, and pages of them in a stable order."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from typing import Any, Generic, Protocol, TypeVar
from zlib import crc32

import msgspec

from logyard_projections.feed import Unread
from logyard_projections.tables import Table, Value, stored

R = TypeVar("R", bound=msgspec.Struct)
LIMIT_MAX = 1000
Wanted = Value | tuple[Value, ...]
"""One value, or any of several."""


class BadToken(ValueError):
    """A page token that was not given out for this question."""


class Page(msgspec.Struct, Generic[R], frozen=True):
    """Some rows, and the token that goes on after them; empty at the end."""

    rows: tuple[R, ...]
    token: str


class Mark(msgspec.Struct, frozen=True):
    """How far rows have come: position, instant and chain of the last record in them.

    `stale` are the records that were passed over (the first few), because their types are unknown.
    """

    position: int = 0
    at: int = 0
    chain: str = ""
    stale: tuple[Unread, ...] = ()


class View(Protocol):
    """All rows as of one position. Valid within the `with` block that it was opened by."""

    @property
    def mark(self) -> Mark: ...

    def get(self, table: Table[R], key: str) -> R | None:
        """The row with that key."""
        ...

    def get_many(self, table: Table[R], keys: Iterable[str]) -> dict[str, R]:
        """The rows with these keys, those that there are, by key."""
        ...

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
        """Rows that fulfil all conditions, sorted by the column `order` and then by key.

        where: columns and the value, or values, that they must have
        unless: columns and the values that they must not have
        prefix, most: the beginning of keys, and the largest key
        after: token of the page before; raises BadToken where it belongs to another question
        """
        ...


class Query(msgspec.Struct, frozen=True):
    """The conditions of a scan, checked."""

    where: dict[str, Wanted]
    unless: dict[str, tuple[Value, ...]]
    prefix: str
    most: str
    order: str
    descending: bool
    after: tuple[Value, str] | None
    limit: int


def query(
    table: Table[Any],
    where: Mapping[str, Wanted] | None,
    unless: Mapping[str, tuple[Value, ...]] | None,
    prefix: str,
    most: str,
    order: str,
    descending: bool,
    after: str,
    limit: int,
) -> Query:
    """A checked query. Raises ValueError for a column that the table does not have, or BadToken."""
    for column in (*(where or ()), *(unless or ()), *((order,) if order else ())):
        if column not in table.columns:
            known = ", ".join(table.columns) or "none"
            raise ValueError(f"{table.name} cannot be asked by {column!r}; there are: {known}")
    return Query(
        {column: _wanted(value) for column, value in (where or {}).items()},
        {column: _any_of(values) for column, values in (unless or {}).items()},
        prefix,
        most,
        order,
        descending,
        read_token(table, order, descending, after),
        max(1, min(limit, LIMIT_MAX)),
    )


def token(table: Table[Any], order: str, descending: bool, value: Value | None, key: str) -> str:
    """The token of the page after the row with that value of the order column and that key."""
    packed = msgspec.msgpack.encode([_fingerprint(table, order, descending), value, key])
    return urlsafe_b64encode(packed).decode().rstrip("=")


def read_token(
    table: Table[Any], order: str, descending: bool, text: str
) -> tuple[Value, str] | None:
    """Order value and key in a token; None for an empty one. Raises BadToken."""
    if not text:
        return None
    try:
        packed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        question, value, key = msgspec.msgpack.decode(packed, type=tuple[int, Value | None, str])
    except (ValueError, msgspec.DecodeError):
        raise BadToken("this page token cannot be read; start again without one") from None
    kind = table.columns.get(order)
    right = value is None if kind is None else isinstance(value, (kind, int))
    if question != _fingerprint(table, order, descending) or not right:
        raise BadToken("this page token belongs to another question; start again without one")
    return ("" if value is None else value), key


def _fingerprint(table: Table[Any], order: str, descending: bool) -> int:
    return crc32(f"{table.name} {order} {descending}".encode())


def _wanted(value: Wanted) -> Wanted:
    if isinstance(value, tuple):
        return _any_of(value)
    kept = stored(value)
    assert kept is not None
    return kept


def _any_of(values: tuple[Value, ...]) -> tuple[Value, ...]:
    return tuple(kept for value in values if (kept := stored(value)) is not None)
