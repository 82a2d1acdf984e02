"""The order in which what waits is looked at: highest priority first, then the oldest.

Priorities are asked once for each lane, not for each allocation: what waits in a lane differs in
nothing but its age. A few are evaluated one by one, many as vectors; both give the same bits.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace
from typing import Any

import numpy as np
import numpy.typing as npt

from logyard_domain.expressions import Scalar
from logyard_domain.rules.entities import group_key, user_key
from logyard_domain.rules.priorities import GIB, priority_of, used, variables_for
from logyard_domain.world import Lane, Stage, World
from logyard_engine.scheduler.formula import Formula

FEW = 12
"""Below this many, vectors cost more than they save."""

Entry = tuple[float, int, int, Lane]
"""Minus the priority, submit position, number of the stage; and the lane that it heads."""


class Priorities:
    """Evaluates the expression in force over stages. Keeps the compiled one; disposable."""

    def __init__(self) -> None:
        self._formula: Formula | None = None

    def of(self, world: World, stages: Sequence[Stage], now: int) -> list[float]:
        """The priority of each of the stages, which have shapes; not finite ones are the lowest."""
        if len(stages) < FEW:
            return [priority_of(world, world.priority, stage, now) for stage in stages]
        if self._formula is None or self._formula.tree is not world.priority:
            self._formula = Formula(world.priority)
        columns = {
            name: _column(world, stages, now, name) for name in sorted(self._formula.columns)
        }
        found: list[float] = self._formula.values(columns, len(stages)).tolist()
        return found


class Order:
    """What waits, in order. What has been placed is skipped; lanes go on with what follows."""

    def __init__(self, world: World, priorities: Priorities, now: int) -> None:
        self._world = world
        self._now = now
        self._heap: list[Entry] = []
        for lane in list(world.lanes.values()):
            if lane.head() is None:
                del world.lanes[lane.key]
        lanes = list(world.lanes.values())
        self.lanes = len(lanes)
        if len(lanes) == 1:
            # Nothing competes.
            self._heap = [self._entry(lanes[0], 0.0)]
            return
        stages = [lane.heap[0][2] for lane in lanes]
        found = priorities.of(world, stages, now)
        self._heap = [self._entry(lane, value) for lane, value in zip(lanes, found, strict=True)]
        heapify(self._heap)

    def first(self) -> tuple[Lane, Stage] | None:
        """The lane that comes first, and the stage whose next rank it is."""
        while self._heap:
            _, position, index, lane = self._heap[0]
            stage = lane.head()
            if stage is None:
                heappop(self._heap)
            elif (stage.workflow.position, stage.plan.index) == (position, index):
                return lane, stage
            else:
                value = priority_of(self._world, self._world.priority, stage, self._now)
                heapreplace(self._heap, self._entry(lane, value))
        return None

    def skip(self) -> None:
        """Nothing of the first lane can be placed now."""
        heappop(self._heap)

    def rest(self) -> list[Lane]:
        """Lanes that were not looked at, or not to their end."""
        return [lane for *_, lane in self._heap if lane.head() is not None]

    @staticmethod
    def _entry(lane: Lane, priority: float) -> Entry:
        position, index, _ = lane.heap[0]
        return (-priority, position, index, lane)


def _column(world: World, stages: Sequence[Stage], now: int, name: str) -> npt.NDArray[Any]:
    count = len(stages)
    numbers = [0.0] * count
    match name:
        case "queue.age_seconds" | "queue.age_hours":
            ages = np.fromiter((now - s.workflow.submitted_at for s in stages), np.float64, count)
            seconds = ages / 1000
            return seconds / 3600 if name == "queue.age_hours" else seconds
        case "organization.priority":
            numbers = [float(world.organizations.get(s.workflow.organization, 0)) for s in stages]
        case "group.priority":
            groups = world.groups
            for row, stage in enumerate(stages):
                found = groups.get((stage.workflow.organization, stage.workflow.group))
                if found is not None:
                    numbers[row] = float(found.priority)
        case "user.priority":
            numbers = [float(world.users.get(s.workflow.user, 0)) for s in stages]
        case "workflow.priority":
            numbers = [float(s.workflow.priority) for s in stages]
        case "request.limit_seconds":
            numbers = [s.limit_ms / 1000 for s in stages]
        case "request.memory_gib":
            numbers = [world.shapes[s.shape].request.memory / GIB for s in stages]
        case "usage.group" | "usage.user":
            key_of = group_key if name == "usage.group" else user_key
            known: dict[str, float] = {}
            for row, stage in enumerate(stages):
                key = key_of(stage.workflow)
                if key not in known:
                    known[key] = used(world, key, now)
                numbers[row] = known[key]
        case _:
            values = [variables_for(world, stage, now).get(name, 0.0) for stage in stages]
            return _mixed(values)
    return np.array(numbers)


def _mixed(values: Sequence[Scalar]) -> npt.NDArray[Any]:
    kind = type(values[0])
    if kind is str:
        return np.array(values, dtype=object)
    return np.array(values, dtype=bool if kind is bool else float)
