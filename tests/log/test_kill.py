"""A writer that is killed loses nothing that it acknowledged."""

import subprocess
import sys
from pathlib import Path
from random import Random

from logyard_domain import codec
from logyard_engine.log.opening import open_for_reading
from logyard_engine.log.verify import verify
from tests.log.entries import CLUSTER

KILLS = 10
ROOT = Path(__file__).parents[2]


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    random = Random(20_240_229)
    acknowledged: dict[int, str] = {}
    for _ in range(KILLS):
        said = _run_and_kill(path, random)
        acknowledged.update(said)
        reader = open_for_reading(path, CLUSTER)
        chains = {0: codec.GENESIS} | {
            position: codec.chain_of(state) for position, state in reader.read_states()
        }
        assert acknowledged.items() <= chains.items()
        last = max(acknowledged)
        verified = verify(reader.read_states(), head=(last, acknowledged[last]))
        assert verified.position == reader.position
        reader.close()
    assert len(acknowledged) > KILLS


def _run_and_kill(path: Path, random: Random) -> list[tuple[int, str]]:
    """What a writer said, which is killed while it appends."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.log.appender", str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        said = [child.stdout.readline() for _ in range(random.randint(1, 60))]
        # The moment within the appends that go on meanwhile.
        for _ in range(random.randint(0, 40_000)):
            pass
        child.kill()
        said += child.stdout.readlines()
    complete = [line.split() for line in said if line.endswith("\n")]
    return [(int(position), chain) for position, chain in complete]
