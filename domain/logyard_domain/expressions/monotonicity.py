"""How a value may move as an allocation waits: a sound analysis of intervals and directions.

Take any values of the other variables within their limits, and let the age grow. A `Course` says
that the value then either is finite throughout, within the interval and moving in the one direction
only, or is one and the same infinity or nan throughout. None says that nothing can be promised. The
ends of intervals need no margin: each operation rounds to the nearest double, and that never turns
an order around.
"""

import functools
import math
import sys
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from logyard_domain.expressions import arithmetic
from logyard_domain.expressions.tree import (
    Binary,
    Call,
    Choice,
    Expression,
    Number,
    Truth,
    Unary,
    Variable,
    walk,
)
from logyard_domain.expressions.variables import Vocabulary

Direction = Literal[-1, 0, 1]
_MAX: Final = sys.float_info.max
_LEAST: Final = math.ulp(0.0)


class Course(NamedTuple):
    """The promise about one number. `odd`: it may be an infinity or nan, then for all ages.

    `direction` is 1 for never falling, -1 for never rising, 0 for independent of age.
    """

    low: float
    high: float
    odd: bool = False
    direction: Direction = 0


def course_of(node: Expression, vocabulary: Vocabulary) -> Course | None:
    """The course of a number; None for other types and where nothing can be promised."""
    match node:
        case Number(value=value):
            return Course(value, value)
        case Variable(name=name):
            meaning = vocabulary.variables[name]
            if meaning.kind != "number":
                return None
            return Course(meaning.least, meaning.most, False, 1 if meaning.rate > 0 else 0)
        case Unary(sign="-", operand=operand):
            course = course_of(operand, vocabulary)
            return course and _negated(course)
        case Binary(operator=operator, left=left, right=right) if operator in _PAIRS:
            first, second = course_of(left, vocabulary), course_of(right, vocabulary)
            return _PAIRS[operator](first, second) if first and second else None
        case Choice():
            return _chosen(node, vocabulary)
        case Call(function=function, arguments=arguments):
            courses = [course_of(one, vocabulary) for one in arguments]
            known = [course for course in courses if course]
            return _CALLS[function](*known) if len(known) == len(courses) else None
        case _:
            return None


def _joined(first: Direction | None, second: Direction | None) -> Direction | None:
    """The direction of what follows both."""
    if first == 0 or first == second:
        return second
    return first if second == 0 else None


def _turned(direction: Direction, factor: Course) -> Direction | None:
    """The direction of what is multiplied by a factor."""
    if direction == 0 or factor.low >= 0:
        return direction
    return _opposite(direction) if factor.high <= 0 else None


def _opposite(direction: Direction | None) -> Direction | None:
    return None if direction is None else (0, -1, 1)[direction]


def _settled(ends: list[float], odd: bool, direction: Direction | None) -> Course | None:
    """A course from all possible ends of its interval. A moving value must not overflow."""
    if direction is None:
        return None
    if all(map(math.isfinite, ends)):
        return Course(min(ends), max(ends), odd, direction)
    return None if direction else _anything()


def _anything() -> Course:
    return Course(-_MAX, _MAX, True)


def _negated(course: Course) -> Course | None:
    return _settled([-course.low, -course.high], course.odd, _opposite(course.direction))


def _sum(a: Course, b: Course) -> Course | None:
    ends = [a.low + b.low, a.high + b.high]
    return _settled(ends, a.odd or b.odd, _joined(a.direction, b.direction))


def _difference(a: Course, b: Course) -> Course | None:
    ends = [a.low - b.high, a.high - b.low]
    return _settled(ends, a.odd or b.odd, _joined(a.direction, _opposite(b.direction)))


def _product(a: Course, b: Course) -> Course | None:
    # An infinity times a moving number is nan only while that is zero.
    if (a.odd and b.direction) or (b.odd and a.direction):
        return None
    ends = [x * y for x in a[:2] for y in b[:2]]
    direction = _joined(_turned(a.direction, b), _turned(b.direction, a))
    return _settled(ends, a.odd or b.odd, direction)


def _quotient(a: Course, b: Course) -> Course | None:
    if b.odd or b.low <= 0 <= b.high:
        return None if a.direction or b.direction else _anything()
    if a.odd and b.direction:
        return None
    ends = [x / y for x in a[:2] for y in b[:2]]
    direction = _joined(_turned(a.direction, b), _opposite(_turned(b.direction, a)))
    return _settled(ends, a.odd, direction)


