"""The table of lanes, followed from tick to tick, is the one that is made anew."""

import pytest

from logyard_domain.world import World
from logyard_engine.scheduler.lanes import FEW, Lanes
from tests.projections.story import busy_story, random_story


def told(lanes: Lanes, world: World) -> dict[object, tuple[float, ...]]:
    """What is known of each lane."""
    priorities = lanes.priorities(world, world.at + 7).tolist()
    return {
        lane.key: (
            priorities[row],
            int(lanes.positions[row]),
            int(lanes.indexes[row]),
            int(lanes.shapes[row]),
            int(lanes.limits[row]),
        )
        for row, lane in enumerate(lanes.rows)
    }


@pytest.mark.parametrize("seed", range(12))
def test_what_is_followed_is_what_is_made_anew(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    refresh = Lanes.refresh
    sizes: list[int] = []

    def checked(lanes: Lanes, world: World) -> None:
        refresh(lanes, world)
        if len(world.lanes) >= FEW:
            anew = Lanes()
            # Nothing is left to be followed.
            refresh(anew, world)
            assert told(lanes, world) == told(anew, world)
            sizes.append(len(lanes.rows))

    monkeypatch.setattr(Lanes, "refresh", checked)
    busy_story(seed, 60 + 10 * seed)
    random_story(seed, 90)
    assert len(sizes) > 5
    assert len(set(sizes)) > 2
