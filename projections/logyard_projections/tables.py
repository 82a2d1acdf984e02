"""Tables: rows of one type by key, and the columns by which they are found."""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec

R = TypeVar("R", bound=msgspec.Struct)
Value = str | int | float
"""What an index column holds."""

TEXT_MAX = 200
"""Characters of a text that an index column keeps; what is longer is cut, also when asked for."""


class Table(Generic[R]):
    """Rows of one type by key.

    `columns` maps the attributes of a row that can be asked for to their types. An attribute may be
    None: then the row is left out where that column is asked for or sorted by. `indexes` are the
    combinations of columns that are looked up fast; the last one of each may be the order of the
    answer. Ties are broken by key, and keys sort by code point.
    """

    def __init__(
        self,
        name: str,
        row: type[R],
        *,
        columns: Mapping[str, type[Value]] | None = None,
        indexes: Sequence[tuple[str, ...]] = (),
    ) -> None:
        self.name = name
        self.row = row
        self.columns: dict[str, type[Value]] = dict(columns or {})
        self.indexes = tuple(indexes)
        self.encode = msgspec.msgpack.Encoder().encode
        self.decode: Callable[[bytes], R] = msgspec.msgpack.Decoder(row).decode
        names = tuple(self.columns)
        self._texts = any(kind is str for kind in self.columns.values())
        self._attributes: Callable[[R], Any] | None = attrgetter(*names) if names else None
        self._single = len(names) == 1
        for index in self.indexes:
            unknown = [column for column in index if column not in self.columns]
            assert not unknown, f"table {name}: index over {unknown}, which are no columns"

    def values(self, row: R) -> tuple[Value | None, ...]:
        """The row's index columns, in the order of `columns`."""
        if self._attributes is None:
            return ()
        found = self._attributes(row)
        values = (found,) if self._single else found
        return tuple([stored(value) for value in values]) if self._texts else values

    @property
    def layout(self) -> str:
        """Text that changes with the table's shape."""
        fields = [(f.name, str(f.type)) for f in msgspec.structs.fields(self.row)]
        columns = [(name, kind.__name__) for name, kind in self.columns.items()]
        return repr((self.name, fields, columns, self.indexes))


def stored(value: Value | None) -> Value | None:
    """The value as index columns keep it: not too long, and without what a database cannot hold."""
    if type(value) is str and (len(value) > TEXT_MAX or "\0" in value):
        return value[:TEXT_MAX].replace("\0", "\ufffd")
    return value
