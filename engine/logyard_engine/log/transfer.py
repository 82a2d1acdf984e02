"""A log as a file of JSON lines, and back, byte for byte.

A line is a record as stored, with its position as the first member::

    {"position":1,"at":1700000000000,"cluster":"main",...,"chain":"..."}
"""

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO

from logyard_domain import codec
from logyard_engine.log.log import Log, LogReader, LogTrouble
from logyard_engine.log.verify import PROGRESS_EVERY, Verified, verify

BATCH_ROWS = 5_000
_PLACE = re.compile(rb'\{"position":([1-9][0-9]{0,17}),')

Progress = Callable[[int], None]


class CannotImport(LogTrouble):
    """The log is not empty, or the file is no whole and sound log of its cluster."""


def export_log(
    log: LogReader,
    out: BinaryIO,
    progress: Progress | None = None,
    *,
    after: int = 0,
    upto: int | None = None,
) -> int:
    """Write the records after `after`, to the end or to `upto`, as lines; returns their number.

    Raises ReadFailed, and OSError when `out` cannot be written to.
    """
    count = 0
    for position, state in log.read_states(after, upto):
        out.write(b'{"position":%d,%b\n' % (position, state[1:]))
        count += 1
        if progress is not None and position % PROGRESS_EVERY == 0:
            progress(position)
    return count


def read_lines(source: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Positions and bytes of the records in `source`. Raises CannotImport naming the line."""
    for number, line in enumerate(source, 1):
        place = _PLACE.match(line)
        if place is None:
            raise CannotImport(f"line {number}: this is no exported record")
        yield int(place[1]), b"{" + line[place.end() :].rstrip(b"\r\n")


def import_log(source: BinaryIO, log: Log, progress: Progress | None = None) -> Verified:
    """Fill the empty `log` with the exported log in `source`, which must be seekable.

    All of `source` is checked before anything is written. Raises CannotImport with line and
    position, with nothing written, or what `Log.take` raises.
    """
    if log.position:
        raise CannotImport(
            f"the log of cluster {log.cluster!r} is not empty: it ends at position {log.position}"
        )
    start = source.tell()
    verified = _check(source, log.cluster)
    source.seek(start)
    batch: list[bytes] = []
    for position, state in read_lines(source):
        batch.append(state)
        if len(batch) == BATCH_ROWS or position == verified.position:
            log.take(batch)
            batch = []
            if progress is not None:
                progress(position)
    return verified


def _check(source: BinaryIO, cluster: str) -> Verified:
    line = 0

    def counted() -> Iterator[tuple[int, bytes]]:
        nonlocal line
        for position, state in read_lines(source):
            line += 1
            yield position, state
            # Only here is the record known to be unchanged; a wrong one is then simply foreign.
            found = codec.decode(position, state).cluster
            if found != cluster:
                raise codec.Damaged(
                    position, f"a record of cluster {found!r}; the log is of {cluster!r}"
                )

    try:
        return verify(counted())
    except (codec.Damaged, codec.UnknownEvent) as trouble:
        raise CannotImport(f"line {line}: {trouble}") from trouble
