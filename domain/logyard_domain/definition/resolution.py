"""A workflow with its defaults worked in: what each job and service really gets."""

from typing import TypeVar

import msgspec

from logyard_domain.definition.policies import Policy
from logyard_domain.definition.programs import Job, Program, Service
from logyard_domain.definition.resources import Cpu, Resource
from logyard_domain.definition.volumes import addressed
from logyard_domain.definition.workflow import Defaults, JobDefaults, ServiceDefaults, Workflow

_P = TypeVar("_P", bound=Program)


def resolved(workflow: Workflow) -> Workflow:
    """The same work, said in full: no defaults left to look up.

    Precedence: the job or service itself, then the defaults of its kind, then the general ones.
    Environments are merged variable by variable; mounts apply as a whole; resources and policies
    are merged field by field. `requires` becomes `depends_on`, the old addresses of volumes become
    `use` and `name`, `preemptible` and `exclusive` become true or false, and every job has a
    policy (its timeout may still be unset) and a resource with at least its cores.
    """
    defaults = workflow.defaults or Defaults()
    job_layers = (defaults.job or JobDefaults(), defaults)
    service_layers = (defaults.service or ServiceDefaults(), defaults)
    policy = job_layers[0].policy
    return msgspec.structs.replace(
        workflow,
        defaults=None,
        volumes={key: addressed(volume) for key, volume in workflow.volumes.items()},
        jobs={
            name: msgspec.structs.replace(
                _filled(job, workflow, job_layers), policy=merged_policy(job.policy, policy)
            )
            for name, job in workflow.jobs.items()
        },
        services={
            name: _filled(service, workflow, service_layers)
            for name, service in workflow.services.items()
        },
    )


def merged_policy(own: Policy | None, default: Policy | None) -> Policy:
    """Timeout and retry, each from `own` where it is set there."""
    own, default = own or Policy(), default or Policy()
    return Policy(
        timeout_ms=own.timeout_ms if own.timeout_ms is not None else default.timeout_ms,
        retry=own.retry if own.retry is not None else default.retry,
    )


def merged_resource(own: Resource | None, default: Resource | None) -> Resource:
    """Each field from `own` where it is set there, else from `default`."""
    own, default = own or Resource(), default or Resource()
    return Resource(
        cpu=own.cpu or default.cpu,
        memory=own.memory or default.memory,
        devices=own.devices or default.devices,
        exclusive=own.exclusive if own.exclusive is not None else default.exclusive,
        annotations=own.annotations or default.annotations,
    )


def injected_files(workflow: Workflow, program: Job | Service) -> dict[str, str]:
    """The files that the program finds, by path, with `file://<name>` looked up."""
    return {
        path: workflow.files[text[7:].lstrip("/")] if text.startswith("file://") else text
        for path, text in program.files.items()
    }


def _filled(
    program: _P, workflow: Workflow, layers: tuple[JobDefaults | ServiceDefaults, Defaults]
) -> _P:
    of_kind, general = layers
    resource = merged_resource(
        program.resource, merged_resource(of_kind.resource, general.resource)
    )
    preemptible = workflow.preemptible if program.preemptible is None else program.preemptible
    return msgspec.structs.replace(
        program,
        env=general.env | of_kind.env | program.env,
        mounts=program.mounts or of_kind.mounts or general.mounts,
        depends_on=program.dependencies,
        requires=(),
        resource=msgspec.structs.replace(
            resource, cpu=resource.cpu or Cpu(), exclusive=bool(resource.exclusive)
        ),
        preemptible=preemptible,
    )
