"""A workflow as a value: what a version v4 file says, with quantities as whole numbers."""

from typing import Literal

from msgspec import field

from logyard_domain.definition.notation import (
    AnnotationKey,
    Environment,
    FileKey,
    FileText,
    Label,
    Part,
    VolumeKey,
)
from logyard_domain.definition.policies import Policy
from logyard_domain.definition.programs import Job, Service
from logyard_domain.definition.resources import Resource
from logyard_domain.definition.volumes import Mount, Volume


class JobDefaults(Part, frozen=True, kw_only=True):
    """What jobs have unless they say otherwise.

    env: environment, merged variable by variable
    mounts: mounts of every job that has none of its own
    policy: timeout and retry, each where the job does not set it
    resource: cpu, memory, devices, annotations and exclusive, each where the job does not set it
    """

    env: Environment = field(default={})
    mounts: dict[str, Mount] = field(default={})
    policy: Policy | None = None
    resource: Resource | None = None


class ServiceDefaults(Part, frozen=True, kw_only=True):
    """What services have unless they say otherwise.

    env: environment, merged variable by variable
    mounts: mounts of every service that has none of its own
    resource: cpu, memory, devices, annotations and exclusive, each where it is not set
    """

    env: Environment = field(default={})
    mounts: dict[str, Mount] = field(default={})
    resource: Resource | None = None


class Defaults(ServiceDefaults, frozen=True, kw_only=True):
    """What jobs and services have unless they say otherwise.

    env: environment, merged variable by variable
    mounts: mounts of everything that has none of its own
    resource: cpu, memory, devices, annotations and exclusive, each where it is not set
    job: for jobs only; stronger than the general ones
    service: for services only; stronger than the general ones
    """

    job: JobDefaults | None = None
    service: ServiceDefaults | None = None


class Workflow(Part, frozen=True, kw_only=True):
    """Jobs and services that belong together.

    version: version of the language
    annotations: free keys; some guide placement
    files: inline files, used as `file://<name>`
    defaults: what jobs and services have unless they say otherwise
    volumes: storage that jobs and services mount
    jobs: programs that run and end
    services: programs that serve others
    preemptible: whether everything in it may be stopped for work of higher priority
    """

    version: Literal["v4"] = "v4"
    annotations: dict[AnnotationKey, str] = field(default={})
    files: dict[FileKey, FileText] = field(default={})
    defaults: Defaults | None = None
    volumes: dict[VolumeKey, Volume] = field(default={})
    jobs: dict[Label, Job] = field(default={})
    services: dict[Label, Service] = field(default={})
    preemptible: bool = False
