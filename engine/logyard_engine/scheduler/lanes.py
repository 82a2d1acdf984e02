"""The lanes as a table of columns, kept from tick to tick: what expressions and sorting read."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from logyard_domain.rules.entities import group_key, user_key
from logyard_domain.rules.priorities import GIB, priority_of, used, variables_for
from logyard_domain.world import Lane, Stage, World
from logyard_engine.scheduler.formula import Formula

FEW = 12
"""Below this many, vectors cost more than they save."""

Column = npt.NDArray[Any]


class Lanes:
    """Rows of all lanes that something waits in. Always disposable."""

    def __init__(self) -> None:
        self.rows: list[Lane] = []
        self._row: dict[Lane, int] = {}
        self._set = -1
        self._ranked_at = -1
        self._version = 0
        self._formula: Formula | None = None
        self._still: dict[str, Column] = {}
        self.since = np.zeros(0)
        self.positions = np.zeros(0, np.int64)
        self.indexes = np.zeros(0, np.int64)
        self.shapes = np.zeros(0, np.int64)
        self.limits = np.zeros(0, np.int64)

    def refresh(self, world: World) -> None:
        """Take over what changed. Few lanes need no table."""
        if len(world.lanes) < FEW:
            self._set = -1
        elif self._set != world.lane_set:
            self._rebuild(world)
        elif self._ranked_at != world.ranked_at:
            self._forget(world)
        else:
            for lane in world.dirty:
                row = self._row[lane]
                position, index, stage = lane.heap[0]
                self.since[row] = stage.workflow.submitted_at
                self.positions[row] = position
                self.indexes[row] = index
        world.dirty.clear()

    def key(self, row: int, priority: float) -> tuple[float, int, int]:
        """What a lane is sorted by."""
        return (-priority, int(self.positions[row]), int(self.indexes[row]))

    def sorted(self, priorities: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Rows by priority, highest first, then by submit position and number of the stage."""
        return np.lexsort((self.indexes, self.positions, -priorities))

    def priorities(self, world: World, now: int) -> npt.NDArray[np.float64]:
        """The priority of each lane's first stage; what is not finite is the lowest."""
        formula = self._compiled(world)
        ages = (now - self.since) / 1000
        columns: dict[str, Column] = {}
        for name in formula.columns:
            moving = _moving(world, name, ages, self._stages, now)
            if moving is None:
                if name not in self._still:
                    self._still[name] = _still(world, name, self._stages())
                moving = self._still[name]
            columns[name] = moving
        return formula.values(columns, len(self.rows), self._version)

    def priorities_of(
        self, world: World, stages: Sequence[Stage], now: int
    ) -> npt.NDArray[np.float64]:
        """The priority of each of these stages, which may run."""
        if len(stages) < FEW:
            return _one_by_one(world, stages, now)
        formula = self._compiled(world)
        since = np.array([stage.workflow.submitted_at for stage in stages], np.float64)
        ages = (now - since) / 1000
        columns: dict[str, Column] = {}
        for name in formula.columns:
            moving = _moving(world, name, ages, lambda: stages, now)
            columns[name] = _still(world, name, stages) if moving is None else moving
        return formula.values(columns, len(stages))

    def _stages(self) -> list[Stage]:
        return [lane.heap[0][2] for lane in self.rows]

    def _compiled(self, world: World) -> Formula:
        if self._formula is None or self._formula.tree is not world.priority:
            self._formula = Formula(world.priority)
        return self._formula

    def _rebuild(self, world: World) -> None:
        self.rows = list(world.lanes.values())
        self._row = {lane: row for row, lane in enumerate(self.rows)}
        heads = [lane.heap[0] for lane in self.rows]
        self.positions = np.array([head[0] for head in heads], np.int64)
        self.indexes = np.array([head[1] for head in heads], np.int64)
        self.since = np.array([head[2].workflow.submitted_at for head in heads], np.float64)
        self.shapes = np.array([lane.key.shape for lane in self.rows], np.int64)
        self.limits = np.array([lane.key.limit_ms for lane in self.rows], np.int64)
        self._set = world.lane_set
        self._forget(world)

    def _forget(self, world: World) -> None:
        self._ranked_at = world.ranked_at
        self._still = {}
        self._version += 1


def _one_by_one(world: World, stages: Sequence[Stage], now: int) -> npt.NDArray[np.float64]:
    return np.array([priority_of(world, world.priority, stage, now) for stage in stages])


def _moving(
    world: World,
    name: str,
    ages: Column,
    stages: Callable[[], Sequence[Stage]],
    now: int,
) -> Column | None:
    """A variable that changes with time; None for one that does not."""
    match name:
        case "queue.age_seconds":
            return ages
        case "queue.age_hours":
            return ages / 3600
        case "usage.group" | "usage.user":
            key_of = group_key if name == "usage.group" else user_key
            keys = [key_of(stage.workflow) for stage in stages()]
            known = {key: used(world, key, now) for key in dict.fromkeys(keys)}
            return np.array([known[key] for key in keys])
        case _:
            return None


def _still(world: World, name: str, stages: Sequence[Stage]) -> Column:
    """A variable that stays the same until a priority or the set of lanes changes."""
    match name:
        case "organization.priority":
            known = world.organizations
            numbers = [float(known.get(stage.workflow.organization, 0)) for stage in stages]
        case "group.priority":
            owners = [stage.workflow for stage in stages]
            found = [world.groups.get((one.organization, one.group)) for one in owners]
            numbers = [float(one.priority) if one else 0.0 for one in found]
        case "user.priority":
            numbers = [float(world.users.get(stage.workflow.user, 0)) for stage in stages]
        case "workflow.priority":
            numbers = [float(stage.workflow.priority) for stage in stages]
        case "request.limit_seconds":
            numbers = [stage.limit_ms / 1000 for stage in stages]
        case "request.memory_gib":
            numbers = [world.shapes[stage.shape].request.memory / GIB for stage in stages]
        case _:
            values = [variables_for(world, stage, world.at).get(name, 0.0) for stage in stages]
            kind = type(values[0])
            return np.array(values, object if kind is str else kind)
    return np.array(numbers)
