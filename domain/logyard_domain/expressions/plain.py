"""What an expression means: its value for one allocation. The oracle of all faster ways.

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
from collections.abc import Callable, Mapping
from typing import Final, assert_never

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


def priority(tree: Expression, values: Mapping[str, Scalar]) -> float:
    """The value as a priority: ``-inf`` where it is not finite."""
    value = _number(tree, values)
    return value if math.isfinite(value) else -math.inf


def evaluate(tree: Expression, values: Mapping[str, Scalar]) -> Scalar:
    """The value of a checked tree. `values` has one for the column of each variable.

    A name in brackets that `values` does not have is 0.
    """
    match tree:
        case Number(value=value):
            return float(value)
        case Text(value=value) | Truth(value=value):
            return value
        case Variable():
            return _looked_up(tree, values)
        case Unary(sign="-", operand=operand):
            return -_number(operand, values)
        case Unary(operand=operand):
            return not _truth(operand, values)
        case Binary():
            return _binary(tree, values)
        case Choice(condition=condition, yes=yes, no=no):
            return evaluate(yes if _truth(condition, values) else no, values)
        case Call(function=function, arguments=arguments):
            return CALLS[function](*(_number(one, values) for one in arguments))
        case Listing():
            raise TypeError("a list has no value outside of in")
        case _:
            assert_never(tree)


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


def _looked_up(variable: Variable, values: Mapping[str, Scalar]) -> Scalar:
    column = column_of(variable)
    value = values.get(column, 0.0) if variable.key else values[column]
    return value if isinstance(value, bool | str) else float(value)


def _binary(tree: Binary, values: Mapping[str, Scalar]) -> Scalar:
    left, right = tree.left, tree.right
    match tree.operator:
        case "+":
            return _number(left, values) + _number(right, values)
        case "-":
            return _number(left, values) - _number(right, values)
        case "*":
            return _number(left, values) * _number(right, values)
        case "/":
            return arithmetic.divided(_number(left, values), _number(right, values))
        case "%":
            return arithmetic.remainder(_number(left, values), _number(right, values))
        case "<":
            return _number(left, values) < _number(right, values)
        case "<=":
            return _number(left, values) <= _number(right, values)
        case ">":
            return _number(left, values) > _number(right, values)
        case ">=":
            return _number(left, values) >= _number(right, values)
        case "==":
            return evaluate(left, values) == evaluate(right, values)
        case "!=":
            return evaluate(left, values) != evaluate(right, values)
        case "and":
            return _truth(left, values) and _truth(right, values)
        case "or":
            return _truth(left, values) or _truth(right, values)
        case "in":
            assert isinstance(right, Listing)
            found = evaluate(left, values)
            # The operator `in` of Python would find the very object nan in a list.
            return any(found == evaluate(one, values) for one in right.items)
        case _:
            assert_never(tree.operator)


def _number(node: Expression, values: Mapping[str, Scalar]) -> float:
    value = evaluate(node, values)
    assert isinstance(value, float)
    return value


def _truth(node: Expression, values: Mapping[str, Scalar]) -> bool:
    value = evaluate(node, values)
    assert isinstance(value, bool)
    return value
