"""What all runners share: batches, positions, waiting, starting over."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import chain, islice
from pathlib import Path
from threading import Condition, RLock
from typing import Any

from logyard_domain.codec import TAGS, UPCASTS
from logyard_projections.feed import Fed, Unread
from logyard_projections.fold import Handler, Projection
from logyard_projections.rows import Rows
from logyard_projections.tables import Table, Value
from logyard_projections.view import Mark, View

BATCH_MAX = 5_000
"""Records that are folded in one transaction."""
STALE_KEPT = 100


class Gap(Exception):
    """Records are missing between what was folded and what was given."""

    def __init__(self, position: int, given: int) -> None:
        super().__init__(
            f"the views are at position {position} and were given position {given}; "
            f"they need {position + 1} next"
        )
        self.position = position
        self.given = given


class OtherLog(Exception):
    """A record is not the one that was folded at its position: this is another log."""


class Runner(ABC):
    """Keeps the rows of some projections and the position that they are at.

    Rows and position change in one transaction. One thread applies; any thread reads and waits.
    """

    def __init__(self, projections: Sequence[Projection], *, shared: bool, kept: int) -> None:
        self.projections = tuple(projections)
        self.tables: tuple[Table[Any], ...] = tuple(
            table for projection in projections for table in projection.tables
        )
        self._rows = Rows(self._fetch, self._find, shared=shared, kept=kept)
        for table in self.tables:
            self._rows.open(table)
        self._handlers: dict[type, list[Handler]] = {}
        for projection in projections:
            for event, handler in projection.handlers.items():
                self._handlers.setdefault(event, []).append(handler)
        self._mark = Mark()
        self._writing = RLock()
        self._moved = Condition()

    @property
    def mark(self) -> Mark:
        """What is committed."""
        return self._mark

    @property
    def position(self) -> int:
        """The last position that is in the rows."""
        return self._mark.position

    def apply(self, records: Iterable[Fed]) -> int:
        """Fold records and commit; the position that was reached.

        Records that are already in the rows are passed over. Raises Gap where some are missing,
        and OtherLog where the record at the present position is not the one that was folded; then
        the batch changed nothing.
        """
        with self._writing:
            pending = iter(records)
            while batch := list(islice(pending, BATCH_MAX)):
                self._batch(batch)
            return self._mark.position

    def wait(self, position: int, timeout: float | None = None) -> bool:
        """Wait until the position is in the rows; False when `timeout` seconds have passed."""
        if self._mark.position >= position:
            return True
        with self._moved:
            return self._moved.wait_for(lambda: self._mark.position >= position, timeout)

    def resume(self, chain_at: Callable[[int], str | None]) -> int:
        """The position after which to feed. `chain_at` is the log's chain at a position, or None.

        Rows of another log are dropped, and so are rows that passed over events which this
        release knows.
        """
        with self._writing:
            mark = self._mark
            known = any(one.tag in TAGS or one.tag in UPCASTS for one in mark.stale)
            if mark.position and (known or chain_at(mark.position) != mark.chain):
                self.reset()
            return self._mark.position

    def rebuild(self, records: Iterable[Fed]) -> int:
        """Drop all rows and fold the log from its first record; the position that was reached."""
        with self._writing:
            self.reset()
            return self.apply(records)

    def reset(self) -> None:
        """Drop all rows."""
        with self._writing:
            self._clear()
            self._rows.forget()
            self._mark = Mark()

    def kept(self) -> dict[str, int]:
        """How many rows of each table the writer keeps in memory."""
        return self._rows.kept()

    def copy(self, path: Path) -> bool:
        """Copy the rows to a file that a runner on SQLite can go on from; False where that cannot
        be.
        """
        return False

    @abstractmethod
    def read(self) -> AbstractContextManager[View]:
        """All rows as of one position, for the `with` block."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is open."""

    @abstractmethod
    def _fetch(self, table: Table[Any], key: str) -> Any:
        """A committed row, or None."""

    @abstractmethod
    def _find(self, table: Table[Any], column: str, value: Value) -> list[str]:
        """Keys of the committed rows that have a value in a column."""

    @abstractmethod
    def _commit(self, rows: Rows, before: Mark, after: Mark) -> None:
        """Write changes and mark in one transaction."""

    @abstractmethod
    def _clear(self) -> None:
        """Drop all rows and the mark."""

    def _batch(self, records: list[Fed]) -> None:
        before = self._mark
        skipped = 0
        for record in records:
            if record.position > before.position:
                break
            if record.position == before.position and record.chain != before.chain:
                raise OtherLog(
                    f"position {record.position} of this log is another record than the one in "
                    "the views; rebuild them"
                )
            skipped += 1
        if skipped == len(records):
            return
        try:
            after = self._fold(records[skipped:], before)
            self._commit(self._rows, before, after)
        except BaseException:
            self._rows.forget()
            raise
        self._rows.settle()
        with self._moved:
            self._mark = after
            self._moved.notify_all()

    def _fold(self, records: list[Fed], before: Mark) -> Mark:
        rows, handlers = self._rows, self._handlers
        position, at, stale = before.position, before.at, before.stale
        for record in records:
            if record.position != position + 1:
                raise Gap(position, record.position)
            position += 1
            if isinstance(record, Unread):
                stale = tuple(islice(chain(stale, (record,)), STALE_KEPT))
                continue
            at = record.at
            for handler in handlers.get(type(record.event), ()):
                handler(rows, record, record.event)
        return Mark(position, at, records[-1].chain, stale)
