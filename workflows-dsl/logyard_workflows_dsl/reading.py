"""The state of reading one file: where we are, what was wrong, what was changed."""

import enum
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from yaml import Node
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from logyard_domain.definition import limits
from logyard_workflows_dsl.nodes import KNOWN_TAGS, PLAIN
from logyard_workflows_dsl.problems import Problem, Segment, Unreadable, path_text, printable

Version = Literal["v1", "v4"]
Path = tuple[Segment, ...]


class Failure(enum.Enum):
    """What reading gives where there is no value; the problem is noted already."""

    FAILED = enum.auto()


FAILED: Final = Failure.FAILED


class Reading:
    """Collects what is found in one file. `path` is where the reader is now."""

    def __init__(self, file: str, version: Version) -> None:
        self.file = file
        self.version: Version = version
        self.path: list[Segment] = []
        self.problems: list[tuple[Path, Problem]] = []
        self.warnings: list[Problem] = []
        self.changes: list[str] = []
        self.moved: dict[Path, tuple[Path, Node]] = {}
        """Where the value at a path was really written, if elsewhere."""
        self.kept: dict[Path, list[int]] = {}
        """Of lists in which entries failed: the places in the file of those that are left."""
        self._values = 0

    def wrong(self, node: Node, message: str, *below: Segment) -> Failure:
        """Notes a problem at `node`, at the current path or `below` it."""
        path = (*self.path, *below)
        self.problems.append((path, self.problem_at(node, path, message)))
        return FAILED

    def warn(self, node: Node, message: str, *below: Segment) -> None:
        """Notes something doubtful at `node`."""
        self.warnings.append(self.problem_at(node, (*self.path, *below), message))

    def change(self, message: str, *below: Segment) -> None:
        """Notes what an upgrade says otherwise than the file."""
        self.changes.append(f"{path_text((*self.path, *below))}: {message}")

    def written(self, path: Path) -> Path:
        """`path` in the value as a path in the file: places in lists count the failed entries."""
        if not self.kept:
            return path
        real: Path = ()
        for segment in path:
            kept = self.kept.get(real)
            real = (*real, kept[segment] if kept and isinstance(segment, int) else segment)
        return real

    def entries(self, node: MappingNode) -> list[tuple[str, Node, Node]]:
        """Key, key node and value node of each entry; doubled keys and odd ones are problems.

        Merge keys (`<<`) are followed; the mapping's own entries win.
        """
        self._spend(node, len(node.value))
        found: dict[str, tuple[str, Node, Node]] = {}
        merged: list[Node] = []
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self.wrong(key_node, "a key is a word, not a list or mapping")
                continue
            key: str = key_node.value
            if key == "<<" and key_node.tag == PLAIN:
                merged.append(value_node)
            elif key in found:
                line = found[key][1].start_mark.line + 1
                self.wrong(key_node, f"given twice; the first is in line {line}", key)
            else:
                found[key] = (key, key_node, value_node)
        for source in merged:
            for entry in self._merged(source):
                found.setdefault(entry[0], entry)
        return list(found.values())

    def items(self, node: SequenceNode) -> Sequence[Node]:
        """The nodes of a list."""
        self._spend(node, len(node.value))
        values: Sequence[Node] = node.value
        return values

    def known_tag(self, node: Node) -> bool:
        """Whether the node has no tag but the plain ones; notes a problem otherwise."""
        if node.tag in KNOWN_TAGS:
            return True
        self.wrong(node, f"the tag {node.tag} means nothing here; leave it out")
        return False

    def _merged(self, source: Node) -> Iterator[tuple[str, Node, Node]]:
        parts = source.value if isinstance(source, SequenceNode) else [source]
        for part in parts:
            if isinstance(part, MappingNode) and not any(
                isinstance(key, ScalarNode) and key.value == "<<" for key, _ in part.value
            ):
                yield from self.entries(part)
            else:
                self.wrong(source, "`<<` takes mappings that have no `<<` themselves", "<<")

    def _spend(self, node: Node, values: int) -> None:
        self._values += values
        if self._values > limits.VALUES_MAX:
            message = f"more than {limits.VALUES_MAX} values, counting each use of an alias"
            raise Unreadable([self.problem_at(node, tuple(self.path), message)])

    def problem_at(self, node: Node, path: Path, message: str) -> Problem:
        """A problem with the place of `node`."""
        mark = node.start_mark
        line, column = mark.line + 1, mark.column + 1
        return Problem(self.file, line, column, path_text(path), printable(message))
