"""What only the SQLite runner has to stand: broken files and other writers."""

from pathlib import Path

import pytest

from logyard_projections.catalog import PROJECTIONS
from logyard_projections.runners.sqlite import SqliteRunner
from tests.projections.story import simple


def test_a_file_that_is_no_database_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "views.sqlite"
    path.write_bytes(b"this was a database once" * 1000)
    runner = SqliteRunner(path, PROJECTIONS)
    try:
        assert runner.position == 0
        assert runner.apply(simple().records) == len(simple().records)
    finally:
        runner.close()


def test_two_writers_cannot_mix(tmp_path: Path) -> None:
    records = simple().records
    path = tmp_path / "views.sqlite"
    first, second = SqliteRunner(path, PROJECTIONS), SqliteRunner(path, PROJECTIONS)
    try:
        first.apply(records[:4])
        with pytest.raises(RuntimeError, match="no longer at position 0"):
            second.apply(records)
        first.apply(records)
        assert first.position == len(records)
    finally:
        first.close()
        second.close()


def test_a_closed_runner_is_not_read(tmp_path: Path) -> None:
    runner = SqliteRunner(tmp_path / "views.sqlite", PROJECTIONS)
    runner.close()
    with pytest.raises(RuntimeError, match="are closed"), runner.read():
        pass
