"""What the ranks of one task have in common on this node, and what of it the keeper knows."""

import sys
from pathlib import Path

from logyard_domain.work import Task
from logyard_engine.substrate.keeper import frames
from logyard_engine.substrate.keeping import Message

KNOWN_MAX = 512
"""Tasks that the keeper is let know at once."""

_CODEC, _ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()

Command = tuple[str, tuple[str, ...], str]
"""Executable, arguments, and the folder that the keeper starts it in."""


class Recipe:
    """What is worked out once for a task. `command` is set when it is the same for all ranks."""

    __slots__ = ("binds", "command", "env", "private", "scratch", "stem", "task", "varies")

    def __init__(self, task: Task, env: dict[str, str], stem: str) -> None:
        self.task = task
        self.env = env
        self.stem = stem
        self.scratch = ""
        self.binds: dict[str, Path] = {}
        self.private = bool(task.script or task.files or task.mounts)
        self.varies = any("$" in argument for argument in task.argv)
        self.command: Command | None = None


class Recipes:
    """The recipes of a node. `carried`: output is needed until it has been carried to a server."""

    def __init__(self, carried: bool) -> None:
        self._carried = carried
        self._recipes: dict[str, dict[str, Recipe]] = {}
        """By workflow, by task."""
        self._known: dict[str, tuple[Recipe, bool]] = {}

    def get(self, task: Task) -> Recipe | None:
        """The recipe of exactly this task."""
        recipe = self._recipes.get(task.workflow, {}).get(task.task)
        return recipe if recipe is not None and recipe.task is task else None

    def keep(self, recipe: Recipe) -> None:
        task = recipe.task
        self._recipes.setdefault(task.workflow, {})[task.task] = recipe

    def introduce(self, recipe: Recipe) -> list[Message]:
        """What the keeper must hear before a start of this task."""
        key = recipe.task.task
        told = recipe, recipe.command is not None
        if self._known.get(key) == told:
            return []
        messages: list[Message] = []
        self._known.pop(key, None)
        if len(self._known) >= KNOWN_MAX:
            oldest = list(self._known)[: KNOWN_MAX // 2]
            messages.append(("drop", oldest))
            for one in oldest:
                del self._known[one]
        self._known[key] = told
        messages.append(self._message(recipe))
        return messages

    def unknown(self) -> None:
        """The keeper knows no task: it is another one, or thinks that this is another agent."""
        self._known.clear()

    def retire(self, workflow: str) -> list[Message]:
        """Forget what is about a workflow, and let the keeper forget it."""
        keys = self._recipes.pop(workflow, {})
        known = [key for key in keys if self._known.pop(key, None) is not None]
        return [("drop", known)] if known else []

    def clear(self) -> None:
        self._recipes.clear()

    def _message(self, recipe: Recipe) -> Message:
        task = recipe.task
        env = encoded(recipe.env)
        command = recipe.command or ("", (), "")
        return frames.task(
            *(task.task, recipe.stem, self._carried, command[0], command[1], env, command[2]),
            *(task.limit_ms, task.grace_ms),
        )


def encoded(env: dict[str, str]) -> dict[bytes, bytes]:
    """An environment as the kernel takes it."""
    return {
        name.encode(_CODEC, _ERRORS): value.encode(_CODEC, _ERRORS) for name, value in env.items()
    }
