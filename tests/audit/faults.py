"""Faults of a scheduler, planted into logs that have none.

Each function yields edited logs with one fault each; an edited log may end where the fault is
complete.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationRequeued,
    AllocationSeated,
    AllocationStarted,
    ReservationHeld,
    ReservationMoved,
    ShapeHeld,
    StageFinished,
    StageReady,
    StageStarted,
    WorkflowStarted,
    WorkflowSubmitted,
)
from logyard_domain.holds import NeverFits, NodesBusy
from logyard_domain.identifiers import allocation_id
from logyard_domain.records import Record
from logyard_domain.resources import Request, asks_nothing
from logyard_domain.world import Node, Stage, World
from tests.audit.planting import beside, changed, next_tick, story, tick_end

Records = Sequence[Record]
Edited = Iterator[list[Record]]

STEPS = (
    AllocationPlaced,
    AllocationEnded,
    AllocationRequeued,
    AllocationSeated,
    StageReady,
    StageStarted,
    StageFinished,
    WorkflowStarted,
    WorkflowSubmitted,
)
CAUSES = (
    "node.registered", "node.cordoned", "node.uncordoned", "node.draining", "node.drained",
    "node.lost", "node.returned", "config.set", "organization.updated", "group.updated",
    "user.updated", "allocation.stopping",
)  # fmt: skip
"""What may delay a promise; an end that was ordered may come late."""
LATER_MS = 60_000


def _able(node: Node, request: Request) -> bool:
    """Whether one chunk of it would fit there if the node were empty."""
    has = node.capacity
    return (
        node.status == "up"
        and has.cores >= request.cores
        and has.memory >= request.memory
        and all(has.devices.get(device, 0) >= count for device, count in request.devices)
        and all(node.annotations.get(key) == value for key, value in request.annotations)
        and request.storage in ("", node.storage)
    )


def _roomy(node: Node, request: Request) -> bool:
    return (
        _able(node, request)
        and node.free_cores >= request.cores
        and node.free_memory >= request.memory
        and all(node.free_devices.get(device, 0) >= n for device, n in request.devices)
        and not node.sole
        and not (request.exclusive != "none" and node.busy)
    )


def _waiting(world: World) -> Iterator[Stage]:
    for lane in world.lanes.values():
        for *_, stage in sorted(lane.heap, key=lambda entry: entry[:2]):
            if stage.open:
                yield stage


def _next(stage: Stage) -> str:
    return allocation_id(stage.workflow.id, stage.plan.name, *stage.first_waiting())


def _stage(world: World, allocation: str) -> Stage:
    workflow, _, rest = allocation.partition("/")
    return world.workflows[workflow].stages[rest.rpartition("/")[0]]


def _simple(event: object) -> bool:
    """A placement of one chunk in free room."""
    return (
        isinstance(event, AllocationPlaced)
        and not (event.behind or event.after or event.chunks)
        and event.kind != "preempting"
    )


def oversubscribed(records: Records) -> Edited:
    """Placed on a node that could run it and is full."""
    for index, world in story(records):
        event = records[index].event
        if not isinstance(event, AllocationPlaced) or not _simple(event):
            continue
        request = world.shapes[_stage(world, event.allocation).shape].request
        for node in world.nodes.values():
            waits = any(world.allocations[one].after for one in node.running)
            if _able(node, request) and node.free_cores < request.cores and not waits:
                wrong = changed(records[index], node=node.name)
                yield [*records[:index], wrong, *records[index + 1 : tick_end(records, index)]]
                break


def unfit(records: Records) -> Edited:
    """Placed on a node that is closed or lacks something."""
    for index, world in story(records):
        event = records[index].event
        if not isinstance(event, AllocationPlaced) or not _simple(event):
            continue
        request = world.shapes[_stage(world, event.allocation).shape].request
        for node in world.nodes.values():
            if not _able(node, request) and not asks_nothing(request):
                wrong = changed(records[index], node=node.name)
                yield [*records[:index], wrong, *records[index + 1 : tick_end(records, index)]]
                break


def lost(records: Records) -> Edited:
    """One event is not there."""
    for index, record in enumerate(records):
        if isinstance(record.event, STEPS):
            yield [*records[:index], *records[index + 1 :]]


def doubled(records: Records) -> Edited:
    """One event is there twice."""
    for index, record in enumerate(records):
        if isinstance(record.event, STEPS):
            yield [*records[: index + 1], record, *records[index + 1 : index + 20]]


def started_again(records: Records) -> Edited:
    """An attempt starts a second time while it runs."""
    for index, record in enumerate(records):
        event = record.event
        if isinstance(event, AllocationStarted):
            later = records[index + 1 : index + 8]
            ends = any(
                isinstance(one.event, AllocationEnded) and one.event.allocation == event.allocation
                for one in later
            )
            if later and not ends:
                again = msgspec.structs.replace(record, at=later[-1].at)
                yield [*records[: index + 1], *later, again]


def overlong(records: Records) -> Edited:
    """It ran on after its limit and the grace."""
    for index, world in story(records):
        event = records[index].event
        if isinstance(event, AllocationEnded):
            limit = world.allocations[event.allocation].stage.limit_ms
            most = limit + int(world.config["workflow.killGrace"])
            yield [*records[:index], changed(records[index], run_ms=most + 5_000)]


def miscounted(records: Records) -> Edited:
    """It ran for longer than it was placed."""
    for index, record in enumerate(records):
        if isinstance(record.event, AllocationEnded):
            placed = next(
                one
                for one in reversed(records[:index])
                if isinstance(one.event, AllocationPlaced)
                and one.event.allocation == record.event.allocation
            )
            yield [*records[:index], changed(record, run_ms=record.at - placed.at + 5_000)]


def unpromised(records: Records) -> Edited:
    """The first in line is told one tick late."""
    pending: list[tuple[int, int, str]] = []
    for index, world in story(records):
        waiting = {_next(stage) for stage in _waiting(world)}
        lanes = sum(any(stage.open for *_, stage in one.heap) for one in world.lanes.values())
        for place, end, name in pending:
            # Nobody promises anything to the only one that waits.
            if index == end and lanes > 1 and name in waiting:
                yield [*records[:place], *records[place + 1 : end]]
        event = records[index].event
        if isinstance(event, ReservationHeld):
            pending.append((index, tick_end(records, index), event.allocation))


def mispromised(records: Records) -> Edited:
    """The promised instant is not the earliest one."""
    for index, record in enumerate(records):
        event = record.event
        if isinstance(event, ReservationHeld):
            wrong = changed(record, at=event.at + (1_000 if index % 2 else -1_000))
            yield [*records[:index], wrong, *records[index + 1 : tick_end(records, index)]]


def taken(records: Records) -> Edited:
    """What would run too long is placed on promised room."""
    for index, world in story(records):
        if records[index].actor == "scheduler" or records[index - 1].actor != "scheduler":
            continue
        depth = int(world.config["scheduler.backfill.depth"])
        if not world.reservations or depth < 1:
            continue
        for stage in _waiting(world):
            request = world.shapes[stage.shape].request
            node = next((one for one in world.nodes.values() if _roomy(one, request)), None)
            if node is not None and request.nodes == 1 and _next(stage) not in world.reservations:
                event = AllocationPlaced(
                    allocation=_next(stage),
                    node=node.name,
                    kind="backfilled",
                    revision=world.revision,
                )
                yield [*records[:index], beside(records[index - 1], event)]
                break


def held_back(records: Records) -> Edited:
    """What fits waits until the next tick."""
    for index, world in story(records):
        event = records[index].event
        if not isinstance(event, AllocationPlaced) or not _simple(event):
            continue
        if asks_nothing(world.shapes[_stage(world, event.allocation).shape].request):
            continue
        # What else was placed in the tick may take the room.
        end = tick_end(records, index)
        if not any(isinstance(one.event, AllocationPlaced) for one in records[index + 1 : end]):
            yield [*records[:index], *records[index + 1 : end]]


def unkept(records: Records) -> Edited:
    """What has a promise is placed after the promised instant, though it fitted before."""
    for index, world in story(records):
        event = records[index].event
        if not isinstance(event, AllocationPlaced) or event.allocation not in world.reservations:
            continue
        promised = world.reservations[event.allocation].at
        place = next_tick(records, index, promised)
        if place < 0:
            continue
        between = records[world.reservations[event.allocation].position : place]
        if any(one.event.__struct_config__.tag in CAUSES for one in between):
            continue
        kept = [one for one in records[index + 1 : place] if not _is_of(one, event.allocation)]
        yield [*records[:index], *kept, beside(records[place], event)]


def _is_of(record: Record, allocation: str) -> bool:
    """Whether it tells of that allocation, or of what becomes of its stage and workflow."""
    workflow = getattr(record.event, "workflow", "")
    return _is_about(record, allocation) or workflow == allocation.partition("/")[0]


def _is_about(record: Record, allocation: str) -> bool:
    return getattr(record.event, "allocation", "") == allocation


def slipped(records: Records) -> Edited:
    """A promise gets later though nothing runs too long."""
    for index, record in enumerate(records):
        event = record.event
        if isinstance(event, ReservationHeld):
            moved = ReservationMoved(
                allocation=event.allocation,
                at=event.at + LATER_MS,
                chunks=event.chunks,
                cause="overrun",
                revision=event.revision,
            )
            yield [*records[: tick_end(records, index)], beside(record, moved)]


def misnamed(records: Records) -> Edited:
    """A promise got earlier, and something is named that delays."""
    for index, record in enumerate(records):
        event = record.event
        if isinstance(event, ReservationMoved):
            cause = "node" if event.cause == "earlier" else "earlier"
            wrong = changed(record, cause=cause)
            yield [*records[:index], wrong, *records[index + 1 : tick_end(records, index)]]


def swapped(records: Records) -> Edited:
    """Of two equal requests the later one is placed."""
    for index, world in story(records):
        event = records[index].event
        if not isinstance(event, AllocationPlaced) or not _simple(event):
            continue
        first = _stage(world, event.allocation)
        lane = first.lane
        if lane is None:
            continue
        for *_, other in sorted(lane.heap, key=lambda entry: entry[:2]):
            if (
                other is not first
                and other.open
                and other.workflow.position > first.workflow.position
            ):
                rest = records[index + 1 : tick_end(records, index)]
                name = _next(other)
                yield [
                    *records[:index],
                    changed(records[index], allocation=name),
                    *(
                        changed(one, allocation=event.allocation) if _is_about(one, name) else one
                        for one in rest
                    ),
                ]
                break


def out_of_turn(records: Records) -> Edited:
    """Placed in order, while the first in line waits for the same nodes."""
    yield from _other_kind(records, "backfilled", "direct")


def not_behind(records: Records) -> Edited:
    """Said to be backfilled, and nobody has a promise."""
    yield from _other_kind(records, "direct", "backfilled")


def _other_kind(records: Records, kind: str, wrong: str) -> Edited:
    for index, record in enumerate(records):
        event = record.event
        if isinstance(event, AllocationPlaced) and event.kind == kind and not event.behind:
            edited = changed(record, kind=wrong)
            yield [*records[:index], edited, *records[index + 1 : tick_end(records, index)]]


def misparked(records: Records) -> Edited:
    """What could never run is said to wait for room, or the other way round."""
    for index, record in enumerate(records):
        event = record.event
        if isinstance(event, ShapeHeld):
            busy = isinstance(event.hold, NodesBusy)
            hold: Any = NeverFits(misfits=("cores",)) if busy else NodesBusy()
            if busy or event.hold.__struct_config__.tag in ("never_fits", "nodes_closed"):
                wrong = changed(record, hold=hold)
                yield [*records[:index], wrong, *records[index + 1 : tick_end(records, index)]]


def set_back(records: Records) -> Edited:
    """The clock steps back."""
    for index, record in enumerate(records[1:], 1):
        wrong = msgspec.structs.replace(record, at=records[index - 1].at - 1)
        yield [*records[:index], wrong, *records[index + 1 : index + 3]]
