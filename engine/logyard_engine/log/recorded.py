"""A log over one of the recorders: the same rules whatever the storage."""

from collections.abc import Callable, Iterator, Sequence
from threading import Event
from typing import Protocol

from eventsourcing.persistence import (
    IntegrityError,
    InterfaceError,
    OperationalError,
    PersistenceError,
)

from logyard_domain import codec
from logyard_domain.events import AnyEvent
from logyard_domain.records import Entry, Record
from logyard_engine.log.log import AppendFailed, CannotOpen, Fenced, InDoubt, ReadFailed

PAGE_ROWS = 5_000
END = 2**63 - 1
"""A position that no log reaches."""


class Recorder(Protocol):
    """What each storage adds to its `eventsourcing` recorder.

    All raise `eventsourcing.persistence.PersistenceError`. `patience_s` says how long to wait
    before each further try when an append ended in a lost connection; where a failed transaction
    is certainly undone it is empty.
    """

    patience_s: Sequence[float]

    def insert_states(
        self, cluster: str, first: int, tags: Sequence[str], states: Sequence[bytes]
    ) -> None:
        """Insert at positions `first` and following, all or nothing, and make it durable.

        Raises IntegrityError when one of the positions is taken.
        """
        ...

    def select_states(
        self, cluster: str, after: int, upto: int, limit: int
    ) -> list[tuple[int, bytes]]:
        """At most `limit` rows with `after` < position <= `upto`, in order: the first ones, and
        none only when there are none.
        """
        ...

    def last_states(self, cluster: str, limit: int) -> list[tuple[int, bytes]]:
        """The last rows, in order."""
        ...

    def any_cluster(self) -> str | None:
        """Name of some cluster that has rows here."""
        ...

    def close(self) -> None: ...


class RecordedReader:
    """A `LogReader` over a recorder, which it owns."""

    def __init__(self, recorder: Recorder, cluster: str) -> None:
        self._recorder = recorder
        self.cluster = cluster
        self.position: int = 0
        self.chain: str = codec.GENESIS
        last = recorder.last_states(cluster, 1)
        if last:
            self.position = last[0][0]
            self.chain = _chain_said(last[0][1])

    def read(self, after: int, limit: int) -> list[Record]:
        records: list[Record] = []
        for expected, (position, state) in enumerate(self._page(after, END, limit), after + 1):
            if position != expected:
                raise codec.Damaged(expected, f"missing; the next record has position {position}")
            records.append(codec.decode(position, state))
        return records

    def read_states(self, after: int = 0, upto: int | None = None) -> Iterator[tuple[int, bytes]]:
        end = END if upto is None else upto
        while page := self._page(after, end, PAGE_ROWS):
            yield from page
            after = page[-1][0]

    def close(self) -> None:
        self._recorder.close()

    def _page(self, after: int, upto: int, limit: int) -> list[tuple[int, bytes]]:
        try:
            return self._recorder.select_states(self.cluster, after, upto, limit)
        except PersistenceError as trouble:
            raise ReadFailed(
                f"the log of cluster {self.cluster!r} cannot be read after position {after}: "
                f"{_said(trouble)}"
            ) from trouble


