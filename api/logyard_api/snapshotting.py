"""Snapshots while the server runs, so that a start after a crash replays little."""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from logyard_domain import snapshot
from logyard_domain.records import Record
from logyard_domain.world import World
from logyard_engine.log.log import Log
from logyard_engine.loop import Loop
from logyard_engine.snapshots import Snapshots

EVERY_RECORDS = 200_000
"""Records between two snapshots: a second or two of replay."""

_log = logging.getLogger("logyard.server")


class Snapshotter:
    """Keeps the world every so many records: copied between two turns, written aside."""

    def __init__(
        self, loop: Loop, log: Log, snapshots: Snapshots, every: int = EVERY_RECORDS
    ) -> None:
        self._loop = loop
        self._log = log
        self._snapshots = snapshots
        self._every = every
        self._since = 0
        self._busy = False
        self._thread = ThreadPoolExecutor(1, "logyard-snapshots")

    def count(self, records: Sequence[Record]) -> None:
        """Take note of records that were appended. Called in the writer's thread."""
        self._since += len(records)
        if self._since >= self._every and not self._busy:
            self._since = 0
            self._busy = True
            self._loop.call(self._copy)

    def close(self) -> None:
        """Wait for what is being written."""
        self._thread.shutdown()

    def _copy(self, world: World) -> None:
        data = snapshot.dump(world)
        self._thread.submit(self._write, world.position, self._log.chain, data)

    def _write(self, position: int, chain: str, data: bytes) -> None:
        try:
            self._snapshots.save(position, chain, snapshot.FORMAT, data)
        except OSError as trouble:
            _log.warning("no snapshot was kept: %s", trouble)
        finally:
            self._busy = False
