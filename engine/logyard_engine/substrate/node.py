"""The two ways to have a node: in the server's process, or as a process of its own.

`EmbeddedNode` is for the wiring of the server, `run_substrate` for ``logyard substrate``.
"""

import contextlib
import fcntl
import hashlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from logyard_domain.commands import RegisterNode, Report
from logyard_domain.work import Order
from logyard_engine.clock import Clock, SystemClock
from logyard_engine.substrate import cgroup
from logyard_engine.substrate.agent import HEARTBEAT_S, Agent
from logyard_engine.substrate.ear import Leaving
from logyard_engine.substrate.http_link import HttpLink
from logyard_engine.substrate.inventory import Inventory, take_inventory
from logyard_engine.substrate.link import Link, LocalLink, Outputs
from logyard_engine.substrate.output import HttpOutputs, HttpResults
from logyard_engine.substrate.results import FolderResults, Results
from logyard_engine.substrate.runtime import Runtime
from logyard_engine.substrate.seats import Seats
from logyard_engine.substrate.volumes import Volumes


class NodeError(Exception):
    """The node cannot be started. The message says why, and what would do."""


class EmbeddedNode:
    """A node in the server's process.

    - `name`: the node's name
    - `folder`: its own folder (keeper, attempts, scratch)
    - `logs`, `results`, `volumes`: the server's folders for output, results and ephemeral
    volumes; nodes that are given the same `volumes` share them
    - `offer`: puts a command into the engine's inbox; the future is done when its events are on
    disk
    - `beat`: tells the engine that the node (by name) lives
    - `inventory`: what to announce; by default all of this machine

    The engine calls `deliver` with the node's orders, after each append and from its own thread.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        *,
        logs: Path,
        results: Path,
        volumes: Path,
        offer: Callable[[RegisterNode | Report], "Future[object]"],
        beat: Callable[[str], None],
        inventory: Inventory | None = None,
        version: str = "",
        clock: Clock | None = None,
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        self.name = name
        self._link = LocalLink(offer, beat)
        self._node = _Node(
            name=name,
            folder=folder,
            logs=logs,
            volumes=volumes,
            results=FolderResults(results),
            link=self._link,
            outputs=None,
            inventory=inventory or take_inventory(),
            version=version,
            clock=clock or SystemClock(),
            heartbeat_s=heartbeat_s,
        )

    def start(self) -> None:
        """Begin: the node registers by `offer`. Raises NodeError and `keeping.KeeperError`."""
        self._node.start()

    def deliver(self, orders: Sequence[Order]) -> None:
        """Orders for this node, in the order of decision; after a registration a `Sync` first."""
        self._link.deliver(orders)

    def stop(self, how: Leaving = "leave", timeout_s: float | None = None) -> bool:
        """See `Agent.stop`: jobs run on by default, and are found again by the next start."""
        return self._node.stop(how, timeout_s)


def run_substrate(
    server: str,
    folder: Path,
    *,
    name: str = "",
    token: str = "",
    cores: int | None = None,
    memory: int | None = None,
    devices: Mapping[str, int] | None = None,
    annotations: Mapping[str, str] | None = None,
    volumes: Path | None = None,
    version: str = "",
    heartbeat_s: float = HEARTBEAT_S,
    on_ready: Callable[[str], None] | None = None,
) -> int:
    """Be the node `name` (by default the host's name) of the server at the URL `server`, until a
    signal.

    SIGTERM leaves the jobs running for the next agent; SIGINT lets them end and starts no more, a
    second one ends them. Returns the exit code. Raises NodeError, ValueError (bad arguments),
    `keeping.KeeperError`.
    """
    name = name or socket.gethostname()
    logs = folder.absolute() / "output"
    node = _Node(
        name=name,
        folder=folder,
        logs=logs,
        volumes=volumes or folder / "volumes",
        results=HttpResults(server, token),
        link=HttpLink(server, name, token),
        outputs=HttpOutputs(server, name, logs, token),
        inventory=take_inventory(cores, memory, devices, annotations),
        version=version,
        clock=SystemClock(),
        heartbeat_s=heartbeat_s,
    )
    node.start()
    wake, waken = os.pipe()
    os.set_blocking(waken, False)
    signal.set_wakeup_fd(waken)
    previous = {one: signal.signal(one, _nothing) for one in (signal.SIGTERM, signal.SIGINT)}
    if on_ready is not None:
        on_ready(name)
    hows: list[Leaving] = ["drain", "kill"]
    waiting: threading.Thread | None = None
    try:
        while waiting is None or waiting.is_alive():
            number = os.read(wake, 1)
            if number == b"\0":
                break
            how: Leaving = "leave" if number[0] == signal.SIGTERM else hows.pop(0)
            hows = hows or ["kill"]
            waiting = threading.Thread(target=_stopped, args=(node, how, waken), daemon=True)
            waiting.start()
    finally:
        signal.set_wakeup_fd(-1)
        for one, handler in previous.items():
            signal.signal(one, handler)
        os.close(wake)
        os.close(waken)
    return 0


class _Node:
    """One agent with everything it needs, and the lock that keeps a second one out of its
    folder.
    """

    def __init__(
        self,
        *,
        name: str,
        folder: Path,
        logs: Path,
        volumes: Path,
        results: Results,
        link: Link,
        outputs: Outputs | None,
        inventory: Inventory,
        version: str,
        clock: Clock,
        heartbeat_s: float,
    ) -> None:
        folder = folder.absolute()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._name = name
        self._folder = folder
        self._lock = -1
        group = f"{name}.{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"
        store = Volumes(volumes.absolute(), results)
        limits = cgroup.detect(group.replace("/", "_"))
        runtime = Runtime(name, folder, logs.absolute(), store, limits, outputs is not None)
        registration = RegisterNode(
            node=name,
            capacity=inventory.capacity,
            incarnation="",
            annotations=inventory.annotations,
            storage=store.storage(),
            features=runtime.features,
            limits=runtime.limits,
            host=inventory.host,
            version=version,
        )
        seats = Seats(inventory.cpu_groups, inventory.capacity.devices)
        self._agent = Agent(
            *(registration, folder, link, runtime, store, seats, clock),
            outputs=outputs,
            heartbeat_s=heartbeat_s,
        )

    def start(self) -> None:
        self._lock = os.open(self._folder / "agent.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            self._lock = -1
            raise NodeError(
                f"another agent serves node {self._name} in {self._folder}; end it, or choose "
                "another folder"
            ) from None
        try:
            self._agent.start()
        except BaseException:
            os.close(self._lock)
            self._lock = -1
            raise

    def stop(self, how: Leaving, timeout_s: float | None) -> bool:
        ended = self._agent.stop(how, timeout_s)
        if ended and self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        return ended


def _stopped(node: _Node, how: Leaving, waken: int) -> None:
    if node.stop(how, None):
        with contextlib.suppress(OSError):
            os.write(waken, b"\0")


def _nothing(number: int, frame: object) -> None:
    """The signal's number arrives by the wake-up handle."""
