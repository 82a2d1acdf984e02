"""Did you mean: the likely word for one that is not known."""

import difflib
import re
from collections.abc import Iterable
from typing import Final

_LISTED_MAX: Final = 12
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_HABITS: Final = {
    "after": "depends-on",
    "dependencies": "depends-on",
    "environment": "env",
    "needs": "depends-on",
    "tasks": "jobs",
    "volumes": "mounts",
    "workdir": "cwd",
    "working-dir": "cwd",
    "working-directory": "cwd",
}


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown `word`: what was meant, or what there is."""
    names = list(known)
    if not names:
        return "there is none"
    by_kebab = {name.lower().replace("_", "-"): name for name in names}
    kebab = _CAPITAL.sub("-", word).lower().replace("_", "-")
    habit = _HABITS.get(kebab)
    if habit in names:
        return f"did you mean `{habit}`?"
    close = difflib.get_close_matches(kebab[:80], by_kebab, n=1)
    if close:
        return f"did you mean `{by_kebab[close[0]]}`?"
    listed = ", ".join(names[:_LISTED_MAX])
    more = ", ..." if len(names) > _LISTED_MAX else ""
    return f"there {'are' if len(names) > 1 else 'is'} {listed}{more}"
