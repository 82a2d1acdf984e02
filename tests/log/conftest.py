"""The storages that every log test runs over."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logyard_engine.log.log import Log, LogReader
from logyard_engine.log.memory import MemoryRecorder
from logyard_engine.log.opening import open_for_reading, open_log
from logyard_engine.log.recorded import RecordedLog, RecordedReader
from tests.log.entries import CLUSTER


class Storage:
    """A place for one log, which can be opened again and again."""

    def __init__(self, log: Callable[[str], Log], reader: Callable[[], LogReader]) -> None:
        self._log = log
        self._reader = reader
        self._opened: list[LogReader] = []

    def open(self, cluster: str = CLUSTER) -> Log:
        log = self._log(cluster)
        self._opened.append(log)
        return log

    def reader(self) -> LogReader:
        reader = self._reader()
        self._opened.append(reader)
        return reader

    def close(self) -> None:
        for log in self._opened:
            log.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    kind: str = request.param
    if kind == "memory":
        recorder = MemoryRecorder()
        made = Storage(
            lambda cluster: RecordedLog(recorder, cluster),
            lambda: RecordedReader(recorder, CLUSTER),
        )
    else:
        place: str = (
            f"sqlite:{tmp_path / 'log.sqlite'}"
            if kind == "sqlite"
            else request.getfixturevalue("postgres_url")
        )
        made = Storage(
            lambda cluster: open_log(place, cluster), lambda: open_for_reading(place, CLUSTER)
        )
    yield made
    made.close()
