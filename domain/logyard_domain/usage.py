"""What groups and users have used, the longer ago the less.

A use of u core-hours that ended t ago counts u * 2^(-t / half-life), as in Slurm's multifactor
priority (PriorityDecayHalfLife). It is charged whole when the room is given back, so that at any
position of the log it is a sum over the ends before it.
"""

import msgspec

HOUR_MS = 3_600_000
LEAST = 1e-9
"""Core-hours below which nothing is left: decay ends instead of getting denormal."""


class Usage(msgspec.Struct, frozen=True):
    """`core_hours` as they counted at instant `at` (ms)."""

    core_hours: float
    at: int


def decayed(usage: Usage, at: int, half_life_ms: float) -> float:
    """What is left of it at a later instant."""
    left = usage.core_hours * 2.0 ** (-(at - usage.at) / half_life_ms)
    return left if left >= LEAST else 0.0


def charged(usage: Usage | None, core_ms: int, at: int, half_life_ms: float) -> Usage:
    """With a use of `core_ms` core-milliseconds more, which ended at `at`."""
    left = decayed(usage, at, half_life_ms) if usage is not None else 0.0
    return Usage(left + core_ms / HOUR_MS, at)
