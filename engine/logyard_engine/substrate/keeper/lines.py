"""What waits to be started until the allocation before it ends, in order."""

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Line = deque[tuple[Any, ...]]

ALLOCATION = 1
"""Where a start message names its allocation."""


class Lines:
    """Start messages behind running allocations. A line moves on to the one that leaves it."""

    __slots__ = ("_behind", "_lines")

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}
        self._behind: dict[str, Line] = {}

    def __contains__(self, allocation: str) -> bool:
        """Whether it waits."""
        return allocation in self._behind

    def __len__(self) -> int:
        """How many wait."""
        return len(self._behind)

    def join(self, message: "tuple[Any, ...]", behind: str) -> None:
        """Wait behind one that runs, or that waits itself."""
        line = self._behind.get(behind)
        if line is None:
            line = self._lines.setdefault(behind, deque())
        line.append(message)
        self._behind[message[ALLOCATION]] = line

    def leave(self, allocation: str) -> None:
        """It shall not be started any more; who waits behind it moves up."""
        line = self._behind.pop(allocation)
        for message in line:
            if message[ALLOCATION] == allocation:
                line.remove(message)
                return

    def following(self, allocation: str) -> "tuple[Any, ...] | None":
        """The message that is due now that this one has ended, if any."""
        line = self._lines.pop(allocation, None)
        if not line:
            return None
        message = line.popleft()
        del self._behind[message[ALLOCATION]]
        if line:
            self._lines[message[ALLOCATION]] = line
        return message
