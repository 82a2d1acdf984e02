"""Text to a tree of YAML nodes with their places in the text."""

import re
from collections.abc import Callable
from typing import Final, NoReturn, Protocol

import yaml
from yaml import Node
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from logyard_domain.definition import limits
from logyard_workflows_dsl.problems import Problem, Unreadable, printable

PLAIN: Final = "plain"
"""Tag of a scalar without quotes: its meaning is up to whoever reads it."""

QUOTED: Final = "quoted"
"""Tag of a scalar that can only be text."""

KNOWN_TAGS: Final = {
    PLAIN,
    QUOTED,
    "sequence",
    "mapping",
    *(
        f"tag:yaml.org,2002:{kind}"
        for kind in ("null", "bool", "int", "float", "str", "seq", "map")
    ),
}
_TEXT_TAGS: Final = {QUOTED, "tag:yaml.org,2002:str"}
_NULLS: Final = {"", "~", "null", "Null", "NULL"}
_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


class Composer(Protocol):
    """Makes nodes of a text."""

    def get_single_node(self) -> Node | None: ...


class _Untyped:
    """Leaves scalars as they are written; types come from the language, not from YAML."""

    def resolve(self, kind: type[Node], value: object, implicit: object) -> str:
        if kind is ScalarNode:
            return PLAIN if isinstance(implicit, tuple) and implicit[0] else QUOTED
        return "sequence" if kind is SequenceNode else "mapping"

    depth = 0

    def descend_resolver(self, current_node: Node | None, current_index: object) -> None:
        self.depth += 1
        if self.depth > limits.NESTING_MAX:
            mark = current_node.start_mark if current_node else None
            raise yaml.MarkedYAMLError(problem="maximum nesting depth", problem_mark=mark)

    def ascend_resolver(self) -> None:
        self.depth -= 1


class PureParser(_Untyped, yaml.SafeLoader):
    """Without libyaml."""


def _fastest_parser() -> Callable[[str], Composer]:
    if not hasattr(yaml, "CSafeLoader"):
        return PureParser

    class Parser(_Untyped, yaml.CSafeLoader):
        """With libyaml."""

    return Parser


FASTEST: Final = _fastest_parser()


def composed(text: str | bytes, file: str, parser: Callable[[str], Composer] = FASTEST) -> Node:
    """The root node of the one YAML document in `text`. Raises Unreadable."""
    decoded = _decoded(text, file)
    try:
        node = parser(decoded).get_single_node()
    except yaml.MarkedYAMLError as error:
        _refuse_yaml(error, decoded, file)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        _refuse(file, 1, 1, f"this is no YAML: {error}")
    if node is None:
        _refuse(
            file,
            1,
            1,
            "there is nothing in it; a workflow begins with `version: v4` and has `jobs`",
        )
    return node


def is_null(node: Node) -> bool:
    """Whether the node says nothing: empty, `~` or `null`."""
    return isinstance(node, ScalarNode) and (
        node.tag == "tag:yaml.org,2002:null" or (node.tag == PLAIN and node.value in _NULLS)
    )


def is_text(node: ScalarNode) -> bool:
    """Whether the scalar can only be text: it is quoted, a block, or tagged so."""
    return node.tag in _TEXT_TAGS


def kind_of(node: Node) -> str:
    """`a mapping`, `a list`, `text` or `nothing`, for messages."""
    if isinstance(node, MappingNode):
        return "a mapping"
    if isinstance(node, SequenceNode):
        return "a list"
    return "nothing" if is_null(node) else "text"


def _decoded(text: str | bytes, file: str) -> str:
    size = len(text)
    if size > limits.TEXT_BYTES_MAX:
        _refuse(file, 1, 1, f"it has {size} bytes; the most is {limits.TEXT_BYTES_MAX}")
    decoded = text if isinstance(text, str) else _from_utf8(text, file)
    decoded = decoded.removeprefix("\ufeff")
    if bad := _UNPRINTABLE.search(decoded):
        line, column = _place(decoded, bad.start())
        _refuse(
            file,
            line,
            column,
            f"character U+{ord(bad[0]):04X} is not allowed in YAML; "
            'write it as an escape in double quotes, for instance "\\u001b"',
        )
    return decoded


def _from_utf8(data: bytes, file: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        line, column = _place(before, len(before))
        _refuse(file, line, column, f"byte 0x{data[error.start]:02x} is no UTF-8")


def _place(text: str, index: int) -> tuple[int, int]:
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def _refuse_yaml(error: yaml.MarkedYAMLError, text: str, file: str) -> NoReturn:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    problem = error.problem or "cannot be read"
    lines = text.split("\n")
    here = lines[line - 1] if line <= len(lines) else ""
    if error.context == "expected a single document in the stream":
        message = "a second document begins here; a file holds one workflow"
    elif "\t" in here[: len(here) - len(here.lstrip())]:
        message = "a tab is used for indentation; YAML takes blanks only"
    elif "maximum nesting depth" in problem:
        message = f"nested too deeply; the most is {limits.NESTING_MAX} levels"
    elif problem == "mapping values are not allowed in this context":
        message = "a second `: ` in one line; put the text in quotes"
    elif error.context:
        since = error.context_mark
        begun = f" begun in line {since.line + 1}" if since and since.line + 1 != line else ""
        message = f"this is no YAML: {problem} ({error.context}{begun})"
    else:
        message = f"this is no YAML: {problem}"
    _refuse(file, line, column, message)


def _refuse(file: str, line: int, column: int, message: str) -> NoReturn:
    raise Unreadable([Problem(file, line, column, "", printable(message))])
