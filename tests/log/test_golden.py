"""The log of every release can still be read: `tests/golden` holds one of each as JSON lines."""

from pathlib import Path

import pytest

from logyard_domain import codec
from logyard_engine.log.opening import open_log
from logyard_engine.log.transfer import export_log, import_log, read_lines
from logyard_engine.log.verify import verify

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.jsonl"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_a_golden_log_is_read(path: Path, tmp_path: Path) -> None:
    with path.open("rb") as file:
        states = list(read_lines(file))
    assert verify(iter(states)).count == len(states) > 0
    records = [codec.decode(position, state) for position, state in states]
    log = open_log(tmp_path / "log.sqlite", records[0].cluster)
    with path.open("rb") as file:
        import_log(file, log)
    assert log.read(0, len(states) + 1) == records
    with (tmp_path / "again.jsonl").open("wb") as out:
        export_log(log, out)
    log.close()
    assert (tmp_path / "again.jsonl").read_bytes() == path.read_bytes()
