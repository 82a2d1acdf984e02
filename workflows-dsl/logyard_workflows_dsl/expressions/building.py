"""From what the grammar recognised to nodes of the tree, from the leaves up, with their places."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from lark import Token, Transformer

from logyard_domain.expressions import (
    DEPTH_MAX,
    NODES_MAX,
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
from logyard_domain.expressions.checking import too_deep, too_large


class Wrong(Exception):
    """Something is wrong with `length` characters from `start` on."""

    def __init__(self, start: int, length: int, message: str) -> None:
        super().__init__(message)
        self.start = start
        self.length = length
        self.message = message


class Located(NamedTuple):
    """A node and the text from `start` to `end` that it came from, and the same for its children.

    A node in parentheses counts them as its own.
    """

    tree: Expression
    start: int
    end: int
    below: "tuple[Located, ...]" = ()
    depth: int = 1
    size: int = 1

    def at(self, path: Sequence[int]) -> "Located":
        """What is found along a path of indices of children."""
        found = self
        for index in path:
            found = found.below[index]
        return found


class Builder(Transformer[Token, Any]):
    """Called by the parser with the parts of each rule that it has recognised.

    The parser calls it as it goes, so that what is too deep is refused before it exists.
    """

    def __init__(self, aliases: Mapping[str, str]) -> None:
        super().__init__()
        self._aliases = aliases

    def number(self, parts: list[Any]) -> Located:
        token: Token = parts[0]
        value = float(token.replace("_", ""))
        if value == float("inf"):
            raise Wrong(*_span(token), "this number is too large; the largest is about 1.7e308")
        return _leaf(Number(value), token)

    def text(self, parts: list[Any]) -> Located:
        return _leaf(Text(_unquoted(parts[0])), parts[0])

    def truth(self, parts: list[Any]) -> Located:
        return _leaf(Truth(parts[0] == "true"), parts[0])

    def variable(self, parts: list[Any]) -> Located:
        return _leaf(self._named(parts[0]), parts[0])

    def keyed(self, parts: list[Any]) -> Located:
        name, text, closing = parts
        key = _unquoted(text)
        if not key:
            raise Wrong(*_span(text), "the name in brackets is empty")
        variable = Variable(self._named(name).name, key)
        return Located(variable, _start(name), _end(closing))

    def items(self, parts: list[Any]) -> tuple[Located, ...]:
        return tuple(parts)

    def call(self, parts: list[Any]) -> Located:
        name, *held, closing = parts
        below: tuple[Located, ...] = held[0] if held else ()
        call = Call(str(name), tuple(one.tree for one in below))
        return _node(call, _start(name), _end(closing), below)

    def listing(self, parts: list[Any]) -> Located:
        opening, *held, closing = parts
        below: tuple[Located, ...] = held[0] if held else ()
        listing = Listing(tuple(one.tree for one in below))
        return _node(listing, _start(opening), _end(closing), below)

    def group(self, parts: list[Any]) -> Located:
        opening, held, closing = parts
        located: Located = held
        return located._replace(start=_start(opening), end=_end(closing))

    def negation(self, parts: list[Any]) -> Located:
        token, operand = parts
        tree = Unary("-" if str(token) == "-" else "not", operand.tree)
        return _node(tree, _start(token), operand.end, (operand,))

    def binary(self, parts: list[Any]) -> Located:
        left, token, right = parts
        return _pair(left, _SECOND_SPELLINGS.get(str(token), token), right)

    def not_in(self, parts: list[Any]) -> Located:
        left, _not, _in, right = parts
        found = _pair(left, "in", right)
        return _node(Unary("not", found.tree), found.start, found.end, (found,))

    def choice(self, parts: list[Any]) -> Located:
        condition, yes, no = parts
        tree = Choice(condition.tree, yes.tree, no.tree)
        return _node(tree, condition.start, no.end, (condition, yes, no))

    def _named(self, name: Token) -> Variable:
        return Variable(self._aliases.get(str(name), str(name)))


_SECOND_SPELLINGS: Final = {"&&": "and", "||": "or"}


def _pair(left: Located, operator: Any, right: Located) -> Located:
    sign: Operator = str(operator)  # type: ignore[assignment]
    return _node(Binary(sign, left.tree, right.tree), left.start, right.end, (left, right))


def _leaf(tree: Expression, token: Token) -> Located:
    return Located(tree, _start(token), _end(token))


def _node(tree: Expression, start: int, end: int, below: tuple[Located, ...]) -> Located:
    depth = 1 + max((one.depth for one in below), default=0)
    size = 1 + sum(one.size for one in below)
    if depth > DEPTH_MAX:
        raise Wrong(start, end - start, too_deep())
    if size > NODES_MAX:
        raise Wrong(start, end - start, too_large())
    return Located(tree, start, end, below, depth, size)


def _start(token: Token) -> int:
    assert token.start_pos is not None
    return token.start_pos


def _end(token: Token) -> int:
    assert token.end_pos is not None
    return token.end_pos


def _span(token: Token) -> tuple[int, int]:
    return _start(token), _end(token) - _start(token)


_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|(.))")
_PLAIN: Final = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "'": "'"}


def _unquoted(token: Token) -> str:
    """The text that stands in quotes. Raises Wrong."""

    def meant(found: re.Match[str]) -> str:
        place = _start(token) + 1 + found.start(), len(found[0])
        if found[4] is not None:
            if found[4] not in _PLAIN:
                raise Wrong(*place, f"{found[0]} has no meaning in a text; write \\\\ for \\")
            return _PLAIN[found[4]]
        code = int(found[1] or found[2] or found[3], 16)
        if code > 0x10FFFF:
            raise Wrong(*place, f"there is no character {found[0]}; the last is \\U0010ffff")
        return chr(code)

    text = _ESCAPE.sub(meant, token[1:-1])
    if any("\ud800" <= one <= "\udfff" for one in text):
        raise Wrong(*_span(token), "half of a surrogate pair is no character; write the whole")
    return text
