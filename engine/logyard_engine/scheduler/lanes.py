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
        self._since: Column = np.zeros(0)
        self.positions = np.zeros(0, np.int64)
        """This and the others may be longer than there are rows."""
        self.indexes = np.zeros(0, np.int64)
        self.shapes = np.zeros(0, np.int64)
        self.limits = np.zeros(0, np.int64)

    def refresh(self, world: World) -> None:
        """Take over what changed. Few lanes need no table."""
        changes = len(world.emptied) + len(world.dirty)
        if len(world.lanes) < FEW:
            self._set = -1
        elif self._set != world.lane_set or changes > max(FEW, len(self.rows) // 2):
            self._rebuild(world)
        else:
            self._follow(world)
        world.dirty.clear()
        world.emptied.clear()

    def key(self, row: int, priority: float) -> tuple[float, int, int]:
        """What a lane is sorted by."""
        return (-priority, int(self.positions[row]), int(self.indexes[row]))

    def sorted(self, priorities: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Rows by priority, highest first, then by submit position and number of the stage."""
        count = len(self.rows)
        return np.lexsort((self.indexes[:count], self.positions[:count], -priorities))

    def priorities(self, world: World, now: int) -> npt.NDArray[np.float64]:
        """The priority of each lane's first stage; what is not finite is the lowest."""
        formula = self._compiled(world)
        count = len(self.rows)
        ages = (now - self._since[:count]) / 1000
        columns: dict[str, Column] = {}
        for name in formula.columns:
            moving = _moving(world, name, ages, self._stages, now)
            if moving is None:
                if name not in self._still:
                    found = _still(world, name, self._stages())
                    self._still[name] = _longer(found, len(self.positions) - count)
                moving = self._still[name][:count]
            columns[name] = moving
        return formula.values(columns, count, self._version)

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
        self._since = np.array([head[2].workflow.submitted_at for head in heads], np.float64)
        self.shapes = np.array([lane.key.shape for lane in self.rows], np.int64)
        self.limits = np.array([lane.key.limit_ms for lane in self.rows], np.int64)
        self._set = world.lane_set
        self._ranked_at = world.ranked_at
        self._forget()

    def _follow(self, world: World) -> None:
        """Row by row."""
        if self._ranked_at != world.ranked_at:
            self._ranked_at = world.ranked_at
            self._forget()
        for lane in world.emptied:
            if not lane.listed and lane in self._row:
                self._drop(lane)
        for lane in world.dirty:
            row = self._row.get(lane)
            position, index, stage = lane.heap[0]
            if row is None:
                row = self._add(world, lane, stage)
            self._since[row] = stage.workflow.submitted_at
            self.positions[row] = position
            self.indexes[row] = index
        assert len(self.rows) == len(world.lanes), (len(self.rows), len(world.lanes))

    def _add(self, world: World, lane: Lane, stage: Stage) -> int:
        row = len(self.rows)
        self._row[lane] = row
        self.rows.append(lane)
        if row == len(self.positions):
            self._grow()
        self.shapes[row] = lane.key.shape
        self.limits[row] = lane.key.limit_ms
        for name, column in self._still.items():
            column[row] = _still(world, name, (stage,))[0]
        self._version += 1
        return row

    def _drop(self, lane: Lane) -> None:
        """The last row takes its place."""
        row, last = self._row.pop(lane), self.rows.pop()
        if last is not lane:
            self.rows[row] = last
            self._row[last] = row
            end = len(self.rows)
            for column in self._columns():
                column[row] = column[end]
        self._version += 1

    def _columns(self) -> list[Column]:
        own: list[Column] = [self._since, self.positions, self.indexes, self.shapes, self.limits]
        return own + list(self._still.values())

    def _grow(self) -> None:
        more = max(FEW, len(self.positions))
        self._since = _longer(self._since, more)
        self.positions, self.indexes = _longer(self.positions, more), _longer(self.indexes, more)
        self.shapes, self.limits = _longer(self.shapes, more), _longer(self.limits, more)
        self._still = {name: _longer(column, more) for name, column in self._still.items()}

    def _forget(self) -> None:
        self._still = {}
        self._version += 1


def _longer(column: Column, more: int) -> Column:
    return np.concatenate((column, np.zeros(more, column.dtype)))


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
