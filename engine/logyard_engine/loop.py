"""The one writer: a thread that takes commands from a bounded inbox and makes turns of them.

Own pace: while an append is being flushed, commands gather, and the next turn takes all of them.
Nothing leaves before the append has returned: answers, orders to nodes and records to subscribers
come after.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Protocol

from logyard_domain.commands import AnyCommand, DeclareLost, Refused, StartServer, StopServer
from logyard_domain.records import Record
from logyard_domain.settle import next_due
from logyard_domain.world import World
from logyard_engine.clock import Clock
from logyard_engine.turn import Asked, Engine, Receipt, Turned

INBOX_MAX = 10_000
"""Commands that may wait; more are refused at once instead of queueing ever longer."""
TURN_MAX = 2_000
"""Commands that one turn takes, so that an append stays of bounded size."""
LOOK_S = 0.25
"""How often the loop looks around when nothing happens: silent nodes are found that fast."""

_log = logging.getLogger("logyard.engine")


class InboxFull(Exception):
    """Too many commands wait; try again a little later."""


class Stopped(Exception):
    """The writer has stopped, and says why where it did so on its own."""


class Outbox(Protocol):
    """What hears of every turn, in the loop's thread: the dispatch of orders to nodes."""

    def committed(self, world: World, records: Sequence[Record]) -> None:
        """These records are on disk and the world contains them."""
        ...

    def silent(self, world: World, now_s: float) -> list[DeclareLost]:
        """Nodes that were not heard of for too long (`now_s` is monotonic)."""
        ...


class _Request:
    """A command that waits for its turn."""

    __slots__ = ("asked", "future")

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.future: Future[Receipt] = Future()


def _look_again(_: World) -> None:
    """Asks for a turn without a command."""


class Loop:
    """Start it, offer commands, stop it. One loop owns one log."""

    def __init__(self, engine: Engine, clock: Clock, outbox: Outbox, version: str) -> None:
        self._engine = engine
        self._clock = clock
        self._outbox = outbox
        self._version = version
        self._inbox: SimpleQueue[_Request | Callable[[World], None] | None] = SimpleQueue()
        self._subscribers: list[Callable[[Sequence[Record]], None]] = []
        self._observers: list[Callable[[Turned, float], None]] = []
        self._thread = Thread(target=self._run, name="logyard-loop", daemon=True)
        self._closed = False
        self._look_at = 0.0
        self._turned_at = 0
        self.failure: BaseException | None = None
        """Why the writer stopped on its own; None while all is well."""
        self.on_failure: Callable[[BaseException], None] = lambda _: None

    @property
    def position(self) -> int:
        """Position of the last record on disk."""
        return self._engine.log.position

    def subscribe(self, callback: Callable[[Sequence[Record]], None]) -> None:
        """Call it with the records of every turn, in the loop's thread. It must be quick."""
        self._subscribers.append(callback)

    def observe(self, callback: Callable[[Turned, float], None]) -> None:
        """Call it after every turn with what it did and how many seconds it took (for metrics)."""
        self._observers.append(callback)

    def start(self) -> None:
        """Take the log: the first turn records the new term."""
        self._thread.start()
        self.offer(StartServer(version=self._version), "server", "start").result()

    def offer(self, command: AnyCommand, actor: str, cause: str) -> Future[Receipt]:
        """Put a command into the inbox. The future holds the receipt, or raises Refused or Stopped.

        Raises InboxFull or Stopped at once.
        """
        if self._closed:
            raise Stopped(self._why())
        if self._inbox.qsize() >= INBOX_MAX:
            raise InboxFull(f"{INBOX_MAX} commands wait already; try again in a moment")
        request = _Request(Asked(command, actor, cause))
        self._inbox.put(request)
        return request.future

    def call(self, function: Callable[[World], None]) -> None:
        """Run a function in the loop's thread between two turns. It must not change the world."""
        self._inbox.put(function)

    def stop(self) -> None:
        """Finish what is in the inbox, record the end of the term, and end the thread."""
        if not self._closed:
            self._closed = True
            self._inbox.put(_Request(Asked(StopServer(), "server", "stop")))
            self._inbox.put(None)
        self._thread.join()
        self._refuse_rest()

    def _run(self) -> None:
        try:
            while self._round():
                pass
        except BaseException as failure:
            # The world is ahead of the log now: nothing may be decided from it any more.
            self.failure = failure
            self._closed = True
            _log.critical("the writer stopped: %s", failure, exc_info=failure)
            self._refuse_rest()
            self.on_failure(failure)

    def _round(self) -> bool:
        """Wait for something to do, and do it. False when the loop shall end."""
        requests: list[_Request] = []
        going = self._gather(requests)
        silent = self._silent()
        due = self._due()
        now = self._clock.now()
        if requests or silent or (due is not None and due <= now):
            self._turn(requests, silent)
        return going

    def _silent(self) -> list[DeclareLost]:
        # A look costs as much as there are nodes, so a busy loop does not look in every round.
        now = self._clock.monotonic()
        if now < self._look_at:
            return []
        self._look_at = now + LOOK_S
        return self._outbox.silent(self._engine.world, now)

    def _gather(self, requests: list[_Request]) -> bool:
        timeout = self._patience()
        going = True
        while len(requests) < TURN_MAX:
            try:
                found = self._inbox.get(timeout=timeout) if timeout else self._inbox.get_nowait()
            except Empty:
                break
            timeout = 0.0
            if found is None:
                going = False
                break
            if isinstance(found, _Request):
                requests.append(found)
            else:
                # Calls see the world between turns, so what was asked before them goes first.
                if requests or found is _look_again:
                    self._turn(requests, [])
                    requests.clear()
                found(self._engine.world)
        return going

    def _due(self) -> int | None:
        """When something follows by the mere passing of time (ms)."""
        world = self._engine.world
        due = next_due(world)
        if world.moving and world.lanes:
            look = self._turned_at + int(world.config["scheduler.interval"])
            due = look if due is None else min(due, look)
        return due

    def _patience(self) -> float:
        due = self._due()
        if due is None:
            return LOOK_S
        return min(LOOK_S, max(0.0, (due - self._clock.now()) / 1000))

    def _turn(self, requests: list[_Request], silent: list[DeclareLost]) -> None:
        began = self._clock.monotonic()
        asked = [request.asked for request in requests]
        asked += [Asked(command, "engine", "node.lostAfter") for command in silent]
        try:
            self._turned_at = self._clock.now()
            turned = self._engine.turn(asked, self._turned_at)
        except BaseException as failure:
            for request in requests:
                request.future.set_exception(Stopped(f"the writer stopped: {failure}"))
            raise
        if turned.records:
            self._outbox.committed(self._engine.world, turned.records)
            for subscriber in self._subscribers:
                subscriber(turned.records)
        for request, answer in zip(requests, turned.answers, strict=False):
            if isinstance(answer, Refused):
                request.future.set_exception(answer)
            else:
                request.future.set_result(answer)
        for observer in self._observers:
            observer(turned, self._clock.monotonic() - began)
        if turned.again:
            # The tick stopped at its limit: look again before waiting.
            self._inbox.put(_look_again)

    def _refuse_rest(self) -> None:
        while True:
            try:
                found = self._inbox.get_nowait()
            except Empty:
                return
            if isinstance(found, _Request):
                found.future.set_exception(Stopped(self._why()))

    def _why(self) -> str:
        return f"the writer stopped: {self.failure}" if self.failure else "the server is stopping"
