"""What an expression is once its text has been read: the nodes of its tree, as the log keeps them.

On the wire a node is an array that begins with its tag: ``["b","+",["v","user.priority",""],
["n",1.0]]``. Tags never change their meaning. A tree says nothing of types: `checking` does.
"""

import math
from collections.abc import Iterator
from typing import Literal

import msgspec

Sign = Literal["-", "not"]
Operator = Literal["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "and", "or"]


class Number(msgspec.Struct, frozen=True, array_like=True, tag="n", gc=False):
    """A number as it is written: finite and without a sign. ``-1`` is `Unary` over ``1``."""

    value: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.value) or math.copysign(1.0, self.value) < 0:
            raise ValueError(f"{self.value} is no number of an expression: finite, without a sign")


class Text(msgspec.Struct, frozen=True, array_like=True, tag="s", gc=False):
    """Text in quotes."""

    value: str


class Truth(msgspec.Struct, frozen=True, array_like=True, tag="t", gc=False):
    """``true`` or ``false``."""

    value: bool


class Variable(msgspec.Struct, frozen=True, array_like=True, tag="v", gc=False):
    """A value from outside, by its dotted name; `key` is what stands in brackets, if anything."""

    name: str
    key: str = ""


class Listing(msgspec.Struct, frozen=True, array_like=True, tag="l", gc=False):
    """``[a, b, c]``: what may stand to the right of ``in``."""

    items: "tuple[Expression, ...]"


class Unary(msgspec.Struct, frozen=True, array_like=True, tag="u", gc=False):
    """A sign before an operand."""

    sign: Sign
    operand: "Expression"


class Binary(msgspec.Struct, frozen=True, array_like=True, tag="b", gc=False):
    """An operator between two operands."""

    operator: Operator
    left: "Expression"
    right: "Expression"


class Choice(msgspec.Struct, frozen=True, array_like=True, tag="?", gc=False):
    """``condition ? yes : no``."""

    condition: "Expression"
    yes: "Expression"
    no: "Expression"


class Call(msgspec.Struct, frozen=True, array_like=True, tag="c", gc=False):
    """A function, one of `functions.FUNCTIONS`, and its arguments."""

    function: str
    arguments: "tuple[Expression, ...]"


Expression = Number | Text | Truth | Variable | Listing | Unary | Binary | Choice | Call


def children(node: Expression) -> tuple[Expression, ...]:
    """The nodes right below, in the order of the text. Paths are made of indices into it."""
    match node:
        case Number() | Text() | Truth() | Variable():
            return ()
        case Listing(items=below) | Call(arguments=below):
            return below
        case Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return (left, right)
        case Choice(condition=condition, yes=yes, no=no):
            return (condition, yes, no)


def walk(tree: Expression) -> Iterator[Expression]:
    """Every node of the tree, in the order of the text, however deep the tree is."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        left += reversed(children(node))


def measure(tree: Expression) -> tuple[int, int]:
    """Depth (1 for a leaf) and number of nodes, however deep the tree is."""
    depth = size = 0
    level: list[Expression] = [tree]
    while level:
        depth += 1
        size += len(level)
        level = [below for node in level for below in children(node)]
    return depth, size
