"""The parts of a server, put together. The only module that names every class."""

import asyncio
import getpass
import logging
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import cast

import msgspec

from logyard_api.counsel import Counsel
from logyard_api.datafolder import DataFolder
from logyard_api.decisions import changed
from logyard_api.gauges import MeasuredLog, measure
from logyard_api.metrics import Metrics
from logyard_api.past import Past
from logyard_api.release import VERSION
from logyard_api.scheduling import Scheduling
from logyard_api.settings import Settings
from logyard_api.snapshotting import Snapshotter
from logyard_api.tail import Tail
from logyard_api.views import Views
from logyard_api.yard import OUTPUT, RESULTS, Yard
from logyard_domain.commands import Refused, RegisterNode, Report
from logyard_domain.world import World
from logyard_engine.clock import SystemClock
from logyard_engine.dispatch import Dispatch
from logyard_engine.log.log import Log
from logyard_engine.log.opening import open_log
from logyard_engine.loop import Loop
from logyard_engine.recovery import recover, save
from logyard_engine.scheduler.memory import Memory
from logyard_engine.snapshots import Snapshots
from logyard_engine.substrate.inventory import Inventory, take_inventory
from logyard_engine.substrate.keeping import KeeperError
from logyard_engine.substrate.node import EmbeddedNode, NodeError
from logyard_engine.turn import Engine, Receipt
from logyard_projections.catalog import PROJECTIONS
from logyard_projections.runners.memory import MemoryRunner
from logyard_projections.runners.runner import Runner
from logyard_projections.runners.sqlite import SqliteRunner

VIEWS_FILE = "views.sqlite"
POSTGRES = ("postgresql://", "postgres://")

_log = logging.getLogger("logyard.server")


class Unstartable(Exception):
    """The server cannot start. The message says why and what to do."""


