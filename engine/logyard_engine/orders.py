"""From the world to what a node is told: tasks, starts, stops."""

from typing import Literal

from logyard_domain.definition import Job, Uri, injected_files
from logyard_domain.plan import StagePlan
from logyard_domain.work import DropVolumes, Start, Stop, Sync, Task
from logyard_domain.world import Allocation, Node, Stage, Workflow, World

StopOutcome = Literal["canceled", "timeout", "preempted", "lost"]
_OUTCOMES: dict[str, StopOutcome] = {"timeout": "timeout", "preempted": "preempted"}


def task_name(stage: Stage) -> str:
    """The key under which the work of a stage is sent."""
    return f"{stage.workflow.id}/{stage.plan.name}"


def task_of(world: World, stage: Stage) -> Task:
    """What every rank of the stage does."""
    workflow, plan = stage.workflow, stage.plan
    limit_ms = plan.limit_ms or workflow.timeout_ms
    grace_ms = int(world.config["workflow.killGrace"])
    if plan.kind == "job":
        job = workflow.known.definition.jobs[plan.subject]
        return _job(workflow, plan, job, limit_ms, grace_ms)
    volume = workflow.known.definition.volumes[plan.subject]
    path = content = result = ""
    if plan.kind == "ingress":
        transfer = volume.ingress[plan.part]
        path = transfer.destination.rest
        content = workflow.known.definition.files[transfer.source.rest]
    elif plan.kind == "egress":
        transfer = volume.egress[plan.part]
        path = transfer.source.rest
        result = _result(transfer.destination, path)
    return Task(
        task=task_name(stage),
        workflow=workflow.id,
        stage=plan.name,
        kind=plan.kind,
        volume=plan.subject,
        path=path,
        content=content,
        result=result,
        cores=0,
        limit_ms=limit_ms,
        grace_ms=grace_ms,
    )


def _result(destination: Uri, path: str) -> str:
    """Where a result goes: a destination that ends in a slash (or is empty) keeps the name."""
    rest = destination.rest
    return rest + path.rpartition("/")[2] if not rest or rest.endswith("/") else rest


def _job(workflow: Workflow, plan: StagePlan, job: Job, limit_ms: int, grace_ms: int) -> Task:
    return Task(
        task=f"{workflow.id}/{plan.name}",
        workflow=workflow.id,
        stage=plan.name,
        kind="job",
        argv=(*job.command, *job.args),
        script=job.script or "",
        env=tuple(f"{name}={value}" for name, value in job.env.items()),
        cwd=job.cwd or "",
        files=injected_files(workflow.known.definition, job),
        mounts={path: mount.volume for path, mount in job.mounts.items()},
        cores=plan.request.cores,
        memory=plan.request.memory,
        devices=dict(plan.request.devices),
        affinity=job.resource.cpu.affinity if job.resource and job.resource.cpu else "CORE",
        limit_ms=limit_ms,
        grace_ms=grace_ms,
        array=plan.array,
    )


def start_of(allocation: Allocation) -> Start:
    """The order to start it."""
    behind = allocation.behind.id if allocation.behind else ""
    return Start(allocation.id, task_name(allocation.stage), allocation.rank, behind)


def stop_of(world: World, allocation: Allocation) -> Stop:
    """The order to end it."""
    outcome = _OUTCOMES.get(allocation.stopping, "canceled")
    return Stop(allocation.id, int(world.config["workflow.killGrace"]), outcome)


def told(allocation: Allocation, node: Node) -> bool:
    """Whether the node has been told to start it: it leads, and its room is there."""
    return allocation.node is node and not allocation.after


def sync_of(world: World, node: Node) -> Sync:
    """Everything that the node should be running, stopping and clearing away now."""
    held = [a for a in map(world.allocations.__getitem__, node.running) if told(a, node)]
    tasks = {task_name(a.stage): a.stage for a in held}
    return Sync(
        tasks=tuple(task_of(world, stage) for stage in tasks.values()),
        starts=tuple(start_of(a) for a in held),
        stops=tuple(stop_of(world, a) for a in held if a.status == "stopping"),
        drops=tuple(
            DropVolumes(workflow)
            for workflow, storage in world.cleanups.items()
            if storage == node.storage
        ),
    )
