"""Time in equal steps, and what is added up in them."""

from array import array

STEPS_MOST = 2_000


class Grid:
    """The time from `since` to `until` (instants) in `number` steps of `width` ms.

    The last step may end after `until`; what happens outside of the span is left out.
    """

    def __init__(self, since: int, until: int, most: int = STEPS_MOST) -> None:
        length = max(until - since, 1)
        self.since = since
        self.until = since + length
        self.width = -(-length // most)
        self.number = -(-length // self.width)

    def zeros(self) -> "array[float]":
        """A sum for each step."""
        return array("d", bytes(8 * self.number))

    def add(self, sums: "array[float]", since: int, until: int, amount: float) -> None:
        """Add `amount` times milliseconds to each step, for the time from `since` to `until`."""
        start = max(since, self.since) - self.since
        end = min(until, self.until) - self.since
        if end <= start:
            return
        width = self.width
        first, last = start // width, (end - 1) // width
        if first == last:
            sums[first] += amount * (end - start)
            return
        sums[first] += amount * ((first + 1) * width - start)
        for step in range(first + 1, last):
            sums[step] += amount * width
        sums[last] += amount * (end - last * width)

    def means(self, sums: "array[float]") -> tuple[float, ...]:
        """The sums as means over their steps."""
        tail = self.until - self.since - (self.number - 1) * self.width
        return (*(one / self.width for one in sums[:-1]), sums[-1] / tail)


class Course:
    """The course of one number over a grid."""

    def __init__(self, grid: Grid) -> None:
        self.value = 0.0
        self.peak = 0.0
        self._grid = grid
        self._since = grid.since
        self._sums = grid.zeros()

    def change(self, at: int, by: float) -> None:
        """It is more by so much from `at` on. Calls come in the order of time."""
        if at > self._since:
            self._flush(at)
        self.value += by

    def means(self, at: int) -> tuple[float, ...]:
        """Its mean in each step, until `at`."""
        self._flush(at)
        return self._grid.means(self._sums)

    def total(self, at: int) -> float:
        """Its value times milliseconds, over the span until `at`."""
        self._flush(at)
        return sum(self._sums)

    def _flush(self, at: int) -> None:
        """What it was until `at` is known; only what lasted counts as a peak."""
        if self.value and at > self._since:
            self._grid.add(self._sums, self._since, at, self.value)
            self.peak = max(self.peak, self.value)
        self._since = max(at, self._since)
