"""One runner for each place where rows may live."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from logyard_projections.catalog import PROJECTIONS
from logyard_projections.fold import Projection
from logyard_projections.runners.memory import MemoryRunner
from logyard_projections.runners.postgres import PostgresRunner
from logyard_projections.runners.runner import Runner
from logyard_projections.runners.sqlite import SqliteRunner

Open = Callable[..., Runner]
"""Opens a runner; again with the same `name` gives the same rows (not for memory)."""


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which runner."""
    return str(request.param)


@pytest.fixture
def open_runner(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens runners, and closes them after the test."""
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else ""
    opened: list[Runner] = []

    def open_one(
        name: str = "views", projections: Sequence[Projection] = PROJECTIONS, kept: int = 4096
    ) -> Runner:
        runner: Runner
        if kind == "memory":
            runner = MemoryRunner(projections)
        elif kind == "sqlite":
            runner = SqliteRunner(tmp_path / f"{name}.sqlite", projections, kept=kept)
        else:
            runner = PostgresRunner(url, projections, schema=name, kept=kept)
        opened.append(runner)
        return runner

    yield open_one
    for runner in opened:
        runner.close()
