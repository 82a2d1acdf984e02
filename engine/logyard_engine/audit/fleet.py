"""The nodes as the log tells of them: their facts and states, and what is free on each."""

from collections.abc import Iterator
from typing import Literal

from logyard_domain.events import NodeRegistered
from logyard_domain.resources import Request, asks_nothing
from logyard_engine.audit.work import Attempt, Promise

NodeStatus = Literal["up", "cordoned", "draining", "drained", "lost"]
MANY = 1 << 30

Release = tuple[int, Request, int]
"""At an instant, an attempt with this request gives so many chunks back."""

FOLLOWS: dict[str, tuple[tuple[str, ...], NodeStatus]] = {
    "node.cordoned": (("up",), "cordoned"),
    "node.uncordoned": (("cordoned", "draining", "drained"), "up"),
    "node.draining": (("up", "cordoned"), "draining"),
    "node.drained": (("draining",), "drained"),
    "node.lost": (("up", "cordoned", "draining", "drained"), "lost"),
    "node.returned": (("lost",), "up"),
}
"""Tag -> states in which it may happen, and the state that it leads to."""


class Kind:
    """Nodes that are alike in all that a request can ask about."""

    __slots__ = ("idle", "number", "sample", "up")

    def __init__(self, number: int, sample: "Node") -> None:
        self.number = number
        self.sample = sample
        self.up: list[Node] = []
        self.idle = 0
        """How many of those that are up hold no core; kept for nodes of one core only."""


class Node:
    """A machine and who holds what of it."""

    __slots__ = (
        "annotations", "before", "busy", "cores", "devices", "features", "free_cores",
        "free_devices", "free_memory", "holders", "incarnation", "kind", "memory", "name",
        "number", "overran", "promise", "queued", "releases", "sole", "status", "storage",
    )  # fmt: skip

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.kind: Kind | None = None
        self.cores = 0
        self.memory = 0
        self.devices: dict[str, int] = {}
        self.annotations: dict[str, str] = {}
        self.features: tuple[str, ...] = ()
        self.storage = ""
        self.incarnation = ""
        self.status: NodeStatus = "up"
        self.before: NodeStatus = "up"
        self.holders: dict[Attempt, int] = {}
        """Attempts that hold room here, or have it given already, and how many chunks each."""
        self.queued = 0
        """Attempts that wait here behind others."""
        self.free_cores = 0
        self.free_memory = 0
        self.free_devices: dict[str, int] = {}
        self.busy = 0
        """Holders that ask for something, which staging does not."""
        self.sole = 0
        """Holders that want it for themselves."""
        self.promise: Promise | None = None
        self.releases: list[Release] | None = None
        self.overran = 0
        """Position at which something was last seen here to run longer than it may."""

    @property
    def empty(self) -> bool:
        """Whether nothing is placed here."""
        return not self.holders and not self.queued

    def describe(self, facts: NodeRegistered) -> None:
        """Take over what it announces."""
        self.cores = facts.capacity.cores
        self.memory = facts.capacity.memory
        self.devices = facts.capacity.devices
        self.annotations = facts.annotations
        self.features = facts.features
        self.storage = facts.storage
        self.incarnation = facts.incarnation
        self.recount()

    def recount(self) -> None:
        """What is free, from the capacity and the holders."""
        self.free_cores = self.cores
        self.free_memory = self.memory
        self.free_devices = dict(self.devices)
        self.busy = self.sole = 0
        for attempt, chunks in self.holders.items():
            self.take(attempt.request, chunks)

    def take(self, request: Request, chunks: int) -> None:
        """So many chunks are held."""
        self.free_cores -= chunks * request.cores
        self.free_memory -= chunks * request.memory
        if request.devices:
            for device, count in request.devices:
                self.free_devices[device] = self.free_devices.get(device, 0) - chunks * count
        if request.exclusive != "none":
            self.sole += 1
        self.busy += not asks_nothing(request)
        self.releases = None

    def give(self, request: Request, chunks: int) -> None:
        """So many chunks are free again."""
        self.free_cores += chunks * request.cores
        self.free_memory += chunks * request.memory
        if request.devices:
            for device, count in request.devices:
                self.free_devices[device] = self.free_devices.get(device, 0) + chunks * count
        if request.exclusive != "none":
            self.sole -= 1
        self.busy -= not asks_nothing(request)
        self.releases = None

    def lacks(self, request: Request) -> str:
        """What it would lack for one chunk even if it were empty; empty when nothing."""
        if request.storage and request.storage != self.storage:
            return f"storage {request.storage}"
        for feature in request.features:
            if feature not in self.features:
                return f"feature {feature}"
        for key, value in request.annotations:
            if self.annotations.get(key) != value:
                return f"annotation {key}={value}"
        for device, count in request.devices:
            if self.devices.get(device, 0) < count:
                return f"{count} {device}"
        if self.cores < request.cores:
            return f"{request.cores} cores"
        return f"{request.memory} bytes" if self.memory < request.memory else ""

    def alike(self) -> tuple[object, ...]:
        """Equal for nodes that no request can tell apart."""
        return (
            self.cores, self.memory, tuple(sorted(self.devices.items())), self.features,
            tuple(sorted(self.annotations.items())), self.storage,
        )  # fmt: skip


class Fleet:
    """All nodes. `version` changes with the set of nodes, their facts and their states."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.kinds: list[Kind] = []
        self.version = 0
        self.count = 0
        self.changed_at = 0
        """Position of the last event that changed the nodes."""
        self._sorted_version = -1

    def add(self, name: str) -> Node:
        """A node that was not there."""
        self.count += 1
        node = self.nodes[name] = Node(name, self.count)
        return node

    def sort(self) -> bool:
        """Put the nodes into kinds; whether anything had changed since the last time."""
        if self._sorted_version == self.version:
            return False
        self._sorted_version = self.version
        by_key: dict[tuple[object, ...], Kind] = {}
        for node in self.nodes.values():
            key = node.alike()
            kind = by_key.get(key)
            if kind is None:
                kind = by_key[key] = Kind(len(by_key), node)
            node.kind = kind
            if node.status == "up":
                kind.up.append(node)
                kind.idle += node.free_cores == node.cores
        self.kinds = list(by_key.values())
        return True

    def up(self, kinds: frozenset[int]) -> Iterator[Node]:
        """Nodes of these kinds that are up."""
        for kind in self.kinds:
            if kind.number in kinds:
                yield from kind.up

    @property
    def plain(self) -> bool:
        """Whether all nodes are alike, up, and have one core: then counting them is enough."""
        return (
            len(self.kinds) == 1
            and self.kinds[0].sample.cores == 1
            and len(self.kinds[0].up) == len(self.nodes)
        )
