"""What is wrong in an expression, and how it is shown to people: a caret under the place."""

import unicodedata
from collections.abc import Iterable
from typing import Final

from logyard_workflows_dsl.problems import Problem, Unreadable

_INDENT: Final = "    "
_WIDTH_MAX: Final = 100
_BEFORE: Final = 40


class Fault(Problem, frozen=True, order=True, gc=False):
    """One thing that is wrong in an expression: `length` characters from its place on.

    `file` is what the expression is called, such as ``scheduler.priority``; `path` is empty.
    """

    length: int = 1


class UnreadableExpression(Unreadable):
    """An expression that cannot be used; carries all its faults, in the order of the text."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__(self.faults)


def fault(name: str, text: str, start: int, length: int, message: str) -> Fault:
    """The fault at `start` of `text`, given as line and column."""
    line = text.count("\n", 0, start) + 1
    column = start - text.rfind("\n", 0, start)
    return Fault(name, line, column, "", message, max(length, 1))


def rendered(problems: Iterable[Fault], text: str) -> str:
    """The problems of the expression `text` for people: each with its line and a caret below it."""
    lines = text.split("\n")
    return "\n".join(f"{problem}\n{_pointed(problem, lines)}" for problem in problems)


def _pointed(problem: Fault, lines: list[str]) -> str:
    line = lines[problem.line - 1].removesuffix("\r")
    begin, end = problem.column - 1, problem.column - 1 + problem.length
    cells = [_cell(one) for one in line]
    first, dots = 0, ""
    if sum(map(_width, cells)) > _WIDTH_MAX:
        first = max(begin - _BEFORE, 0)
        dots = "..." if first else ""
    shown = cells[first : first + _WIDTH_MAX]
    after = "..." if first + _WIDTH_MAX < len(cells) else ""
    blank = len(dots) + sum(map(_width, cells[first:begin]))
    marked = sum(map(_width, cells[begin : min(end, first + _WIDTH_MAX)]))
    return f"{_INDENT}{dots}{''.join(shown)}{after}\n{_INDENT}{' ' * blank}{'^' * max(marked, 1)}"


def _cell(one: str) -> str:
    """A character as it can be shown."""
    if one == "\t":
        return " "
    return one if one.isprintable() else "\N{REPLACEMENT CHARACTER}"


def _width(one: str) -> int:
    """How many columns of a terminal a character takes."""
    if unicodedata.combining(one):
        return 0
    return 2 if unicodedata.east_asian_width(one) in "WF" else 1
