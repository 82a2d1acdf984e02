"""Looking ahead: short work of an array queues on the node behind work of the same array.

When ranks run for milliseconds, asking the scheduler between any two of them would leave the node
idle for longer than they run. The first shape in order that waits would get the next room on its
nodes anyway, so its next ranks are placed *behind* those that hold room: the node goes on by
itself, and the room changes hands when the end of the one before is on the log. What arrives
meanwhile with a higher priority waits for what is queued by then: `scheduler.lookahead` bounds how
much work that is, by how long the ranks of the stage have run so far. Work that runs longer than
that is never queued ahead.
"""

from collections.abc import Iterator

from logyard_domain.events import AllocationPlaced
from logyard_domain.identifiers import allocation_id
from logyard_domain.world import Allocation, Stage, World

AHEAD_MAX = 32
"""Allocations that may queue behind one, however short they are."""


def depth_for(world: World, stage: Stage) -> int:
    """How many ranks of the stage may queue behind each that runs."""
    if not stage.finished:
        return 0
    mean_ms = max(1, stage.run_ms // stage.finished)
    return min(AHEAD_MAX, int(world.config["scheduler.lookahead"]) // mean_ms)


def queue_ahead(world: World, stage: Stage) -> Iterator[AllocationPlaced]:
    """Fill up what queues behind the running ranks of a stage that waits first in order.

    Each event must be applied to the world before the next one is asked for.
    """
    depth = depth_for(world, stage)
    if not depth:
        return
    for name in list(stage.unfilled):
        if not stage.waiting:
            return
        allocation = world.allocations[name]
        if allocation.status == "stopping" or allocation.node.status != "up" or allocation.after:
            continue
        del stage.unfilled[name]
        queued, last = _line(allocation)
        # Filled up only when half is gone: many at once are cheaper than one at a time.
        if queued > depth // 2:
            stage.unfilled[name] = None
            continue
        while queued < depth and stage.waiting:
            rank, attempt = stage.first_waiting()
            following = allocation_id(stage.workflow.id, stage.plan.name, rank, attempt)
            yield AllocationPlaced(
                allocation=following,
                node=allocation.node.name,
                behind=last.id,
                revision=world.revision,
            )
            last = world.allocations[following]
            queued += 1


def _line(allocation: Allocation) -> tuple[int, Allocation]:
    """How many queue behind it, and the last of them."""
    count = 0
    while allocation.follower is not None:
        allocation = allocation.follower
        count += 1
    return count, allocation
