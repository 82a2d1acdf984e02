"""Worlds as they were on the way of a log, and the same request asked for in another way."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from logyard_domain import snapshot
from logyard_domain.commands import AnyCommand, StopWorkflow, SubmitWorkflow
from logyard_domain.decide import decide
from logyard_domain.definition import Cpu, Job, Memory, Multinode, Policy, Resource, Workflow
from logyard_domain.events import AnyEvent
from logyard_domain.evolve import evolve, replay
from logyard_domain.records import Record
from logyard_domain.settle import settle
from logyard_domain.world import Stage, World
from logyard_engine.advice.changes import Change
from logyard_engine.scheduler.memory import Memory as Known
from logyard_engine.scheduler.tick import tick

Tick = tuple[bytes, list[Record]]
"""A world as a snapshot, and the records of the tick that was made in it."""


def ticks(records: Sequence[Record]) -> Iterator[Tick]:
    """Every tick of a log."""
    world = World(records[0].cluster)
    index = 0
    while index < len(records):
        first = records[index]
        if first.actor != "scheduler":
            replay(world, first)
            index += 1
            continue
        end = index
        while end < len(records) and _together(first, records[end]):
            end += 1
        yield snapshot.dump(world), list(records[index:end])
        for record in records[index:end]:
            replay(world, record)
        index = end


def _together(one: Record, other: Record) -> bool:
    return (one.actor, one.cause, one.at) == (other.actor, other.cause, other.at)


def moments(records: Sequence[Record], count: int) -> Iterator[bytes]:
    """So many worlds in which something waits, spread over the log, each after a whole turn."""
    world = World(records[0].cluster)
    found: list[bytes] = []
    for record, following in zip(records, [*records[1:], None], strict=True):
        replay(world, record)
        if world.lanes and (following is None or following.at > record.at):
            found.append(snapshot.dump(world))
    for number in range(min(count, len(found))):
        yield found[len(found) * number // count if len(found) > count else number]


def waiting(world: World) -> list[Stage]:
    """What waits for room, in no order that matters."""
    return [entry[2] for lane in world.lanes.values() for entry in lane.heap if entry[2].open]


def is_fresh(stage: Stage) -> bool:
    """Whether its workflow is this one job, and nothing of it was ever placed."""
    return len(stage.workflow.stages) == 1 and stage.next == stage.plan.first and not stage.again


def turn(world: World, commands: Sequence[AnyCommand], now: int) -> None:
    """What a server does with these commands at one instant."""
    for command in commands:
        _apply(world, decide(world, command, now), now)
    _apply(world, settle(world, now), now)
    _apply(world, tick(world, Known(), now), now)


def _apply(world: World, events: Iterable[AnyEvent], now: int) -> None:
    for event in events:
        evolve(world, event, now, world.position + 1)


def replaced(stage: Stage, change: Change) -> list[AnyCommand]:
    """Stop the workflow, and start it again with the change."""
    workflow = stage.workflow
    definition = workflow.known.definition
    name, job = next(iter(definition.jobs.items()))
    again = SubmitWorkflow(
        key=f"again-{workflow.id}",
        name=workflow.name,
        definition=Workflow(jobs={name: _edited(job, change)}),
        organization=workflow.organization,
        group=workflow.group,
        user=workflow.user,
        priority=change.value if change.what == "priority" else workflow.priority,
    )
    return [StopWorkflow(workflow=workflow.id), again]


def _edited(job: Job, change: Change) -> Job:
    resource = job.resource or Resource()
    value = change.value
    match change.what:
        case "cores":
            resource = msgspec.structs.replace(resource, cpu=Cpu(cores=value))
        case "memory":
            resource = msgspec.structs.replace(resource, memory=Memory(size_bytes=value))
        case "device":
            devices = {**resource.devices, change.name: value}
            resource = msgspec.structs.replace(resource, devices=devices)
        case "annotation":
            left = {key: one for key, one in resource.annotations.items() if key != change.name}
            resource = msgspec.structs.replace(resource, annotations=left)
        case "exclusive":
            resource = msgspec.structs.replace(resource, exclusive=None)
        case "nodes":
            many = Multinode(nodes=value, implementation="generic") if value > 1 else None
            return msgspec.structs.replace(job, multinode=many)
        case "limit":
            policy = msgspec.structs.replace(job.policy or Policy(), timeout_ms=value)
            return msgspec.structs.replace(job, policy=policy)
        case _:
            return job
    return msgspec.structs.replace(job, resource=resource)
