"""Logs of earlier releases replay, through the present rules, to a sound world."""

from pathlib import Path

import pytest

from logyard_domain import snapshot
from logyard_domain.codec import TAGS, decode, tag_of
from logyard_domain.evolve import replay
from logyard_domain.world import World
from logyard_engine.log.transfer import read_lines
from tests.engine.golden import everything
from tests.engine.lives import follow_lives

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.jsonl"))


def test_there_is_a_golden_log() -> None:
    assert GOLDEN


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_a_golden_log_replays(path: Path) -> None:
    with path.open("rb") as file:
        records = [decode(position, state) for position, state in read_lines(file)]
    world = World("golden")
    for record in records:
        replay(world, record)
    follow_lives(records)
    assert world.position == len(records)
    assert [w.name for w in world.workflows.values()] == ["never"]
    assert not world.allocations
    data = snapshot.dump(world)
    assert snapshot.dump(snapshot.restore(data)) == data


def test_everything_happens_in_the_scenario() -> None:
    yard = everything()
    yard.check()
    assert {tag_of(record.event) for record in yard.records} == TAGS
