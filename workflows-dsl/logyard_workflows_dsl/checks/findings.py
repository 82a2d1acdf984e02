"""One thing found by a check."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from logyard_workflows_dsl.problems import Segment

_LISTED_MAX = 20
_T = TypeVar("_T")


class Finding(NamedTuple):
    """What is wrong at a path, or only doubtful.

    Where something is missed, `misses` is the path under which it was looked for: what could not
    be read there may be just that.
    """

    path: tuple[Segment, ...]
    message: str
    doubtful: bool = False
    misses: tuple[Segment, ...] | None = None


def listed(names: Iterable[str]) -> str:
    """`there are a, b, c`, for messages about a name that is not among them."""
    known = list(dict.fromkeys(names))
    if not known:
        return "there is none"
    more = ", ..." if len(known) > _LISTED_MAX else ""
    verb = "are" if len(known) > 1 else "is"
    return f"there {verb} {', '.join(known[:_LISTED_MAX])}{more}"


def doubled(values: Iterable[_T]) -> Iterator[tuple[int, _T]]:
    """Index and value of each value that was there before."""
    seen: set[_T] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield index, value
        seen.add(value)
