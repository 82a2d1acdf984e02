"""Rows as a fold sees them: a write-back cache in front of a store.

Within a batch of records a row is read at most once, changed in memory, written at most once.
"""

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any, TypeVar

import msgspec

from logyard_projections.tables import Table, Value, stored

R = TypeVar("R", bound=msgspec.Struct)
_UNKNOWN: Any = object()


class Rows:
    """The rows of all tables, with the changes of the present batch.

    `fetch` reads a committed row, `find` the keys of those that have a value in a column. With
    `shared` the committed row objects are also handed to readers, and a row is copied before its
    first change in a batch. At most twice `kept` unchanged rows of a table stay in memory between
    batches.
    """

    def __init__(
        self,
        fetch: Callable[[Table[Any], str], Any],
        find: Callable[[Table[Any], str, Value], Iterable[str]],
        *,
        shared: bool = False,
        kept: int = 4096,
    ) -> None:
        self._fetch = fetch
        self._find = find
        self._shared = shared
        self._kept = kept
        # Two generations: what was not touched for a whole generation is forgotten.
        self._young: dict[Table[Any], dict[str, Any]] = {}
        self._old: dict[Table[Any], dict[str, Any]] = {}
        self._dirty: dict[Table[Any], dict[str, None]] = {}

    def open(self, table: Table[Any]) -> None:
        """Make a table known."""
        self._young[table] = {}
        self._old[table] = {}
        self._dirty[table] = {}

    def get(self, table: Table[R], key: str) -> R | None:
        """The row, to be read only. `edit` gives one that may be changed."""
        try:
            found: R | None = self._young[table][key]
        except KeyError:
            return self._look_up(table, key)
        return found

    def edit(self, table: Table[R], key: str) -> R | None:
        """The row, to be changed in place; None where there is none.

        Only its attributes may be changed. What they refer to may not, unless the row copies it in
        `__copy__`.
        """
        dirty = self._dirty[table]
        found: R | None
        if key in dirty:
            found = self._young[table][key]
            return found
        found = self.get(table, key)
        if found is None:
            return None
        dirty[key] = None
        if self._shared:
            found = copy(found)
            self._young[table][key] = found
        return found

    def put(self, table: Table[R], key: str, row: R) -> None:
        """Write the row, whether or not there was one. It belongs to the cache from now on."""
        self._young[table][key] = row
        self._dirty[table][key] = None

    def delete(self, table: Table[Any], key: str) -> None:
        """Remove the row, if there is one."""
        self._young[table][key] = None
        self._dirty[table][key] = None

    def matching(self, table: Table[Any], column: str, value: Value) -> list[str]:
        """Keys of the rows that have a value in an indexed column, sorted.

        It costs as much as there are such rows: for what happens seldom, such as a new policy.
        """
        keys = {*self._find(table, column, value), *self._dirty[table]}
        return sorted(
            key
            for key in keys
            if (row := self.get(table, key)) is not None
            and stored(getattr(row, column)) == stored(value)
        )

    def changes(self) -> Iterator[tuple[Table[Any], list[tuple[str, Any]]]]:
        """What the batch changed: for each table keys and rows, None for what was deleted."""
        for table, dirty in self._dirty.items():
            if dirty:
                young = self._young[table]
                yield table, [(key, young[key]) for key in dirty]

    def settle(self) -> None:
        """The changes are committed."""
        for table, dirty in self._dirty.items():
            dirty.clear()
            young = self._young[table]
            if len(young) > self._kept:
                self._old[table] = young
                self._young[table] = {}

    def kept(self) -> dict[str, int]:
        """How many rows of each table are in memory."""
        return {
            table.name: len(young) + len(self._old[table]) for table, young in self._young.items()
        }

    def forget(self) -> None:
        """The changes were not committed, or the store was changed: start from what it holds."""
        for table in self._young:
            self.open(table)

    def _look_up(self, table: Table[R], key: str) -> R | None:
        row = self._old[table].pop(key, _UNKNOWN)
        if row is _UNKNOWN:
            row = self._fetch(table, key)
        self._young[table][key] = row
        found: R | None = row
        return found
