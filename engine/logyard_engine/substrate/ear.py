"""What the agent's thread waits for: orders, acknowledgements and finished side work, in one
line.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from logyard_domain.commands import Ended, Report
from logyard_domain.work import Order

Leaving = Literal["leave", "drain", "kill"]


class Opened(msgspec.Struct, frozen=True):
    """A stream is being opened."""


class Closed(msgspec.Struct, frozen=True):
    """The stream broke."""

    reason: str


class Orders(msgspec.Struct, frozen=True):
    """Orders came."""

    orders: Sequence[Order]


class Acknowledged(msgspec.Struct, frozen=True):
    """This report is durable, or has failed."""

    report: Report
    error: BaseException | None


class Over(msgspec.Struct, frozen=True):
    """Work that the agent does itself (data, output) is done; the end can be reported."""

    ended: Ended


class Removed(msgspec.Struct, frozen=True):
    """The volumes of a workflow are gone, or not."""

    workflow: str
    error: str = ""


class Leave(msgspec.Struct, frozen=True):
    """Stop: ``leave`` jobs running, ``drain`` (let them end first), or ``kill`` them."""

    mode: Leaving


Word = Opened | Closed | Orders | Acknowledged | Over | Removed | Leave


class Ear:
    """A queue with a file handle to be watched for edges (``EPOLLET``): one comes after something
    was added that `words` has not given yet. Also the link's `Inbox`.
    """

    def __init__(self) -> None:
        self._words: deque[Word] = deque()
        self._rung = False
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def fileno(self) -> int:
        return self._event

    def say(self, word: Word) -> None:
        """Add a word, from any thread."""
        self._words.append(word)
        if not self._rung:
            self._rung = True
            os.eventfd_write(self._event, 1)

    def words(self) -> list[Word]:
        """Everything said so far."""
        # Before the words are taken: whoever adds one from now on must ring again. What was rung is
        # not read, since each call of the system lets other threads take the interpreter away.
        self._rung = False
        said: list[Word] = []
        while self._words:
            said.append(self._words.popleft())
        return said

    def opened(self) -> None:
        self.say(Opened())

    def orders(self, orders: Sequence[Order]) -> None:
        self.say(Orders(orders))

    def closed(self, reason: str) -> None:
        self.say(Closed(reason))

    def acknowledging(self, report: Report) -> Callable[[BaseException | None], None]:
        """What is to be called when this report is durable, or has failed."""
        return lambda error: self.say(Acknowledged(report, error))
