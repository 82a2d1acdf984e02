"""Between a node and its server: orders come in, reports go out. In the process, or (`http_link`)
over HTTP.

The rules that both sides rely on:

- After every accepted `RegisterNode` of a node, its stream opens anew with a `Sync`. In one
stream a `Sync` comes first, and orders come in the order in which they were decided.
- A report is acknowledged when it is durable, not before. It may be sent twice.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from typing import Protocol

from logyard_domain.commands import RegisterNode, Report
from logyard_domain.work import Order

Done = Callable[[BaseException | None], None]
"""Called once, from any thread: with nothing when it is durable, else with what went wrong."""


class Inbox(Protocol):
    """The agent's ear. All methods may be called from any thread, and return at once."""

    def opened(self) -> None:
        """A stream is about to be asked for: what was decided before now may come in its `Sync`."""
        ...

    def orders(self, orders: Sequence[Order]) -> None:
        """Orders from the stream."""
        ...

    def closed(self, reason: str) -> None:
        """The stream broke, or the node was not registered; the agent registers again."""
        ...


class Link(Protocol):
    """A way to the server."""

    def register(self, node: RegisterNode, inbox: Inbox) -> None:
        """Register the node, and listen to its stream in place of an older one. Returns at once."""
        ...

    def report(self, report: Report, done: Done) -> None:
        """Send a report. Returns at once; the agent sends the next one after `done`."""
        ...

    def heartbeat(self, node: str) -> None:
        """The node lives. Returns at once; may be lost."""
        ...

    def close(self) -> None:
        """Stop listening and sending."""
        ...


class Outputs(Protocol):
    """Brings what jobs write to where the server has it, for nodes whose folder it does not see."""

    def watch(self, allocation: str) -> None:
        """Carry over what this allocation printed, and what it prints from now on."""
        ...

    def finish(self, allocation: str, then: Callable[[], None]) -> None:
        """It prints no more: call `then`, from any thread, when the server has all of it."""
        ...

    def close(self) -> None:
        """Stop carrying. What is missing is carried when the allocation is watched again."""
        ...


class LocalLink:
    """The link of a node that lives in the server's process.

    `offer` puts a command into the engine's inbox; its future is done when what was decided is on
    disk. `beat` tells the engine that the node lives. The engine calls `deliver` after each
    append that has orders for the node, a registration's `Sync` included.
    """

    def __init__(
        self,
        offer: Callable[[RegisterNode | Report], "Future[object]"],
        beat: Callable[[str], None],
    ) -> None:
        self._offer = offer
        self._beat = beat
        self._inbox: Inbox | None = None
        self._open = True

    def deliver(self, orders: Sequence[Order]) -> None:
        """Hand orders to the agent. For the engine's thread; costs next to nothing."""
        if self._inbox is not None:
            self._inbox.orders(orders)

    def register(self, node: RegisterNode, inbox: Inbox) -> None:
        self._inbox = inbox
        inbox.opened()

        def registered(error: BaseException | None) -> None:
            if error is not None:
                inbox.closed(f"the node was not registered: {error}")

        self._send(node, registered)

    def report(self, report: Report, done: Done) -> None:
        self._send(report, done)

    def heartbeat(self, node: str) -> None:
        self._beat(node)

    def close(self) -> None:
        self._open = False
        self._inbox = None

    def _send(self, command: RegisterNode | Report, done: Done) -> None:
        def answered(future: "Future[object]") -> None:
            try:
                done(future.exception())
            except CancelledError as error:
                done(error)

        if not self._open:
            return
        try:
            future = self._offer(command)
        except Exception as error:
            # A full inbox or a stopping engine: the agent tries again.
            done(error)
            return
        future.add_done_callback(answered)
