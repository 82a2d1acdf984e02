"""Names of jobs and services, and who waits for whom."""

from collections.abc import Iterator

from logyard_domain.definition import Program, Workflow, cycles, limits
from logyard_workflows_dsl.checks.findings import Finding, doubled, listed
from logyard_workflows_dsl.problems import Segment


def findings(workflow: Workflow) -> Iterator[Finding]:
    """Names used twice, dependencies on nothing, cycles."""
    if not workflow.jobs and not workflow.services:
        yield Finding(
            ("jobs",), "there is no job and no service; a workflow has at least one", misses=()
        )
    if len(workflow.jobs) + len(workflow.services) > limits.STAGES_MAX:
        yield Finding(("jobs",), f"more than {limits.STAGES_MAX} jobs and services in one workflow")
    for name in workflow.services:
        if name in workflow.jobs:
            yield Finding(("services", name), "a job has this name already; they share their names")
    programs = _programs(workflow)
    for path, program in programs:
        yield from _dependencies(path, program, workflow)
    waits = {
        str(path[1]): [dependency.name for dependency in program.dependencies]
        for path, program in programs
    }
    for cycle in cycles(waits):
        if len(cycle) > 2:
            first, following = cycle[0], cycle[1]
            path, program = next(one for one in programs if one[0][1] == first)
            key = "depends-on" if program.depends_on else "requires"
            index = waits[first].index(following)
            shown = " -> ".join(cycle)
            yield Finding(
                (*path, key, index), f"these wait for each other: {shown}; one must not wait"
            )


def _programs(workflow: Workflow) -> list[tuple[tuple[Segment, ...], Program]]:
    return [
        *((("jobs", name), job) for name, job in workflow.jobs.items()),
        *((("services", name), service) for name, service in workflow.services.items()),
    ]


def _dependencies(
    path: tuple[Segment, ...], program: Program, workflow: Workflow
) -> Iterator[Finding]:
    if program.depends_on and program.requires:
        yield Finding(
            (*path, "requires"), "ignored, since depends-on is set; leave it out", doubtful=True
        )
    for index, dependency in enumerate(program.dependencies):
        at = (
            (*path, "depends-on", index, "name")
            if program.depends_on
            else (*path, "requires", index)
        )
        name = dependency.name
        if name == path[1]:
            yield Finding(at, f"`{name}` waits for itself; leave this out")
        elif name in workflow.services:
            continue
        elif name not in workflow.jobs:
            there = listed((*workflow.jobs, *workflow.services))
            yield Finding(at, f"no job or service is called `{name}`; {there}")
        elif dependency.status == "RUNNING":
            yield Finding(
                (*path, "depends-on", index, "status"),
                f"`{name}` is a job; only a service can be waited for as RUNNING, write FINISHED",
            )
    names = [dependency.name for dependency in program.dependencies]
    for index, name in doubled(names):
        key = "depends-on" if program.depends_on else "requires"
        yield Finding((*path, key, index), f"`{name}` is waited for twice; leave one out")
