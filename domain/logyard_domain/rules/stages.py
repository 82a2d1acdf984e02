"""Stages: when they may queue, when they are over, and what that means for their workflow."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from logyard_domain.events import (
    AllocationStopping,
    AnyEvent,
    ShapeDeclared,
    StageCanceled,
    StageFailed,
    StageFinished,
    StageReady,
    StageStarted,
    WorkflowCanceled,
    WorkflowFailed,
    WorkflowFinished,
    WorkflowStarted,
)
from logyard_domain.rules.queueing import enqueue, noticed
from logyard_domain.world import Stage, World

OVER = ("finished", "failed", "canceled")


def settle_stage(world: World, stage: Stage) -> Iterator[AnyEvent]:
    """What follows of itself for a stage that something happened to."""
    workflow = stage.workflow
    name = {"workflow": workflow.id, "stage": stage.plan.name}
    if stage.status == "waiting":
        yield from _waiting(world, stage)
    if stage.status == "ready" and stage.started:
        if workflow.status == "pending":
            yield WorkflowStarted(workflow=workflow.id)
        yield StageStarted(**name)
    if stage.failed and stage.lined:
        yield from _withdrawn(world, stage)
    if stage.status in ("ready", "started") and not (stage.holding or stage.lined):
        if stage.finished == stage.total:
            yield StageFinished(**name)
        elif workflow.status == "stopping":
            yield StageCanceled(**name, reason="the workflow was stopped")
        elif stage.failed:
            yield StageFailed(**name, error=stage.error)
    if not workflow.open_stages and workflow.id in world.workflows:
        yield _end(stage)


def _waiting(world: World, stage: Stage) -> Iterator[AnyEvent]:
    workflow = stage.workflow
    name = {"workflow": workflow.id, "stage": stage.plan.name}
    if workflow.status == "stopping":
        yield StageCanceled(**name, reason="the workflow was stopped")
        return
    for need in stage.plan.needs:
        found = workflow.stages[need]
        if found.status in ("failed", "canceled"):
            what = "failed" if found.status == "failed" else "did not run"
            yield StageCanceled(**name, reason=f"{found.plan.title} {what}")
            return
    if stage.unmet:
        return
    request = stage.plan.request
    if stage.plan.volumes and workflow.storage:
        request = msgspec.structs.replace(request, storage=workflow.storage)
    if request not in world.shape_ids:
        yield ShapeDeclared(shape=len(world.shapes) + 1, request=request)
    yield StageReady(**name, shape=world.shape_ids[request])


def _withdrawn(world: World, stage: Stage) -> Iterator[AnyEvent]:
    """A rank has failed for good: what has not begun need not begin."""
    for name in list(stage.lined):
        allocation = world.allocations[name]
        if not allocation.began and allocation.status != "stopping":
            yield AllocationStopping(allocation=name, reason="canceled")


def _end(stage: Stage) -> AnyEvent:
    workflow = stage.workflow
    if workflow.status == "stopping":
        return WorkflowCanceled(workflow=workflow.id)
    if workflow.failed_stage:
        failed = workflow.stages[workflow.failed_stage]
        return WorkflowFailed(workflow=workflow.id, stage=workflow.failed_stage, error=failed.error)
    return WorkflowFinished(workflow=workflow.id)


def _stage(world: World, event: Any) -> Stage:
    return world.workflows[event.workflow].stages[event.stage]


def _ready(world: World, event: StageReady) -> None:
    stage = _stage(world, event)
    stage.status = "ready"
    stage.shape = event.shape
    enqueue(world, stage)


def _started(world: World, event: StageStarted) -> None:
    _stage(world, event).status = "started"


def _finished(world: World, event: StageFinished) -> None:
    stage = _stage(world, event)
    stage.status = "finished"
    for dependant in stage.dependants:
        dependant.unmet -= 1
    _over(world, stage)


def _failed(world: World, event: StageFailed) -> None:
    stage = _stage(world, event)
    stage.status = "failed"
    stage.error = event.error
    workflow = stage.workflow
    workflow.failed_stage = workflow.failed_stage or event.stage
    _over(world, stage)


def _canceled(world: World, event: StageCanceled) -> None:
    stage = _stage(world, event)
    stage.status = "canceled"
    stage.error = event.reason
    _over(world, stage)


def _over(world: World, stage: Stage) -> None:
    noticed(world, stage)
    stage.delayed.clear()
    stage.again.clear()
    stage.workflow.open_stages -= 1
    for dependant in stage.dependants:
        world.touched[dependant] = None


APPLY: dict[type, Callable[[World, Any], None]] = {
    StageReady: _ready,
    StageStarted: _started,
    StageFinished: _finished,
    StageFailed: _failed,
    StageCanceled: _canceled,
}
