"""What is free on a node: the one place that adds and subtracts resources."""

from logyard_domain.resources import Request
from logyard_domain.world import Node, World


def occupy(node: Node, request: Request) -> None:
    """Subtract what an allocation with this request holds."""
    node.free_cores -= request.cores
    node.free_memory -= request.memory
    for device, count in request.devices:
        node.free_devices[device] = node.free_devices.get(device, 0) - count
    if request.exclusive != "none":
        node.sole = True


def vacate(node: Node, request: Request) -> None:
    """Add it again."""
    node.free_cores += request.cores
    node.free_memory += request.memory
    for device, count in request.devices:
        node.free_devices[device] = node.free_devices.get(device, 0) + count
    if request.exclusive != "none":
        node.sole = False


def recount(world: World, node: Node) -> None:
    """What is free, from the capacity and what runs."""
    node.free_cores = node.capacity.cores
    node.free_memory = node.capacity.memory
    node.free_devices = dict(node.capacity.devices)
    node.sole = False
    for name in node.running:
        allocation = world.allocations[name]
        if allocation.behind is None:
            occupy(node, world.shapes[allocation.stage.shape].request)
