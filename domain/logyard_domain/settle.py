"""What follows of itself: stages get ready or are over, workflows end, back-offs pass."""

from collections.abc import Iterator
from heapq import heappop

from logyard_domain.events import AllocationReady, AllocationSeated, AnyEvent
from logyard_domain.identifiers import allocation_id
from logyard_domain.rules.fleet import settle_node
from logyard_domain.rules.reservations import withdrawn
from logyard_domain.rules.stages import settle_stage
from logyard_domain.world import World


def settle(world: World, now: int) -> Iterator[AnyEvent]:
    """Consequences of what was applied since the last time, one after the other.

    Each event must be applied to the world before the next one is asked for.
    """
    yield from _due(world, now)
    while world.clear:
        yield AllocationSeated(allocation=world.clear[0])
    while world.touched:
        stages = list(world.touched)
        world.touched.clear()
        for stage in stages:
            yield from settle_stage(world, stage)
    while world.touched_nodes:
        names = list(world.touched_nodes)
        world.touched_nodes.clear()
        for name in names:
            yield from settle_node(world, name)
    yield from withdrawn(world)


def next_due(world: World) -> int | None:
    """The instant (ms) at which something follows by the mere passing of time, if any: a back-off
    is over, or a promise was not kept.
    """
    due = [world.timers[0][0]] if world.timers else []
    due += [reservation.at + 1 for reservation in world.reservations.values()]
    return min(due, default=None)


def _due(world: World, now: int) -> Iterator[AnyEvent]:
    while world.timers and world.timers[0][0] <= now:
        not_before, id, name, rank = world.timers[0]
        workflow = world.workflows.get(id)
        found = workflow.stages[name].delayed.get(rank) if workflow else None
        if found is not None and found[1] == not_before:
            yield AllocationReady(allocation=allocation_id(id, name, rank, found[0]))
        heappop(world.timers)
