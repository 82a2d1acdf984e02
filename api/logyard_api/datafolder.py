"""The data folder of a server: one process at a time, and where it answers."""

import os
from pathlib import Path

import msgspec

from logyard_api.release import VERSION
from logyard_engine.log.lock import FolderLock

SERVER_FILE = "server.json"


class DataFolder:
    """The folder, made when missing, for its owner only, and locked while it is held."""

    def __init__(self, path: Path) -> None:
        """Raises FolderHeld where another server has it, OSError where it cannot be made."""
        self.path = path.absolute()
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = FolderLock(self.path)

    def folder(self, name: str) -> Path:
        """A folder inside, made when missing."""
        path = self.path / name
        path.mkdir(exist_ok=True, mode=0o700)
        return path

    def announce(self, url: str, cluster: str) -> None:
        """Write down where this server answers, for commands on the same machine."""
        told = {"url": url, "pid": os.getpid(), "cluster": cluster, "version": VERSION}
        partial = self.path / f"{SERVER_FILE}.new"
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(told)) + b"\n")
        os.replace(partial, self.path / SERVER_FILE)

    def release(self, clean: bool) -> None:
        """Let another server in. After a clean end nobody answers here any more."""
        if clean:
            (self.path / SERVER_FILE).unlink(missing_ok=True)
        self._lock.close()
