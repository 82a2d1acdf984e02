"""One server for a data folder."""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

FILE = "server.lock"


class FolderHeld(Exception):
    """Another process serves the data folder, or it cannot be locked. The text is for people."""


class FolderLock:
    """The right to serve `folder`, from construction to `close` or the end of the process.

    Raises FolderHeld. The file stays when the lock is gone: only the lock counts, and it ends with
    the process however that ends.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._descriptor = os.open(folder / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as trouble:
            raise FolderHeld(
                f"data folder {folder} cannot be locked: {trouble.strerror}"
            ) from trouble
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as trouble:
            holder = os.pread(self._descriptor, 20, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise FolderHeld(
                f"data folder {folder} is in use by the server with process id "
                f"{holder or '(not yet written)'}; stop it first, or use another folder"
            ) from trouble
        except OSError as trouble:
            os.close(self._descriptor)
            raise FolderHeld(
                f"data folder {folder} cannot be locked: {trouble.strerror}"
            ) from trouble
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, b"%d\n" % os.getpid(), 0)

    def close(self) -> None:
        """Give the folder free. May be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        trouble: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
