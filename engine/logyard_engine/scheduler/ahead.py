"""Looking ahead: short work queues on the node behind equal work.

When jobs run for milliseconds, asking the scheduler between any two of them would leave the node
idle for longer than they run. The first stage in order that waits would get the next room on its
nodes anyway, so its next ranks are placed *behind* those that hold room, of the same stage or of
equal stages of other workflows of its owner: the node goes on by itself, and the room changes hands
when the end of the one before is on the log. What arrives meanwhile with a higher priority waits
for what is queued by then: `scheduler.lookahead` bounds how much work that is, by how long the
ranks of equal stages have run so far. Work that runs longer than that is never queued ahead.
"""

from collections.abc import Iterator

from logyard_domain.events import AllocationPlaced
from logyard_domain.identifiers import allocation_id
from logyard_domain.world import Allocation, Stage, World

AHEAD_MAX = 32
"""Allocations that may queue behind one, however short they are."""


def depth_for(world: World, stage: Stage) -> int:
    """How many ranks of the stage may queue behind each that runs."""
    pace = stage.pace
    if not pace.finished:
        return 0
    mean_ms = max(1, pace.run_ms // pace.finished)
    return min(AHEAD_MAX, int(world.config["scheduler.lookahead"]) // mean_ms)


def queue_ahead(world: World, stage: Stage) -> Iterator[AllocationPlaced]:
    """Fill up what queues behind running ranks of a stage that waits first in order, and of its
    equals.

    Each event must be applied to the world before the next one is asked for.
    """
    depth = depth_for(world, stage)
    if not depth:
        return
    found = [world.allocations[name] for name in stage.pace.holding]
    # Filled up only when half is gone: many at once are cheaper than one at a time.
    short = [one for one in found if one.line <= depth // 2 and _may_follow(stage, one)]
    for allocation in sorted(short, key=_shortest):
        last = _last(allocation)
        while allocation.line < depth:
            if not stage.waiting:
                return
            rank, attempt = stage.first_waiting()
            following = allocation_id(stage.workflow.id, stage.plan.name, rank, attempt)
            yield AllocationPlaced(
                allocation=following,
                node=allocation.node.name,
                behind=last.id,
                revision=world.revision,
            )
            last = world.allocations[following]


def _may_follow(stage: Stage, allocation: Allocation) -> bool:
    """Whether the room of the allocation is what a rank of the stage asks for."""
    if allocation.status == "stopping" or allocation.node.status != "up" or allocation.after:
        return False
    other = allocation.stage
    if other is stage:
        return True
    own, theirs = stage.workflow, other.workflow
    # Nobody waits for a job of somebody else that takes longer than usual, and who takes over the
    # room of another stage is one more in flight of its own.
    return (
        (own.user, own.group, own.organization) == (theirs.user, theirs.group, theirs.organization)
        and other.shape == stage.shape
        and other.limit_ms == stage.limit_ms
        and stage.plan.concurrency >= stage.total
    )


def _shortest(allocation: Allocation) -> tuple[int, int, str]:
    """The shortest line comes first, then that of whom has run for longest."""
    return allocation.line, allocation.since, allocation.id


def _last(allocation: Allocation) -> Allocation:
    """The last of those that queue behind it."""
    while allocation.follower is not None:
        allocation = allocation.follower
    return allocation
