"""What a mistake in a tree looks like, and what was probably meant by a name that is not known."""

from difflib import get_close_matches
from typing import Final

import msgspec

from logyard_domain.expressions.functions import FUNCTIONS
from logyard_domain.expressions.variables import Vocabulary

_LISTED_MAX: Final = 8


class Mistake(msgspec.Struct, frozen=True):
    """One thing that is wrong, and where.

    `path` leads to the node: which child, of which child. Where only a part of the node's name is
    wrong, `start` and `length` tell which characters of it; otherwise `length` is 0.
    """

    path: tuple[int, ...]
    message: str
    start: int = 0
    length: int = 0


def unknown_variable(name: str, path: tuple[int, ...], vocabulary: Vocabulary) -> Mistake:
    """The mistake about a name that is no variable. The first segment of it that is wrong is."""
    if name in FUNCTIONS:
        message = f"{name} is a function, not a variable; write {FUNCTIONS[name].form}"
        return Mistake(path, message, 0, len(name))
    for known, meaning in vocabulary.variables.items():
        if meaning.keyed and name.startswith(f"{known}."):
            message = f'a name stands in brackets: {known}["{name[len(known) + 1 :][:80]}"]'
            return Mistake(path, message, 0, len(name))
    names = [*vocabulary.variables, *vocabulary.aliases]
    head, dot, rest = name.partition(".")
    siblings = [known for known in names if known.startswith(f"{head}.")]
    if dot or not siblings:
        hint = guess(name, names if dot else [*names, "true", "false"], siblings)
    else:
        hint = _listed(siblings)
    message = f"{name[:80]} is not a variable; {hint}"
    if siblings and rest:
        return Mistake(path, message, len(head) + len(dot), len(rest))
    return Mistake(path, message, 0, len(head))


def guess(name: str, known: list[str], near: list[str] | None = None) -> str:
    """The likely word, or else what there is: `near` before all that is `known`."""
    close = get_close_matches(name[:80].lower(), known, n=1, cutoff=0.7)
    return f"did you mean {close[0]}?" if close else _listed(near or known)


def _listed(names: list[str]) -> str:
    more = ", ..." if len(names) > _LISTED_MAX else ""
    verb = "there is" if len(names) == 1 else "there are"
    return f"{verb} {', '.join(names[:_LISTED_MAX])}{more}"
