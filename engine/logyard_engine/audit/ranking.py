"""Priorities as the log gives them: entities, decayed use, and the expression in force."""

from bisect import bisect_left, insort

from logyard_domain.expressions import (
    DEFAULT_PRIORITY,
    Expression,
    Scalar,
    compiled,
    finite,
    looked_up,
    moving,
    rising,
    variables_of,
)
from logyard_engine.audit.work import Attempt, Key, Shape, Stage, Workflow

GIB = 1 << 30
HOUR_MS = 3_600_000
NOTHING_LEFT = 1e-9
"""Core-hours below which use counts as none."""

Line = tuple[object, ...]
"""Equal for stages that differ in nothing but their age."""


class Ranking:
    """Who comes before whom."""

    def __init__(self) -> None:
        self.organizations: dict[str, int] = {}
        self.groups: dict[tuple[str, str], tuple[int, frozenset[str]]] = {}
        """(organization, group) -> its priority, and the groups that it may preempt."""
        self.users: dict[str, int] = {}
        self.changed_at = 0
        """Position of the last event that changed priorities or the configuration."""
        self.half_life_ms = 1
        self.moving = False
        """Whether the order may change by the passing of time or by use."""
        self.waiting: dict[Shape, None] = {}
        """Shapes of which something waits."""
        self.count = 0
        """Stages that wait."""
        self._used: dict[str, tuple[float, int]] = {}
        """``g:ORGANIZATION/GROUP`` or ``u:USER`` -> core-hours, and when they counted so much."""
        self._columns: frozenset[str] = frozenset()
        self._value = compiled(DEFAULT_PRIORITY, looked_up)
        self._plain = True
        self._rising = True
        self._instant = 0
        """The instant for which keys of the queue hold."""
        self._stale = False
        self.formula(DEFAULT_PRIORITY)

    def formula(self, tree: Expression) -> None:
        """This expression is in force."""
        self._plain = tree == DEFAULT_PRIORITY
        self._value = compiled(tree, looked_up)
        self._columns = frozenset(variables_of(tree))
        self.moving = moving(tree)
        self._rising = rising(tree)
        self._stale = True

    def changed(self, position: int) -> None:
        """Priorities or settings are other ones than before."""
        self.changed_at = position
        self._stale = True

    # Use

    def charge(self, attempt: Attempt, at: int) -> None:
        """It gives its room back."""
        core_ms = attempt.request.cores * attempt.size * (at - attempt.since)
        if not core_ms:
            return
        owner = attempt.stage.workflow
        for key in (f"g:{owner.organization}/{owner.group}", f"u:{owner.user}"):
            self._used[key] = (self._use(key, at) + core_ms / HOUR_MS, at)
        if self._columns & {"usage.group", "usage.user"}:
            self._stale = True

    def _use(self, key: str, at: int) -> float:
        known = self._used.get(key)
        if known is None:
            return 0.0
        left = known[0] * 2.0 ** (-(at - known[1]) / self.half_life_ms)
        return left if left >= NOTHING_LEFT else 0.0

    # Priorities

    def priority(self, stage: Stage, now: int) -> float:
        """The priority of the ranks of a stage that has a shape, at instant `now`."""
        workflow = stage.workflow
        age_s = (now - workflow.submitted_at) / 1000
        if self._plain:
            group = self.groups.get((workflow.organization, workflow.group))
            return (
                float(self.organizations.get(workflow.organization, 0))
                + float(group[0] if group else 0)
                + float(self.users.get(workflow.user, 0))
                + float(workflow.priority)
                + age_s / 3600 / 24.0
            )
        return finite(self._value(self._values(stage, workflow, age_s, now)))

    def _values(
        self, stage: Stage, workflow: Workflow, age_s: float, now: int
    ) -> dict[str, Scalar]:
        assert stage.shape is not None
        request = stage.shape.request
        group = self.groups.get((workflow.organization, workflow.group))
        values: dict[str, Scalar] = {
            "organization.priority": float(self.organizations.get(workflow.organization, 0)),
            "group.priority": float(group[0] if group else 0),
            "user.priority": float(self.users.get(workflow.user, 0)),
            "workflow.priority": float(workflow.priority),
            "queue.age_seconds": age_s,
            "queue.age_hours": age_s / 3600,
            "request.nodes": float(request.nodes),
            "request.cores": float(request.cores),
            "request.memory_gib": request.memory / GIB,
            "request.limit_seconds": stage.limit_ms / 1000,
            "request.preemptible": request.preemptible,
            "organization.name": workflow.organization,
            "group.name": workflow.group,
            "user.name": workflow.user,
        }
        if "usage.group" in self._columns:
            key = f"g:{workflow.organization}/{workflow.group}"
            values["usage.group"] = self._use(key, now)
        if "usage.user" in self._columns:
            values["usage.user"] = self._use(f"u:{workflow.user}", now)
        for device, count in request.devices:
            values[f"request.devices[{device}]"] = float(count)
        return values

    def line(self, stage: Stage) -> Line:
        """What the stage waits in: equal for those that differ only in their age."""
        workflow = stage.workflow
        assert stage.shape is not None
        apart = 0 if self._rising else workflow.position
        return (
            stage.shape.id, workflow.organization, workflow.group, workflow.user,
            workflow.priority, stage.limit_ms, apart,
        )  # fmt: skip

    # The queue

    def enqueue(self, stage: Stage) -> None:
        """It waits from now on."""
        shape = stage.shape
        assert shape is not None
        workflow = stage.workflow
        stage.key = (-self.priority(stage, self._instant), workflow.position, stage.index)
        stage.queued = True
        if not shape.queue:
            self.waiting[shape] = None
        insort(shape.queue, (stage.key, stage))
        insort(shape.limits, stage.limit_ms)
        self.count += 1

    def dequeue(self, stage: Stage) -> None:
        """It does not wait any more."""
        shape = stage.shape
        assert shape is not None
        stage.queued = False
        place = bisect_left(shape.queue, (stage.key, stage))
        del shape.queue[place]
        del shape.limits[bisect_left(shape.limits, stage.limit_ms)]
        self.count -= 1
        if not shape.queue:
            del self.waiting[shape]

    def refresh(self, now: int) -> None:
        """Let the order be that of instant `now`. Where the order stays the same nothing is
        evaluated anew: differences between priorities do not change then.
        """
        if not self._stale and (not self.moving or self._instant == now):
            return
        self._stale = False
        self._instant = now
        for shape in self.waiting:
            for _, stage in shape.queue:
                position = stage.workflow.position
                stage.key = (-self.priority(stage, now), position, stage.index)
            shape.queue = [(stage.key, stage) for _, stage in shape.queue]
            shape.queue.sort()

    def key(self, stage: Stage, now: int) -> Key:
        """What it is sorted by at this very instant."""
        return (-self.priority(stage, now), stage.workflow.position, stage.index)

    def precedes(self, one: Stage, other: Stage, now: int) -> bool:
        """Whether one comes before another at this very instant."""
        return self.key(one, now) < self.key(other, now)
