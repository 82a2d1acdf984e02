"""Any change of the past is found, and where."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logyard_domain import codec
from logyard_engine.log.verify import PROGRESS_EVERY, verify
from tests.log.entries import encoded

COUNT = 24
SOUND = encoded(COUNT)
HEAD = (COUNT, codec.chain_of(SOUND[-1][1]))
places = st.integers(1, COUNT)


def _damaged(states: list[tuple[int, bytes]], head: tuple[int, str] | None = None) -> int:
    with pytest.raises(codec.Damaged) as found:
        verify(iter(states), head=head)
    return found.value.position


def _renumbered(states: list[bytes]) -> list[tuple[int, bytes]]:
    return list(enumerate(states, 1))


def test_a_sound_log() -> None:
    verified = verify(iter(SOUND), head=HEAD)
    assert (verified.count, verified.position, verified.chain) == (COUNT, *HEAD)
    assert verify(iter([])).position == 0


def test_a_part_of_a_sound_log() -> None:
    verified = verify(iter(SOUND[9:]), after=9, chain=codec.chain_of(SOUND[8][1]), head=HEAD)
    assert (verified.count, verified.position, verified.chain) == (COUNT - 9, *HEAD)
    with pytest.raises(codec.Damaged) as found:
        verify(iter(SOUND[9:]), after=9, chain=codec.chain_of(SOUND[7][1]))
    assert found.value.position == 10


@given(places, st.data(), st.integers(1, 255))
def test_a_changed_byte(place: int, data: st.DataObject, change: int) -> None:
    state = bytearray(SOUND[place - 1][1])
    offset = data.draw(st.integers(0, len(state) - 1))
    state[offset] ^= change
    assert _damaged([*SOUND[: place - 1], (place, bytes(state)), *SOUND[place:]]) == place


@given(places, st.data())
def test_bytes_cut_off_or_added(place: int, data: st.DataObject) -> None:
    state = SOUND[place - 1][1]
    cut = data.draw(st.integers(0, len(state) - 1))
    added = state + data.draw(st.binary(min_size=1, max_size=50))
    for wrong in (state[:cut], state[cut + 1 :], added):
        assert _damaged([*SOUND[: place - 1], (place, wrong), *SOUND[place:]]) == place


@given(places)
def test_a_removed_record(place: int) -> None:
    states = [*SOUND[: place - 1], *SOUND[place:]]
    assert _damaged(states, HEAD) == place
    # Whoever removes it may close the gap, too.
    assert _damaged(_renumbered([state for _, state in states]), HEAD) == place


@given(places, places)
def test_two_records_swapped(one: int, other: int) -> None:
    first, last = sorted((one, other))
    states = [state for _, state in SOUND]
    states[first - 1], states[last - 1] = states[last - 1], states[first - 1]
    if first == last:
        assert verify(iter(_renumbered(states))).count == COUNT
    else:
        assert _damaged(_renumbered(states)) == first


@given(places, places)
def test_a_record_twice(which: int, where: int) -> None:
    states = [state for _, state in SOUND]
    states.insert(where - 1, states[which - 1])
    # Behind itself a copy is wrong; in front of itself the copy is right and the original wrong.
    assert _damaged(_renumbered(states)) == (where + 1 if which == where else where)


@given(places)
def test_a_position_twice(place: int) -> None:
    assert _damaged([*SOUND[:place], SOUND[place - 1], *SOUND[place:]]) == place


@given(places, places)
def test_a_record_of_another_history(place: int, head: int) -> None:
    other = encoded(COUNT, seed=1)
    # A foreign first record fits; what follows on it does not.
    expected = place if place > 1 else 2
    assert _damaged([*SOUND[: place - 1], other[place - 1], *SOUND[place:]]) == expected
    # A whole log that is sound in itself is another than the one that was known.
    assert _damaged(other, (head, codec.chain_of(SOUND[head - 1][1]))) == head


@given(st.integers(0, COUNT - 1))
def test_an_end_cut_off_is_found_with_a_known_head(kept: int) -> None:
    assert verify(iter(SOUND[:kept])).position == kept
    assert _damaged(SOUND[:kept], HEAD) == kept + 1


def test_a_wrong_first_position() -> None:
    with pytest.raises(codec.Damaged, match="position 1: missing; the next record has position 2"):
        verify(iter(SOUND[1:]))
    assert _damaged([(0, SOUND[0][1]), *SOUND]) == 0


def test_progress_is_told() -> None:
    heard: list[int] = []
    verify(iter(encoded(2 * PROGRESS_EVERY + 5)), heard.append)
    assert heard == [PROGRESS_EVERY, 2 * PROGRESS_EVERY]