class RecordedLog(RecordedReader):
    """A `Log` over a recorder, which it owns.

    Raises CannotOpen when the recorder holds another cluster's log, Damaged when the last record
    does not hold to the one before it.
    """

    def __init__(self, recorder: Recorder, cluster: str) -> None:
        super().__init__(recorder, cluster)
        self._refusal = ""
        self._pause: Callable[[float], object] = Event().wait
        if self.position:
            _check_head(recorder.last_states(cluster, 2))
        elif other := recorder.any_cluster():
            raise CannotOpen(f"this is the log of cluster {other!r}, not of {cluster!r}")

    def append(self, entries: Sequence[Entry]) -> list[Record]:
        self._refuse_after_failure()
        if not entries:
            return []
        states, records = codec.encode(entries, self.cluster, self.position, self.chain)
        self._write([TAG_OF[type(entry.event)] for entry in entries], states, records[-1].chain)
        return records

    def take(self, states: Sequence[bytes]) -> None:
        self._refuse_after_failure()
        chain = self.chain
        tags: list[str] = []
        for position, state in enumerate(states, self.position + 1):
            chain = codec.checked(position, state, chain)
            record = codec.decode(position, state)
            if record.cluster != self.cluster:
                raise codec.Damaged(
                    position, f"a record of cluster {record.cluster!r}, not of {self.cluster!r}"
                )
            tags.append(TAG_OF[type(record.event)])
        if tags:
            self._write(tags, states, chain)

    def _refuse_after_failure(self) -> None:
        if self._refusal:
            raise AppendFailed(f"this log accepts no more appends: {self._refusal}")

    def _write(self, tags: Sequence[str], states: Sequence[bytes], chain: str) -> None:
        # Stands while the outcome is open, so that an interrupt leaves a log that refuses.
        self._refusal = "an append did not come to its end"
        try:
            self._insert(tags, states)
        except Exception as trouble:
            self._refusal = str(trouble)
            raise
        self._refusal = ""
        self.position += len(states)
        self.chain = chain

    def _insert(self, tags: Sequence[str], states: Sequence[bytes]) -> None:
        first = self.position + 1
        try:
            self._recorder.insert_states(self.cluster, first, tags, states)
        except IntegrityError as conflict:
            raise self._fenced() from conflict
        except PersistenceError as trouble:
            lost = isinstance(trouble, InterfaceError | OperationalError)
            if not (lost and self._recorder.patience_s):
                raise self._failed(trouble) from trouble
            self._settle(tags, states, trouble)

    def _settle(
        self, tags: Sequence[str], states: Sequence[bytes], trouble: PersistenceError
    ) -> None:
        """Find out whether a batch was written; if it was not, write it.

        Writing it again is safe: its positions are taken once. Where the first try commits after
        it was not found, the second meets a conflict with its own bytes.
        """
        first = self.position + 1
        known = False
        for pause_s in self._recorder.patience_s:
            self._pause(pause_s)
            known = False
            try:
                if self._is_written(states):
                    return
                known = True
                self._recorder.insert_states(self.cluster, first, tags, states)
                return
            except IntegrityError:
                # Somebody's rows are there now; the next look tells whose.
                known = False
            except (InterfaceError, OperationalError) as again:
                trouble = again
            except PersistenceError as final:
                raise self._failed(final) from final
        try:
            if self._is_written(states):
                return
        except PersistenceError as again:
            trouble = again
            known = False
        if known:
            raise self._failed(trouble) from trouble
        raise InDoubt(
            f"the connection was lost while appending after position {self.position} of the log "
            f"of cluster {self.cluster!r} and did not come back: {_said(trouble)}"
        ) from trouble

    def _is_written(self, states: Sequence[bytes]) -> bool:
        found = self._recorder.select_states(self.cluster, self.position, END, len(states))
        if not found:
            return False
        if [state for _, state in found] == list(states):
            return True
        raise self._fenced()

    def _fenced(self) -> Fenced:
        return Fenced(
            f"another writer has appended to the log of cluster {self.cluster!r} "
            f"after position {self.position}"
        )

    def _failed(self, trouble: PersistenceError) -> AppendFailed:
        return AppendFailed(
            f"nothing was appended after position {self.position} of the log of cluster "
            f"{self.cluster!r}: {_said(trouble)}"
        )


TAG_OF: dict[type, str] = {
    member: str(member.__struct_config__.tag) for member in AnyEvent.__args__
}


def _check_head(rows: Sequence[tuple[int, bytes]]) -> None:
    position, state = rows[-1]
    if len(rows) == 1:
        if position != 1:
            raise codec.Damaged(position - 1, f"missing; position {position} is there")
        codec.checked(position, state, codec.GENESIS)
        return
    before, state_before = rows[0]
    if before != position - 1:
        raise codec.Damaged(before + 1, f"missing; the next record has position {position}")
    codec.checked(position, state, _chain_said(state_before))


def _chain_said(state: bytes) -> str:
    """The chain of a record that may be damaged: such a one can be opened for reading."""
    try:
        return codec.chain_of(state)
    except UnicodeDecodeError:
        return ""


def _said(trouble: BaseException) -> str:
    return " ".join(str(trouble).split()) or type(trouble).__name__
