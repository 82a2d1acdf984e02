"""What nodes on other machines call: register, take orders, report, hand over what they made."""

import asyncio
from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

from logyard_api.bodies import Answer, Reply, encode
from logyard_api.errors import invalid, missing, unavailable
from logyard_api.operations import Routes
from logyard_api.yard import Yard
from logyard_domain.commands import RegisterNode, Report
from logyard_domain.work import Order

LINES = "application/x-ndjson"
KEEP_ALIVE_S = 10.0
ORDERS_MAX = 100_000
"""Orders that may wait for a slow node; beyond that its stream is cut, and it asks anew."""
REPORT_BYTES_MAX = 64 * 1024 * 1024

routes = Routes("substrate")


class Accepted(Reply, frozen=True):
    """What was said is on disk.

    position: of the log, at which it is there
    """

    position: int


class Heard(Reply, frozen=True):
    """The node was heard.

    position: last position of the log
    known: whether the node is registered and not lost; if not, it must register again
    """

    position: int
    known: bool


@routes.add("POST", "/v4/substrate/{node}:register")
async def register_node(yard: Yard, node: str, body: RegisterNode) -> Answer[Accepted]:
    """Announce a node, or announce it again."""
    _same(node, body.node)
    receipt = await yard.ask(body, f"register {body.incarnation}", f"node:{node}")
    yard.dispatch.heard(node)
    return Answer(Accepted(position=receipt.position), receipt.position)


@routes.add("POST", "/v4/substrate/{node}:report", most=REPORT_BYTES_MAX)
async def report_node(yard: Yard, node: str, body: Report) -> Answer[Accepted]:
    """Say what happened on a node. Answered once it is on disk; may be sent twice."""
    _same(node, body.node)
    yard.dispatch.heard(node)
    receipt = await yard.ask(body, f"report {node}", f"node:{node}")
    return Answer(Accepted(position=receipt.position), receipt.position)


@routes.add("POST", "/v4/substrate/{node}:heartbeat")
async def hear_node(yard: Yard, node: str) -> Answer[Heard]:
    """A sign of life.

    A node that is not known, or was taken for lost, has to register again: its stream of orders is
    ended.
    """
    known = await yard.counts_on(node)
    yard.dispatch.heard(node)
    end = yard.order_streams.get(node)
    if not known and end is not None:
        end()
    return Answer(Heard(position=yard.loop.position, known=known), yard.loop.position)


@routes.add("GET", "/v4/substrate/{node}/orders", media=(LINES,))
async def follow_orders(yard: Yard, node: str) -> Response:
    """The orders to a node: an object a line. The first is `sync`: everything it should be running.

    An empty line is a sign of life. A second stream to the same node ends the first.
    """
    if yard.tail.closed:
        raise unavailable("the server is stopping")
    if not await yard.counts_on(node):
        raise missing(f"node {node!r} is not registered here; register it first")
    return StreamingResponse(_orders(yard, node), media_type=LINES)


class _Stream:
    """Orders between the writer's thread and one response."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Order] = []
        self._ready = asyncio.Event()
        self.ended = False

    def deliver(self, orders: list[Order]) -> None:
        """Take orders. Called in the writer's thread; raises when the node is too slow."""
        if self.ended or len(self._waiting) > ORDERS_MAX:
            self.ended = True
            raise RuntimeError(f"more than {ORDERS_MAX} orders wait for this node")
        self._loop.call_soon_threadsafe(self._take, orders)

    def _take(self, orders: list[Order]) -> None:
        self._waiting.extend(orders)
        self._ready.set()

    def end(self) -> None:
        """End the response: another stream took its place, or the server stops."""
        self.ended = True
        self._ready.set()

    async def orders(self, seconds: float) -> list[Order]:
        """What there is to do; nothing after `seconds` without an order."""
        try:
            async with asyncio.timeout(seconds):
                await self._ready.wait()
        except TimeoutError:
            return []
        self._ready.clear()
        orders, self._waiting = self._waiting, []
        return orders


async def _orders(yard: Yard, node: str) -> AsyncIterator[bytes]:
    stream = _Stream()
    deliver = stream.deliver
    before = yard.order_streams.get(node)
    if before is not None:
        before()
    yard.order_streams[node] = stream.end
    yard.dispatch.connect(node, deliver)
    try:
        while not stream.ended:
            # What goes out proves nothing: only what comes in is a sign that the node lives.
            orders = await stream.orders(KEEP_ALIVE_S)
            if not stream.ended:
                yield b"".join(encode(order) + b"\n" for order in orders) or b"\n"
    finally:
        if yard.order_streams.get(node) == stream.end:
            del yard.order_streams[node]
        yard.dispatch.disconnect(node, deliver)


def _same(path: str, body: str) -> None:
    if path != body:
        raise invalid(f"body: node is {body!r} and the path names {path!r}")
