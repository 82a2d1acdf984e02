"""Every log that scenarios look at keeps every rule, and its world is the fold of it."""

import pytest

from tests.scenarios.yards import SIEGES, brim, siege, sound


@pytest.mark.parametrize(("seed", "several"), SIEGES)
def test_a_siege_is_sound(seed: int, several: bool) -> None:
    sound(siege(seed, several))


@pytest.mark.parametrize(("seed", "several"), SIEGES)
def test_a_brim_is_sound(seed: int, several: bool) -> None:
    sound(brim(seed, several))
