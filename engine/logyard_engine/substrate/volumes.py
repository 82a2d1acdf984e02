"""Ephemeral volumes: folders ``<root>/<workflow>/<key>``, filled by ingress and read by egress."""

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from logyard_domain.work import Task
from logyard_engine.substrate import beneath
from logyard_engine.substrate.keeper.processes import boot_id
from logyard_engine.substrate.results import Results

_STORAGE_NAME = ".storage"


class VolumeError(Exception):
    """A volume task cannot be done. The message is for the author of the workflow."""


class Volumes:
    """The volumes below `root`; nodes that share that folder share them."""

    def __init__(self, root: Path, results: Results) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self._root = root
        self._results = results

    def storage(self) -> str:
        """Name of this storage: the same for every node that has the same root."""
        path = self._root / _STORAGE_NAME
        with contextlib.suppress(FileNotFoundError):
            return path.read_text().strip()
        spare = self._root / f"{_STORAGE_NAME}.{boot_id()}.{os.getpid()}"
        spare.touch()
        facts = spare.stat()
        seed = f"{boot_id()} {facts.st_dev} {facts.st_ino} {facts.st_ctime_ns}"
        spare.write_text(hashlib.sha256(seed.encode()).hexdigest()[:16] + "\n")
        # Whoever links first names it; a link never shows a half-written file.
        with contextlib.suppress(FileExistsError):
            os.link(spare, path)
        spare.unlink()
        return path.read_text().strip()

    def folder(self, workflow: str, key: str) -> Path:
        """Where a volume lies; it may not exist yet."""
        for part in (workflow, key):
            if not part or part.startswith(".") or "/" in part:
                raise VolumeError(f"{part!r} is no name of a volume or workflow")
        return self._root / workflow / key

    def perform(self, task: Task) -> None:
        """Do a task of kind volume, ingress or egress. Doing it twice changes nothing.

        Raises VolumeError.
        """
        folder = self.folder(task.workflow, task.volume)
        try:
            if task.kind == "volume":
                folder.mkdir(parents=True, exist_ok=True)
            elif task.kind == "ingress":
                _existing(folder, task.volume)
                beneath.write(folder, task.path, task.content.encode())
            else:
                _existing(folder, task.volume)
                self._egress(folder, task)
        except beneath.Escape as error:
            raise VolumeError(f"{task.kind} of volume {task.volume}: {error}") from error
        except OSError as error:
            text = f"{task.kind} of volume {task.volume}: {task.path}: {error.strerror or error}"
            raise VolumeError(text) from error

    def drop(self, workflow: str) -> None:
        """Remove every volume of a workflow. Raises OSError if something stays."""
        shutil.rmtree(self.folder(workflow, "any").parent, onerror=_retried)

    def _egress(self, folder: Path, task: Task) -> None:
        count = 0
        for name, handle in beneath.files(folder, task.path):
            target = f"{task.result.rstrip('/')}/{name}" if name else task.result
            if not name and (not task.result or task.result.endswith("/")):
                target = task.result + beneath.parts_of(task.path)[-1]
            with open(handle, "rb") as source:
                self._results.put(task.workflow, target, source, os.fstat(handle).st_size)
            count += 1
        if not count:
            raise VolumeError(
                f"egress of volume {task.volume}: {task.path} is an empty folder, "
                "so there is nothing to keep"
            )


def _existing(folder: Path, key: str) -> None:
    if not folder.is_dir():
        raise VolumeError(f"volume {key} does not exist on this node")


def _retried(function: Callable[[str], object], path: str, info: object) -> None:
    """Go on where a folder without write permission is in the way; what is gone is gone."""
    if not os.path.lexists(path):
        return
    for one in (os.path.dirname(path), path):
        if not os.path.islink(one) and os.path.isdir(one):
            os.chmod(one, stat.S_IRWXU)
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)
