"""What gives its room back when: allocations by their latest ends, kept from tick to tick."""

from bisect import bisect_left, insort

from logyard_domain.world import EVERYTHING, Allocation, World
from logyard_engine.scheduler.estimates import until
from logyard_engine.scheduler.offer import Offer

End = tuple[int, str]
"""The latest end of an allocation (ms), and its name."""


class Profile:
    """Allocations that hold room, in the order of their latest ends. Always disposable."""

    def __init__(self) -> None:
        self._ends: list[End] = []
        self._known: dict[str, int] = {}
        self._unsteady: dict[str, None] = {}
        """Those whose end depends on others, or on when it is asked for."""
        self._whole = False
        self.offers: dict[int, Offer] = {}
        """Shape -> what it was offered, as long as nothing began, ended or got another end."""

    def clear(self) -> None:
        """Anything may have changed."""
        self._whole = False

    def ends(self, world: World, now: int) -> list[End]:
        """Latest ends from now on, in order; not to be changed."""
        changed = list(world.turnover)
        world.turnover.clear()
        if changed:
            self.offers = {}
        if not self._whole or EVERYTHING in changed or len(changed) > len(self._ends):
            self._build(world, now)
            return self._ends
        for name in changed:
            self._forget(name)
            allocation = world.allocations.get(name)
            if allocation is not None:
                self._keep(world, allocation, now)
        again = list(self._unsteady)
        for end, name in self._ends:
            if end > now:
                break
            again.append(name)
        if again:
            self.offers = {}
        for name in again:
            self._forget(name)
            self._keep(world, world.allocations[name], now)
        return self._ends

    def _build(self, world: World, now: int) -> None:
        self._ends, self._known, self._unsteady, self.offers = [], {}, {}, {}
        for allocation in world.allocations.values():
            end = self._end(world, allocation, now)
            if end is not None:
                self._ends.append(end)
        self._ends.sort()
        self._whole = True

    def _keep(self, world: World, allocation: Allocation, now: int) -> None:
        end = self._end(world, allocation, now)
        if end is not None:
            insort(self._ends, end)

    def _end(self, world: World, allocation: Allocation, now: int) -> End | None:
        if allocation.behind is not None:
            return None
        end = until(world, allocation, 0)
        if allocation.after or end <= now:
            end = until(world, allocation, now)
            self._unsteady[allocation.id] = None
        self._known[allocation.id] = end
        return end, allocation.id

    def _forget(self, name: str) -> None:
        end = self._known.pop(name, None)
        if end is not None:
            del self._ends[bisect_left(self._ends, (end, name))]
            self._unsteady.pop(name, None)
