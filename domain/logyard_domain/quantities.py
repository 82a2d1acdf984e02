"""Sizes and durations as people write them, and as whole bytes and milliseconds."""

import re
from typing import Final

SIZE_BYTES_MAX: Final = 2**63 - 1
DURATION_MS_MAX: Final = 100 * 366 * 24 * 3_600_000

_SIZE = re.compile(r"\s*(\d{1,20})(?:\.(\d{1,20}))?\s*([a-z]*)\s*", re.IGNORECASE | re.ASCII)
_PREFIXES: Final = "kmgtpe"
_SIZE_UNITS: Final = {
    "": 1,
    "b": 1,
    **{
        unit: factor
        for power, prefix in enumerate(_PREFIXES, start=1)
        for unit, factor in (
            (prefix, 1000**power),
            (f"{prefix}b", 1000**power),
            (f"{prefix}i", 1024**power),
            (f"{prefix}ib", 1024**power),
        )
    },
}
_PRINTED_SIZES: Final = [
    (factor, unit)
    for power in range(len(_PREFIXES), 0, -1)
    for factor, unit in (
        (1024**power, f"{_PREFIXES[power - 1].upper()}iB"),
        (1000**power, f"{_PREFIXES[power - 1].upper()}B"),
    )
]

_NS_IN_MS: Final = 1_000_000
_DURATION_UNITS_NS: Final = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ms": _NS_IN_MS,
    "s": 1_000 * _NS_IN_MS,
    "m": 60_000 * _NS_IN_MS,
    "h": 3_600_000 * _NS_IN_MS,
    "d": 86_400_000 * _NS_IN_MS,
}
_DURATION_PART = re.compile(
    r"(\d{1,20})?(?:\.(\d{0,20}))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h|d)", re.ASCII
)
_PRINTED_DURATIONS: Final = ((3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms"))


def parse_size(text: str) -> int:
    """Bytes in `text`: a number with an optional unit, in any letter case.

    Decimal units (`kB`, `MB`, `GB`, `TB`, also `G`), binary ones (`KiB`, `GiB`, also `Gi`),
    fractions (`0.5GiB`, rounded up to whole bytes), a blank before the unit; no unit means bytes.
    Raises ValueError with what would be right.
    """
    match = _SIZE.fullmatch(text)
    factor = _SIZE_UNITS.get(match[3].lower()) if match else None
    if match is None or factor is None:
        raise ValueError(f"`{_shown(text)}` is no size; write for instance 512MiB, 6GB or 1.5GiB")
    size_bytes = _scaled(match[1], match[2] or "", factor)
    if size_bytes > SIZE_BYTES_MAX:
        raise ValueError(f"`{_shown(text)}` is too large; the most is {SIZE_BYTES_MAX} bytes")
    return size_bytes


def format_size(size_bytes: int) -> str:
    """The shortest exact writing of a number of bytes: `1GiB`, `8GB`, `1234`."""
    if size_bytes < 0:
        raise ValueError(f"a size is not negative; this one is {size_bytes}")
    exact = [
        (size_bytes // factor, unit)
        for factor, unit in _PRINTED_SIZES
        if size_bytes and size_bytes % factor == 0
    ]
    number, unit = min(exact, key=lambda one: one[0], default=(size_bytes, ""))
    return f"{number}{unit}"


def parse_duration(text: str) -> int:
    """Milliseconds in `text`, written as in Go (`1h30m`, `1.5h`, `250ms`) or with days (`2d`).

    Rounded up to whole milliseconds. Raises ValueError with what would be right.
    """
    stripped = text.strip()
    if stripped.isascii() and stripped.isdigit():
        if int(stripped[:20]) == 0:
            return 0
        raise ValueError(f"`{_shown(stripped)}` has no unit; write for instance {stripped[:12]}s")
    total_ns = at = 0
    while match := _DURATION_PART.match(stripped, at):
        if not match[1] and not match[2]:
            break
        total_ns += _scaled(match[1] or "0", match[2] or "", _DURATION_UNITS_NS[match[3]])
        at = match.end()
    if at == 0 or at != len(stripped):
        raise ValueError(f"`{_shown(text)}` is no duration; write for instance 2h or 1h30m")
    total_ms = -(-total_ns // _NS_IN_MS)
    if total_ms > DURATION_MS_MAX:
        raise ValueError(
            f"`{_shown(text)}` is too long; the most is {DURATION_MS_MAX // 86_400_000}d"
        )
    return total_ms


def format_duration(duration_ms: int) -> str:
    """A number of milliseconds as `1h30m`, `2s500ms`, `0s`; readable by Go and by us."""
    if duration_ms < 0:
        raise ValueError(f"a duration is not negative; this one is {duration_ms} ms")
    parts: list[str] = []
    rest = duration_ms
    for factor, unit in _PRINTED_DURATIONS:
        number, rest = divmod(rest, factor)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0s"


def _scaled(whole: str, fraction: str, factor: int) -> int:
    divisor: int = 10 ** len(fraction)
    return -(-int(whole + fraction) * factor // divisor)


def _shown(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
