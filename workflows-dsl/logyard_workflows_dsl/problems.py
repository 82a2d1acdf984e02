"""What is wrong in a workflow file, and where."""

from collections.abc import Iterable, Sequence

import msgspec

Segment = str | int


class Problem(msgspec.Struct, frozen=True, order=True, gc=False):
    """One thing that is wrong or doubtful.

    `line` and `column` count from 1; `path` is like `jobs.render.env[0]`, empty for the file as a
    whole; `message` says what is wrong and what would be right.
    """

    file: str
    line: int
    column: int
    path: str
    message: str

    @property
    def place(self) -> str:
        """`file:line:column`."""
        return f"{self.file}:{self.line}:{self.column}"

    @property
    def text(self) -> str:
        """Path and message without the place."""
        return f"{self.path}: {self.message}" if self.path else self.message

    def __str__(self) -> str:
        return f"{self.place}  {self.text}"


class Unreadable(Exception):
    """A workflow file that cannot be used; carries all its problems, in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__(report(self.problems))


def report(problems: Sequence[Problem]) -> str:
    """The problems as lines with their texts aligned."""
    width = max((len(problem.place) for problem in problems), default=0)
    return "\n".join(f"{problem.place:<{width}}  {problem.text}" for problem in problems)


def path_text(path: Iterable[Segment]) -> str:
    """`jobs.a.env[0]`; a key with other characters is quoted: `devices["nvidia.com/gpu"]`."""
    parts: list[str] = []
    for segment in path:
        if isinstance(segment, int):
            parts.append(f"[{segment}]")
        elif segment.replace("-", "").replace("_", "").isalnum():
            parts.append(f".{segment}" if parts else segment)
        else:
            parts.append(f'["{shown(segment)}"]')
    return "".join(parts)


def shown(text: str) -> str:
    """`text` short enough, and printable enough, for a message."""
    return printable(text, 60)


def printable(text: str, length_max: int = 600) -> str:
    """`text` in one line, cut to `length_max` characters; escapes stand for what cannot be seen."""
    short = text if len(text) <= length_max else f"{text[: length_max - 3]}..."
    if short.isprintable():
        return short
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in short)
