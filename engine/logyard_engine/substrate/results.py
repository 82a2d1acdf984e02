"""Where egress puts what a workflow leaves: the results folder of the server."""

import contextlib
import os
import shutil
from pathlib import Path
from typing import BinaryIO, Protocol

from logyard_engine.substrate import beneath


class Results(Protocol):
    """Takes files of a workflow. The same file again replaces the old one."""

    def put(self, workflow: str, path: str, source: BinaryIO, size: int) -> None:
        """Keep `size` bytes of `source` as `path`.

        Raises OSError when they cannot be kept, and `beneath.Escape` for a path that leads
        elsewhere.
        """
        ...


class FolderResults:
    """Results below a folder: ``<root>/<workflow>/<path>``."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, workflow: str, path: str, source: BinaryIO, size: int) -> None:
        home = self._root / workflow
        home.mkdir(parents=True, exist_ok=True)
        with beneath.parent(home, path, create=True) as (folder, name):
            spare = f".{name}.{os.getpid()}.new"
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            try:
                with open(os.open(spare, flags, 0o644, dir_fd=folder), "wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
                    target.flush()
                    os.fsync(target.fileno())
                os.rename(spare, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(spare, dir_fd=folder)
                raise
