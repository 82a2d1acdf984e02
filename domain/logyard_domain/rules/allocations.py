"""Attempts: placed, started, stopping, ended, requeued."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from logyard_domain.commands import Ended, PreemptAllocation, Refused, Report
from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationReady,
    AllocationRequeued,
    AllocationSeated,
    AllocationStarted,
    AllocationStopping,
    AnyEvent,
    ShapeDeclared,
    ShapeHeld,
    ShapeReleased,
    VolumesRemoved,
)
from logyard_domain.identifiers import allocation_parts
from logyard_domain.rules.attempts import requeued
from logyard_domain.rules.entities import charge
from logyard_domain.rules.queueing import enqueue, noticed
from logyard_domain.rules.room import occupy, vacate
from logyard_domain.world import EVERYTHING, Allocation, Node, Shape, Stage, World

TURNOVER_MAX = 20_000
"""Beyond so many changes since the last tick (a replay makes none) it counts as everything."""


def report(world: World, command: Report, now: int) -> list[AnyEvent]:
    """What a node says happened. What it says of attempts that it does not hold changes nothing."""
    events: list[AnyEvent] = []
    began = {one.allocation: one.started_at for one in command.began}
    over: set[str] = set()
    # Ends come first, in the order in which they happened: a start among them, or after them, may
    # be that of an allocation that took over the room of one that has ended.
    for ended in command.ended:
        allocation = _held(world, command.node, ended.allocation)
        if allocation is None or ended.allocation in over:
            continue
        over.add(ended.allocation)
        started_at = ended.started_at or began.get(ended.allocation, 0)
        if not allocation.began and (started_at or ended.outcome == "finished"):
            events.append(AllocationStarted(allocation=ended.allocation, started_at=started_at))
        events.append(_ended(ended))
        events += requeued(world, allocation, ended.outcome, now)
    for name, started_at in began.items():
        allocation = _held(world, command.node, name)
        if allocation is None or allocation.began or name in over:
            continue
        before = allocation.behind
        # It took over room of which it is not known yet that it was given back: its end will tell.
        if before is None or before.id in over:
            events.append(AllocationStarted(allocation=name, started_at=started_at))
    for workflow in command.volumes_removed:
        if workflow in world.cleanups:
            events.append(VolumesRemoved(workflow=workflow))
    return events


def preempt(world: World, command: PreemptAllocation, now: int) -> list[AnyEvent]:
    """Evict it by name."""
    allocation = world.allocations.get(command.allocation)
    if allocation is None:
        raise Refused(f"no allocation {command.allocation!r} runs", "missing")
    if allocation.status == "stopping":
        raise Refused(f"allocation {command.allocation} is being stopped already")
    if allocation.behind is not None or allocation.after:
        raise Refused(f"allocation {command.allocation} does not run yet")
    ran_ms = now - allocation.since
    return [AllocationStopping(allocation=allocation.id, reason="preempted", ran_ms=ran_ms)]


def _held(world: World, node: str, name: str) -> Allocation | None:
    allocation = world.allocations.get(name)
    return allocation if allocation is not None and allocation.node.name == node else None


def _ended(ended: Ended) -> AllocationEnded:
    return AllocationEnded(
        allocation=ended.allocation,
        outcome=ended.outcome,
        exit_code=ended.exit_code,
        signal=ended.signal,
        run_ms=ended.run_ms,
        cpu_ms=ended.cpu_ms,
        peak_bytes=ended.peak_bytes,
        error=ended.error,
    )


def _stage(world: World, name: str) -> tuple[Stage, int, int]:
    workflow, stage, rank, attempt = allocation_parts(name)
    return world.workflows[workflow].stages[stage], rank, attempt


def _placed(world: World, event: AllocationPlaced) -> None:
    stage, rank, attempt = _stage(world, event.allocation)
    node = world.nodes[event.node]
    if attempt == 1:
        assert rank == stage.next, (event, stage.next)
        stage.next += 1
    elif stage.again[0] == (rank, attempt):
        heappop(stage.again)
    else:
        stage.again.remove((rank, attempt))
        stage.again.sort()
    chunks: tuple[tuple[Node, int], ...] = ((node, 1),)
    if event.chunks:
        chunks = tuple((world.nodes[name], count) for name, count in event.chunks.items())
    allocation = Allocation(event.allocation, stage, rank, attempt, node, chunks)
    world.allocations[event.allocation] = allocation
    for where, _ in allocation.chunks:
        where.running[event.allocation] = None
        world.stirred[where.name] = None
    if event.behind:
        allocation.behind = world.allocations[event.behind]
        allocation.behind.follower = allocation
        stage.lined[allocation.id] = None
        allocation.first().line += 1
        _turned(world, allocation.behind)
    else:
        _turned(world, allocation)
        _hold(stage, allocation)
        request = world.shapes[stage.shape].request
        for where, count in allocation.chunks:
            occupy(where, request, count)
        if event.after:
            allocation.after = dict.fromkeys(event.after)
            for victim in event.after:
                world.preemptors[victim] = allocation
        else:
            allocation.since = world.at
    # While more of it may be placed, the stage goes on to be where it was.
    if not stage.open:
        noticed(world, stage)
    world.reservations.pop(event.allocation, None)
    if stage.plan.kind == "volume":
        workflow = stage.workflow
        workflow.volumes = True
        # The first volume settles where all of them lie.
        if not stage.plan.needs:
            workflow.storage = node.storage


def _started(world: World, event: AllocationStarted) -> None:
    allocation = world.allocations[event.allocation]
    allocation.began = True
    if allocation.status == "placed":
        allocation.status = "started"
    stage = allocation.stage
    if not stage.started:
        stage.started = True
        world.touched[stage] = None


def _stopping(world: World, event: AllocationStopping) -> None:
    allocation = world.allocations[event.allocation]
    allocation.status = "stopping"
    allocation.stopping = event.reason
    allocation.stopped_at = world.at
    _turned(world, allocation)
    for node, _ in allocation.chunks:
        world.stirred[node.name] = None


def _over(world: World, event: AllocationEnded) -> None:
    allocation = world.allocations.pop(event.allocation)
    _turned(world, allocation)
    stage = allocation.stage
    for node, _ in allocation.chunks:
        del node.running[event.allocation]
        world.stirred[node.name] = None
        if node.status == "draining":
            world.touched_nodes[node.name] = None
    charge(world, allocation)
    _hand_on(world, allocation)
    for victim in allocation.after:
        world.preemptors.pop(victim, None)
    if event.allocation in world.clear:
        world.clear.remove(event.allocation)
    _make_room(world, event.allocation)
    if event.outcome == "finished":
        stage.finished += 1
        stage.pace.finished += 1
        stage.pace.run_ms += event.run_ms
    else:
        # Taken back by the requeue that follows, if one does.
        stage.failed += 1
        stage.error = stage.error or _sentence(stage, allocation.rank, event)
    enqueue(world, stage)
    if stage.failed:
        noticed(world, stage)
    world.touched[stage] = None


def _make_room(world: World, victim: str) -> None:
    preemptor = world.preemptors.pop(victim, None)
    if preemptor is not None:
        del preemptor.after[victim]
        if not preemptor.after:
            world.clear.append(preemptor.id)


def _hand_on(world: World, allocation: Allocation) -> None:
    """Give the room to the follower, or free it; one that still queued had none."""
    stage, follower = allocation.stage, allocation.follower
    if follower is not None:
        follower.behind = allocation.behind
    if allocation.behind is not None:
        allocation.behind.follower = follower
        allocation.first().line -= 1
        del stage.lined[allocation.id]
        return
    del stage.holding[allocation.id]
    del stage.pace.holding[allocation.id]
    if follower is not None:
        follower.since, follower.line = world.at, allocation.line - 1
        del follower.stage.lined[follower.id]
        _hold(follower.stage, follower)
        _turned(world, follower)
        return
    request = world.shapes[stage.shape].request
    for node, chunks in allocation.chunks:
        vacate(node, request, chunks)
        world.freed[node.name] = None


def _turned(world: World, allocation: Allocation) -> None:
    """When this gives its room back may have changed, or that of the one it queues behind."""
    allocation = allocation.first()
    if len(world.turnover) >= TURNOVER_MAX:
        world.turnover.clear()
        world.turnover[EVERYTHING] = None
    world.turnover[allocation.id] = None


def _hold(stage: Stage, allocation: Allocation) -> None:
    stage.holding[allocation.id] = None
    stage.pace.holding[allocation.id] = None


def _sentence(stage: Stage, rank: int, event: AllocationEnded) -> str:
    """What went wrong, for people."""
    name = f"{stage.plan.title}[{rank}]" if stage.plan.array else stage.plan.title
    if event.error:
        return f"{name}: {event.error}"
    if event.outcome == "timeout":
        return f"{name} ran longer than its time limit"
    if event.signal is not None:
        return f"{name} was ended by signal {event.signal}"
    return f"{name} exited with code {event.exit_code}"


def _requeued(world: World, event: AllocationRequeued) -> None:
    stage, rank, attempt = _stage(world, event.allocation)
    stage.failed -= 1
    if not stage.failed:
        stage.error = ""
    if event.reason == "retry":
        stage.failures[rank] = stage.failures.get(rank, 0) + 1
    elif event.reason == "lost":
        stage.losses[rank] = stage.losses.get(rank, 0) + 1
    if event.not_before > world.at:
        stage.delayed[rank] = (attempt, event.not_before)
        heappush(world.timers, (event.not_before, stage.workflow.id, stage.plan.name, rank))
    else:
        heappush(stage.again, (rank, attempt))
    enqueue(world, stage)


def _ready(world: World, event: AllocationReady) -> None:
    stage, rank, attempt = _stage(world, event.allocation)
    del stage.delayed[rank]
    heappush(stage.again, (rank, attempt))
    enqueue(world, stage)


def _declared(world: World, event: ShapeDeclared) -> None:
    world.shapes[event.shape] = Shape(event.shape, event.request)
    world.shape_ids[event.request] = event.shape


def _held_back(world: World, event: ShapeHeld) -> None:
    world.shapes[event.shape].hold = event.hold
    world.held[event.shape] = None


def _released(world: World, event: ShapeReleased) -> None:
    world.shapes[event.shape].hold = None
    world.held.pop(event.shape, None)


def _seated(world: World, event: AllocationSeated) -> None:
    world.clear.remove(event.allocation)
    allocation = world.allocations[event.allocation]
    allocation.since = world.at
    _turned(world, allocation)
    for node, _ in allocation.chunks:
        world.stirred[node.name] = None


APPLY: dict[type, Callable[[World, Any], None]] = {
    AllocationPlaced: _placed,
    AllocationSeated: _seated,
    AllocationStarted: _started,
    AllocationStopping: _stopping,
    AllocationEnded: _over,
    AllocationRequeued: _requeued,
    AllocationReady: _ready,
    ShapeDeclared: _declared,
    ShapeHeld: _held_back,
    ShapeReleased: _released,
}
