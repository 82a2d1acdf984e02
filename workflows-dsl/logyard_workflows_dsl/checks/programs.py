"""Jobs, what jobs and services have in common, and defaults."""

from collections.abc import Iterator, Mapping

from logyard_domain.definition import (
    Job,
    JobNetwork,
    Mount,
    Policy,
    Program,
    TaskArray,
    Uri,
    Workflow,
    limits,
)
from logyard_workflows_dsl.checks.findings import Finding, doubled, listed
from logyard_workflows_dsl.problems import Segment

Path = tuple[Segment, ...]
_IMAGE_SCHEMES = ("docker", "oras", "fb", "fuzzball", "http", "https")


def findings(workflow: Workflow) -> Iterator[Finding]:
    """Programs that cannot run, volumes and files that do not exist, arrays without tasks."""
    for name, job in workflow.jobs.items():
        yield from _program(("jobs", name), job, workflow)
        yield from _job(("jobs", name), job)
    for name, service in workflow.services.items():
        yield from _program(("services", name), service, workflow)
    defaults = workflow.defaults
    if defaults is not None:
        yield from _mounts(("defaults",), defaults.mounts, workflow)
        if defaults.job is not None:
            yield from _mounts(("defaults", "job"), defaults.job.mounts, workflow)
            yield from policy_findings(("defaults", "job", "policy"), defaults.job.policy)
        if defaults.service is not None:
            yield from _mounts(("defaults", "service"), defaults.service.mounts, workflow)


def policy_findings(path: Path, policy: Policy | None) -> Iterator[Finding]:
    """Pauses that are longer than the longest pause."""
    retry = policy.retry if policy else None
    if retry is not None and retry.backoff_ms > retry.backoff_max_ms:
        yield Finding(
            (*path, "retry", "backoff"), "longer than backoff-max; lower it, or raise backoff-max"
        )


def _program(path: Path, program: Program, workflow: Workflow) -> Iterator[Finding]:
    if program.command and program.script is not None:
        yield Finding(
            (*path, "script"), "there is a `command`, too; keep one, or pass it as `args`"
        )
    elif not program.command and program.script is None and program.image is None:
        yield Finding(
            path,
            "neither `command` nor `script`, and no `image` that brings a command; "
            "write for instance `command: [echo, hello]`",
            misses=path,
        )
    if program.command and not program.command[0]:
        yield Finding((*path, "command", 0), "the program has no name")
    if program.image is not None:
        yield from _image((*path, "image", "uri"), program.image)
    yield from _mounts(path, program.mounts, workflow)
    for target, text in program.files.items():
        if text.startswith("file://") and "\n" not in text:
            yield from file_findings((*path, "files", target), text, workflow)


def file_findings(path: Path, uri: str, workflow: Workflow) -> Iterator[Finding]:
    """A `file://` name that is not among the top-level files."""
    name = uri.removeprefix("file://").lstrip("/")
    if name not in workflow.files:
        message = f"`files` has no `{name}`; {listed(workflow.files)}"
        yield Finding(path, message, misses=("files",))


def _image(path: Path, image: Uri) -> Iterator[Finding]:
    if image.scheme not in _IMAGE_SCHEMES:
        schemes = ", ".join(f"{scheme}://" for scheme in _IMAGE_SCHEMES)
        yield Finding(path, f"images do not come from {image.scheme}://; there are {schemes}")


def _mounts(path: Path, mounts: Mapping[str, Mount], workflow: Workflow) -> Iterator[Finding]:
    for target, mount in mounts.items():
        if mount.volume not in workflow.volumes:
            there = listed(workflow.volumes)
            message = f"no volume is called `{mount.volume}`; {there}"
            yield Finding((*path, "mounts", target), message, misses=("volumes",))


def _job(path: Path, job: Job) -> Iterator[Finding]:
    yield from policy_findings((*path, "policy"), job.policy)
    if job.task_array is not None:
        yield from _array((*path, "task-array"), job.task_array)
        if job.multinode is not None:
            yield Finding(
                (*path, "multinode"), "not together with task-array; make it two jobs, or use one"
            )
    if job.network is not None:
        yield from _ports((*path, "network"), job.network)


def _array(path: Path, array: TaskArray) -> Iterator[Finding]:
    if array.start > array.end:
        yield Finding((*path, "end"), f"{array.end} is before start, {array.start}; swap them")
    elif array.tasks > limits.TASKS_MAX:
        yield Finding((*path, "end"), f"{array.tasks} tasks; the most is {limits.TASKS_MAX}")


def _ports(path: Path, network: JobNetwork) -> Iterator[Finding]:
    for key, ports in (("expose-tcp", network.expose_tcp), ("expose-udp", network.expose_udp)):
        for index, port in doubled(ports):
            yield Finding((*path, key, index), f"port {port} is exposed twice; leave one out")
