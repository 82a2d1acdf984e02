"""Jobs and services: programs, what they need, and what they wait for."""

from typing import Annotated, Literal

from msgspec import field

from logyard_domain.definition import limits
from logyard_domain.definition.notation import (
    AbsolutePath,
    Environment,
    FileText,
    Label,
    Line,
    Part,
    Port,
    Whole,
)
from logyard_domain.definition.policies import Policy
from logyard_domain.definition.reachability import (
    Autoscaler,
    DynamicConfig,
    ReadinessProbe,
    ServiceNetwork,
)
from logyard_domain.definition.resources import Resource
from logyard_domain.definition.uris import Uri
from logyard_domain.definition.volumes import Mount


class Dependency(Part, frozen=True, kw_only=True):
    """Something to wait for.

    name: the job or service
    status: `FINISHED` (well), or `RUNNING` for a service that is ready
    description: why, for people
    """

    name: str
    status: Literal["FINISHED", "RUNNING"] = "FINISHED"
    description: str | None = None


class Multinode(Part, frozen=True, kw_only=True):
    """One job on several nodes at once.

    nodes: how many
    implementation: who starts the processes; it must match what is in the image
    procs_per_node: processes on each node; as many as cores where nothing is said
    """

    nodes: Annotated[int, Whole(1, limits.NODES_MAX)]
    implementation: Literal["openmpi", "ompi", "mpich", "gasnet", "generic"]
    procs_per_node: Annotated[int, Whole(1, limits.PROCESSES_PER_NODE_MAX)] | None = None


class TaskArray(Part, frozen=True, kw_only=True):
    """The same job many times, each with its own `FB_TASK_ID`.

    start: the first id
    end: the last id
    concurrency: tasks in flight at once, at most 200; 0 means as many as allowed
    """

    start: Annotated[int, Whole(0, limits.TASK_ID_MAX)]
    end: Annotated[int, Whole(0, limits.TASK_ID_MAX)]
    concurrency: Annotated[int, Whole(0, limits.CONCURRENCY_MAX)] = 0

    @property
    def tasks(self) -> int:
        """How many tasks there are."""
        return self.end - self.start + 1

    @property
    def tasks_at_once(self) -> int:
        """How many tasks may be in flight at once."""
        return self.concurrency or min(self.tasks, limits.CONCURRENCY_MAX)


class JobNetwork(Part, frozen=True, kw_only=True):
    """The network of a job.

    isolated: whether it has a network namespace of its own
    expose_tcp: TCP ports that can be reached from outside
    expose_udp: UDP ports that can be reached from outside
    """

    isolated: bool = False
    expose_tcp: tuple[Port, ...] = ()
    expose_udp: tuple[Port, ...] = ()


class Program(Part, frozen=True, kw_only=True):
    """What jobs and services have in common.

    image: the container image; without one the command runs directly on the node
    command: the program and its arguments
    script: the program as text; `#!/bin/sh` where it has no first line of that kind
    args: arguments for `script`, or more of them for `command`
    env: environment, as a list of `NAME=value`
    cwd: working folder
    mounts: volumes by the path at which they are seen
    files: files by path: their text, or `file://<name>` for one of the top-level `files`
    depends_on: what it waits for
    requires: deprecated; names of what must have finished before
    resource: what it needs of a node
    multinode: runs on several nodes at once
    preemptible: whether it may be stopped for work of higher priority, and started again
    """

    image: Uri | None = None
    command: tuple[str, ...] = ()
    script: Line | None = None
    args: tuple[str, ...] = ()
    env: Environment = field(default={})
    cwd: AbsolutePath | None = None
    mounts: dict[str, Mount] = field(default={})
    files: dict[AbsolutePath, FileText] = field(default={})
    depends_on: tuple[Dependency, ...] = ()
    requires: tuple[Label, ...] = ()
    resource: Resource | None = None
    multinode: Multinode | None = None
    preemptible: bool | None = None

    @property
    def dependencies(self) -> tuple[Dependency, ...]:
        """What it waits for, `requires` included; `depends_on` wins where both are set."""
        return self.depends_on or tuple(Dependency(name=name) for name in self.requires)


class Job(Program, frozen=True, kw_only=True):
    """A program that runs and ends.

    policy: how long it may run, and how often it is tried again
    task_array: runs many times, with an id each
    network: its network
    """

    policy: Policy | None = None
    task_array: TaskArray | None = None
    network: JobNetwork | None = None


class Service(Program, frozen=True, kw_only=True):
    """A program that serves others until it is no longer needed.

    persist: whether it lives on when nothing depends on it any more
    network: ports and endpoints
    readiness_probe: how to find out that it is ready
    autoscaler: how many replicas of it there are
    dynamic_config: a file that follows the addresses of other services
    """

    persist: bool = False
    network: ServiceNetwork | None = None
    readiness_probe: ReadinessProbe | None = None
    autoscaler: Autoscaler | None = None
    dynamic_config: DynamicConfig | None = None
