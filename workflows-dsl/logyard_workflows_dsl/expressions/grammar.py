"""The grammar of expressions, one for priorities and policies, and the parser made of it."""

import functools
from typing import Final

from lark import Lark

from logyard_workflows_dsl.expressions.building import Builder

_GRAMMAR: Final = r"""
?choice: either | either "?" choice ":" choice -> choice
?either: both | either (OR | PIPES) both -> binary
?both: negation | both (AND | AMPERSANDS) negation -> binary
?negation: comparison | NOT negation -> negation
?comparison: sum
    | comparison COMPARE sum -> binary
    | comparison IN sum -> binary
    | comparison NOT IN sum -> not_in
?sum: product | sum (PLUS | MINUS) product -> binary
?product: sign | product TIMES sign -> binary
?sign: leaf | MINUS sign -> negation | BANG sign -> negation
?leaf: NUMBER -> number
    | TEXT -> text
    | (TRUE | FALSE) -> truth
    | NAME -> variable
    | NAME "[" TEXT RSQUARE -> keyed
    | NAME "(" [items] RPAR -> call
    | LSQUARE [items] RSQUARE -> listing
    | LPAR choice RPAR -> group
items: choice ("," choice)*

OR: "or"
PIPES: "||"
AND: "and"
AMPERSANDS: "&&"
NOT: "not"
BANG: "!"
IN: "in"
TRUE: "true"
FALSE: "false"
COMPARE: "==" | "!=" | "<=" | ">=" | "<" | ">"
PLUS: "+"
MINUS: "-"
TIMES: "*" | "/" | "%"
LPAR: "("
RPAR: ")"
LSQUARE: "["
RSQUARE: "]"
NUMBER: /(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?/
NAME: /[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*/
TEXT: /"(?:[^"\\\r\n]|\\[^\r\n])*"|'(?:[^'\\\r\n]|\\[^\r\n])*'/
%ignore /[ \t\r\n]+/
"""


@functools.cache
def parser(aliases: tuple[tuple[str, str], ...]) -> Lark:
    """The parser for a vocabulary with these aliases; it builds the tree as it goes."""
    return Lark(
        _GRAMMAR,
        start="choice",
        parser="lalr",
        lexer="basic",
        transformer=Builder(dict(aliases)),
        maybe_placeholders=False,
    )
