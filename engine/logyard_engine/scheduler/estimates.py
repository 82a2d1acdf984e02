"""When room is given back at the latest, by the limits of what holds it."""

from logyard_domain.world import Allocation, World

OVERDUE_MS = 1_000


def until(world: World, allocation: Allocation, now: int) -> int:
    """The instant (ms) by which the allocation, and all that queues behind it, have ended.

    That is its start, its time limit and the grace of a kill. One that is overdue is taken to end
    soon: as much later than it should have as it is late already, in steps that double, so that
    the answer does not move with every look.
    """
    grace = int(world.config["workflow.killGrace"])
    limit = allocation.stage.limit_ms + grace
    begins = allocation.since
    if allocation.after:
        begins = max(until(world, world.allocations[victim], now) for victim in allocation.after)
    end = begins + limit
    if allocation.status == "stopping" and not allocation.after:
        end = min(end, allocation.stopped_at + grace)
    follower = allocation.follower
    while follower is not None:
        end += limit
        follower = follower.follower
    if end <= now:
        late = OVERDUE_MS
        while end + late <= now:
            late *= 2
        end += late
    return end
