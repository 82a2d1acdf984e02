"""Opening a log by what people write: ``memory:``, a path, ``sqlite:PATH``, ``postgresql://...``."""

from collections.abc import Callable
from pathlib import Path

from logyard_engine.log.log import CannotOpen, Log, LogReader
from logyard_engine.log.memory import MemoryRecorder
from logyard_engine.log.recorded import RecordedLog, RecordedReader, Recorder
from logyard_engine.log.sqlite import open_file, open_file_for_reading

FILE = "log.sqlite"
"""Name of the log in a data folder."""


def open_log(place: str | Path, cluster: str) -> Log:
    """The log of `cluster` to append to, made now if there is none yet.

    `place` is ``memory:``, ``sqlite:PATH``, a path, or a ``postgresql://`` URL; a folder means
    the file `FILE` in it. Raises CannotOpen, and codec.Damaged when the log's end does not hold.
    """
    if not cluster:
        raise CannotOpen("a cluster needs a name")
    if place == "memory:":
        return RecordedLog(MemoryRecorder(), cluster)
    recorder = _open(place, open_file, _open_database)
    try:
        return RecordedLog(recorder, cluster)
    except CannotOpen as trouble:
        recorder.close()
        raise CannotOpen(f"{_shown(place)}: {trouble}") from trouble
    except BaseException:
        recorder.close()
        raise


def open_for_reading(place: str | Path, cluster: str | None = None) -> LogReader:
    """The log at `place` (as for `open_log`), to read, also while a server appends to it.

    Without `cluster` it is the log that is there. Raises CannotOpen when there is none.
    """
    if place == "memory:":
        raise CannotOpen("a log in memory can be read only by the process that holds it")
    recorder = _open(place, open_file_for_reading, _open_database_for_reading)
    try:
        return RecordedReader(recorder, _cluster(recorder, place, cluster))
    except BaseException:
        recorder.close()
        raise


def _open(
    place: str | Path,
    open_path: Callable[[Path], Recorder],
    open_url: Callable[[str], Recorder],
) -> Recorder:
    text = str(place)
    if text.startswith(("postgresql://", "postgres://")):
        return open_url(text)
    scheme, found, _ = text.partition("://")
    if found:
        raise CannotOpen(
            f"{scheme}:// is no kind of log; use a path, sqlite:PATH, memory: or postgresql://..."
        )
    path = Path(text.removeprefix("sqlite:")).absolute()
    return open_path(path / FILE if path.is_dir() else path)


# psycopg takes a quarter of a second to import: only those who use PostgreSQL pay that.


def _open_database(url: str) -> Recorder:
    from logyard_engine.log.postgres import open_database  # noqa: PLC0415

    return open_database(url)


def _open_database_for_reading(url: str) -> Recorder:
    from logyard_engine.log.postgres import open_database_for_reading  # noqa: PLC0415

    return open_database_for_reading(url)


def _cluster(recorder: Recorder, place: str | Path, wanted: str | None) -> str:
    found = recorder.any_cluster()
    if wanted is None:
        if found is None:
            raise CannotOpen(f"{_shown(place)}: the log is empty")
        return found
    if found is not None and found != wanted and not recorder.last_states(wanted, 1):
        raise CannotOpen(
            f"{_shown(place)}: this is the log of cluster {found!r}, not of {wanted!r}"
        )
    return wanted


def _shown(place: str | Path) -> str:
    """A place without user and password."""
    scheme, found, rest = str(place).partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if found else scheme
