"""Which moment a question is about: now, or an earlier position of the log."""

from contextvars import ContextVar
from datetime import datetime

from logyard_domain.quantities import parse_duration

Moment = tuple[int, int]
"""A position of the log, and the instant (ms) that counts as now there."""

ASKED: ContextVar[Moment | None] = ContextVar("asked", default=None)
"""The earlier moment that the request at hand is about; None for now."""


def instant_of(text: str, now: int) -> int:
    """The instant (ms) that a text names: ISO 8601 (local time where it has no zone), or how long
    before `now` (``15m``). Raises ValueError with what would be right.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        return round(found.timestamp() * 1000)
    try:
        return now - parse_duration(text.removesuffix(" ago"))
    except ValueError:
        raise ValueError(
            f"{text!r} is neither a position, nor a time, nor how long ago; write for instance "
            "48213, 2026-11-30T14:05 or 15m"
        ) from None
