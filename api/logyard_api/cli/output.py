"""Where words go: results on stdout, messages on stderr, colour only on a terminal.

Tables are plain aligned columns: nothing is cut or wrapped, so that an id can be copied whole.
"""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

_COLOURS = {
    "failed": "red",
    "timeout": "red",
    "lost": "red",
    "canceled": "yellow",
    "parked": "yellow",
    "running": "cyan",
    "started": "cyan",
    "finished": "green",
    "done": "green",
    "up": "green",
}


def answer(text: str = "") -> None:
    """One or more lines of the result."""
    click.echo(text, color=_colour(sys.stdout.isatty()))


def answer_json(value: Any) -> None:
    """The result whole, for programs: indented on a terminal, one line otherwise."""
    indent = 2 if sys.stdout.isatty() else None
    click.echo(json.dumps(value, ensure_ascii=False, indent=indent))


def say(text: str) -> None:
    """A message beside the result."""
    click.echo(text, err=True, color=_colour(sys.stderr.isatty()))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[str] = ()) -> None:
    """Aligned columns under `head`; those named in `right` are set flush right.

    A column that is empty in every row is left out.
    """
    body = [list(row) for row in rows]
    kept = [i for i in range(len(head)) if not body or any(row[i] for row in body)]
    widths = {i: max(len(head[i]), *(len(row[i]) for row in body), 0) for i in kept}
    flush_right = {i for i in kept if head[i] in set(right)}
    click.echo(
        click.style(_line(head, kept, widths, flush_right), bold=True),
        color=_colour(sys.stdout.isatty()),
    )
    for row in body:
        answer(_line(row, kept, widths, flush_right, tint=True))


def _line(
    cells: Sequence[str],
    kept: Sequence[int],
    widths: dict[int, int],
    right: set[int],
    tint: bool = False,
) -> str:
    padded: list[str] = []
    for i in kept:
        text = cells[i].rjust(widths[i]) if i in right else cells[i].ljust(widths[i])
        # Padding comes first: colour codes have no width on the screen but one in a string.
        padded.append(tinted(text, cells[i]) if tint else text)
    line = "  ".join(padded)
    return line.rstrip()


def tinted(text: str, word: str | None = None) -> str:
    """`text` in the colour of the state that it (or `word`) names; as it is for other words."""
    colour = _COLOURS.get(text if word is None else word)
    return click.style(text, fg=colour) if colour else text


def plain() -> bool:
    """Whether messages go to something that cannot redraw its lines."""
    return not sys.stderr.isatty() or os.environ.get("TERM") == "dumb"


def _colour(terminal: bool) -> bool:
    return terminal and "NO_COLOR" not in os.environ
