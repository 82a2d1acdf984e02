"""Instants and lengths of time for people and for the wire, from whole milliseconds."""

_DAY_MS = 86_400_000


def rfc3339(at: int) -> str:
    """An instant (milliseconds since the epoch) in UTC, such as ``2026-11-30T07:05:12.034Z``."""
    days, rest = divmod(at, _DAY_MS)
    year, month, day = _civil(days)
    seconds, ms = divmod(rest, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}.{ms:03d}Z"


def lasting(ms: int) -> str:
    """A length of time for people: ``340ms``, ``12s``, ``3m 12s``, ``2h 10m``, ``3d 4h``."""
    if ms < 1000:
        return f"{max(ms, 0)}ms"
    seconds = ms // 1000
    if seconds < 60:
        return f"{seconds}s" if ms >= 10_000 else f"{ms / 1000:.1f}s"
    minutes, second = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}m {second}s" if second else f"{minutes}m"
    hours, minute = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h {minute}m" if minute else f"{hours}h"
    days, hour = divmod(hours, 24)
    return f"{days}d {hour}h" if hour else f"{days}d"


def _civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar."""
    # Years are counted from March, so that the leap day is the last of them.
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day
