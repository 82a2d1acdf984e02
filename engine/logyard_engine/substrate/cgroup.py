"""Limits and accounting by control groups, version 2 or 1, below the group that this process is in.

Where they cannot be had (no permission, not delegated) `detect` says so, and memory is limited by
RLIMIT_DATA instead. A job's processes are inside from their first instruction on: a shell joins the
group and then becomes the job (see `join_script`).
"""

import contextlib
import os
import select
import shlex
import signal
from pathlib import Path
from typing import Protocol

import msgspec

PIDS_MAX = 16_384
"""Processes and threads that one job may have at once."""

_PERIOD_US = 100_000
_DEATH_WAIT_S = 0.02
_DEATH_ROUNDS = 250
_LEAF = "logyard.agent"


class Usage(msgspec.Struct, frozen=True):
    """What a job used: most memory at once (bytes, page cache included; 0 = not known), CPU time
    (ms, 0 = not known), and how many of its processes the kernel killed for want of memory.
    """

    peak_bytes: int = 0
    cpu_ms: int = 0
    oom_kills: int = 0


class Driver(Protocol):
    """One version of control groups."""

    kind: str

    def create(self, name: str, memory: int, cores: int) -> tuple[str, ...]:
        """Make a group and set its limits (bytes, 0 = none; whole cores, 0 = none); its folders."""
        ...

    def usage(self, folders: tuple[str, ...]) -> Usage:
        """Read what has been used."""
        ...

    def sweep(self) -> None:
        """Kill and remove every job's group: nothing should be running."""
        ...

    def close(self) -> None:
        """Remove the node's own folders, if they are empty."""
        ...


class V2:
    """Version 2: one tree. `home` is the node's folder in it."""

    kind = "cgroup-v2"

    def __init__(self, home: Path) -> None:
        self._home = home

    def create(self, name: str, memory: int, cores: int) -> tuple[str, ...]:
        folder = self._home / name
        folder.mkdir(exist_ok=True)
        if memory:
            _put(folder, "memory.max", memory)
            _put_if_there(folder, "memory.swap.max", 0)
            _put_if_there(folder, "memory.oom.group", 1)
        if cores:
            _put_if_there(folder, "cpu.max", f"{cores * _PERIOD_US} {_PERIOD_US}")
        _put_if_there(folder, "pids.max", PIDS_MAX)
        return (str(folder),)

    def usage(self, folders: tuple[str, ...]) -> Usage:
        folder = Path(folders[0])
        return Usage(
            _number(_read(folder, "memory.peak")),
            _keyed(_read(folder, "cpu.stat"), "usage_usec") // 1000,
            _keyed(_read(folder, "memory.events"), "oom_kill"),
        )

    def sweep(self) -> None:
        _sweep(self._home)

    def close(self) -> None:
        _remove_empty(self._home)


class V1:
    """Version 1: a tree for each controller. `homes` are the node's folders in them, by
    controller.
    """

    kind = "cgroup-v1"

    def __init__(self, homes: dict[str, Path]) -> None:
        self._homes = homes

    def create(self, name: str, memory: int, cores: int) -> tuple[str, ...]:
        folders = [self._made("memory", name)]
        if memory:
            _put(folders[0], "memory.limit_in_bytes", memory)
            _put_if_there(folders[0], "memory.memsw.limit_in_bytes", memory)
        if "pids" in self._homes:
            folders.append(self._made("pids", name))
            _put(folders[-1], "pids.max", PIDS_MAX)
        if cores and "cpu" in self._homes:
            folders.append(self._made("cpu", name))
            _put_if_there(folders[-1], "cpu.cfs_period_us", _PERIOD_US)
            _put_if_there(folders[-1], "cpu.cfs_quota_us", cores * _PERIOD_US)
        return tuple(map(str, folders))

    def usage(self, folders: tuple[str, ...]) -> Usage:
        folder = Path(folders[0])
        return Usage(
            _number(_read(folder, "memory.max_usage_in_bytes")),
            0,
            _keyed(_read(folder, "memory.oom_control"), "oom_kill"),
        )

    def sweep(self) -> None:
        for home in self._homes.values():
            _sweep(home)

    def close(self) -> None:
        for home in self._homes.values():
            _remove_empty(home)

    def _made(self, controller: str, name: str) -> Path:
        folder = self._homes[controller] / name
        folder.mkdir(exist_ok=True)
        return folder


def detect(node: str) -> Driver | None:
    """The driver that works here, with a folder ``logyard/<node>`` made for it; None if none
    does.
    """
    own = _own_groups()
    for attempt in (_v2, _v1):
        with contextlib.suppress(OSError, KeyError):
            driver = attempt(own, node)
            trial = driver.create("trial", 1 << 28, 1)
            try:
                # Joining is the step that is refused where the tree is not delegated.
                _join_trial(trial)
            finally:
                remove(trial)
            return driver
    return None


