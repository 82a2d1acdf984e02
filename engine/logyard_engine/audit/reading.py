"""The records of a log in any of its forms: SQLite, PostgreSQL, or exported JSON lines."""

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from logyard_domain.codec import decode
from logyard_domain.records import Record
from logyard_engine.log.log import CannotOpen
from logyard_engine.log.opening import open_for_reading
from logyard_engine.log.transfer import read_lines


class Source:
    """Records to read once; `count` is how many there are, 0 where that is not known."""

    def __init__(self, records: Iterator[Record], count: int) -> None:
        self.records = records
        self.count = count


@contextmanager
def reading(place: str | Path) -> Generator[Source]:
    """Open the log at `place`: a path or URL as for `open_for_reading`, or an exported file.

    Raises LogTrouble where there is none; while reading also codec.Damaged and codec.UnknownEvent.
    """
    path = Path(place)
    if "://" not in str(place) and path.is_file() and _is_text(path):
        with path.open("rb") as lines:
            yield Source((decode(at, state) for at, state in read_lines(lines)), 0)
        return
    with closing(open_for_reading(place)) as log:
        if not log.position:
            raise CannotOpen(f"{place}: the log is empty")
        states = log.read_states()
        yield Source((decode(at, state) for at, state in states), log.position)


def _is_text(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(1) == b"{"
