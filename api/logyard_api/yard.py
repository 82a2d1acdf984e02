"""The running server as the routes see it: where to ask, where to read, where to listen."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from logyard_api.asof import ASKED, Moment, instant_of
from logyard_api.bodies import Answer
from logyard_api.counsel import Counsel
from logyard_api.errors import REFUSAL_CODES, Code, Failure, invalid, missing, unavailable
from logyard_api.metrics import Metrics
from logyard_api.past import Past
from logyard_api.tail import Read, Tail
from logyard_api.views import Views
from logyard_domain.commands import AnyCommand, Refused
from logyard_domain.world import World
from logyard_engine.clock import Clock
from logyard_engine.dispatch import Dispatch
from logyard_engine.loop import InboxFull, Loop, Stopped
from logyard_engine.turn import Receipt
from logyard_projections.view import View
from logyard_projections.workflows import ENDED, WORKFLOWS

PEEK_S = 5.0
"""How long a question waits for the writer to come to it."""
SEEN_S = 10.0
"""How long a reader waits for a view to see a position."""

RESULTS = "results"
OUTPUT = "output"
"""Folders of the data folder."""

T = TypeVar("T")


class Yard:
    """Everything that a route may use.

    `user` is who acts, until people have identities of their own: the login that runs the server.
    """

    def __init__(
        self,
        cluster: str,
        user: str,
        data: Path,
        loop: Loop,
        dispatch: Dispatch,
        tail: Tail,
        read: Read,
        views: Views,
        past: Past,
        counsel: Counsel,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self.cluster = cluster
        self.user = user
        self.results = data / RESULTS
        self.outputs = data / OUTPUT
        self.loop = loop
        self.dispatch = dispatch
        self.tail = tail
        self.read = read
        self.views = views
        self.past = past
        self.counsel = counsel
        self.metrics = metrics
        self.clock = clock
        self.configuring = asyncio.Lock()
        """Held by who changes the configuration: a change is made from what is in force."""
        self.order_streams: dict[str, Callable[[], None]] = {}
        """By node: how to end its open stream of orders."""

    async def ask(self, command: AnyCommand, cause: str, actor: str = "") -> Receipt:
        """Hand a command to the writer, and wait until what follows from it is on disk.

        Raises Failure where it is refused, and where the writer cannot take it.
        """
        try:
            future = self.loop.offer(command, actor or f"user:{self.user}", cause)
            return await settled(future)
        except Refused as refusal:
            raise Failure(REFUSAL_CODES[refusal.kind], refusal.message) from refusal
        except (InboxFull, Stopped) as trouble:
            raise unavailable(str(trouble)) from trouble

    def now(self) -> int:
        """The instant, in milliseconds since the epoch, that the request at hand is about."""
        asked = ASKED.get()
        return int(self.clock.now()) if asked is None else asked[1]

    async def moment(self, text: str) -> Moment:
        """The earlier moment that a text names (see `asof`). Raises Failure where there is none."""
        if text.isdecimal():
            position = int(text)
            if position > self.past.end:
                raise invalid(f"at: {position} is not written yet; the log ends at {self.past.end}")
            at = await asyncio.to_thread(self.past.instant, position)
            return position, at
        try:
            at = instant_of(text, int(self.clock.now()))
        except ValueError as trouble:
            raise invalid(f"at: {trouble}") from trouble
        return await asyncio.to_thread(self.past.position_at, at), at

    async def look(self, question: Callable[[View], T]) -> Answer[T]:
        """What `question` finds in the views, with their position.

        A ValueError of the question is the caller's fault: raises Failure.
        """

        def both(view: View) -> Answer[T]:
            return Answer(question(view), view.mark.position)

        asked = ASKED.get()
        try:
            if asked is not None:
                return await asyncio.to_thread(self.past.look, asked[0], both)
            return await self.views.ask(both)
        except ValueError as trouble:
            raise invalid(str(trouble)) from trouble

    async def find(self, question: Callable[[View], T | None], absent: str) -> Answer[T]:
        """The same, where nothing found means that there is no such thing: raises Failure.

        Before it is said that something is not there, the views see all that is on the log: who
        was just told of a workflow may ask for it.
        """
        answer = await self.look(question)
        end = self.loop.position if ASKED.get() is None else 0
        if answer.value is None and answer.position < end:
            await self.views.reach(end, SEEN_S)
            answer = await self.look(question)
        if answer.value is None:
            raise missing(absent)
        return Answer(answer.value, answer.position)

    async def peek(self, question: Callable[[World], T]) -> T:
        """What `question` finds in the world between two turns, in the writer's thread.

        It must be quick, change nothing, and hand out nothing that the writer changes. Raises
        Failure where the writer does not come to it.
        """
        answer: Future[T] = Future()

        def look(world: World) -> None:
            if answer.set_running_or_notify_cancel():
                try:
                    answer.set_result(question(world))
                except Exception as trouble:
                    answer.set_exception(trouble)

        self.loop.call(look)
        try:
            async with asyncio.timeout(PEEK_S):
                return await settled(answer)
        except TimeoutError:
            raise unavailable("the writer is busy, or has stopped; try again") from None

    async def counts_on(self, node: str) -> bool:
        """Whether the node is registered, and not taken for lost."""

        def look(world: World) -> bool:
            found = world.nodes.get(node)
            return found is not None and found.status != "lost"

        return await self.peek(look)

    def end_streams(self) -> None:
        """End every endless answer: the server stops."""
        self.tail.close()
        for end in list(self.order_streams.values()):
            end()

    async def has_ended(self, workflow: str) -> bool:
        """Whether the views know the workflow, and that it has ended."""
        await self.views.reach(self.loop.position, SEEN_S)
        row = await self.views.ask(lambda view: view.get(WORKFLOWS, workflow))
        return row is not None and row.status in ENDED

    async def must_know(self, workflow: str) -> None:
        """Raises Failure where there is no such workflow."""
        await self.find(lambda view: view.get(WORKFLOWS, workflow), no_workflow(workflow))

    async def seen(self, position: int) -> None:
        """Wait until the views have seen this position. Raises Failure after `SEEN_S` seconds."""
        if self.views.position >= position:
            return
        if position > self.loop.position:
            raise invalid(
                f"after: {position} is not written yet; the log ends at {self.loop.position}"
            )
        if not await self.views.reach(position, SEEN_S):
            raise Failure(
                Code.TIMEOUT,
                f"after: the views are at position {self.views.position}, not yet at {position}",
            )


def no_workflow(id: str) -> str:
    """What is said of a workflow that is not there."""
    return f"there is no workflow {id!r}; `logyard workflow list` shows those that there are"


def settled(future: Future[T]) -> Awaitable[T]:
    """A future of the writer's thread, to be awaited in this event loop."""
    return asyncio.wrap_future(future)