def join_script(folders: tuple[str, ...]) -> str:
    """Shell text that puts the shell itself into a group."""
    return "".join(f"echo 0 > {shlex.quote(folder)}/cgroup.procs && " for folder in folders)


def remove(folders: tuple[str, ...]) -> bool:
    """Kill what is still inside and remove the group; whether that succeeded."""
    for folder in folders:
        for _ in range(_DEATH_ROUNDS):
            try:
                os.rmdir(folder)
                break
            except FileNotFoundError:
                break
            except OSError:
                for pid in _read(Path(folder), "cgroup.procs").split():
                    with contextlib.suppress(OSError):
                        os.kill(int(pid), signal.SIGKILL)
                select.select([], [], [], _DEATH_WAIT_S)
        else:
            return False
    return True


def _v2(own: dict[str, Path], node: str) -> Driver:
    mine = own[""]
    if "memory" not in _read(mine, "cgroup.controllers").split():
        raise KeyError("memory")
    wanted = [f"+{one}" for one in _read(mine, "cgroup.controllers").split() if one in _CONTROLLERS]
    if not set(_CONTROLLERS) & set(_read(mine, "cgroup.subtree_control").split()):
        _make_room(mine)
        _put(mine, "cgroup.subtree_control", " ".join(wanted))
    home = mine / "logyard" / node
    home.mkdir(parents=True, exist_ok=True)
    for folder in (home.parent, home):
        _put(folder, "cgroup.subtree_control", " ".join(wanted))
    return V2(home)


_CONTROLLERS = ("memory", "cpu", "pids")


def _make_room(mine: Path) -> None:
    """A group of version 2 that has children with controllers may hold no process: move ours to a
    leaf.

    Only when it holds nobody else's, as in a group that was delegated to us.
    """
    pids = _read(mine, "cgroup.procs").split()
    session = os.getsid(0)
    strangers = [pid for pid in pids if os.getsid(int(pid)) != session]
    if strangers:
        raise OSError(f"{mine} also holds processes of others: {', '.join(strangers)}")
    (mine / _LEAF).mkdir(exist_ok=True)
    for pid in pids:
        _put(mine / _LEAF, "cgroup.procs", pid)


def _v1(own: dict[str, Path], node: str) -> Driver:
    homes: dict[str, Path] = {}
    for controller in ("memory", "pids", "cpu"):
        try:
            home = own[controller] / "logyard" / node
            home.mkdir(parents=True, exist_ok=True)
            homes[controller] = home
        except (KeyError, OSError):
            if controller == "memory":
                raise
    return V1(homes)


def _join_trial(folders: tuple[str, ...]) -> None:
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", join_script(folders) + "exit 0"], {})
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise PermissionError("a control group can be made but not joined")


def _own_groups() -> dict[str, Path]:
    """Folder of this process's group by controller; that of version 2 under the empty name."""
    mounts: dict[str, tuple[str, str]] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        fields, (kind, _, options) = left.split(), right.split()[:3]
        if kind == "cgroup2":
            mounts.setdefault("", (fields[3], fields[4]))
        elif kind == "cgroup":
            for option in options.split(","):
                mounts.setdefault(option, (fields[3], fields[4]))
    found: dict[str, Path] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller in mounts:
                root, point = mounts[controller]
                # In a container the mount shows only the part of the tree below its root.
                inside = path.removeprefix(root.rstrip("/")) if path.startswith(root) else path
                found[controller] = Path(point) / inside.strip("/")
                if controller == "" and inside.strip("/").endswith(_LEAF):
                    found[controller] = found[controller].parent
    return found


def _put(folder: Path, name: str, value: int | str) -> None:
    with open(folder / name, "w", encoding="ascii") as file:
        file.write(str(value))


def _put_if_there(folder: Path, name: str, value: int | str) -> None:
    with contextlib.suppress(FileNotFoundError, PermissionError):
        _put(folder, name, value)


def _read(folder: Path, name: str) -> str:
    try:
        return (folder / name).read_text(encoding="ascii")
    except OSError:
        return ""


def _number(text: str) -> int:
    return int(text) if text.strip().isdigit() else 0


def _keyed(text: str, key: str) -> int:
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == key:
            return int(value)
    return 0


def _sweep(home: Path) -> None:
    for entry in os.scandir(home):
        if entry.is_dir():
            remove((entry.path,))


def _remove_empty(home: Path) -> None:
    for folder in (home, home.parent):
        with contextlib.suppress(OSError):
            folder.rmdir()
