"""The process that is asked about worlds as they were: started when it is needed, told the log up
to the position that a question is about, and ended when nobody asks.

The server's writer and event loop have no part in it: records are read by a thread, and the ticks
that an answer takes are made by the other process.
"""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from threading import Lock

from logyard_api.errors import Code, Failure, unavailable
from logyard_domain import snapshot
from logyard_domain.codec import chain_of
from logyard_engine.advice.inquiry import (
    AskAdvice,
    AskProof,
    AskStanding,
    Begin,
    Failed,
    Replay,
    Told,
    send,
    told,
)
from logyard_engine.log.log import LogReader, LogTrouble
from logyard_engine.snapshots import Snapshot, Snapshots

ASKING_MAX = 2
"""Questions at one time: one is answered, one waits; who comes then is sent away."""
ANSWER_S = 120.0
IDLE_S = 60.0
"""How long the process stays when nobody asks."""
BATCH = 2_000
"""Records that are handed over at once."""

Asked = AskAdvice | AskStanding | AskProof
_log = logging.getLogger("logyard.api")


class Counsel:
    """Asks the process. To be used in one event loop."""

    def __init__(self, log: LogReader, snapshots: Snapshots | None) -> None:
        self._log = log
        self._snapshots = snapshots
        self._asking = 0
        self._turn = asyncio.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._position = 0
        self._idle: asyncio.Task[None] | None = None
        self._closed = False
        self._starting = Lock()

    async def ask(self, position: int, question: Asked) -> Told:
        """The answer from the world as of `position`. Raises Failure."""
        if self._asking >= ASKING_MAX:
            raise Failure(
                Code.EXHAUSTED,
                "advice and proofs are made one at a time, and one waits already; try again",
            )
        self._asking += 1
        try:
            async with self._turn:
                self._stay()
                return await self._within(lambda: self._answer(position, question))
        finally:
            self._asking -= 1
            if not self._asking:
                self._idle = asyncio.create_task(self._leave())

    async def _leave(self) -> None:
        """End the process when nobody has asked for a while."""
        await asyncio.sleep(IDLE_S)
        async with self._turn:
            await asyncio.to_thread(self._end)

    def close(self) -> None:
        """End the process, and start none any more. From any thread."""
        self._closed = True
        with self._starting:
            self._end()

    async def _within(self, work: Callable[[], Told]) -> Told:
        """Do it in a thread, which ends when the process does."""
        doing: Awaitable[Told] = asyncio.to_thread(work)
        task = asyncio.ensure_future(doing)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await asyncio.shield(task)
        except TimeoutError:
            raise Failure(
                Code.TIMEOUT,
                f"no answer was found in {ANSWER_S:.0f} s; the log up to there is long",
            ) from None
        finally:
            if not task.done():
                # Who asked is gone, or has waited long enough: the next one finds it free.
                await asyncio.to_thread(self._end)
                await asyncio.wait([task])

    def _answer(self, position: int, question: Asked) -> Told:
        try:
            process = self._brought_to(position)
            assert process.stdin is not None and process.stdout is not None
            send(process.stdin, question)
            found = told(process.stdout)
        except LogTrouble as trouble:
            raise unavailable(f"the log could not be read: {trouble}") from trouble
        except (OSError, ValueError) as trouble:
            self._end()
            raise unavailable(f"the answer broke off: {trouble}") from trouble
        if found is None:
            self._end()
            raise unavailable("the process that makes advice and proofs ended; try again")
        if isinstance(found, Failed):
            _log.error("advice failed: %s", found.message)
            raise Failure(Code.INTERNAL, f"no answer was found: {found.message}")
        return found

    def _brought_to(self, position: int) -> subprocess.Popen[bytes]:
        """The process, with the world as of `position`."""
        process = self._process
        fresh = process is None or process.poll() is not None
        if process is None or fresh:
            self._end()
            process = self._started()
        assert process.stdin is not None
        if fresh or self._position > position:
            near = self._near(position)
            data = b"" if near is None else near.data
            send(process.stdin, Begin(self._log.cluster, data))
            self._position = 0 if near is None else near.position
        for after, states in self._records(self._position, position):
            send(process.stdin, Replay(after, states))
            self._position = after + len(states)
        if self._position != position:
            raise ValueError(f"the log ends at {self._position}, before position {position}")
        return process

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "logyard_engine.advice.counsel"]
        with self._starting:
            if self._closed:
                raise unavailable("the server stops")
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        return self._process

    def _near(self, position: int) -> Snapshot | None:
        """The nearest snapshot before a position, if it is one of this very log."""
        if self._snapshots is None or not self._snapshots.folder.is_dir():
            return None
        found = self._snapshots.newest(snapshot.FORMAT, position)
        if found is None or not found.position:
            return None
        for _, state in self._log.read_states(found.position - 1, found.position):
            if chain_of(state) == found.chain:
                return found
        return None

    def _records(self, after: int, upto: int) -> Iterator[tuple[int, tuple[bytes, ...]]]:
        batch: list[bytes] = []
        if after < upto:
            for _, state in self._log.read_states(after, upto):
                batch.append(state)
                if len(batch) == BATCH:
                    yield after, tuple(batch)
                    after, batch = after + BATCH, []
        if batch:
            yield after, tuple(batch)

    def _stay(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        # It holds nothing that would have to be kept; its forks are in its process group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            # What was not yet written has nobody to read it.
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
