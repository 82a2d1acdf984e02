"""The end of the log in memory, and readers that follow it without a gap.

A reader is a position and nothing more: what it needs is taken from the newest records, which are
kept here, and from the log itself when it has fallen behind them. A slow reader costs no memory.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from logyard_domain.records import Record

KEPT_MAX = 20_000
"""Newest records that are kept in memory, at least; at most twice as many."""

GATHER_S = 0.003
"""How often, at most, readers are told that there is more."""

BATCH_MAX = 500
"""Records that are handed to a reader at once."""

Read = Callable[[int, int], Sequence[Record]]
"""The records after a position, at most so many, from the log. May block."""


class Tail:
    """Fed by the writer's thread, read by the event loop."""

    def __init__(self, read: Read, position: int) -> None:
        self._read = read
        self._kept: list[Record] = []
        self.position = position
        self._first = position + 1
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: set[asyncio.Future[None]] = set()
        self._incoming: deque[Sequence[Record]] = deque()
        self._woken = False
        self._taken_at = 0.0
        self.closed = False

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Name the event loop that readers live in. Before that, nothing may be read."""
        self._loop = loop
        self._take()

    def feed(self, records: Sequence[Record]) -> None:
        """Take records that were just appended. Called in the writer's thread."""
        self._incoming.append(records)
        if self._loop is not None and not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._take_soon, self._loop)

    def _take_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        # The first record after a pause goes on at once; in a stream of them a few gather.
        due = self._taken_at + GATHER_S
        if loop.time() < due:
            loop.call_at(due, self._take)
        else:
            self._take()

    def _take(self) -> None:
        self._woken = False
        if self._loop is not None:
            self._taken_at = self._loop.time()
        while self._incoming:
            self._kept.extend(self._incoming.popleft())
        if len(self._kept) > 2 * KEPT_MAX:
            # Seldom and much at once: a record costs the same however many are kept.
            del self._kept[:-KEPT_MAX]
        if self._kept:
            self.position = int(self._kept[-1].position)
            self._first = int(self._kept[0].position)
        self._wake()

    def close(self) -> None:
        """End every reader: the server is stopping."""
        self.closed = True
        self._wake()

    def _wake(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()

    async def after(self, position: int, most: int = BATCH_MAX) -> Sequence[Record]:
        """The records after `position` that are there now, at most `most`; none at the end."""
        if position >= self.position:
            return ()
        if position + 1 >= self._first and self._kept:
            start = position + 1 - self._first
            return self._kept[start : start + most]
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, self._read, position, most)

    async def beyond(self, position: int, seconds: float) -> bool:
        """Wait until the log has grown beyond `position`; False when it has not in `seconds`."""
        if self.position > position or self.closed:
            return self.position > position
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            async with asyncio.timeout(seconds):
                await waiter
        except TimeoutError:
            return False
        finally:
            self._waiting.discard(waiter)
        return self.position > position
