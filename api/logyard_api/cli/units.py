"""Numbers with units, as people read them: spans of time, instants, sizes, counts."""

import time
from datetime import UTC, datetime

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def span(ms: float) -> str:
    """A length of time in two units at most: ``40ms``, ``1.2s``, ``3m 12s``, ``2h 10m``."""
    ms = max(0.0, ms)
    if ms < 1000:
        return f"{ms:.0f}ms" if ms >= 1 else "0s"
    if ms < 10_000:
        return f"{ms / 1000:.1f}s"
    seconds = round(ms / 1000)
    for size, small, unit, lesser in (
        (86_400, 3_600, "d", "h"),
        (3_600, 60, "h", "m"),
        (60, 1, "m", "s"),
    ):
        if seconds >= size:
            rest = seconds % size // small
            return f"{seconds // size}{unit} {rest}{lesser}" if rest else f"{seconds // size}{unit}"
    return f"{seconds}s"


def memory(size_bytes: int) -> str:
    """A size in the largest unit that keeps it at 1 or above: ``120GiB``, ``1.5MiB``, ``0B``."""
    value, unit = float(size_bytes), 0
    while value >= 1024 and unit < len(_SIZES) - 1:
        value, unit = value / 1024, unit + 1
    text = f"{value:.1f}".removesuffix(".0")
    return f"{text}{_SIZES[unit]}"


def hours(core_hours: float) -> str:
    """Core-hours in three digits or so: ``0``, ``0.02``, ``1.5``, ``1,204``."""
    if core_hours >= 100:
        return f"{core_hours:,.0f}"
    return f"{core_hours:.3g}"


def count(number: int) -> str:
    """A whole number with thousands apart: ``48,213``."""
    return f"{number:,}"


def many(number: int, noun: str) -> str:
    """A count and its noun: ``1 node``, ``3 nodes``."""
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {noun}s"


def instant(text: str) -> datetime:
    """The instant that an RFC 3339 text names. Raises ValueError."""
    return datetime.fromisoformat(text)


def millis(text: str | None) -> int:
    """The same in milliseconds since the epoch; 0 where nothing is said."""
    return round(instant(text).timestamp() * 1000) if text else 0


def now_ms() -> int:
    """This moment in milliseconds since the epoch."""
    return round(time.time() * 1000)


def clock(text: str | None, parts: str = "milliseconds") -> str:
    """Local time of day, after the day when that is not today; ``-`` where nothing is said.

    `parts` is ``minutes``, ``seconds`` or ``milliseconds``.
    """
    if not text:
        return "-"
    local = instant(text).astimezone()
    day = "" if local.date() == datetime.now(UTC).astimezone().date() else f"{local.date()} "
    return day + local.time().isoformat(parts)
