"""Configuration that decisions depend on. It is part of the log, as `config.set` events.

Settings of one process (ports, folders, tokens) are not here: they decide nothing.
"""

from collections.abc import Mapping
from difflib import get_close_matches

import msgspec

Value = int | float | bool | str


class Setting(msgspec.Struct, frozen=True):
    """One key: its default, its limits, and what it means. Durations are in milliseconds."""

    default: Value
    meaning: str
    least: float | None = None
    most: float | None = None


SETTINGS: dict[str, Setting] = {
    "node.lostAfter": Setting(
        60_000, "a node silent for this long is lost and its work requeued (ms)", 100, 86_400_000
    ),
    "workflow.executeTimeout": Setting(
        86_400_000, "execute timeout of a job that sets none (ms)", 1, 366 * 86_400_000
    ),
    "workflow.killGrace": Setting(30_000, "time between SIGTERM and SIGKILL (ms)", 0, 3_600_000),
    "workflow.lostRetries": Setting(
        10, "how often an allocation is requeued because its node was lost", 0, 1_000
    ),
    "scheduler.lookahead": Setting(
        100, "how long the work may be that waits on a node behind equal short work (ms)", 0, 10_000
    ),
    "scheduler.placementsPerTick": Setting(
        10_000, "placements that one tick may make", 1, 1_000_000
    ),
}

DEFAULTS: dict[str, Value] = {key: setting.default for key, setting in SETTINGS.items()}


def checked(values: Mapping[str, Value]) -> dict[str, Value]:
    """All settings, with `values` over the defaults.

    Raises ValueError naming the key, what is wrong with it and what would be right.
    """
    for key, value in values.items():
        setting = SETTINGS.get(key)
        if setting is None:
            near = get_close_matches(key, SETTINGS, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(SETTINGS)}"
            raise ValueError(f"{key}: no such setting{hint}")
        if type(value) is not type(setting.default):
            want = type(setting.default).__name__
            raise ValueError(f"{key}: {value!r} is no {want}; write for instance {setting.default}")
        if isinstance(value, (int, float)):
            if setting.least is not None and value < setting.least:
                raise ValueError(f"{key}: {value} is too small; the least is {setting.least:g}")
            if setting.most is not None and value > setting.most:
                raise ValueError(f"{key}: {value} is too large; the most is {setting.most:g}")
    return DEFAULTS | dict(values)
