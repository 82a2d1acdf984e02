"""Rows in memory: for tests, simulation and `--at` questions."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any, TypeVar

import msgspec

from logyard_projections.fold import Projection
from logyard_projections.rows import Rows
from logyard_projections.runners.runner import Runner
from logyard_projections.tables import Table, Value
from logyard_projections.view import LIMIT_MAX, Mark, Page, Query, View, Wanted, query, token

R = TypeVar("R", bound=msgspec.Struct)
_AFTER_ALL = "\U0010ffff"
Entry = tuple[Any, ...]


class Shelf:
    """The committed rows of one table, with a sorted list for its keys and one for each index."""

    def __init__(self, table: Table[Any]) -> None:
        self.table = table
        self.rows: dict[str, Any] = {}
        self.values: dict[str, tuple[Value | None, ...]] = {}
        self.places = {name: place for place, name in enumerate(table.columns)}
        self.indexes: dict[tuple[str, ...], list[Entry]] = {(): []}
        self.indexes.update({index: [] for index in table.indexes})

    def write(self, key: str, row: Any) -> None:
        """Put the row, or delete it where it is None."""
        old = self.values.pop(key, None)
        new = None if row is None else self.table.values(row)
        if row is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = row
            self.values[key] = new or ()
        for index, entries in self.indexes.items():
            before = self._entry(index, old, key)
            after = self._entry(index, new, key)
            if before != after:
                if before is not None:
                    del entries[bisect_left(entries, before)]
                if after is not None:
                    insort(entries, after)

    def found(self, asked: Query) -> Iterator[tuple[Value | None, str]]:
        """Order value and key of all rows that fulfil the conditions, in order."""
        entries = self._candidates(asked)
        for entry in reversed(entries) if asked.descending else entries:
            key: str = entry[-1]
            values = self.values[key]
            if self._fulfils(asked, key, values):
                yield (values[self.places[asked.order]] if asked.order else None), key

    def _candidates(self, asked: Query) -> list[Entry]:
        """A sorted list that holds all that is asked for, cut where the question cuts it."""
        single: dict[str, Value] = {}
        for name, value in asked.where.items():
            if not isinstance(value, tuple):
                single[name] = value
        order = (asked.order,) if asked.order else ()
        best: tuple[str, ...] | None = None
        for index in self.indexes:
            head = index[: len(index) - len(order)] if order else index
            if index[len(head) :] == order and all(name in single for name in head):
                best = index if best is None or len(index) > len(best) else best
        if best is None:
            place = self.places[asked.order]
            values = [(values[place], key) for key, values in self.values.items()]
            return sorted(entry for entry in values if entry[0] is not None)
        beginning = tuple(single[name] for name in best[: len(best) - len(order)])
        low: Entry = beginning
        high: Entry = (*beginning, _Top())
        if not order:
            low = (*beginning, asked.prefix)
            high = (*beginning, asked.most or asked.prefix + _AFTER_ALL)
        found = self.indexes[best]
        start, end = bisect_left(found, low), bisect_right(found, high)
        if asked.after is not None:
            at: Entry = (*beginning, *((asked.after[0],) if order else ()), asked.after[1])
            if asked.descending:
                end = min(end, bisect_left(found, at))
            else:
                start = max(start, bisect_right(found, at))
        return found[start:end]

    def _fulfils(self, asked: Query, key: str, values: tuple[Value | None, ...]) -> bool:
        if asked.prefix and not key.startswith(asked.prefix):
            return False
        if asked.most and key > asked.most:
            return False
        for name, wanted in asked.where.items():
            value = values[self.places[name]]
            if value not in wanted if isinstance(wanted, tuple) else value != wanted:
                return False
        for name, unwanted in asked.unless.items():
            value = values[self.places[name]]
            if value is None or value in unwanted:
                return False
        if asked.after is None:
            return True
        at = (values[self.places[asked.order]], key) if asked.order else ("", key)
        return at < asked.after if asked.descending else at > asked.after

    def _entry(
        self, index: tuple[str, ...], values: tuple[Value | None, ...] | None, key: str
    ) -> Entry | None:
        if values is None:
            return None
        entry = tuple(values[self.places[name]] for name in index)
        return None if None in entry else (*entry, key)


class _Top:
    """Sorts after every value."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True


class MemoryView:
    """Reads the shelves while the lock is held."""

    def __init__(self, shelves: dict[Table[Any], Shelf], mark: Mark) -> None:
        self._shelves = shelves
        self._mark = mark

    @property
    def mark(self) -> Mark:
        return self._mark

    def get(self, table: Table[R], key: str) -> R | None:
        row: R | None = self._shelves[table].rows.get(key)
        return row

    def get_many(self, table: Table[R], keys: Iterable[str]) -> dict[str, R]:
        rows = self._shelves[table].rows
        return {key: rows[key] for key in keys if key in rows}

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
        shelf = self._shelves[table]
        rows: list[R] = []
        last: tuple[Value | None, str] = (None, "")
        for found in shelf.found(asked):
            if len(rows) == asked.limit:
                return Page(tuple(rows), token(table, order, descending, *last))
            rows.append(shelf.rows[found[1]])
            last = found
        return Page(tuple(rows), "")


class MemoryRunner(Runner):
    """Forgets everything with the process. Reading holds off writing: read little at a time."""

    def __init__(self, projections: Sequence[Projection]) -> None:
        super().__init__(projections, shared=True, kept=4096)
        self._lock = RLock()
        self._shelves = {table: Shelf(table) for table in self.tables}

    @contextmanager
    def read(self) -> Generator[View]:
        with self._lock:
            yield MemoryView(self._shelves, self._mark)

    def close(self) -> None:
        """Nothing is open."""

    def _fetch(self, table: Table[Any], key: str) -> Any:
        return self._shelves[table].rows.get(key)

    def _find(self, table: Table[Any], column: str, value: Value) -> list[str]:
        asked = query(table, {column: value}, None, "", "", "", False, "", 1)
        return [key for _, key in self._shelves[table].found(asked)]

    def _commit(self, rows: Rows, before: Mark, after: Mark) -> None:
        with self._lock:
            for table, changed in rows.changes():
                shelf = self._shelves[table]
                for key, row in changed:
                    shelf.write(key, row)
            self._mark = after

    def _clear(self) -> None:
        with self._lock:
            self._shelves = {table: Shelf(table) for table in self.tables}
            self._mark = Mark()
