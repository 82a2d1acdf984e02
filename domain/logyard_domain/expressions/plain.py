"""What an expression means: its value for one allocation. The oracle of the vectorised way.

The semantics, once:

- Numbers are IEEE 754 doubles. ``+ - *`` and the sign are those of IEEE; the rest is defined in
  `arithmetic`. Evaluation cannot fail: division by zero, the logarithm or root of a negative number
  and overflow give nan or an infinity, which go on as IEEE says.
- A comparison with nan is false, but ``!=``, which is true. ``x in [a, b]`` is ``x == a or x ==
  b``; nan is in no list.
- Both branches of ``? :`` and both sides of ``and`` and ``or`` may be evaluated or not: nobody can
  tell.
- A priority that is not finite counts as the lowest of all, ``-inf``, and is reported.
"""

import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar, assert_never

from logyard_domain.expressions import arithmetic
from logyard_domain.expressions.tree import (
    Binary,
    Call,
    Choice,
    Expression,
    Listing,
    Number,
    Text,
    Truth,
    Unary,
    Variable,
)
from logyard_domain.expressions.variables import column_of

Scalar = float | bool | str
C = TypeVar("C")
Value = Callable[[C], Scalar]
"""Gives the value of an expression for one context, such as a mapping of values by column."""


def compiled(tree: Expression, reading: Callable[[Variable], Value[C]]) -> Value[C]:
    """What gives the value of a checked tree. `reading` says how a variable is read.

    Numbers are read as floats.
    """
    match tree:
        case Number(value=value):
            number = float(value)
            return lambda _: number
        case Text(value=value) | Truth(value=value):
            constant: Scalar = value
            return lambda _: constant
        case Variable():
            return reading(tree)
        case Unary(sign=sign, operand=operand):
            inner = compiled(operand, reading)
            change: Callable[[Any], Scalar] = operator.not_ if sign == "not" else operator.neg
            return lambda asked: change(inner(asked))
        case Binary(operator="in", left=left, right=Listing(items=items)):
            sought = compiled(left, reading)
            entries = [compiled(one, reading) for one in items]
            return lambda asked: _is_in(sought(asked), (one(asked) for one in entries))
        case Binary(operator=name, left=left, right=right):
            first, second = compiled(left, reading), compiled(right, reading)
            pair = _PAIRS[name]
            return lambda asked: pair(first(asked), second(asked))
        case Choice(condition=condition, yes=yes, no=no):
            switch = compiled(condition, reading)
            first, second = compiled(yes, reading), compiled(no, reading)
            return lambda asked: first(asked) if switch(asked) else second(asked)
        case Call(function=function, arguments=arguments):
            values = [compiled(one, reading) for one in arguments]
            call = CALLS[function]
            return lambda asked: call(*[one(asked) for one in values])
        case Listing():
            raise TypeError("a list has no value outside of in")
        case _:
            assert_never(tree)


def evaluate(tree: Expression, values: Mapping[str, Scalar]) -> Scalar:
    """The value of a checked tree. `values` has one for the column of each variable.

    A name in brackets that `values` does not have is 0.
    """
    return compiled(tree, looked_up)(values)


def priority(tree: Expression, values: Mapping[str, Scalar]) -> float:
    """The value as a priority: ``-inf`` where it is not finite."""
    return finite(evaluate(tree, values))


def finite(value: Scalar) -> float:
    """The value of an expression as a priority: ``-inf`` where it is not finite."""
    assert isinstance(value, float)
    return value if math.isfinite(value) else -math.inf


CALLS: Final[dict[str, Callable[..., float]]] = {
    "min": lambda *numbers: functools.reduce(arithmetic.smaller, numbers),
    "max": lambda *numbers: functools.reduce(arithmetic.larger, numbers),
    "abs": math.fabs,
    "floor": arithmetic.floored,
    "ceil": arithmetic.ceiled,
    "round": arithmetic.rounded,
    "log": arithmetic.logarithm,
    "sqrt": arithmetic.rooted,
    "clamp": arithmetic.clamped,
}
_PAIRS: Final[dict[str, Callable[[Any, Any], Scalar]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": arithmetic.divided,
    "%": arithmetic.remainder,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "and": lambda left, right: left and right,
    "or": lambda left, right: left or right,
}


def looked_up(variable: Variable) -> Value[Mapping[str, Scalar]]:
    """Reads a variable from a mapping of values by column."""
    column = column_of(variable)
    absent = 0.0 if variable.key else None

    def read(values: Mapping[str, Scalar]) -> Scalar:
        value = values[column] if absent is None else values.get(column, absent)
        return value if isinstance(value, bool | str) else float(value)

    return read


def _is_in(sought: Scalar, entries: Iterable[Scalar]) -> bool:
    # The operator `in` of Python would find the very object nan in a list.
    return any(sought == one for one in entries)
