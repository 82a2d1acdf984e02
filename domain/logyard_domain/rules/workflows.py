"""Workflows: submitted, started, stopped, ended."""

from collections.abc import Callable
from typing import Any

import msgspec

from logyard_domain.capabilities import refusals
from logyard_domain.commands import Refused, StopWorkflow, SubmitWorkflow
from logyard_domain.definition import Workflow as Definition
from logyard_domain.definition import resolved
from logyard_domain.events import (
    AllocationStopping,
    AnyEvent,
    VolumesRemoved,
    WorkflowCanceled,
    WorkflowFailed,
    WorkflowFinished,
    WorkflowStarted,
    WorkflowStopping,
    WorkflowSubmitted,
)
from logyard_domain.identifiers import workflow_id
from logyard_domain.plan import plan
from logyard_domain.rules.queueing import noticed
from logyard_domain.world import DAY_MS, Known, Stage, Workflow, World

KEY_KEPT_MS = 7 * DAY_MS
"""How long an idempotency key is remembered."""
KEY_CHARS = 200
NAME_CHARS = 200


def submit_workflow(world: World, command: SubmitWorkflow) -> list[AnyEvent]:
    """Accept a workflow, or find that it was accepted already."""
    if known_key(command) in world.keys:
        return []
    _check(world, command)
    return [
        WorkflowSubmitted(
            workflow=workflow_id(world.cluster, world.position + 1),
            name=command.name,
            key=command.key,
            organization=command.organization,
            group=command.group,
            user=command.user,
            definition=command.definition,
            source=command.source,
            timeout_ms=int(world.config["workflow.executeTimeout"]),
            priority=command.priority,
            preemptible=command.preemptible,
        )
    ]


def stop_workflow(world: World, command: StopWorkflow) -> list[AnyEvent]:
    """Stop what runs, start nothing more. Stopping twice is stopping once."""
    workflow = world.workflows.get(command.workflow)
    if workflow is None:
        raise Refused(f"no workflow {command.workflow!r} is alive", "missing")
    if workflow.status == "stopping":
        return []
    events: list[AnyEvent] = [WorkflowStopping(workflow=workflow.id, reason=command.reason)]
    events += [
        AllocationStopping(allocation=allocation.id, reason="canceled")
        for allocation in world.allocations.values()
        if allocation.stage.workflow is workflow and allocation.status != "stopping"
    ]
    return events


def known_key(command: SubmitWorkflow | WorkflowSubmitted) -> str:
    """An idempotency key belongs to the user who chose it."""
    return f"{command.user}/{command.key}"


def _check(world: World, command: SubmitWorkflow) -> None:
    if not 0 < len(command.key) <= KEY_CHARS:
        raise Refused(f"an idempotency key has 1 to {KEY_CHARS} characters", "invalid")
    if not 0 < len(command.name) <= NAME_CHARS:
        raise Refused(f"a workflow's name has 1 to {NAME_CHARS} characters", "invalid")
    if not -(2**31) <= command.priority <= 0:
        raise Refused(
            f"priority {command.priority}: a workflow's priority is 0 or lower", "invalid"
        )
    # A live workflow of the same definition was let through already.
    if msgspec.json.encode(command.definition) not in world.definitions and (
        found := refusals(command.definition, lambda feature: _offered(world, feature))
    ):
        raise Refused("\n".join(found), "invalid")


def _offered(world: World, feature: str) -> bool:
    return any(feature in node.features for node in world.nodes.values())


def submission(event: WorkflowSubmitted, position: int, at: int) -> Workflow:
    """The workflow that a submission makes, without its stages."""
    workflow = Workflow(event.workflow)
    workflow.name = event.name
    workflow.key = event.key
    workflow.organization = event.organization
    workflow.group = event.group
    workflow.user = event.user
    workflow.priority = event.priority
    workflow.preemptible = event.preemptible
    workflow.timeout_ms = event.timeout_ms
    workflow.submitted_at = at
    workflow.position = position
    return workflow


def unfold(world: World, workflow: Workflow, known: Known) -> None:
    """Give the workflow its place in the queue and its stages, untouched."""
    workflow.known = known
    known.users += 1
    workflow.stages = {stage.name: Stage(workflow, stage) for stage in known.stages}
    workflow.open_stages = len(workflow.stages)
    for stage in workflow.stages.values():
        stage.pace = known.paces[stage.plan.name]
        for need in stage.plan.needs:
            workflow.stages[need].dependants.append(stage)
    world.workflows[workflow.id] = workflow


def known_definition(world: World, definition: Definition, preemptible: bool) -> Known:
    """The definition in full with its stages; equal ones of live workflows are one object."""
    if preemptible:
        definition = msgspec.structs.replace(definition, preemptible=True)
    identity = msgspec.json.encode(definition)
    known = world.definitions.get(identity)
    if known is None:
        full = resolved(definition)
        known = world.definitions[identity] = Known(identity, full, plan(full))
    return known


def _submitted(world: World, event: WorkflowSubmitted) -> None:
    workflow = submission(event, world.position, world.at)
    unfold(world, workflow, known_definition(world, event.definition, event.preemptible))
    world.keys[known_key(event)] = (workflow.id, world.at)
    world.key_order.append(known_key(event))
    _forget_old_keys(world)
    for stage in workflow.stages.values():
        noticed(world, stage)
        world.touched[stage] = None


def _forget_old_keys(world: World) -> None:
    while world.key_order and world.at - world.keys[world.key_order[0]][1] > KEY_KEPT_MS:
        del world.keys[world.key_order.popleft()]


def _started(world: World, event: WorkflowStarted) -> None:
    world.workflows[event.workflow].status = "started"


def _stopping(world: World, event: WorkflowStopping) -> None:
    workflow = world.workflows[event.workflow]
    workflow.status = "stopping"
    for stage in workflow.stages.values():
        noticed(world, stage)
        world.touched[stage] = None


def _ended(world: World, event: WorkflowFinished | WorkflowFailed | WorkflowCanceled) -> None:
    workflow = world.workflows.pop(event.workflow)
    if workflow.volumes:
        world.cleanups[workflow.id] = workflow.storage
    workflow.known.users -= 1
    if not workflow.known.users:
        del world.definitions[workflow.known.identity]


def _volumes_removed(world: World, event: VolumesRemoved) -> None:
    world.cleanups.pop(event.workflow, None)


APPLY: dict[type, Callable[[World, Any], None]] = {
    WorkflowSubmitted: _submitted,
    WorkflowStarted: _started,
    WorkflowStopping: _stopping,
    WorkflowFinished: _ended,
    WorkflowFailed: _ended,
    WorkflowCanceled: _ended,
    VolumesRemoved: _volumes_removed,
}
