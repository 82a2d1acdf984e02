"""What a job or service needs of the node that it runs on."""

from typing import Annotated, Literal

from msgspec import field

from logyard_domain.definition import limits
from logyard_domain.definition.notation import AnnotationKey, Bytes, DeviceName, Part, Whole


class Cpu(Part, frozen=True, kw_only=True):
    """Processor cores.

    cores: cores needed, on each node
    affinity: what the task is bound to
    threads: whether the hardware threads of the cores are given, too
    sockets: sockets that the cores lie on
    """

    cores: Annotated[int, Whole(1, limits.CORES_MAX)] = 1
    affinity: Literal["CORE", "SOCKET", "NUMA"] = "CORE"
    threads: bool = False
    sockets: Annotated[int, Whole(1, limits.CORES_MAX)] | None = None


class Memory(Part, frozen=True, kw_only=True):
    """Main memory.

    size_bytes: memory needed, for instance `6GiB`
    by_core: whether the size is meant for each core
    """

    size_bytes: Bytes = field(name="size")
    by_core: bool = False


class Resource(Part, frozen=True, kw_only=True):
    """What is needed of a node.

    cpu: cores; one where nothing is said
    memory: main memory; no amount is reserved where nothing is said
    devices: how many of each kind of device, for instance `nvidia.com/gpu: 1`
    exclusive: whether nothing else may run on the node meanwhile
    annotations: what the node must be annotated with, key and value exactly
    """

    cpu: Cpu | None = None
    memory: Memory | None = None
    devices: dict[DeviceName, Annotated[int, Whole(0, limits.DEVICES_MAX)]] = field(default={})
    exclusive: bool | None = None
    annotations: dict[AnnotationKey, str] = field(default={})

    @property
    def cores(self) -> int:
        """Cores on each node, 1 where nothing is said."""
        return self.cpu.cores if self.cpu else 1

    @property
    def memory_bytes(self) -> int:
        """Bytes on each node, 0 where nothing is said."""
        if self.memory is None:
            return 0
        return self.memory.size_bytes * (self.cores if self.memory.by_core else 1)
