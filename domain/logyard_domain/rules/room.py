"""What is free on a node: the one place that adds and subtracts resources."""

from logyard_domain.resources import Request, asks_nothing
from logyard_domain.world import Node, World


def occupy(node: Node, request: Request, chunks: int) -> None:
    """Subtract what an allocation holds that has so many chunks of the request there."""
    node.free_cores -= chunks * request.cores
    node.free_memory -= chunks * request.memory
    for device, count in request.devices:
        node.free_devices[device] = node.free_devices.get(device, 0) - chunks * count
    if request.exclusive != "none":
        node.sole += 1
    if not asks_nothing(request):
        node.busy += 1


def vacate(node: Node, request: Request, chunks: int) -> None:
    """Add it again."""
    node.free_cores += chunks * request.cores
    node.free_memory += chunks * request.memory
    for device, count in request.devices:
        node.free_devices[device] = node.free_devices.get(device, 0) + chunks * count
    if request.exclusive != "none":
        node.sole -= 1
    if not asks_nothing(request):
        node.busy -= 1


def recount(world: World, node: Node) -> None:
    """What is free, from the capacity and what runs."""
    node.free_cores = node.capacity.cores
    node.free_memory = node.capacity.memory
    node.free_devices = dict(node.capacity.devices)
    node.sole = node.busy = 0
    for name in node.running:
        allocation = world.allocations[name]
        if allocation.behind is None:
            request = world.shapes[allocation.stage.shape].request
            for where, chunks in allocation.chunks:
                if where is node:
                    occupy(node, request, chunks)
