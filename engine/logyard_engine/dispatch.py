"""Orders to nodes: what a turn decided goes to the nodes that it concerns, after the append.

The stream to a node begins with everything that it should be running, so nothing needs to be
remembered about what was sent before; losing a connection loses nothing.
"""

import logging
from collections.abc import Callable, Sequence

from logyard_domain.commands import DeclareLost
from logyard_domain.events import (
    AllocationPlaced,
    AllocationSeated,
    AllocationStopping,
    WorkflowCanceled,
    WorkflowFailed,
    WorkflowFinished,
)
from logyard_domain.records import Record
from logyard_domain.work import DropVolumes, Order
from logyard_domain.world import Node, World
from logyard_engine.clock import Clock
from logyard_engine.orders import start_of, stop_of, sync_of, task_of

Deliver = Callable[[list[Order]], None]

_log = logging.getLogger("logyard.dispatch")


class _Connection:
    """One open stream to a node, and the tasks that were already sent on it."""

    __slots__ = ("batch", "deliver", "embedded", "known")

    def __init__(self, deliver: Deliver, embedded: bool) -> None:
        self.deliver = deliver
        self.embedded = embedded
        self.known: dict[str, set[str]] = {}
        """Workflow -> its stages whose task was sent."""
        self.batch: list[Order] = []


class Dispatch:
    """The open streams to nodes, and when each node was last heard. Used in the loop's thread.

    `call` runs a function in that thread, between two turns (see `Loop.call`).
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._connections: dict[str, _Connection] = {}
        self._heard: dict[str, float] = {}
        self._began = clock.monotonic()
        self.call: Callable[[Callable[[World], None]], None] = lambda _: None

    def connect(self, node: str, deliver: Deliver, embedded: bool = False) -> None:
        """Open the stream to a registered node; `deliver` gets a `Sync` first, then changes.

        A second stream to the same node replaces the first. `deliver` is called in the loop's
        thread and must be quick. An `embedded` node lives in this process and is never silent.
        """
        connection = _Connection(deliver, embedded)

        def open_stream(world: World) -> None:
            self.heard(node)
            found = world.nodes.get(node)
            if found is None:
                _log.warning("node %s asks for orders and is not registered", node)
                return
            sync = sync_of(world, found)
            for task in sync.tasks:
                connection.known.setdefault(task.workflow, set()).add(task.stage)
            self._connections[node] = connection
            self._send(node, connection, [sync])

        self.call(open_stream)

    def disconnect(self, node: str, deliver: Deliver) -> None:
        """This stream is closed. The node is not lost by that: it may come back."""

        def close_stream(_: World) -> None:
            found = self._connections.get(node)
            if found is not None and found.deliver is deliver:
                del self._connections[node]

        self.call(close_stream)

    def heard(self, node: str) -> None:
        """The node gave a sign of life. May be called from any thread."""
        self._heard[node] = self._clock.monotonic()

    def silent(self, world: World, now_s: float) -> list[DeclareLost]:
        """Nodes that were not heard of for longer than `node.lostAfter`."""
        patience = int(world.config["node.lostAfter"]) / 1000
        if now_s - self._began < patience:
            return []
        found: list[DeclareLost] = []
        for name, node in world.nodes.items():
            connection = self._connections.get(name)
            quiet = now_s - self._heard.get(name, self._began)
            if node.status == "lost" or quiet <= patience:
                continue
            if connection is None or not connection.embedded:
                found.append(DeclareLost(node=name, silent_ms=int(quiet * 1000)))
        return found

    def committed(self, world: World, records: Sequence[Record]) -> None:
        """Tell the nodes what the turn decided for them."""
        for record in records:
            match record.event:
                case (
                    AllocationPlaced(allocation=name, after=()) | AllocationSeated(allocation=name)
                ):
                    self._begins(world, name)
                case AllocationStopping(allocation=name):
                    self._stopping(world, name)
                case (
                    WorkflowFinished(workflow=id)
                    | WorkflowFailed(workflow=id)
                    | WorkflowCanceled(workflow=id)
                ):
                    self._ended(world, id)
                case _:
                    pass
        for name, connection in list(self._connections.items()):
            if connection.batch:
                batch, connection.batch = connection.batch, []
                self._send(name, connection, batch)

    def _begins(self, world: World, name: str) -> None:
        allocation = world.allocations.get(name)
        if allocation is None:
            return
        connection = self._connections.get(allocation.node.name)
        if connection is None:
            return
        stage = allocation.stage
        known = connection.known.setdefault(stage.workflow.id, set())
        if stage.plan.name not in known:
            known.add(stage.plan.name)
            connection.batch.append(task_of(world, stage))
        connection.batch.append(start_of(allocation))

    def _stopping(self, world: World, name: str) -> None:
        allocation = world.allocations.get(name)
        if allocation is not None:
            connection = self._connections.get(allocation.node.name)
            if connection is not None:
                connection.batch.append(stop_of(world, allocation))

    def _ended(self, world: World, workflow: str) -> None:
        for connection in self._connections.values():
            connection.known.pop(workflow, None)
        storage = world.cleanups.get(workflow)
        if storage is None:
            return
        for name, connection in self._connections.items():
            if _on(world.nodes.get(name), storage):
                connection.batch.append(DropVolumes(workflow))
                return

    def _send(self, node: str, connection: _Connection, orders: list[Order]) -> None:
        try:
            connection.deliver(orders)
        except Exception:
            # The stream is broken; the node will ask again and get everything.
            _log.exception("orders to node %s were not delivered", node)
            self._connections.pop(node, None)


def _on(node: Node | None, storage: str) -> bool:
    return node is not None and node.storage == storage
