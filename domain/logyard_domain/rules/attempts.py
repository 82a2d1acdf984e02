"""What an attempt's end leads to: nothing more, or a next attempt."""

from logyard_domain.events import AllocationEnded, AllocationRequeued, AnyEvent, Outcome
from logyard_domain.identifiers import allocation_id
from logyard_domain.world import Allocation, World


def lost(world: World, allocation: Allocation, now: int, why: str) -> list[AnyEvent]:
    """Its node is gone with it."""
    ended = AllocationEnded(allocation=allocation.id, outcome="lost", error=why)
    return [ended, *requeued(world, allocation, "lost", now)]


def requeued(
    world: World, allocation: Allocation, outcome: Outcome, now: int
) -> list[AllocationRequeued]:
    """The next attempt, where there shall be one."""
    stage, rank = allocation.stage, allocation.rank
    if outcome == "finished" or stage.failed or stage.workflow.status == "stopping":
        return []
    following = allocation_id(stage.workflow.id, stage.plan.name, rank, allocation.attempt + 1)
    if allocation.stopping == "drained":
        return [AllocationRequeued(allocation=following, not_before=now, reason="drained")]
    if allocation.stopping == "preempted":
        return [AllocationRequeued(allocation=following, not_before=now, reason="preempted")]
    if outcome == "lost":
        if stage.losses.get(rank, 0) >= int(world.config["workflow.lostRetries"]):
            return []
        return [AllocationRequeued(allocation=following, not_before=now, reason="lost")]
    retry = stage.plan.retry
    count = stage.failures.get(rank, 0) + 1
    if outcome in ("failed", "timeout") and retry is not None and count <= retry.attempts:
        not_before = now + retry.pause_ms(count)
        return [AllocationRequeued(allocation=following, not_before=not_before, reason="retry")]
    return []
