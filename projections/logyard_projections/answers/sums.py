"""Priorities of many: a sum of terms, each worked out once for all that are alike in what it reads.

Age apart, there are few shapes and owners among any number of lines. The terms of an expression,
added from the first to the last, give its value to the last bit.
"""

from collections.abc import Callable, Hashable
from operator import itemgetter
from typing import Any

from logyard_domain.expressions import (
    Expression,
    compiled,
    finite,
    looked_up,
    terms_of,
    variables_of,
)
from logyard_domain.resources import Request
from logyard_projections.priorities import Formula, Owned, Reader, values_for

_ORGANIZATION, _GROUP, _USER, _PRIORITY, _AGE, _REQUEST = range(6)


class _Part:
    """A term, what it reads, and the values that are known of it."""

    __slots__ = ("key", "known", "names", "timely", "value")

    def __init__(self, tree: Expression) -> None:
        self.names = names = variables_of(tree)
        self.value = compiled(tree, looked_up)
        self.key = _key(sorted({_place(name) for name in names}))
        self.known: dict[Hashable, float] = {}
        self.timely = any(name.startswith(("queue.", "usage.")) for name in names)


class Sums:
    """The values of one expression over the rows of one view."""

    def __init__(self, rows: Reader, formula: Formula) -> None:
        self._rows = rows
        self._parts = [_Part(tree) for tree in terms_of(formula.tree)]
        self._requests: dict[Request, int] = {}
        self._now = 0

    def of(
        self, owned: Owned, request: Request, limit_ms: int, submitted_at: int, now: int
    ) -> float:
        """The priority at `now` (ms); -inf where the expression gives no finite number."""
        if now != self._now:
            self._now = now
            for part in self._parts:
                if part.timely:
                    part.known.clear()
        number = self._requests.setdefault(request, len(self._requests))
        read = (
            owned.organization,
            (owned.organization, owned.group),
            owned.user,
            owned.priority,
            submitted_at,
            (number, limit_ms),
        )
        total = -0.0
        for part in self._parts:
            key = part.key(read)
            value = part.known.get(key)
            if value is None:
                values = values_for(
                    self._rows, part.names, owned, request, limit_ms, submitted_at, now
                )
                value = part.known[key] = _number(part.value(values))
            total += value
        return finite(total)


def _place(name: str) -> int:
    """Where a variable is among what is read."""
    match name.partition("."):
        case ("queue", _, _):
            return _AGE
        case ("workflow", _, _):
            return _PRIORITY
        case ("organization", _, _):
            return _ORGANIZATION
        case ("group", _, _) | ("usage", _, "group"):
            return _GROUP
        case ("user", _, _) | ("usage", _, "user"):
            return _USER
        case _:
            return _REQUEST


def _key(places: list[int]) -> Callable[[Any], Hashable]:
    return itemgetter(*places) if places else _nothing


def _nothing(_: object) -> Hashable:
    return ()


def _number(value: object) -> float:
    assert isinstance(value, float)
    return value
