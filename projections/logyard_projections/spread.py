"""Lengths of time, counted in slots whose width grows with them: quarters of powers of two."""

from collections.abc import Mapping

BUCKETS = 148
"""Enough for two years."""


def slot(ms: int) -> int:
    """Where a length of time is counted."""
    if ms < 4:
        return max(ms, 0)
    bits = ms.bit_length()
    return min((bits - 2) * 4 + ((ms >> (bits - 3)) & 3), BUCKETS - 1)


def slot_most(number: int) -> int:
    """The longest time (ms) that is counted in a slot."""
    if number < 4:
        return number
    power, quarter = divmod(number, 4)
    return ((5 + quarter) << (power - 1)) - 1


def percentile(counts: Mapping[int, int], share: float) -> int:
    """The length of time (ms) that the given share of what is counted, by slot, does not exceed."""
    wanted = sum(counts.values()) * share
    seen = 0
    for number in sorted(counts):
        seen += counts[number]
        if counts[number] and seen >= wanted:
            return slot_most(number)
    return 0
