"""The views as they were: rows at an earlier position of the log.

Rows of a position are made by folding the log up to it, from the nearest copy of rows before it.
Copies are files in a folder of their own: some were made on the way while the server ran, some by
earlier questions. All of them are disposable; without them an answer only takes longer.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import TypeVar

import msgspec

from logyard_domain.codec import chain_of
from logyard_engine.log.log import LogReader
from logyard_projections.feed import Fed, read
from logyard_projections.fold import Projection
from logyard_projections.runners.sqlite import SqliteRunner, copied
from logyard_projections.view import View

EVERY = 50_000
"""Positions between two copies that are made on the way."""
COPIES_MAX = 8
"""Copies that are kept, each as large as the views; beyond that those nearest to their neighbours
go.
"""
OPEN_MAX = 4
"""Positions whose rows stay open for the next question."""

T = TypeVar("T")


class _Dated(msgspec.Struct, frozen=True):
    at: int


_decoder = msgspec.json.Decoder(_Dated)


class NoSuchPast(ValueError):
    """A position or an instant that is not on the log."""


class Past:
    """Answers about earlier positions. May be asked from any thread; one at a time folds."""

    def __init__(self, folder: Path, log: LogReader, projections: tuple[Projection, ...]) -> None:
        self._folder = folder
        self._log = log
        self._projections = projections
        self._lock = Lock()
        self._open: dict[int, SqliteRunner] = {}

    def position_at(self, at: int) -> int:
        """The last position whose instant (ms) is not later than `at`; 0 before the first."""
        low, high = 0, self._log.position
        while low < high:
            middle = (low + high + 1) // 2
            if self.instant(middle) <= at:
                low = middle
            else:
                high = middle - 1
        return low

    @property
    def end(self) -> int:
        """The last position that is on the log."""
        return self._log.position

    def instant(self, position: int) -> int:
        """The instant (ms) of a position; 0 before the first. Raises NoSuchPast."""
        if not position:
            return 0
        for _, state in self._log.read_states(position - 1, position):
            return _decoder.decode(state).at
        raise NoSuchPast(f"at: position {position} is not on the log")

    def look(self, position: int, question: Callable[[View], T]) -> T:
        """What `question` finds in the rows as of that position. Blocks while they are made.

        Raises NoSuchPast where the log has no such position.
        """
        if not 0 <= position <= self._log.position:
            raise NoSuchPast(
                f"at: position {position} is not on the log, which ends at {self._log.position}"
            )
        with self._lock, self._runner(position).read() as view:
            return question(view)

    def close(self) -> None:
        """Let go of all rows."""
        with self._lock:
            for runner in self._open.values():
                runner.close()
            self._open.clear()

    def wants_copy(self, before: int, after: int) -> Path | None:
        """Where to copy rows to that went from one position to another, if it is time to."""
        if before // EVERY == after // EVERY:
            return None
        self._folder.mkdir(parents=True, exist_ok=True)
        self._thin_out()
        return self._path(after)

    def _runner(self, position: int) -> SqliteRunner:
        runner = self._open.pop(position, None)
        if runner is None:
            runner = self._made(position)
        self._open[position] = runner
        while len(self._open) > OPEN_MAX:
            self._open.pop(next(iter(self._open))).close()
        return runner

    def _made(self, position: int) -> SqliteRunner:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._path(position)
        if not path.exists():
            before = max((one for one in self._copies() if one <= position), default=None)
            if before is not None:
                copied(self._path(before), path)
        runner = SqliteRunner(path, self._projections)
        runner.resume(self._chain_at)
        if runner.position > position:
            # Not what its name says: made by somebody else, or for another log.
            runner.rebuild(self._records(0, position))
        else:
            runner.apply(self._records(runner.position, position))
        self._thin_out()
        return runner

    def _records(self, after: int, upto: int) -> Iterator[Fed]:
        for position, state in self._log.read_states(after, upto):
            yield read(position, state)

    def _chain_at(self, position: int) -> str | None:
        for _, state in self._log.read_states(position - 1, position):
            return chain_of(state)
        return None

    def _path(self, position: int) -> Path:
        return self._folder / f"rows-{position}.sqlite"

    def _copies(self) -> list[int]:
        found = [re.fullmatch(r"rows-(\d+)\.sqlite", path.name) for path in self._folder.iterdir()]
        return sorted(int(match[1]) for match in found if match)

    def _thin_out(self) -> None:
        copies = self._copies()
        while len(copies) > COPIES_MAX:
            # The one whose neighbours are nearest to each other is missed least.
            gaps = {copies[i]: copies[i + 1] - copies[i - 1] for i in range(1, len(copies) - 1)}
            spare = [one for one in gaps if one not in self._open]
            if not spare:
                return
            least = min(spare, key=lambda one: gaps[one])
            copies.remove(least)
            for ending in ("", "-wal", "-shm"):
                self._path(least).with_name(self._path(least).name + ending).unlink(missing_ok=True)
