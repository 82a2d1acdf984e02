"""The only door through which time enters."""

import time
from typing import Protocol

from logyard_domain.identifiers import Millis


class Clock(Protocol):
    """Where the engine reads the time, once a turn."""

    def now(self) -> Millis:
        """The instant: milliseconds since the epoch. May jump when the machine's clock is set."""
        ...

    def monotonic(self) -> float:
        """Seconds from some start; never goes back. For measuring lengths of time."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> Millis:
        return Millis(time.time_ns() // 1_000_000)

    def monotonic(self) -> float:
        return time.monotonic()
