"""The order in which what waits is looked at: highest priority first, then the oldest.

Priorities are asked once for each lane, not for each allocation: what waits in a lane differs in
nothing but its age. A few are evaluated one by one, many as vectors; both give the same bits. Lanes
of which it is known that nothing of them can be placed are passed over.
"""

from heapq import heappop, heappush

import numpy as np

from logyard_domain.rules.priorities import priority_of
from logyard_domain.world import Lane, Stage, World
from logyard_engine.scheduler.hopeless import Hopeless
from logyard_engine.scheduler.lanes import FEW, Lanes

_NONE = np.zeros(0, np.int64)
Key = tuple[float, int, int]
"""Minus the priority, submit position, number of the stage."""


class Order:
    """What waits, in order. What has been placed is skipped; lanes go on with what follows."""

    def __init__(self, world: World, lanes: Lanes, hopeless: Hopeless, now: int) -> None:
        self._world = world
        self._lanes = lanes
        self._hopeless = hopeless
        self._now = now
        self._moved: list[tuple[Key, int, Lane]] = []
        """Lanes whose first stage was placed whole: they wait again where the next one belongs."""
        self._first: tuple[Key, Lane] | None = None
        self._since = 0
        """When the first one was submitted."""
        self._left: list[int] = []
        self._cursor = 0
        self._at = 0
        self.count = len(world.lanes)
        """How many lanes there are."""
        self._few: list[tuple[Key, Lane]] = []
        self._ranks: list[float] = []
        self._rows = _NONE
        lanes.refresh(world)
        if self.count < FEW:
            self._few = sorted(self._keyed(lane) for lane in world.lanes.values())
            self._left = list(range(self.count))
        else:
            priorities = lanes.priorities(world, now)
            self._ranks = priorities.tolist()
            self._rows = lanes.sorted(priorities)
            self.covered(0)

    def _keyed(self, lane: Lane) -> tuple[Key, Lane]:
        position, index, stage = lane.heap[0]
        if self.count == 1:
            # Nothing competes.
            return (0.0, position, index), lane
        value = priority_of(self._world, self._world.priority, stage, self._now)
        return (-value, position, index), lane

    def covered(self, classes: int) -> None:
        """Others are first in line for these classes of nodes (a bit each) from here on."""
        if self.count < FEW:
            return
        rows = self._rows[self._at :]
        wanted = self._hopeless.worth(self._lanes, rows, classes)
        self._left = (np.flatnonzero(wanted) + self._at).tolist()
        self._cursor = 0

    def first(self) -> tuple[Lane, Stage] | None:
        """The lane that comes first, and the stage whose next rank it is."""
        while True:
            if self._first is None and not self._advance():
                return None
            assert self._first is not None
            key, lane = self._first
            if not lane.listed:
                self._first = None
                continue
            position, index, stage = lane.heap[0]
            if (position, index) == key[1:]:
                self._since = stage.workflow.submitted_at
                return lane, stage
            self._first = None
            negative = key[0]
            since = stage.workflow.submitted_at
            if self.count > 1 and since != self._since:
                negative = -priority_of(self._world, self._world.priority, stage, self._now)
            heappush(self._moved, ((negative, position, index), lane.key.shape, lane))

    def skip(self) -> None:
        """Nothing of the first lane can be placed now."""
        self._first = None

    def _advance(self) -> bool:
        """Make the next lane the first one; whether there is one."""
        moved = self._moved[0][0] if self._moved else None
        if self._cursor < len(self._left):
            at = self._left[self._cursor]
            if self._few:
                key, lane = self._few[at]
            else:
                row = int(self._rows[at])
                key, lane = self._lanes.key(row, self._ranks[row]), self._lanes.rows[row]
            if moved is None or key < moved:
                self._cursor += 1
                self._at = at + 1
                self._first = (key, lane)
                return True
        if moved is None:
            return False
        _, _, lane = heappop(self._moved)
        self._first = (moved, lane)
        return True
