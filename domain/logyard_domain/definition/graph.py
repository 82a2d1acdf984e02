"""Who waits for whom in a workflow."""

from collections.abc import Mapping, Sequence

from logyard_domain.definition.programs import Dependency
from logyard_domain.definition.workflow import Workflow


def dependencies(workflow: Workflow) -> dict[str, tuple[Dependency, ...]]:
    """What each job and each service waits for, by its name; jobs first, in the file's order."""
    programs = (*workflow.jobs.items(), *workflow.services.items())
    return {name: program.dependencies for name, program in programs}


def ordered(workflow: Workflow) -> tuple[str, ...]:
    """Names of all jobs and services, each after everything that it waits for.

    Among those that could come next the file's order decides. Raises ValueError where names wait
    for each other.
    """
    waits = {
        name: [dependency.name for dependency in found]
        for name, found in dependencies(workflow).items()
    }
    if found := cycles(waits):
        raise ValueError(f"these wait for each other: {' -> '.join(found[0])}")
    order: dict[str, None] = {}
    for root in waits:
        _visit(root, waits, order)
    return tuple(order)


def cycles(waits: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """One cycle of each group of names that wait for each other, as `a, b, a`.

    Names that nothing is known about are ignored.
    """
    found: list[tuple[str, ...]] = []
    done: set[str] = set()
    for root in waits:
        if root in done:
            continue
        trail: list[str] = []
        on_trail: dict[str, int] = {}
        pending = [iter((root,))]
        while pending:
            name = next((n for n in pending[-1] if n in waits and n not in done), None)
            if name is None:
                pending.pop()
                if trail:
                    left = trail.pop()
                    del on_trail[left]
                    done.add(left)
            elif name in on_trail:
                cycle = trail[on_trail[name] :]
                if not any(set(cycle) & set(known) for known in found):
                    found.append((*cycle, name))
            else:
                on_trail[name] = len(trail)
                trail.append(name)
                pending.append(iter(waits[name]))
    return tuple(found)


def _visit(root: str, waits: Mapping[str, Sequence[str]], order: dict[str, None]) -> None:
    pending = [(root, iter(waits[root]))]
    while pending:
        name, rest = pending[-1]
        following = next((n for n in rest if n in waits and n not in order), None)
        if following is None:
            order[name] = None
            pending.pop()
        else:
            pending.append((following, iter(waits[following])))
