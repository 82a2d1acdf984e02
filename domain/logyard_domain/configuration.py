"""Configuration that decisions depend on. It is part of the log, as `config.set` events.

Settings of one process (ports, folders, tokens) are not here: they decide nothing.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from math import isfinite

import msgspec

from logyard_domain.expressions import DEFAULT_PRIORITY, printed

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
    "usage.halfLife": Setting(
        7 * 86_400_000,
        "time (ms) after which the use of a group or user counts half",
        60_000,
        10_000 * 86_400_000,
    ),
    "scheduler.priority": Setting(
        printed(DEFAULT_PRIORITY), "expression by which what waits is ordered, highest first"
    ),
    "scheduler.interval": Setting(
        1_000,
        "how often (ms) the queue is looked at while priorities move by themselves",
        10,
        60_000,
    ),
    "scheduler.backfill.enabled": Setting(
        True, "let lower priority start early where it delays nothing that was promised"
    ),
    "scheduler.backfill.depth": Setting(
        100_000, "requests behind the first blocked one that one tick looks at", 0, 10_000_000
    ),
    "scheduler.preemption.enabled": Setting(
        False, "let high priority evict preemptible work of low priority"
    ),
    "scheduler.preemption.minRuntime": Setting(
        300_000, "time (ms) that work has run before it may be evicted", 0, 366 * 86_400_000
    ),
    "scheduler.preemption.priorityGap": Setting(
        1.0, "by how much the priority must be higher to evict", 0, 1e9
    ),
    "scheduler.preemption.utilizationThreshold": Setting(
        0.9, "share of the nodes that is in use before anything is evicted", 0, 1
    ),
    "scheduler.preemption.multiVictim.enabled": Setting(
        False, "evict several allocations where no single one makes room"
    ),
    "scheduler.preemption.maxEvictionsPerTick": Setting(
        5, "allocations that one tick may evict", 1, 10_000
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
    found: dict[str, Value] = {}
    for key, value in values.items():
        setting = SETTINGS.get(key)
        if setting is None:
            near = get_close_matches(key, SETTINGS, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(SETTINGS)}"
            raise ValueError(f"{key}: no such setting{hint}")
        if isinstance(setting.default, float) and type(value) is int:
            value = float(value)
        if type(value) is not type(setting.default):
            want = type(setting.default).__name__
            raise ValueError(f"{key}: {value!r} is no {want}; write for instance {setting.default}")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if not isfinite(value):
                raise ValueError(f"{key}: {value} is no number that can be compared with")
            if setting.least is not None and value < setting.least:
                raise ValueError(f"{key}: {value} is too small; the least is {setting.least:g}")
            if setting.most is not None and value > setting.most:
                raise ValueError(f"{key}: {value} is too large; the most is {setting.most:g}")
        found[key] = value
    return DEFAULTS | found