class Parts:
    """Everything that a server consists of, in the order in which it starts."""

    def __init__(self, settings: Settings, folder: DataFolder) -> None:
        self.settings = settings
        self.folder = folder
        self.metrics = Metrics()
        self.clock = SystemClock()
        self.snapshots = Snapshots(folder.path / "snapshots")
        self.log: Log = MeasuredLog(open_log(_log_place(settings), settings.cluster), self.metrics)
        self.memory = Memory()
        self.engine = Engine(self._recovered(), self.log, self.memory)
        self.dispatch = Dispatch(self.clock)
        self.loop = Loop(self.engine, self.clock, self.dispatch, VERSION)
        self.dispatch.call = self.loop.call
        self.snapshotter = Snapshotter(self.loop, self.log, self.snapshots)
        self.tail = Tail(self.log.read, self.log.position)
        remote = settings.projections.startswith(POSTGRES)
        self.past = Past(folder.path / "past", self.log, PROJECTIONS)
        self.counsel = Counsel(self.log, self.snapshots)
        self.views = Views(_runner(settings, folder), self.log, remote, self.past)
        self.nodes = [self._node(number) for number in range(1, settings.nodes + 1)]

    def _recovered(self) -> World:
        def progress(position: int, last: int) -> None:
            _log.info("replaying", extra={"position": position, "last": last})

        return recover(self.log, self.snapshots, progress)

    def _node(self, number: int) -> EmbeddedNode:
        name = f"node{number}"

        def connect(registered: Future[Receipt]) -> None:
            if registered.exception() is None:
                self.dispatch.connect(name, node.deliver, embedded=True)

        def offer(command: RegisterNode | Report) -> Future[object]:
            future = self.loop.offer(command, f"node:{name}", name)
            if isinstance(command, RegisterNode):
                future.add_done_callback(connect)
            return cast("Future[object]", future)

        node = EmbeddedNode(
            name,
            self.folder.folder("nodes") / name,
            logs=self.folder.folder(OUTPUT),
            results=self.folder.folder(RESULTS),
            volumes=self.folder.folder("volumes"),
            offer=offer,
            beat=self.dispatch.heard,
            inventory=_inventory(self.settings),
            version=VERSION,
            clock=self.clock,
        )
        return node

    def watch(self, fail: Callable[[BaseException], None]) -> None:
        """Call `fail`, in whatever thread, when the writer or the views stop on their own."""
        self.loop.on_failure = fail
        self.views.on_failure = fail

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Bring the views up to date, start the writer, set the configuration. Blocks."""
        self.views.catch_up()
        self.views.start(loop)
        self.loop.subscribe(self.views.feed)
        self.loop.subscribe(self.tail.feed)
        self.loop.subscribe(self.snapshotter.count)
        measure(self.metrics, self.loop, self.views)
        scheduling = Scheduling(
            self.metrics, self.engine.world, self.memory.misses, lambda: int(self.clock.now())
        )
        self.loop.observe(scheduling.turned)
        self.loop.start()
        self._configure()
        try:
            for node in self.nodes:
                node.start()
        except (NodeError, KeeperError, OSError) as trouble:
            raise Unstartable(f"a node inside the server: {trouble}") from trouble

    def _configure(self) -> None:
        wanted = self.settings.decisions
        if not wanted:
            return
        world = self.engine.world
        try:
            command = changed(world.config, world.formulas, wanted)
            self.loop.offer(command, "server", "decisions").result()
        except Refused as refusal:
            raise Unstartable(f"decisions: {refusal.message}") from refusal

    def yard(self, loop: asyncio.AbstractEventLoop) -> Yard:
        """What the routes see of all this."""
        self.tail.bind(loop)
        yard = Yard(
            cluster=self.settings.cluster,
            user=getpass.getuser(),
            data=self.folder.path,
            loop=self.loop,
            dispatch=self.dispatch,
            tail=self.tail,
            read=self.log.read,
            views=self.views,
            past=self.past,
            counsel=self.counsel,
            metrics=self.metrics,
            clock=self.clock,
        )
        return yard

    def stop(self, clean: bool) -> None:
        """End everything in order. After a clean end the next start need not replay. Blocks.

        Jobs run on; the nodes of the next start find them again.
        """
        for node in self.nodes:
            node.stop("leave")
        self.loop.stop()
        self.snapshotter.close()
        self.views.stop()
        self.counsel.close()
        self.past.close()
        clean = clean and self.loop.failure is None
        if clean:
            self._snapshot()
        self.log.close()
        self.folder.release(clean)

    def _snapshot(self) -> None:
        try:
            save(self.engine.world, self.log, self.snapshots)
        except OSError as trouble:
            _log.warning("no snapshot was kept: %s", trouble)


def build(settings: Settings) -> Parts:
    """Open what a server needs, and restore its world. Raises what the parts raise."""
    folder = DataFolder(settings.data)
    try:
        return Parts(settings, folder)
    except BaseException:
        folder.release(clean=False)
        raise


def _log_place(settings: Settings) -> str | Path:
    if settings.log in ("memory", "memory:"):
        return "memory:"
    return settings.log or settings.data.absolute()


def _inventory(settings: Settings) -> Inventory:
    """What each node in this process announces: its share of the machine, or what was set."""
    whole = take_inventory()
    count = settings.nodes
    found = take_inventory(
        settings.node_cores or max(1, whole.capacity.cores // count),
        settings.node_memory_bytes or whole.capacity.memory // count,
        settings.node_devices,
        settings.node_annotations,
    )
    # Several nodes on one machine would each bind their jobs to the same first cores.
    return found if count == 1 else msgspec.structs.replace(found, cpu_groups=())


def _runner(settings: Settings, folder: DataFolder) -> Runner:
    place = settings.projections
    if place in ("memory", "memory:"):
        return MemoryRunner(PROJECTIONS)
    if place.startswith(POSTGRES):
        return _database(place)
    if place:
        raise Unstartable(f"projections: {place!r} is none of memory, postgresql://..., or nothing")
    return SqliteRunner(folder.path / VIEWS_FILE, PROJECTIONS)


def _database(place: str) -> Runner:
    # psycopg takes a quarter of a second to import: only those who use PostgreSQL pay that.
    from logyard_projections.runners.postgres import PostgresRunner  # noqa: PLC0415

    return PostgresRunner(place, PROJECTIONS)
