"""Whether a request fits on a node now."""

from logyard_domain.resources import Request
from logyard_domain.world import Node


def fits(request: Request, node: Node) -> bool:
    """Whether what is free on an eligible node is enough."""
    if request.cores > node.free_cores or request.memory > node.free_memory:
        return False
    # Staging asks for no core and disturbs nobody who has the node for himself.
    if node.sole and request.cores:
        return False
    if request.exclusive != "none" and node.running:
        return False
    for device, count in request.devices:
        if node.free_devices.get(device, 0) < count:
            return False
    return True


def first_fit(request: Request, nodes: list[Node], start: int) -> int:
    """Index of the first node from `start` on that it fits on; `len(nodes)` when there is none."""
    cores, memory = request.cores, request.memory
    for index in range(start, len(nodes)):
        node = nodes[index]
        # Most nodes of a busy class fail here, so the rest is asked of few.
        if cores <= node.free_cores and memory <= node.free_memory and fits(request, node):
            return index
    return len(nodes)
