"""Evictions against the rules, planted into logs that have none. See `faults`."""

from collections.abc import Iterator, Sequence

import msgspec

from logyard_domain.configuration import Value
from logyard_domain.events import (
    AllocationPlaced,
    AllocationStopping,
    AnyEvent,
    ConfigSet,
    GroupUpdated,
    ShapeDeclared,
)
from logyard_domain.records import Record
from logyard_domain.world import Allocation, World
from tests.audit.planting import beside, changed, story, tick_end

Records = Sequence[Record]
Edited = Iterator[list[Record]]


def _evictions(records: Records) -> Iterator[tuple[int, World, AllocationStopping]]:
    """Index of the first eviction of each tick that evicts, and the world before it."""
    end = 0
    for index, world in story(records):
        event = records[index].event
        if isinstance(event, AllocationStopping) and event.by and index >= end:
            end = tick_end(records, index)
            yield index, world, event


def _with_settings(records: Records, **values: Value) -> Edited:
    """The evictions of one tick are as they were, under other settings."""
    more = {name.replace("__", "."): value for name, value in values.items()}
    for index, world, _ in _evictions(records):
        event = ConfigSet(
            revision=world.revision + 1, values=world.config | more, formulas=world.formulas
        )
        yield _before_tick(records, index, event)


def _before_tick(records: Records, index: int, event: AnyEvent) -> list[Record]:
    first = index
    while records[first - 1].actor == "scheduler":
        first -= 1
    edited = beside(records[first], event, "server")
    edited = msgspec.structs.replace(edited, cause="planted")
    return [*records[:first], edited, *records[first : tick_end(records, index)]]


def too_soon(records: Records) -> Edited:
    """The victim ran for less than it may."""
    yield from _with_settings(records, scheduler__preemption__minRuntime=10**9)


def too_close(records: Records) -> Edited:
    """The priorities differ by too little."""
    yield from _with_settings(records, scheduler__preemption__priorityGap=1e6)


def too_idle(records: Records) -> Edited:
    """The nodes are not used enough."""
    yield from _with_settings(records, scheduler__preemption__utilizationThreshold=1.5)


def too_many(records: Records) -> Edited:
    """More evictions than one tick may have."""
    yield from _with_settings(records, scheduler__preemption__maxEvictionsPerTick=0)


def switched_off(records: Records) -> Edited:
    """Nobody may be evicted at all."""
    yield from _with_settings(records, scheduler__preemption__enabled=False)


def forbidden(records: Records) -> Edited:
    """The group of the preemptor may not preempt that of the victim."""
    for index, world, event in _evictions(records):
        mine = world.workflows[event.by.partition("/")[0]]
        group = world.groups[mine.organization, mine.group]
        update = GroupUpdated(
            organization=mine.organization, group=mine.group, priority=group.priority, preempts=()
        )
        yield _before_tick(records, index, update)


def protected(records: Records) -> Edited:
    """The victim is not preemptible."""
    for index, world, event in _evictions(records):
        shape = world.allocations[event.allocation].stage.shape
        yield [
            changed(one, request=msgspec.structs.replace(one.event.request, preemptible=False))
            if isinstance(one.event, ShapeDeclared) and one.event.shape == shape
            else one
            for one in records[: tick_end(records, index)]
        ]


def _others(world: World, event: AllocationStopping) -> Iterator[Allocation]:
    """Who could be evicted as well."""
    victim = world.allocations[event.allocation]
    for one in world.allocations.values():
        if (
            one is not victim
            and one.since
            and one.status != "stopping"
            and world.shapes[one.stage.shape].request.preemptible
            and one.stage.workflow.group == victim.stage.workflow.group
        ):
            yield one


def needless(records: Records) -> Edited:
    """One more is evicted than is needed."""
    for index, world, event in _evictions(records):
        least = int(world.config["scheduler.preemption.minRuntime"])
        now = records[index].at
        for other in _others(world, event):
            end = tick_end(records, index)
            placed = next(
                place
                for place in range(index, end)
                if isinstance(records[place].event, AllocationPlaced)
            )
            told = {
                one.event.allocation
                for one in records[index:end]
                if isinstance(one.event, AllocationStopping)
            }
            if other.id in told or now - other.since < least:
                continue
            ran = now - other.since
            extra = msgspec.structs.replace(event, allocation=other.id, ran_ms=ran)
            whole = records[placed].event
            assert isinstance(whole, AllocationPlaced)
            yield [
                *records[:index],
                beside(records[index], extra),
                *records[index:placed],
                changed(records[placed], after=(other.id, *whole.after)),
            ]
            break


def wrong(records: Records) -> Edited:
    """Another one is evicted, whose turn it was not."""
    for index, world, event in _evictions(records):
        placed = records[index + 1]
        if not isinstance(placed.event, AllocationPlaced) or len(placed.event.after) != 1:
            continue
        now = records[index].at
        for other in _others(world, event):
            changes = {"allocation": other.id, "ran_ms": now - other.since}
            yield [
                *records[:index],
                changed(records[index], **changes),
                changed(placed, after=(other.id,)),
            ]
            break


def for_nobody(records: Records) -> Edited:
    """The one for which somebody was evicted is not placed."""
    for index, _, _ in _evictions(records):
        end = tick_end(records, index)
        yield [
            one
            for one in records[:end]
            if not (
                one.position > records[index].position and isinstance(one.event, AllocationPlaced)
            )
        ]
