"""The old forms of the language said in the new ones, with the same meaning."""

from typing import TypeVar

import msgspec

from logyard_domain.definition import Job, Service, Volume, Workflow
from logyard_domain.definition.volumes import addressed
from logyard_workflows_dsl.problems import path_text

_P = TypeVar("_P", Job, Service)


def modernized(workflow: Workflow) -> tuple[Workflow, tuple[str, ...]]:
    """The workflow without `requires` and old volume addresses, and a sentence for each change.

    A reference that `use` and `name` cannot say stays as it is.
    """
    changes: list[str] = []
    volumes = {key: _volume(key, volume, changes) for key, volume in workflow.volumes.items()}
    jobs = {name: _program("jobs", name, job, changes) for name, job in workflow.jobs.items()}
    services = {
        name: _program("services", name, service, changes)
        for name, service in workflow.services.items()
    }
    modern = msgspec.structs.replace(workflow, volumes=volumes, jobs=jobs, services=services)
    return modern, tuple(changes)


def _volume(key: str, volume: Volume, changes: list[str]) -> Volume:
    modern = addressed(volume)
    if modern.reference != volume.reference:
        path = path_text(("volumes", key, "reference"))
        if modern.name is not None:
            changes.append(
                f"{path}: {volume.reference} is now `use: {modern.use}` and "
                f"`name: {modern.name}`; v4 has no scope in addresses"
            )
        else:
            changes.append(f"{path}: {volume.reference} is now `use: {modern.use}`")
    elif volume.type is not None and modern.type is None:
        changes.append(
            f"{path_text(('volumes', key, 'type'))}: {volume.type} is now `use: {modern.use}`"
        )
    return modern


def _program(kind: str, name: str, program: _P, changes: list[str]) -> _P:
    if not program.requires:
        return program
    path = path_text((kind, name, "requires"))
    if program.depends_on:
        changes.append(f"{path}: dropped, since it is ignored where depends-on is set")
    else:
        changes.append(f"{path}: now depends-on with status FINISHED")
    return msgspec.structs.replace(program, depends_on=program.dependencies, requires=())
