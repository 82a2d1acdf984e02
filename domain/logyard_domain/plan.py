"""From a workflow's definition to the stages it runs as.

Volumes come first, one after the other, so that the first of them settles on which storage the
volumes of the workflow lie. Then files into volumes, then jobs as they depend on each other, and at
last files out of volumes, after every job that mounts the volume.
"""

from typing import Literal

import msgspec

from logyard_domain.definition import Job, Policy, Resource, Retry, Workflow, ordered
from logyard_domain.resources import MULTINODE, Request

StageKind = Literal["job", "volume", "ingress", "egress"]
STAGING_LIMIT_MS = 3_600_000
"""Execute timeout of volume and file stages that set none: a bound keeps promises true."""
UNLIMITED = 2**31
MOUNTS = "mounts"
"""The feature that a node must announce for jobs with mounts or injected files."""


class StagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """One stage: its name in ids, a title for people, what it needs, and what it asks for.

    Ranks are `first` to `last` inclusive, at most `concurrency` in flight. `limit_ms` 0 means the
    default timeout that the workflow was submitted under. `volumes` tells that it uses the
    workflow's volumes. `subject` is the job's or volume's key, `part` which of the volume's ingress
    or egress entries it is.
    """

    name: str
    kind: StageKind
    title: str
    index: int
    needs: tuple[str, ...] = ()
    first: int = 0
    last: int = 0
    array: bool = False
    concurrency: int = UNLIMITED
    request: Request
    limit_ms: int = 0
    retry: Retry | None = None
    volumes: bool = False
    subject: str = ""
    part: int = 0


def plan(workflow: Workflow) -> tuple[StagePlan, ...]:
    """The stages of a resolved workflow (see `definition.resolved`), each after what it needs.

    Only features that `capabilities.refusals` lets through are planned.
    """
    stages: list[StagePlan] = []
    ingress: dict[str, tuple[str, ...]] = {}
    for key in workflow.volumes:
        previous = tuple(stage.name for stage in stages[-1:])
        stages.append(
            StagePlan(
                name=f"volume:{key}",
                kind="volume",
                title=key,
                index=len(stages),
                needs=previous,
                request=Request(cores=0),
                limit_ms=STAGING_LIMIT_MS,
                volumes=True,
                subject=key,
            )
        )
    for key in workflow.volumes:
        names = _transfers(workflow, key, "ingress", (f"volume:{key}",), stages)
        ingress[key] = (f"volume:{key}", *names)
    users: dict[str, list[str]] = {key: [] for key in workflow.volumes}
    for name in ordered(workflow):
        job = workflow.jobs[name]
        mounted = dict.fromkeys(mount.volume for mount in job.mounts.values())
        for key in mounted:
            users[key].append(name)
        staged = [stage for key in mounted for stage in ingress[key]]
        needs = dict.fromkeys([*(wait.name for wait in job.depends_on), *staged])
        stages.append(_job(name, job, len(stages), tuple(needs)))
    for key in workflow.volumes:
        _transfers(workflow, key, "egress", tuple(users[key]) or ingress[key], stages)
    return tuple(stages)


def request_of(
    resource: Resource, preemptible: bool, features: tuple[str, ...] = (), nodes: int = 1
) -> Request:
    """What the scheduler looks at of a job's resources."""
    return Request(
        cores=resource.cores,
        memory=resource.memory_bytes,
        devices=tuple(sorted((name, n) for name, n in resource.devices.items() if n)),
        annotations=tuple(sorted(resource.annotations.items())),
        features=features,
        nodes=nodes,
        exclusive="job" if resource.exclusive else "none",
        preemptible=preemptible,
    )


def _job(name: str, job: Job, index: int, needs: tuple[str, ...]) -> StagePlan:
    array = job.task_array
    policy = job.policy or Policy()
    features = (MOUNTS,) if job.mounts or job.files else ()
    nodes = 1
    if job.multinode is not None and job.multinode.nodes > 1:
        features = (*features, MULTINODE)
        nodes = job.multinode.nodes
    return StagePlan(
        name=name,
        kind="job",
        title=name,
        index=index,
        needs=needs,
        first=array.start if array else 0,
        last=array.end if array else 0,
        array=array is not None,
        concurrency=array.tasks_at_once if array else UNLIMITED,
        request=request_of(job.resource or Resource(), bool(job.preemptible), features, nodes),
        limit_ms=policy.timeout_ms or 0,
        retry=policy.retry,
        volumes=bool(job.mounts),
        subject=name,
    )


def _transfers(
    workflow: Workflow,
    key: str,
    kind: Literal["ingress", "egress"],
    needs: tuple[str, ...],
    stages: list[StagePlan],
) -> list[str]:
    """Add the file stages of one volume; their names."""
    volume = workflow.volumes[key]
    names: list[str] = []
    for part, transfer in enumerate(volume.ingress if kind == "ingress" else volume.egress):
        policy = transfer.policy or Policy()
        name = f"{kind}:{key}:{part}"
        names.append(name)
        stages.append(
            StagePlan(
                name=name,
                kind=kind,
                title=f"{transfer.source.uri} -> {transfer.destination.uri}",
                index=len(stages),
                needs=needs,
                request=Request(cores=0),
                limit_ms=policy.timeout_ms or STAGING_LIMIT_MS,
                retry=policy.retry,
                volumes=True,
                subject=key,
                part=part,
            )
        )
    return names
