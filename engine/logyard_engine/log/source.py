"""Logs to be read from beginning to end: those that are served, and those that were exported."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Protocol

import msgspec

from logyard_domain.codec import Damaged
from logyard_engine.log.log import CannotOpen
from logyard_engine.log.opening import open_for_reading
from logyard_engine.log.transfer import CannotImport, read_lines

SQLITE = b"SQLite format 3\0"
SCHEMES = ("postgresql://", "postgres://", "sqlite:", "memory:")
TAIL_BYTES = 1 << 16


class _Dated(msgspec.Struct, frozen=True):
    at: int


_dated = msgspec.json.Decoder(_Dated)


class Source(Protocol):
    """A log that stands still: from position `first` to `last`, also where it grows meanwhile."""

    first: int
    last: int

    def states(self, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """Positions and bytes of its records after a position. Raises LogTrouble."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class Served:
    """A log that a server appends to, or did: SQLite or PostgreSQL."""

    def __init__(self, place: str | Path) -> None:
        self._reader = open_for_reading(place)
        self.first = 1
        self.last: int = self._reader.position

    def states(self, after: int = 0) -> Iterator[tuple[int, bytes]]:
        return self._reader.read_states(after, self.last)

    def close(self) -> None:
        self._reader.close()


class Exported:
    """A file as `logyard log export` writes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.first, _ = next(self.states(), (0, b""))
        if not self.first:
            raise CannotOpen(f"{path}: the file is empty")
        self.last, _ = next(read_lines(BytesIO(_last_line(path))))

    def states(self, after: int = 0) -> Iterator[tuple[int, bytes]]:
        try:
            with self._path.open("rb") as file:
                for position, state in read_lines(file):
                    if position > after:
                        yield position, state
        except CannotImport as trouble:
            raise CannotOpen(f"{self._path}: {trouble}") from None

    def close(self) -> None:
        """Nothing is kept open."""


def opened(place: str | Path) -> Source:
    """The log at a place: a folder, a file of either kind, or a URL. Raises LogTrouble."""
    if not str(place).startswith(SCHEMES):
        path = Path(place)
        if path.is_file():
            with path.open("rb") as file:
                if file.read(len(SQLITE)) != SQLITE:
                    return Exported(path)
    return Served(place)


def gapless(source: Source, after: int = 0) -> Iterator[tuple[int, bytes]]:
    """The records of a source after a position. Raises Damaged where one is missing."""
    expected = max(after + 1, source.first)
    for position, state in source.states(after):
        if position != expected:
            raise Damaged(expected, f"missing; the next record has position {position}")
        expected += 1
        yield position, state


def instant(source: Source, position: int) -> int:
    """When (ms) the record at a position was written. Raises Damaged where there is none."""
    for _, state in gapless(source, position - 1):
        return dated(position, state)
    raise Damaged(position, f"not on the log, which ends at position {source.last}")


def dated(position: int, state: bytes) -> int:
    """When (ms) the record with these bytes was written."""
    try:
        return _dated.decode(state).at
    except msgspec.DecodeError:
        raise Damaged(position, "these bytes are no record") from None


def _last_line(path: Path) -> bytes:
    size = path.stat().st_size
    length = TAIL_BYTES
    with path.open("rb") as file:
        while True:
            file.seek(max(size - length, 0))
            tail = file.read().rstrip(b"\r\n")
            cut = tail.rfind(b"\n")
            if cut >= 0 or length >= size:
                return tail[cut + 1 :]
            length *= 2
