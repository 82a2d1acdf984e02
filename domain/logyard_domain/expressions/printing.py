"""From a tree to its text, with no parentheses that are not needed. Reading it gives the tree."""

from typing import Final, assert_never

from logyard_domain.expressions.tree import (
    Binary,
    Call,
    Choice,
    Expression,
    Listing,
    Number,
    Operator,
    Text,
    Truth,
    Unary,
    Variable,
)

_CHOICE, _OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _LEAF = range(9)
_LEVELS: Final[dict[Operator, int]] = {
    "or": _OR, "and": _AND, "in": _COMPARE, "==": _COMPARE, "!=": _COMPARE, "<": _COMPARE,
    "<=": _COMPARE, ">": _COMPARE, ">=": _COMPARE, "+": _SUM, "-": _SUM, "*": _PRODUCT,
    "/": _PRODUCT, "%": _PRODUCT,
}  # fmt: skip
"""How tightly an operator binds. All of them group from the left."""


def printed(tree: Expression) -> str:
    """The canonical text of a tree."""
    return _written(tree)[0]


def _written(node: Expression) -> tuple[str, int]:
    """The text of a node, and how tightly what stands outermost in it binds."""
    match node:
        case Number(value=value):
            return repr(float(value)).removesuffix(".0"), _LEAF
        case Text(value=value):
            return _quoted(value), _LEAF
        case Truth(value=value):
            return "true" if value else "false", _LEAF
        case Variable(name=name, key=key):
            return f"{name}[{_quoted(key)}]" if key else name, _LEAF
        case Listing(items=items):
            return f"[{', '.join(map(printed, items))}]", _LEAF
        case Call(function=function, arguments=arguments):
            return f"{function}({', '.join(map(printed, arguments))})", _LEAF
        case Unary(sign="not", operand=Binary(operator="in", left=left, right=right)):
            return f"{_within(left, _COMPARE)} not in {_within(right, _SUM)}", _COMPARE
        case Unary(sign="not", operand=operand):
            return f"not {_within(operand, _NOT)}", _NOT
        case Unary(operand=operand):
            return f"-{_within(operand, _SIGN)}", _SIGN
        case Binary(operator=operator, left=left, right=right):
            level = _LEVELS[operator]
            return f"{_within(left, level)} {operator} {_within(right, level + 1)}", level
        case Choice(condition=condition, yes=yes, no=no):
            return f"{_within(condition, _OR)} ? {printed(yes)} : {printed(no)}", _CHOICE
        case _:
            assert_never(node)


def _within(node: Expression, least: int) -> str:
    """The text of an operand, in parentheses where it binds less tightly than `least`."""
    text, level = _written(node)
    return text if level >= least else f"({text})"


def _quoted(text: str) -> str:
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(one: str) -> str:
    if one in '"\\':
        return f"\\{one}"
    if one.isprintable():
        return one
    return f"\\u{ord(one):04x}" if ord(one) < 0x10000 else f"\\U{ord(one):08x}"
