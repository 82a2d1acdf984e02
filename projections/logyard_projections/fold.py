"""What a projection is: named tables of keyed rows, and one fold from records to rows."""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from zlib import crc32

import msgspec

from logyard_domain.records import Record

if TYPE_CHECKING:
    from logyard_projections.rows import Rows

R = TypeVar("R", bound=msgspec.Struct)
Value = str | int | float
"""What an index column holds."""
Handler = Callable[["Rows", Record, Any], None]
"""Folds one record with its event (of the type that it is registered for) into rows."""

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


class Projection:
    """A fold with a name. What it folds to depends on records and on nothing else.

    A fold writes rows of its own tables only; it may read rows of projections that are folded
    before it (see `logyard_projections.catalog`). `version` is raised when the same records shall
    give other rows.
    """

    def __init__(
        self,
        name: str,
        version: int,
        tables: Sequence[Table[Any]],
        handlers: Mapping[type, Handler],
    ) -> None:
        self.name = name
        self.version = version
        self.tables = tuple(tables)
        self.handlers = dict(handlers)

    def fold(self, rows: "Rows", record: Record) -> None:
        """Bring the rows from before the record to after it."""
        handler = self.handlers.get(type(record.event))
        if handler is not None:
            handler(rows, record, record.event)

    @property
    def signature(self) -> str:
        """Version and layout; rows that were made under another one are rebuilt."""
        layout = "".join(table.layout for table in self.tables)
        return f"{self.version}:{crc32(layout.encode()):08x}"


def stored(value: Value | None) -> Value | None:
    """The value as index columns keep it: not too long, and without what a database cannot hold."""
    if type(value) is str and (len(value) > TEXT_MAX or "\0" in value):
        return value[:TEXT_MAX].replace("\0", "\ufffd")
    return value
