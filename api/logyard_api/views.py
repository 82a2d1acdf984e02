"""The views inside the server: fed by a thread of their own, asked by the routes."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from threading import Event, Thread
from typing import TypeVar

from logyard_api.past import Past
from logyard_domain.codec import chain_of
from logyard_domain.records import Record
from logyard_engine.log.log import LogReader
from logyard_projections.feed import Fed, read
from logyard_projections.runners.runner import Runner
from logyard_projections.view import Mark, View

GATHER_MAX = 4_000
"""Records that are folded in one transaction when they come faster than they can be folded."""
GATHER_S = 0.1
"""How long records gather while nobody waits for them: fewer and larger transactions."""
QUEUED_MAX = 200_000
"""Records that wait in memory; beyond that they are dropped there and read from the log again."""

T = TypeVar("T")
_log = logging.getLogger("logyard.views")


class Views:
    """Rows made from the log, kept up to date.

    `remote` tells that rows are asked for over a network: then a thread asks, not the event loop.
    `past` gets copies of the rows from time to time.
    """

    def __init__(
        self, runner: Runner, log: LogReader, remote: bool, past: Past | None = None
    ) -> None:
        self._runner = runner
        self._past = past
        self._log = log
        self._remote = remote
        self._queue: SimpleQueue[Sequence[Record] | None] = SimpleQueue()
        self._queued = 0
        self._thread = Thread(target=self._run, name="logyard-views", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._hurry = Event()
        self._woken = False
        self._stopping = False
        self.failure: BaseException | None = None
        self.on_failure: Callable[[BaseException], None] = lambda _: None

    @property
    def position(self) -> int:
        """Last position of the log that is in the rows."""
        return self._runner.position

    @property
    def mark(self) -> Mark:
        """Position, instant and chain of the last record in the rows."""
        return self._runner.mark

    def catch_up(self) -> None:
        """Fold what the log has and the rows have not. Blocks."""
        self._runner.resume(self._chain_at)
        self._runner.apply(self._missing())

    def _chain_at(self, position: int) -> str | None:
        for _, state in self._log.read_states(position - 1, position):
            return chain_of(state)
        return None

    def _missing(self) -> Iterator[Fed]:
        for position, state in self._log.read_states(self._runner.position, None):
            yield read(position, state)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to fold what is fed. `loop` is the event loop that asks."""
        self._loop = loop
        self._thread.start()

    def feed(self, records: Sequence[Record]) -> None:
        """Take records that were just appended. Called in the writer's thread."""
        if self._queued < QUEUED_MAX:
            self._queued += len(records)
            self._queue.put(records)

    def stop(self) -> None:
        """Fold what waits, end the thread, and let go of the rows."""
        self._stopping = True
        self._queue.put(None)
        if self._thread.ident is not None:
            self._thread.join()
        self._runner.close()

    def _run(self) -> None:
        try:
            while self._round():
                pass
        except BaseException as failure:
            self.failure = failure
            _log.critical("the views stopped: %s", failure, exc_info=failure)
            self.on_failure(failure)

    def _round(self) -> bool:
        first = self._queue.get()
        if first is None:
            return False
        if not self._waiting:
            self._hurry.wait(GATHER_S)
        self._hurry.clear()
        batch = list(first)
        while len(batch) < GATHER_MAX and not self._queue.empty():
            more = self._queue.get()
            if more is None:
                self._queue.put(None)
                break
            batch.extend(more)
        self._queued -= len(batch)
        before = self._runner.position
        if batch[0].position > self._runner.position + 1:
            self._runner.apply(self._missing())
        else:
            self._runner.apply(batch)
        self._tell()
        self._copy(before)
        return True

    def _copy(self, before: int) -> None:
        """Keep a copy of the rows from time to time: questions about the past start from it."""
        if self._past is None:
            return
        path = self._past.wants_copy(before, self._runner.position)
        if path is not None:
            try:
                self._runner.copy(path)
            except OSError as trouble:
                _log.warning("no copy of the views was kept: %s", trouble)

    def _tell(self) -> None:
        if self._waiting and not self._woken and self._loop is not None and not self._stopping:
            self._woken = True
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._woken = False
        position = self.position
        still: list[tuple[int, asyncio.Future[None]]] = []
        for wanted, waiter in self._waiting:
            if wanted > position:
                still.append((wanted, waiter))
            elif not waiter.done():
                waiter.set_result(None)
        self._waiting = still

    async def reach(self, position: int, seconds: float) -> bool:
        """Wait until the rows have seen `position`; False when they have not in `seconds`."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (position, waiter)
        self._waiting.append(entry)
        self._hurry.set()
        # The thread may have passed the position before it could see that somebody waits.
        self._wake()
        try:
            async with asyncio.timeout(seconds):
                await waiter
        except TimeoutError:
            return False
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)
        return True

    async def ask(self, question: Callable[[View], T]) -> T:
        """What `question` finds in the rows as of one position."""
        if self._remote:
            return await asyncio.get_running_loop().run_in_executor(None, self.look, question)
        return self.look(question)

    def look(self, question: Callable[[View], T]) -> T:
        """The same, without leaving this thread."""
        with self._runner.read() as view:
            return question(view)
