"""What a projection is: tables, and one fold from records to their rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zlib import crc32

from logyard_domain.records import Record
from logyard_projections.rows import Rows
from logyard_projections.tables import Table

Handler = Callable[[Rows, Record, Any], None]
"""Folds one record with its event (of the type that it is registered for) into rows."""


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

    def fold(self, rows: Rows, record: Record) -> None:
        """Bring the rows from before the record to after it."""
        handler = self.handlers.get(type(record.event))
        if handler is not None:
            handler(rows, record, record.event)

    @property
    def signature(self) -> str:
        """Version and layout; rows that were made under another one are rebuilt."""
        layout = "".join(table.layout for table in self.tables)
        return f"{self.version}:{crc32(layout.encode()):08x}"
