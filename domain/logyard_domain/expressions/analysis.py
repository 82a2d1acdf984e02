"""What can be told of an expression without evaluating it: what it uses, what it is made of."""

import math

from logyard_domain.expressions.monotonicity import course_of
from logyard_domain.expressions.plain import evaluate
from logyard_domain.expressions.tree import Binary, Choice, Expression, Unary, Variable, walk
from logyard_domain.expressions.variables import PRIORITY, Vocabulary, column_of


def variables_of(tree: Expression) -> tuple[str, ...]:
    """The columns that the tree reads, each once, in the order of the text."""
    return tuple(dict.fromkeys(column_of(n) for n in walk(tree) if isinstance(n, Variable)))


def terms_of(tree: Expression) -> tuple[Expression, ...]:
    """The summands of the tree; what is subtracted has its sign turned.

    Their values, added from left to right, give the value of the tree to the last bit. For that
    reason a sum in parentheses to the right of a sign is one term.
    """
    terms: list[Expression] = []
    while isinstance(tree, Binary) and tree.operator in ("+", "-"):
        terms.append(tree.right if tree.operator == "+" else _negated(tree.right))
        tree = tree.left
    terms.append(tree)
    return tuple(reversed(terms))


def timely(tree: Expression, vocabulary: Vocabulary = PRIORITY) -> bool:
    """Whether the value may change by the passing of time alone."""
    return any(
        isinstance(node, Variable) and vocabulary.variables[node.name].changes == "time"
        for node in walk(tree)
    )


def rising(tree: Expression, vocabulary: Vocabulary = PRIORITY) -> bool:
    """True only where the priority provably never falls while an allocation waits.

    That is, for all values of the other variables within their limits, usage included, as long as
    those stay as they are.
    """
    course = course_of(tree, vocabulary)
    return course is not None and course.direction >= 0


def moving(tree: Expression, vocabulary: Vocabulary = PRIORITY) -> bool:
    """False only where the difference of two candidates provably stays the same as time passes.

    The tree is then the age times a constant, the same for all, plus what does not change with
    time. Rounding is left out of account: differences of the size of the last bit may come and go.
    """
    rate = _rate(tree, vocabulary)
    return rate is None or course_of(tree, vocabulary) is None


def _rate(node: Expression, vocabulary: Vocabulary) -> float | None:
    """How much the value grows with a second of age; None where that is not one constant."""
    if not timely(node, vocabulary):
        return 0.0
    match node:
        case Variable(name=name):
            return vocabulary.variables[name].rate or None
        case Unary(sign="-", operand=operand):
            return _product(_rate(operand, vocabulary), -1.0)
        case Binary(operator="+" | "-", left=left, right=right):
            sign = 1.0 if node.operator == "+" else -1.0
            first, second = _rate(left, vocabulary), _rate(right, vocabulary)
            return None if first is None or second is None else first + sign * second
        case Binary(operator="*", left=left, right=right):
            if (factor := _constant(left)) is not None:
                return _product(_rate(right, vocabulary), factor)
            return _product(_rate(left, vocabulary), _constant(right))
        case Binary(operator="/", left=left, right=right):
            divisor = _constant(right)
            return _product(_rate(left, vocabulary), 1.0 / divisor if divisor else None)
        case Choice(condition=condition, yes=yes, no=no) if not timely(condition, vocabulary):
            rate = _rate(yes, vocabulary)
            return rate if rate == _rate(no, vocabulary) else None
        case _:
            return None


def _constant(node: Expression) -> float | None:
    """The value of a finite number without variables."""
    if variables_of(node):
        return None
    value = evaluate(node, {})
    return value if isinstance(value, float) and math.isfinite(value) else None


def _product(rate: float | None, factor: float | None) -> float | None:
    return None if rate is None or factor is None else rate * factor


def _negated(node: Expression) -> Expression:
    return node.operand if isinstance(node, Unary) and node.sign == "-" else Unary("-", node)
