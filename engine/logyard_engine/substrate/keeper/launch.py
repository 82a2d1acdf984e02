"""The keeper's start: one for each folder, away from the session of who started it."""

import fcntl
import os
import signal
import socket

from logyard_engine.substrate.keeper.journal import Journal, end_leftovers
from logyard_engine.substrate.keeper.service import Keeper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SOCKET_NAME = "keeper.sock"
LOCK_NAME = "keeper.lock"
EXIT_TAKEN = 3
"""Another keeper has the folder."""

_BACKLOG = 8


def main(
    folder: str, idle_s: float, wall_ns: "Callable[[], int]", boot_ns: "Callable[[], int]"
) -> None:
    """Take the folder, listen, go on in the background; returns in the foreground once agents
    can connect.

    Exits with `EXIT_TAKEN` if there is a keeper already.
    """
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    lock = os.open(LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600, dir_fd=folder_fd)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os._exit(EXIT_TAKEN)
    end_leftovers(folder_fd)
    listener = _listener(folder_fd)
    if os.fork():
        os._exit(0)
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    keeper = Keeper(folder_fd, listener, Journal(folder_fd), wall_ns, boot_ns, idle_s)
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    keeper.run()
    try:
        os.unlink(SOCKET_NAME, dir_fd=folder_fd)
    except FileNotFoundError:
        pass


def _listener(folder_fd: int) -> socket.socket:
    # A socket's address holds 108 bytes at most, whatever the folder's path: bind by a short name.
    os.fchdir(folder_fd)
    try:
        os.unlink(SOCKET_NAME)
    except FileNotFoundError:
        pass
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    umask = os.umask(0o177)
    listener.bind(SOCKET_NAME)
    os.umask(umask)
    listener.listen(_BACKLOG)
    return listener
