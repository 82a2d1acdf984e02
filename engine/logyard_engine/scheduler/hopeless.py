"""What is known to find no place, from the ticks before: it need not be looked at again.

A request that found no room for a chunk on any node finds none until room appears on a node that
could hold a chunk. One that would have delayed certain promises, with its time limit or a shorter
one, goes on to do so while the same promises hold with no more left beside them, and no room
appears. One that could never start waits for other nodes. All three memos are exact: room only
shrinks during a tick, and time only brings promises nearer.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from logyard_domain.world import Node, Shape
from logyard_engine.scheduler.lanes import Lanes

ANY = np.iinfo(np.int64).max
BITS = 62

Mark = tuple[object, ...]
"""What a promise was: equal marks stand in the way of the same requests."""


class Hopeless:
    """By shape: which lanes cannot be placed. Always disposable."""

    def __init__(self, active: bool = True) -> None:
        self.active = active
        """Whether it remembers anything; where few wait, looking costs less than remembering."""
        self._known: set[int] = set()
        self._cores = np.zeros(64, np.int64)
        self._memory = np.zeros(64, np.int64)
        self._classes = np.zeros(64, np.int64)
        """The classes on which it could run, a bit each; none where there are too many."""
        self._never = np.zeros(64, bool)
        self._full = np.full(64, ANY, np.int64)
        """From which time limit on nothing of the shape fits anywhere: 0, or `ANY` for none."""
        self._barred = np.full(64, ANY, np.int64)
        """From which time limit on it would delay the promises of its group."""
        self._group = np.zeros(64, np.int64)
        self._revived = np.zeros(64, np.int64)
        """Below which time limit room that appeared makes the shape worth another look."""
        self._groups: dict[frozenset[Mark], int] = {frozenset(): 0}
        self._valid = np.zeros(1, bool)
        self._made: set[Mark] = set()

    def begin(self) -> None:
        """A tick begins: no promise is made yet."""
        if not self.active:
            return
        self._made = set()
        self._valid = np.zeros(len(self._groups), bool)

    @property
    def remembers(self) -> bool:
        """Whether anything was found hopeless yet."""
        return bool((self._full != ANY).any() or (self._barred != ANY).any())

    @property
    def known(self) -> bool:
        """Whether anything was told yet."""
        return bool(self._known)

    def knows(self, shape: Shape) -> bool:
        """Whether the classes of the shape were told."""
        return shape.id in self._known

    def learn(self, shape: Shape, classes: Iterable[int]) -> None:
        """It could run on these classes."""
        while shape.id >= len(self._full):
            self._grow()
        self._known.add(shape.id)
        numbers = tuple(classes)
        self._classes[shape.id] = bits(numbers) if max(numbers, default=0) < BITS else 0
        self._cores[shape.id] = shape.request.cores
        self._memory[shape.id] = shape.request.memory

    def forget(self, shape: Shape) -> None:
        """Look at it again."""
        if not self.active:
            return
        self._full[shape.id] = self._barred[shape.id] = ANY
        self._never[shape.id] = False

    def promised(self, mark: Mark) -> None:
        """This promise holds in the present tick."""
        if not self.active:
            return
        self._made.add(mark)
        for marks, group in self._groups.items():
            if group:
                self._valid[group] = marks <= self._made

    def never(self, shape: Shape) -> None:
        """It could not start even if all that runs ended."""
        if not self.active:
            return
        self._never[shape.id] = True

    def full(self, shape: Shape) -> None:
        """Nothing of it fits anywhere."""
        if not self.active:
            return
        self._full[shape.id] = 0

    def is_full(self, shape: Shape) -> bool:
        """Whether nothing of it fits anywhere but where room appeared."""
        return bool(self._full[shape.id] == 0)

    def missed(self, shape: Shape, limit_ms: int) -> None:
        """It did not fit on the nodes where room had appeared either."""
        if not self.active:
            return
        self._revived[shape.id] = min(self._revived[shape.id], limit_ms)

    def keep(self) -> None:
        """The tick ends before all was looked at that was worth it: look at it the next time."""
        if not self.active:
            return
        again = self._revived > 0
        self._full[again] = self._barred[again] = ANY

    def barred(self, shape: Shape, limit_ms: int, marks: frozenset[Mark]) -> None:
        """With this time limit or a longer one it would delay these promises."""
        if not self.active:
            return
        self._full[shape.id] = ANY
        group = self._groups.get(marks)
        if group is None:
            if len(self._groups) > 1_000:
                self._forget_groups()
            group = self._groups[marks] = len(self._groups)
            self._valid = np.append(self._valid, False)
        if self._group[shape.id] != group or limit_ms < self._barred[shape.id]:
            self._barred[shape.id] = limit_ms
            self._group[shape.id] = group

    def freed(self, nodes: Iterable[tuple[Node, int]]) -> None:
        """On these nodes (and of these classes) room has appeared since the last tick, and this is
        what is free there now: what fits there may be worth another look.
        """
        if not self.active:
            return
        self._revived[:] = 0
        for node, number in nodes:
            found = self._cores <= max(0, node.free_cores)
            found &= self._memory <= max(0, node.free_memory)
            if number < BITS:
                found &= (self._classes == 0) | ((self._classes & (1 << number)) != 0)
            self._revived[found] = ANY

    def elsewhere(self, shape: Shape, limit_ms: int) -> bool:
        """Whether it is known to find no place on any node but those where room appeared."""
        if not self.active:
            return False
        number = shape.id
        if limit_ms >= self._full[number]:
            return True
        return bool(limit_ms >= self._barred[number] and self._valid[self._group[number]])

    def worth(
        self, lanes: Lanes, rows: npt.NDArray[np.int64], covered: int
    ) -> npt.NDArray[np.bool_]:
        """Which of the rows to look at, when others are first in line for the `covered` classes."""
        shapes = lanes.shapes[rows]
        limits = lanes.limits[rows]
        barred = (limits >= self._barred[shapes]) & self._valid[self._group[shapes]]
        hopeless = ((limits >= self._full[shapes]) | barred) & (limits >= self._revived[shapes])
        # One that nobody is first in line before may become the first itself.
        free = (self._classes[shapes] & covered) == 0
        found: npt.NDArray[np.bool_] = (~hopeless | free) & ~self._never[shapes]
        return found

    def _grow(self) -> None:
        more = len(self._full)
        for name in (
            "_cores", "_memory", "_classes", "_never", "_full", "_barred", "_group", "_revived",
        ):  # fmt: skip
            column = getattr(self, name)
            blank = np.zeros(more, column.dtype)
            if name in ("_full", "_barred"):
                blank[:] = ANY
            setattr(self, name, np.append(column, blank))

    def _forget_groups(self) -> None:
        self._groups = {frozenset(): 0}
        self._valid = np.zeros(1, bool)
        self._group[:] = 0
        self._barred[:] = ANY


def bits(classes: Iterable[int]) -> int:
    """Classes as bits; those beyond what an integer of 64 bits holds have none."""
    found = 0
    for number in classes:
        if number < BITS:
            found |= 1 << number
    return found
