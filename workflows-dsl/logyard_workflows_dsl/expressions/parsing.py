"""The way from text to a checked tree."""

from collections.abc import Iterator
from typing import Final

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from logyard_domain.expressions import DEPTH_MAX, PRIORITY, Expression, Kind, Vocabulary, check
from logyard_workflows_dsl.expressions.building import Located, Wrong
from logyard_workflows_dsl.expressions.faults import UnreadableExpression, fault
from logyard_workflows_dsl.expressions.grammar import parser
from logyard_workflows_dsl.problems import shown

TEXT_MAX: Final = 16_384
"""Characters that an expression may have."""


def parse(
    text: str,
    vocabulary: Vocabulary = PRIORITY,
    *,
    wanted: Kind = "number",
    name: str = "expression",
) -> Expression:
    """The tree of an expression that may name what is in `vocabulary` and is of type `wanted`.

    Raises UnreadableExpression with all that is wrong; `name` says there what the expression is.
    """
    try:
        located = read(text, vocabulary)
    except Wrong as wrong:
        place = fault(name, text, wrong.start, wrong.length, wrong.message)
        raise UnreadableExpression([place]) from None
    faults: list[tuple[int, str, int]] = []
    for mistake in check(located.tree, vocabulary, wanted):
        found = located.at(mistake.path)
        length = mistake.length or found.end - found.start
        faults.append((found.start + mistake.start, mistake.message, length))
    if faults:
        raise UnreadableExpression(
            fault(name, text, start, length, message) for start, message, length in sorted(faults)
        )
    return located.tree


def read(text: str, vocabulary: Vocabulary) -> Located:
    """The tree of a text and its places, right in form; types are not looked at. Raises Wrong."""
    if len(text) > TEXT_MAX:
        message = f"an expression has at most {TEXT_MAX:,} characters; this has {len(text):,}"
        raise Wrong(0, 1, message)
    machine = parser(tuple(sorted(vocabulary.aliases.items())))
    try:
        tokens = list(_balanced(machine, text))
    except UnexpectedCharacters as trouble:
        place: int = trouble.pos_in_stream  # type: ignore[assignment]
        raise Wrong(place, 1, _stray(text[place])) from None
    try:
        # The parser calls the builder, so what comes out is what the builder made.
        located: Located = machine.parse(text)  # type: ignore[assignment]
    except UnexpectedToken as trouble:
        raise _misplaced(trouble, tokens, len(text.rstrip())) from None
    return located


_PAIRS: Final = {")": "(", "]": "["}


def _balanced(machine: Lark, text: str) -> Iterator[Token]:
    """The tokens of the text, after making sure that what opens is closed, and not too deep."""
    opened: list[Token] = []
    for token in machine.lex(text):  # pyright: ignore[reportUnknownMemberType]
        yield token
        if token in ("(", "["):
            opened.append(token)
            if len(opened) > DEPTH_MAX:
                message = f"parentheses and brackets go at most {DEPTH_MAX} deep"
                raise Wrong(_place(token), 1, message)
        elif token in (")", "]"):
            if not opened:
                raise Wrong(_place(token), 1, f"{token} closes nothing; leave it out")
            opening = opened.pop()
            if opening != _PAIRS[token]:
                other = ")" if token == "]" else "]"
                raise Wrong(_place(token), 1, f"{opening} is closed by {other}, not by {token}")
    if opened:
        closing = ")" if opened[-1] == "(" else "]"
        raise Wrong(_place(opened[-1]), 1, f"{opened[-1]} is not closed; a {closing} is missing")


def _place(token: Token) -> int:
    assert token.start_pos is not None
    return token.start_pos


_POWER: Final = "there is no power operator; multiply, or use sqrt or log"
_STRAY: Final = {
    "=": "= has no meaning here; write == to compare",
    "&": "write and, or &&",
    "|": "write or, or ||",
    "^": _POWER,
    "#": "# has no meaning here; there are no comments",
    '"': 'this text has no end; close it with " on the same line',
    "'": "this text has no end; close it with ' on the same line",
    ".": "a point joins names without blanks, as in user.priority",
    "\N{MINUS SIGN}": "write - for minus",
    "\N{LEFT DOUBLE QUOTATION MARK}": 'text stands in straight quotes, "like this"',
    "\N{RIGHT DOUBLE QUOTATION MARK}": 'text stands in straight quotes, "like this"',
    "`": 'text stands in straight quotes, "like this"',
}


def _stray(one: str) -> str:
    return _STRAY.get(one, f"{shown(one)} has no meaning in an expression")


_WORDS: Final = {
    **dict.fromkeys(("if", "then", "else", "when"), "write `condition ? a : b`"),
    **dict.fromkeys(("is", "eq", "equals"), "write == to compare"),
    **dict.fromkeys(
        ("contains", "matches", "startsWith", "endsWith", "like"),
        "text is compared by ==, != and in only",
    ),
}


def _misplaced(trouble: UnexpectedToken, tokens: list[Token], end: int) -> Wrong:
    """What to say about a token that cannot stand where it stands, or about an end too early."""
    token: Token = trouble.token
    accepts: set[str] = trouble.accepts
    if token.type == "$END":
        if not tokens:
            return Wrong(0, 1, "nothing is written; write for instance queue.age_hours")
        if "NUMBER" in accepts:
            return Wrong(end, 1, "the expression ends where a value must follow")
        return Wrong(end, 1, "the expression ends within `condition ? a : b`; : is missing")
    word, start, length = shown(str(token)), _place(token), len(token)
    before = next((one for one in reversed(tokens) if _place(one) < start), None)
    if accepts == {"TEXT"}:
        message = 'in brackets stands a name in quotes, for instance ["nvidia.com/gpu"]'
    elif accepts == {"IN"}:
        message = f"{word} cannot follow not here; write `a not in [b, c]`"
    elif "NUMBER" in accepts:
        if token == "*" and before == "*":
            message = _POWER
        elif token == "-" or token == "+":
            message = f"{word} stands where a value is expected; leave it out"
        else:
            message = f"a value is missing before {word}"
    elif advice := _WORDS.get(str(token)) or (before and _WORDS.get(str(before))):
        message = f"{word} cannot stand here; {advice}"
    elif token.lower() in ("and", "or", "not", "in"):
        message = f"{word} cannot stand here; did you mean {token.lower()}?"
    elif token == ":":
        message = ": has no ? before it; write `condition ? a : b`"
    elif token == ",":
        message = "a comma can only stand between arguments, or in a list"
    elif token in (")", "]"):
        message = f"{word} comes within `condition ? a : b`; : is missing"
    else:
        message = f"an operator is missing before {word}"
    return Wrong(start, length, message)
