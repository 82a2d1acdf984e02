"""The keeper's journal: which process groups live, so that a new keeper can end those of a dead
one.

Lines: ``?ID`` an allocation is about to be started, ``+ID PID TICKS`` it runs as this group,
started at this clock tick since boot, ``-ID`` it is over. The first line names the boot. A torn
last line is skipped.
"""

import mmap
import os
import select
import signal

from logyard_engine.substrate.keeper import processes

_NAME = "keeper.journal"
_SPARE_BYTES = 1 << 20
_TICKS_SLACK = 100
_DEATH_WAIT_S = 5.0


class Journal:
    """A mapped file in the folder behind `folder_fd`: writing costs no system call and outlives
    this process. It is not synced, because after a crash of the machine no group lives.
    """

    __slots__ = ("_at", "_folder_fd", "_live", "_map")

    def __init__(self, folder_fd: int) -> None:
        self._folder_fd = folder_fd
        self._live: dict[str, bytes] = {}
        self._at = 0
        self._map = self._rewritten()

    def announce(self, allocation: str) -> None:
        """Must come before the start: a process whose number was not written down is known by its
        mark.
        """
        self._append(b"?%s\n" % allocation.encode())

    def began(self, allocation: str, pid: int, ticks: int) -> None:
        """It runs as the group `pid`, whose leader started at that tick since boot."""
        line = b"+%s %d %d\n" % (allocation.encode(), pid, ticks)
        self._live[allocation] = line
        self._append(line)

    def ended(self, allocation: str) -> None:
        """It is over, or was never started."""
        self._live.pop(allocation, None)
        self._append(b"-%s\n" % allocation.encode())

    def _append(self, line: bytes) -> None:
        end = self._at + len(line)
        if end > len(self._map):
            self._map.close()
            self._map = self._rewritten()
            end = self._at + len(line)
        self._map[self._at : end] = line
        self._at = end

    def _rewritten(self) -> mmap.mmap:
        text = b"".join([b"boot %s\n" % processes.boot_id().encode(), *self._live.values()])
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        fd = os.open(_NAME + ".new", flags, 0o600, dir_fd=self._folder_fd)
        os.posix_fallocate(fd, 0, 2 * len(text) + _SPARE_BYTES)
        os.write(fd, text)
        os.rename(_NAME + ".new", _NAME, src_dir_fd=self._folder_fd, dst_dir_fd=self._folder_fd)
        self._at = len(text)
        try:
            return mmap.mmap(fd, 0)
        finally:
            os.close(fd)


def end_leftovers(folder_fd: int) -> int:
    """Kill every process group that a dead keeper left behind in this folder; how many groups.

    A process is such a one if its group's leader has the number and start tick that were written
    down, or if its environment names an allocation that was running. Returns when they are gone.
    """
    announced, groups = _read(folder_fd)
    if not announced and not groups:
        return 0
    own = os.getpgrp()
    doomed: set[int] = set()
    for pid, group in processes.living():
        ticks = groups.get(group)
        if ticks is not None and abs(processes.start_ticks(group) - ticks) <= _TICKS_SLACK:
            doomed.add(group)
        elif group != own and processes.marked_allocation(pid) in announced:
            doomed.add(group)
    waiting = [
        os.pidfd_open(pid) for pid, group in processes.living() if group in doomed and pid > 1
    ]
    for group in doomed:
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            continue
    for fd in waiting:
        select.select([fd], [], [], _DEATH_WAIT_S)
        os.close(fd)
    return len(doomed)


def _read(folder_fd: int) -> "tuple[set[str], dict[int, int]]":
    """Allocations that may run, and start ticks by group, from the journal of this boot."""
    announced: set[str] = set()
    groups: dict[str, tuple[int, int]] = {}
    try:
        fd = os.open(_NAME, os.O_RDONLY, dir_fd=folder_fd)
    except FileNotFoundError:
        return set(), {}
    with open(fd, "rb") as file:
        boot, *lines = file.read().partition(b"\0")[0].split(b"\n")
    if boot.decode() != f"boot {processes.boot_id()}":
        return set(), {}
    for line in lines[:-1]:
        allocation, *numbers = line[1:].decode().split(" ")
        if line.startswith(b"-"):
            announced.discard(allocation)
            groups.pop(allocation, None)
            continue
        announced.add(allocation)
        if line.startswith(b"+"):
            groups[allocation] = (int(numbers[0]), int(numbers[1]))
    return announced, dict(groups.values())
