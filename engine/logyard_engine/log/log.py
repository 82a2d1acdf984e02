"""What a log is to those who append to it and read it, and what can go wrong with it."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from logyard_domain.records import Entry, Record


class LogTrouble(Exception):
    """Something is wrong with a log or with the way to it. The text is for people."""


class CannotOpen(LogTrouble):
    """There is no log there that this release can open for this cluster."""


class ReadFailed(LogTrouble):
    """Records could not be read (now); the log itself may be sound."""


class Fenced(LogTrouble):
    """Another writer has appended. Nothing of the batch was written."""


class AppendFailed(LogTrouble):
    """The batch was not written, or an earlier one was not and the log accepts no more."""


class InDoubt(LogTrouble):
    """The connection was lost while committing and did not come back: whether the batch was
    written is not known until the log is opened again.
    """


class LogReader(Protocol):
    """A log to read from. It may be read from several threads at once."""

    @property
    def cluster(self) -> str:
        """Whose log this is."""
        ...

    @property
    def position(self) -> int:
        """Position of the last record that this object knows of, 0 when there is none.

        A writer's own appends move it; what others append can be read but does not.
        """
        ...

    @property
    def chain(self) -> str:
        """Chain of the record at `position`, `codec.GENESIS` when there is none."""
        ...

    def read(self, after: int, limit: int) -> list[Record]:
        """At most `limit` records, from the one that follows on position `after`.

        Raises codec.Damaged where a record is missing or unreadable, codec.UnknownEvent where a
        newer release wrote it, ReadFailed where the storage does not answer.
        """
        ...

    def read_states(self, after: int = 0, upto: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Positions and bytes of the records after `after`, to the end or to `upto`, as stored.

        This is the fast way to read much. Nothing is checked, gaps neither; see `verify`. No lock
        or connection is held while the caller works.
        """
        ...

    def close(self) -> None:
        """Let go of files and connections. May be called twice."""
        ...


class Log(LogReader, Protocol):
    """A log to append to, by one thread at a time."""

    def append(self, entries: Sequence[Entry]) -> list[Record]:
        """Write `entries` in one durable transaction, and return them as records.

        When this returns they are on disk. Raises Fenced, AppendFailed or InDoubt, and after any
        of them refuses all further appends with AppendFailed: the writer must end.
        """
        ...

    def take(self, states: Sequence[bytes]) -> None:
        """Append records of this cluster as they are, chain and all, in one transaction.

        Raises codec.Damaged or codec.UnknownEvent, with nothing written, where one does not
        follow on the record before it; otherwise as `append`.
        """
        ...
