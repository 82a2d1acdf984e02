"""A log that is written in large pieces: a simulation that is interrupted is simply run again."""

from collections.abc import Iterator, Sequence

from logyard_domain.records import Entry, Record
from logyard_engine.log.log import Log

PIECE = 5_000
"""Records that are held back at most, before they are written at once."""


class BufferedLog:
    """A `Log` over another one, which is as far as this one only after `flush` and `close`."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._entries: list[Entry] = []
        self.last: Sequence[Entry] = ()
        """What the last append was given."""
        self.cluster = log.cluster
        self.position = log.position

    @property
    def chain(self) -> str:
        """As `LogReader.chain`."""
        self.flush()
        return self._log.chain

    def append(self, entries: Sequence[Entry]) -> list[Record]:
        """As `Log.append`, but durable only after `flush`. What has not been written has no chain
        yet, so no records are returned: `last` has what was appended.
        """
        self.last = entries
        self._entries += entries
        self.position += len(entries)
        if len(self._entries) >= PIECE:
            self._let_go()
        return []

    def take(self, states: Sequence[bytes]) -> None:
        """As `Log.take`; written through."""
        self.flush()
        self._log.take(states)
        self.position = self._log.position

    def flush(self) -> None:
        """Write what was held back."""
        self._let_go()

    def read(self, after: int, limit: int) -> list[Record]:
        """As `LogReader.read`."""
        self.flush()
        return self._log.read(after, limit)

    def read_states(self, after: int = 0, upto: int | None = None) -> Iterator[tuple[int, bytes]]:
        """As `LogReader.read_states`."""
        self.flush()
        return self._log.read_states(after, upto)

    def close(self) -> None:
        """Write what was held back, and close the log beneath."""
        try:
            self.flush()
        finally:
            self._log.close()

    def _let_go(self) -> None:
        if self._entries:
            entries, self._entries = self._entries, []
            self._write(entries)

    def _write(self, entries: list[Entry]) -> None:
        self._log.append(entries)
