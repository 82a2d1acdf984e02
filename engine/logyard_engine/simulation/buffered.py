"""A log that is written in large pieces: a simulation that ends early is simply run again."""

from collections.abc import Iterator, Sequence

from logyard_domain.codec import encode
from logyard_domain.records import Entry, Record
from logyard_engine.log.log import Log

PIECE = 20_000
"""Records that are held back at most, before they are written at once."""


class BufferedLog:
    """A `Log` over another one, which is as far as this one after `flush` and `close` only."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._states: list[bytes] = []
        self.cluster = log.cluster
        self.position = log.position
        self.chain = log.chain

    def append(self, entries: Sequence[Entry]) -> list[Record]:
        """As `Log.append`, but durable only after `flush`."""
        if not entries:
            return []
        states, records = encode(entries, self.cluster, self.position, self.chain)
        self._states += states
        self.position += len(states)
        self.chain = records[-1].chain
        if len(self._states) >= PIECE:
            self.flush()
        return records

    def take(self, states: Sequence[bytes]) -> None:
        """As `Log.take`; written through."""
        self.flush()
        self._log.take(states)
        self.position, self.chain = self._log.position, self._log.chain

    def flush(self) -> None:
        """Write what was held back."""
        if self._states:
            states, self._states = self._states, []
            self._log.take(states)

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
        self.flush()
        self._log.close()
