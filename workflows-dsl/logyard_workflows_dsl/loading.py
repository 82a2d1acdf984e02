"""From the text of a workflow file to its value, or to all that is wrong in it."""

import msgspec
from yaml import Node
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from logyard_domain.definition import Workflow, limits
from logyard_workflows_dsl.checks import Finding, findings
from logyard_workflows_dsl.language import language
from logyard_workflows_dsl.modernizing import modernized
from logyard_workflows_dsl.nodes import composed
from logyard_workflows_dsl.problems import Problem, Unreadable
from logyard_workflows_dsl.reading import Path, Reading, Version


class Loaded(msgspec.Struct, frozen=True):
    """A usable workflow file: its value in version v4, and what is doubtful about it."""

    workflow: Workflow
    detected_version: Version
    upgraded: bool
    warnings: tuple[Problem, ...]


class Understood(msgspec.Struct, frozen=True):
    """A file as it was read: its value, the version that it is written in, and what was noted.

    `changes` tells what the value already says otherwise than the file.
    """

    workflow: Workflow
    version: Version
    warnings: tuple[Problem, ...]
    changes: tuple[str, ...]


def load(text: str | bytes, *, file: str = "workflow") -> Loaded:
    """The workflow in `text`: YAML or JSON, version v1 or v4; `file` names it in problems.

    Raises Unreadable with every problem of the file.
    """
    read = understood(text, file)
    workflow = read.workflow
    if read.version == "v1":
        workflow, _ = modernized(workflow)
    return Loaded(workflow, read.version, read.version == "v1", read.warnings)


def understood(text: str | bytes, file: str) -> Understood:
    """The workflow in `text` as far as possible as it is written. Raises Unreadable."""
    root = composed(text, file)
    version = _version(root)
    reading = Reading(file, version or "v4")
    if version is None and isinstance(root, MappingNode):
        reading.wrong(root, "missing; write `version: v4`", "version")
    value = language(reading.version).read(reading, root)
    assert isinstance(value, Workflow)
    if isinstance(root, MappingNode):
        _check(value, root, reading)
    if reading.problems:
        raise Unreadable(_limited([problem for _, problem in reading.problems]))
    return Understood(
        _without_stale_names(msgspec.structs.replace(value, version="v4")),
        reading.version,
        tuple(sorted(reading.warnings)),
        tuple(reading.changes),
    )


def _version(root: Node) -> Version | None:
    """The version that the file claims; v4 for one that there is not, which reading will note."""
    if isinstance(root, MappingNode):
        for key, value in root.value:
            if key.value == "version" and isinstance(value, ScalarNode) and value.value:
                return "v1" if value.value.lower() == "v1" else "v4"
    return None


def _check(workflow: Workflow, root: Node, reading: Reading) -> None:
    """Adds what the checks find, but for places where reading has failed already."""
    failed = {path for path, _ in reading.problems}
    around = {path[:length] for path in failed for length in range(len(path) + 1)}
    for finding in findings(workflow):
        path = reading.written(finding.path)
        if path in failed or (finding.misses is not None and finding.misses in around):
            continue
        problem = _located(path, finding, root, reading)
        if finding.doubtful:
            reading.warnings.append(problem)
        else:
            reading.problems.append((path, problem))


def _located(path: Path, finding: Finding, root: Node, reading: Reading) -> Problem:
    path, node = reading.moved.get(path) or (path, _node_at(root, path))
    return reading.problem_at(node, path, finding.message)


def _node_at(root: Node, path: Path) -> Node:
    """Where the value at `path` is written: itself if it is a scalar, else its key or first entry.

    For what is not written at all, the nearest thing around it.
    """
    node = place = root
    for segment in path:
        if isinstance(node, SequenceNode) and isinstance(segment, int):
            items: list[Node] = node.value
            if segment >= len(items):
                break
            node = place = items[segment]
        elif isinstance(node, MappingNode):
            found = [pair for pair in node.value if pair[0].value == segment]
            if not found:
                break
            key_node, node = found[0]
            place = node if isinstance(node, ScalarNode) and node.value else key_node
        else:
            break
    return place


def _without_stale_names(workflow: Workflow) -> Workflow:
    """Without the names of volumes that a reference makes meaningless; they were warned about."""
    stale = {
        key: msgspec.structs.replace(volume, name=None)
        for key, volume in workflow.volumes.items()
        if volume.reference is not None and volume.name is not None
    }
    if not stale:
        return workflow
    return msgspec.structs.replace(workflow, volumes=workflow.volumes | stale)


def _limited(problems: list[Problem]) -> list[Problem]:
    ordered = sorted(set(problems))
    rest = len(ordered) - limits.PROBLEMS_MAX
    if rest <= 0:
        return ordered
    last = ordered[limits.PROBLEMS_MAX - 1]
    message = f"{rest} more problems are not listed"
    return [
        *ordered[: limits.PROBLEMS_MAX],
        msgspec.structs.replace(last, path="", message=message),
    ]
