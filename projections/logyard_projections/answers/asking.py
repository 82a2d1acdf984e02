"""What list questions have in common: order and filter as text."""

import re
from collections.abc import Mapping
from difflib import get_close_matches

PAGE_SIZE = 25
PAGE_SIZE_MAX = 1000
_CONDITION = re.compile(r"""\s*([\w.]+)\s*=\s*("([^"]*)"|'([^']*)'|[^\s"']+)\s*""")
_AND = re.compile(r"(AND\b|&&|,)", re.IGNORECASE)


def page_size(asked: int) -> int:
    """Rows of a page: 25 where nothing (0) is asked, at most 1000. Raises ValueError below 0."""
    if asked < 0:
        raise ValueError(f"pageSize is {asked}; the least is 1, and 0 means {PAGE_SIZE}")
    return min(asked or PAGE_SIZE, PAGE_SIZE_MAX)


def ordering(text: str, columns: Mapping[str, str], default: str) -> tuple[str, bool]:
    """Column and whether descending, of an ``orderBy`` such as ``createTime desc``.

    `columns` maps names on the wire to columns. Raises ValueError with what would be right.
    """
    words = (text or default).split()
    way = words[1].lower() if len(words) > 1 else "asc"
    if not words or len(words) > 2 or way not in ("asc", "desc"):
        raise ValueError(f"orderBy {text!r} is not understood; write for instance `{default}`")
    return _column(words[0], columns, "orderBy"), way == "desc"


def conditions(text: str, columns: Mapping[str, str]) -> dict[str, str]:
    """Columns and values of a ``filter`` such as ``user=ana AND name="my flow"``.

    Raises ValueError with what would be right.
    """
    found: dict[str, str] = {}
    rest = text.strip()
    while rest:
        match = _CONDITION.match(rest)
        if match is None:
            raise ValueError(
                f"filter is not understood from {rest[:30]!r} on; "
                'write for instance user=ana AND name="a b"'
            )
        quoted = match[3] if match[3] is not None else match[4]
        column = _column(match[1], columns, "filter")
        value = quoted if quoted is not None else match[2]
        if found.setdefault(column, value) != value:
            raise ValueError(f"filter asks for two values of {match[1]} at once; nothing has both")
        rest = rest[match.end() :]
        if rest:
            joined = _AND.match(rest)
            if joined is None or not rest[joined.end() :].strip():
                raise ValueError(f"filter: conditions are joined by AND; {rest[:30]!r} is none")
            rest = rest[joined.end() :]
    return found


def _column(name: str, columns: Mapping[str, str], where: str) -> str:
    column = columns.get(name)
    if column is None:
        near = get_close_matches(name, columns, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(columns)}"
        raise ValueError(f"{where}: {name!r} is not known; {hint}")
    return column
