"""Rewriting a workflow file in the newest form of the language."""

import itertools

import msgspec

from logyard_domain.definition import Workflow
from logyard_workflows_dsl.loading import understood
from logyard_workflows_dsl.modernizing import modernized
from logyard_workflows_dsl.printing import dump
from logyard_workflows_dsl.problems import Problem
from logyard_workflows_dsl.reading import Version


class Upgraded(msgspec.Struct, frozen=True):
    """The new text, its value, and what is otherwise than in the old text, a sentence each."""

    text: str
    workflow: Workflow
    changes: tuple[str, ...]
    detected_version: Version
    warnings: tuple[Problem, ...]


def upgrade(text: str | bytes, *, file: str = "workflow") -> Upgraded:
    """The file in version v4, without deprecated forms, with the same meaning.

    A file that needs no change keeps its text. Otherwise it is printed anew: comments above the
    first entry stay, others do not. Raises Unreadable.
    """
    read = understood(text, file)
    workflow, changes = modernized(read.workflow)
    if read.version == "v1":
        changes = ("version: v1 is now v4", *changes)
    changes = (*changes, *read.changes)
    old = text if isinstance(text, str) else text.decode("utf-8")
    new = _head(old) + dump(workflow) if changes else old
    return Upgraded(new, workflow, changes, read.version, read.warnings)


def _head(text: str) -> str:
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    return "".join(
        itertools.takewhile(lambda line: line.startswith("#") or not line.strip(), lines)
    )
