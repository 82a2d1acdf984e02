"""What the keeper reads of other processes in /proc."""

import os


def boot_id() -> str:
    """The machine's present boot, as the kernel names it."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def stat_fields(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third on: state, parent, group, ... Empty if there is no
    such process.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode("ascii").split()
    except OSError:
        return []


def start_ticks(pid: int) -> int:
    """When the process started, in clock ticks since boot; -1 if there is no such process."""
    fields = stat_fields(pid)
    return int(fields[19]) if fields else -1


def living() -> "list[tuple[int, int]]":
    """Process id and group of every process that is no zombie."""
    found: list[tuple[int, int]] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = stat_fields(int(name))
            if fields and fields[0] not in "ZX":
                found.append((int(name), int(fields[2])))
    return found


def marked_allocation(pid: int) -> str:
    """The allocation named in the environment that the process was started with, or nothing."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ = file.read()
    except OSError:
        return ""
    for entry in environ.split(b"\0"):
        if entry.startswith(b"LOGYARD_ALLOCATION="):
            return entry[19:].decode("utf-8", "replace")
    return ""
