"""What this machine has: cores, memory, devices, and what can be said of it."""

import os
import platform
import socket
from collections.abc import Mapping
from pathlib import Path

import msgspec

from logyard_domain.resources import Capacity


class Inventory(msgspec.Struct, frozen=True):
    """A node's capacity, its annotations and host, and its CPUs by socket and memory (see
    `Seats`).
    """

    capacity: Capacity
    annotations: dict[str, str]
    host: str
    cpu_groups: tuple[tuple[int, ...], ...]


def take_inventory(
    cores: int | None = None,
    memory: int | None = None,
    devices: Mapping[str, int] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Inventory:
    """Look at the machine. What is given is announced instead of what is found (`memory` in bytes).

    Of the CPUs only those count that this process may use. Raises ValueError for a count below 1.
    """
    usable = sorted(os.sched_getaffinity(0))
    if cores is not None and cores < 1:
        raise ValueError(f"cores: {cores} is too few; a node has at least 1")
    if memory is not None and memory < 1:
        raise ValueError(f"memory: {memory} is too little; say for instance 8GiB")
    for name, count in (devices or {}).items():
        if count < 0:
            raise ValueError(f"device {name}: the count {count} is negative")
    announced = cores if cores is not None else len(usable)
    found = {"nvidia.com/gpu": nvidia} if (nvidia := _nvidia_count()) else {}
    capacity = Capacity(
        cores=announced,
        memory=memory if memory is not None else usable_memory(),
        devices=found | dict(devices or {}),
    )
    # On a machine with fewer CPUs than it announces, binding would put all work on a few.
    groups = _groups(usable[:announced]) if announced <= len(usable) else ()
    host = socket.gethostname()
    facts = {
        "logyard.io/arch": {"x86_64": "amd64", "aarch64": "arm64"}.get(
            platform.machine(), platform.machine()
        ),
        "logyard.io/os": platform.system().lower(),
        "logyard.io/host": host,
    }
    return Inventory(capacity, facts | dict(annotations or {}), host, groups)


def usable_memory() -> int:
    """Bytes of memory of the machine, or of the control group that holds this process, if less."""
    total = 0
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            total = int(line.split()[1]) * 1024
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            total = min(total, int(text))
    return total


def _nvidia_count() -> int:
    try:
        return len(os.listdir("/proc/driver/nvidia/gpus"))
    except OSError:
        return 0


def _groups(cpus: list[int]) -> tuple[tuple[int, ...], ...]:
    groups: dict[tuple[str, str], list[int]] = {}
    for cpu in cpus:
        home = Path(f"/sys/devices/system/cpu/cpu{cpu}")
        try:
            package = (home / "topology/physical_package_id").read_text().strip()
        except OSError:
            package = ""
        memory = next((node.name for node in home.glob("node[0-9]*")), "")
        groups.setdefault((package, memory), []).append(cpu)
    return tuple(tuple(group) for group in groups.values())
