"""Nodes grouped by class: nodes that are alike in everything that a request can ask about.

What is equal is decided once: whether a shape could run on a node is a question about the node's
class, and is asked once for each pair of shape and class.
"""

from logyard_domain.resources import Request
from logyard_domain.world import Node, World

ClassKey = tuple[object, ...]


class NodeClass:
    """Equal nodes: a sample of them, and those that are up, in the order in which they came."""

    __slots__ = ("number", "places", "sample", "up")

    def __init__(self, number: int, sample: Node) -> None:
        self.number = number
        self.sample = sample
        self.up: list[Node] = []
        self.places: dict[str, int] = {}
        """Where each of those is in `up`."""

    def add(self, node: Node) -> None:
        """One more node that is up."""
        self.places[node.name] = len(self.up)
        self.up.append(node)


def key_of(node: Node) -> ClassKey:
    """What distinguishes classes."""
    capacity = node.capacity
    return (
        capacity.cores,
        capacity.memory,
        tuple(sorted(capacity.devices.items())),
        tuple(sorted(node.annotations.items())),
        node.features,
        node.storage,
    )


def classes_of(world: World) -> dict[str, NodeClass]:
    """The class of each node, by the node's name."""
    by_key: dict[ClassKey, NodeClass] = {}
    by_node: dict[str, NodeClass] = {}
    for node in world.nodes.values():
        key = key_of(node)
        found = by_key.get(key)
        if found is None:
            found = by_key[key] = NodeClass(len(by_key), node)
        if node.status == "up":
            found.add(node)
        by_node[node.name] = found
    return by_node


def misfits(request: Request, node: Node) -> tuple[str, ...]:
    """Why the request could not run on the node even if it were empty; empty when it could."""
    capacity = node.capacity
    found: list[str] = []
    if request.storage and node.storage != request.storage:
        found.append("storage")
    found += [f"feature {name}" for name in request.features if name not in node.features]
    found += [
        f"annotation {key}={value}"
        for key, value in request.annotations
        if node.annotations.get(key) != value
    ]
    for device, count in request.devices:
        has = capacity.devices.get(device, 0)
        if not has:
            found.append(f"device {device}")
        elif has < count:
            found.append(f"devices {device}")
    if capacity.cores < request.cores:
        found.append("cores")
    if capacity.memory < request.memory:
        found.append("memory")
    return tuple(found)


def surplus(request: Request, sample: Node) -> tuple[int, int, int]:
    """Sorts classes that could run a request.

    Spare devices and annotations that it has no use for.
    """
    wanted = {name for name, _ in request.devices}
    unused = sum(n for name, n in sample.capacity.devices.items() if name not in wanted)
    return (unused, len(sample.annotations) - len(request.annotations), sample.capacity.cores)