def _remainder(a: Course, b: Course) -> Course | None:
    if a.direction or b.direction:
        return None
    return Course(0.0, b.high) if b.low > 0 and not (a.odd or b.odd) else _anything()


def _extreme(pick: Callable[[float, float], float], a: Course, b: Course) -> Course | None:
    odd = a.odd or b.odd
    # The smaller of infinity and x is x, so with an odd one either interval is possible.
    ends = [*a[:2], *b[:2]] if odd else [pick(a.low, b.low), pick(a.high, b.high)]
    return _settled(ends, odd, _joined(a.direction, b.direction))


def _extremes(
    pick: Callable[[float, float], float], first: Course, *others: Course
) -> Course | None:
    found: Course | None = first
    for course in others:
        found = found and _extreme(pick, found, course)
    return found


def _clamped(value: Course, low: Course, high: Course) -> Course | None:
    raised = _extreme(max, value, low)
    return raised and _extreme(min, raised, high)


def _absolute(a: Course) -> Course | None:
    if a.low >= 0:
        return a
    if a.high <= 0:
        return _negated(a)
    return None if a.direction else Course(0.0, max(-a.low, a.high), a.odd)


def _stepped(step: Callable[[float], float]) -> Callable[[Course], Course | None]:
    return lambda a: Course(step(a.low), step(a.high), a.odd, a.direction)


def _root(a: Course) -> Course | None:
    if a.low < 0:
        return None if a.direction else Course(0.0, math.sqrt(max(a.high, 0.0)), True)
    return Course(math.sqrt(a.low), math.sqrt(a.high), a.odd, a.direction)


def _log(a: Course) -> Course | None:
    log = arithmetic.logarithm
    if a.low <= 0:
        return None if a.direction else Course(log(_LEAST), log(max(a.high, _LEAST)), True)
    return Course(log(a.low), log(a.high), a.odd, a.direction)


_PAIRS: Final[dict[str, Callable[[Course, Course], Course | None]]] = {
    "+": _sum, "-": _difference, "*": _product, "/": _quotient, "%": _remainder,
}  # fmt: skip
_CALLS: Final[dict[str, Callable[..., Course | None]]] = {
    "min": functools.partial(_extremes, min),
    "max": functools.partial(_extremes, max),
    "abs": _absolute,
    "floor": _stepped(arithmetic.floored),
    "ceil": _stepped(arithmetic.ceiled),
    "round": _stepped(arithmetic.rounded),
    "log": _log,
    "sqrt": _root,
    "clamp": _clamped,
}


def _chosen(node: Choice, vocabulary: Vocabulary) -> Course | None:
    yes, no = course_of(node.yes, vocabulary), course_of(node.no, vocabulary)
    switch = _switch(node.condition, vocabulary)
    if yes is None or no is None or switch is None:
        return None
    ends = [*yes[:2], *no[:2]]
    direction = _joined(yes.direction, no.direction)
    if switch == 0:
        return _settled(ends, yes.odd or no.odd, direction)
    if yes.odd or no.odd:
        return None
    before, after = (no, yes) if switch > 0 else (yes, no)
    # Going over from one side to the other is a step, and must go the same way.
    if before.high <= after.low:
        return _settled(ends, False, _joined(direction, 1))
    if before.low >= after.high:
        return _settled(ends, False, _joined(direction, -1))
    return None


def _switch(node: Expression, vocabulary: Vocabulary) -> Direction | None:
    """How a condition turns as the age grows: 1 only from false to true, -1 only back, 0 never."""
    if isinstance(node, Truth) or not any(
        isinstance(one, Variable) and vocabulary.variables[one.name].rate for one in walk(node)
    ):
        return 0
    match node:
        case Unary(sign="not", operand=operand):
            return _opposite(_switch(operand, vocabulary))
        case Binary(operator="and" | "or", left=left, right=right):
            return _joined(_switch(left, vocabulary), _switch(right, vocabulary))
        case Binary(operator="<" | "<=" | ">" | ">=" as operator, left=left, right=right):
            first, second = course_of(left, vocabulary), course_of(right, vocabulary)
            if first is None or second is None:
                return None
            grows = _joined(first.direction, _opposite(second.direction))
            return grows if operator in (">", ">=") else _opposite(grows)
        case _:
            return None
