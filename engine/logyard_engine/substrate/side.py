"""What an agent does itself, in side threads: data tasks, and removing what is over."""

import logging
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from logyard_domain.commands import Ended
from logyard_domain.work import Task
from logyard_engine.clock import Clock
from logyard_engine.substrate.ear import Ear, Over, Removed
from logyard_engine.substrate.runtime import Footprint, Runtime
from logyard_engine.substrate.volumes import VolumeError, Volumes

THREADS = 4

_log = logging.getLogger(__name__)


class SideWork:
    """Every method but `close` returns at once; what is to be told comes by the ear."""

    def __init__(self, volumes: Volumes, runtime: Runtime, clock: Clock, ear: Ear) -> None:
        self._volumes = volumes
        self._runtime = runtime
        self._clock = clock
        self._ear = ear
        self._threads = ThreadPoolExecutor(THREADS, "logyard-side")

    def perform(self, task: Task, allocation: str) -> None:
        """Do a data task; `Over` tells its end."""
        self._threads.submit(self._perform, task, allocation)

    def drop_volumes(self, workflow: str) -> None:
        """Remove the volumes of a workflow; `Removed` tells."""
        self._threads.submit(self._drop_volumes, workflow)

    def clear(self, footprint: Footprint) -> None:
        """Remove what an ended allocation left on the node."""
        if footprint.home or footprint.groups:
            self._threads.submit(self._runtime.clear, footprint)

    def remove(self, folder: Path) -> None:
        """Remove a folder."""
        self._threads.submit(shutil.rmtree, folder, True)

    def close(self) -> None:
        """Wait for what was begun."""
        self._threads.shutdown(wait=True)

    def _perform(self, task: Task, allocation: str) -> None:
        began = self._clock.monotonic()
        started_at = self._clock.now()
        error = ""
        try:
            self._volumes.perform(task)
        except VolumeError as refused:
            error = str(refused)
        except Exception as unexpected:
            # The allocation must come to an end whatever happens in its thread.
            _log.exception("%s failed", allocation)
            error = f"{task.kind}: {unexpected!r}"
        ended = Ended(
            allocation=allocation,
            outcome="failed" if error else "finished",
            exit_code=1 if error else 0,
            run_ms=int((self._clock.monotonic() - began) * 1000),
            error=error,
            started_at=started_at,
        )
        self._ear.say(Over(ended))

    def _drop_volumes(self, workflow: str) -> None:
        try:
            self._volumes.drop(workflow)
        except (OSError, VolumeError) as error:
            self._ear.say(Removed(workflow, str(error)))
        else:
            self._ear.say(Removed(workflow))
