"""The tasks that a node was told of on its stream."""

from collections.abc import Set as AbstractSet

from logyard_domain.work import Task

TASKS_MAX = 4_096
"""Tasks that are remembered; an order that names a forgotten one makes the agent ask for a
`Sync`.
"""


class Tasks:
    """Tasks by key, the latest told last."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}

    def get(self, key: str) -> Task | None:
        return self._tasks.get(key)

    def remember(self, task: Task) -> bool:
        """Take a task in place of an older one of its key; False when it is time to `shrink`."""
        self._tasks.pop(task.task, None)
        self._tasks[task.task] = task
        return len(self._tasks) <= TASKS_MAX

    def shrink(self, used: AbstractSet[str]) -> None:
        """Forget the older half of the tasks that are not in use."""
        for key in [key for key in self._tasks if key not in used][: TASKS_MAX // 2]:
            del self._tasks[key]
