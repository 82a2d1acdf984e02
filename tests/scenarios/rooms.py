"""What fits where, counted anew from the allocations alone, with no code of the scheduler's."""

from collections.abc import Collection, Iterator

from logyard_domain.resources import Request, asks_nothing
from logyard_domain.world import Allocation, Node, World

MANY = 1 << 30


def eligible(node: Node, request: Request) -> bool:
    """Whether the node is open, and has all that the request names."""
    return (
        node.status == "up"
        and all(node.annotations.get(key) == value for key, value in request.annotations)
        and all(name in node.capacity.devices for name, _ in request.devices)
        and set(request.features) <= set(node.features)
        and request.storage in ("", node.storage)
    )


def holders(world: World, node: Node) -> Iterator[tuple[Allocation, Request, int]]:
    """Who holds room there, or was given it while victims leave: request and chunks."""
    for allocation in world.allocations.values():
        if allocation.behind is None:
            for where, count in allocation.chunks:
                if where is node:
                    yield allocation, world.shapes[allocation.stage.shape].request, count


def chunks_on(world: World, node: Node, request: Request, without: Collection[str] = ()) -> int:
    """How many chunks fit on the node if those in `without` had ended."""
    if not eligible(node, request):
        return 0
    if asks_nothing(request):
        return MANY
    cores, memory, devices = node.capacity.cores, node.capacity.memory, dict(node.capacity.devices)
    for allocation, held, count in holders(world, node):
        if allocation.id in without or asks_nothing(held):
            continue
        if "none" not in (held.exclusive,) or request.exclusive != "none":
            return 0
        cores -= held.cores * count
        memory -= held.memory * count
        for name, number in held.devices:
            devices[name] = devices.get(name, 0) - number * count
    found = MANY
    for free, each in [(cores, request.cores), (memory, request.memory)]:
        found = min(found, free // each) if each else found
    for name, each in request.devices:
        found = min(found, devices.get(name, 0) // each)
    return max(0, found)


def fits(world: World, request: Request, without: Collection[str] = ()) -> bool:
    """Whether the whole request fits now if those in `without` had ended."""
    nodes = world.nodes.values()
    return sum(chunks_on(world, node, request, without) for node in nodes) >= request.nodes


def latest_end(world: World, allocation: Allocation) -> int:
    """When it gives its room back at the latest, if it keeps to its limit: ms."""
    grace = int(world.config["workflow.killGrace"])
    limit = allocation.stage.limit_ms + grace
    begins = allocation.since
    if allocation.after:
        begins = max(latest_end(world, world.allocations[one]) for one in allocation.after)
    end = begins + limit
    if allocation.status == "stopping" and not allocation.after:
        end = min(end, allocation.stopped_at + grace)
    follower = allocation.follower
    while follower is not None:
        end, follower = end + limit, follower.follower
    return end


def overdue(world: World, now: int) -> list[str]:
    """Who holds room, or waits for it, beyond the latest end."""
    held = [one for one in world.allocations.values() if one.behind is None]
    return [one.id for one in held if latest_end(world, one) <= now]


def earliest(world: World, request: Request, now: int) -> int:
    """When the request fits at the latest if nothing more is placed and nobody is overdue."""
    if fits(world, request):
        return now
    ends = {
        one.id: latest_end(world, one) for one in world.allocations.values() if one.behind is None
    }
    return next(
        at
        for at in sorted(set(ends.values()))
        if fits(world, request, [id for id, end in ends.items() if end <= at])
    )
