"""Whether a request fits on a node, now or when what runs there has ended."""

from collections.abc import Mapping

from logyard_domain.resources import Capacity, Request, asks_nothing
from logyard_domain.world import Node

MANY = 1 << 30


class Room:
    """What is free on one node at one instant: now, or as another room says."""

    __slots__ = ("busy", "cores", "devices", "memory", "sole")

    def __init__(self, place: "Node | Room") -> None:
        if isinstance(place, Node):
            self.cores = place.free_cores
            self.memory = place.free_memory
            devices = place.free_devices
        else:
            self.cores = place.cores
            self.memory = place.memory
            devices = place.devices
        self.devices: dict[str, int] = dict(devices) if devices else {}
        self.busy: int = place.busy
        self.sole: int = place.sole

    def empty(self, capacity: Capacity) -> "Room":
        """The same node, of that capacity, when nothing runs there any more."""
        self.cores = capacity.cores
        self.memory = capacity.memory
        self.devices = dict(capacity.devices) if capacity.devices else {}
        self.busy = self.sole = 0
        return self

    def add(self, request: Request, chunks: int) -> None:
        """So many chunks of an allocation with this request have ended."""
        self.cores += chunks * request.cores
        self.memory += chunks * request.memory
        for device, count in request.devices:
            self.devices[device] = self.devices.get(device, 0) + chunks * count
        self.busy -= not asks_nothing(request)
        if request.exclusive != "none":
            self.sole -= 1

    def take(self, request: Request, chunks: int) -> None:
        """So many chunks of an allocation with this request begin."""
        self.cores -= chunks * request.cores
        self.memory -= chunks * request.memory
        for device, count in request.devices:
            self.devices[device] = self.devices.get(device, 0) - chunks * count
        self.busy += not asks_nothing(request)
        if request.exclusive != "none":
            self.sole += 1

    def chunks(self, request: Request) -> int:
        """How many chunks of the request fit."""
        if self.sole or (request.exclusive != "none" and self.busy):
            return 0
        return max(0, _whole(request, self.cores, self.memory, self.devices))


def fits(request: Request, node: Node) -> bool:
    """Whether one chunk fits on an eligible node now."""
    # What is free may be negative while victims leave: who asks for none of it fits all the same.
    if request.cores > node.free_cores and request.cores:
        return False
    if request.memory > node.free_memory and request.memory:
        return False
    if node.sole:
        return asks_nothing(request)
    if node.busy and request.exclusive != "none":
        return False
    for device, count in request.devices:
        if node.free_devices.get(device, 0) < count:
            return False
    return True


def chunks_of(request: Request, capacity: Capacity) -> int:
    """How many chunks of it an empty node with that capacity holds."""
    return _whole(request, capacity.cores, capacity.memory, capacity.devices)


def chunks_on(request: Request, node: Node) -> int:
    """How many chunks fit on an eligible node now."""
    if not fits(request, node):
        return 0
    return _whole(request, node.free_cores, node.free_memory, node.free_devices)


def _whole(request: Request, cores: int, memory: int, devices: Mapping[str, int]) -> int:
    """How many times a chunk goes into so much of everything that it asks for."""
    count = MANY
    if request.cores:
        count = cores // request.cores
    if request.memory:
        count = min(count, memory // request.memory)
    for device, wanted in request.devices:
        count = min(count, devices.get(device, 0) // wanted)
    return count
