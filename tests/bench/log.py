"""append and replay."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from logyard_domain.codec import GENESIS, encode
from logyard_domain.events import AllocationPlaced
from logyard_domain.identifiers import Millis
from logyard_domain.records import Entry
from logyard_engine.log.opening import open_log
from logyard_engine.recovery import recover
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import Yard
from tests.bench.figures import Bench, Figure, figure
from tests.bench.floors import inserts_per_second
from tests.engine.work import flow, job


def append() -> Iterator[Figure]:
    """Events a second through the log, encoding and chain included, against raw inserts."""
    for batch, count in ((1, 1_000), (100, 20_000), (1_000, 100_000)):
        runs: list[float] = []
        floors: list[float] = []
        entries = [
            Entry(
                AllocationPlaced(allocation=f"wf-abcdefghij/render/{n}#1", node="n1", revision=1),
                Millis(1_800_000_000_000),
                "scheduler",
                "@123456",
            )
            for n in range(count)
        ]
        states, _ = encode(entries, "main", 0, GENESIS)
        for _ in range(5):
            with tempfile.TemporaryDirectory() as folder:
                floors.append(inserts_per_second(Path(folder) / "raw.sqlite", states, batch))
                log = open_log(Path(folder) / "log.sqlite", "main")
                began = time.perf_counter()
                for start in range(0, count, batch):
                    log.append(entries[start : start + batch])
                runs.append(count / (time.perf_counter() - began))
                log.close()
        target = ">= 0.5" if batch == 1_000 else None
        yield figure(f"append x{batch}", "events/s", runs, floors=floors, target=target)


def replay() -> Iterator[Figure]:
    """A million events of finished arrays and workflows into the world, from SQLite."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.sqlite"
        count = _million(path)
        runs: list[float] = []
        for _ in range(3):
            log = open_log(path, "main")
            began = time.perf_counter()
            world = recover(log)
            runs.append((time.perf_counter() - began) * 1_000_000 / count)
            assert world.position == count
            log.close()
        size = sum(p.stat().st_size for p in Path(folder).iterdir())
    yield figure("replay", "s per 1,000,000 events", runs, target="< 10", note=f"{count:,} events")
    yield figure("replay size", "bytes per event", [size / count])


def _million(path: Path) -> int:
    log = open_log(path, "main")
    yard = Yard(log, {f"n{n}": 64 for n in range(8)}, lambda _: Run(ms=1_000))
    number = 0
    while log.position < 1_000_000:
        number += 1
        yard.submit(flow(a=job(array=(1, 2_000)), b=job(after=("a",))), key=f"k{number}")
        yard.run()
        # Only the log is of interest here.
        yard.records.clear()
    log.close()
    return log.position


BENCHES: dict[str, Bench] = {"append": append, "replay": replay}
