"""Which cores of a node an allocation is drawn on.

The scheduler counts cores and does not number them. The picture does, so that what runs side by
side is drawn side by side: the lowest free ones first, in one piece where there is one.
"""

from bisect import insort

Range = tuple[int, int]
"""First core, and how many."""


class Slots:
    """The cores of one node. `top` is how many rows of cores the node's row must show."""

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self.top = cores
        self._free: list[Range] = [(0, cores)] if cores else []

    def resize(self, cores: int) -> None:
        """The node has so many cores from now on."""
        if cores > self.top:
            self.give(((self.top, cores - self.top),))
            self.top = cores
        self.cores = cores

    def take(self, cores: int) -> tuple[Range, ...]:
        """Take so many; none is a line without height.

        Where more is taken than there is (room that is given away before its victims have left),
        rows are added at the top.
        """
        if not cores:
            return ((0, 0),)
        for index, (low, length) in enumerate(self._free):
            if length >= cores:
                self._free[index : index + 1] = [(low + cores, length - cores)] * (length > cores)
                return ((low, cores),)
        pieces: list[Range] = []
        while cores and self._free:
            low, length = self._free.pop(0)
            used = min(length, cores)
            if length > used:
                self._free.insert(0, (low + used, length - used))
            pieces.append((low, used))
            cores -= used
        if cores:
            pieces.append((self.top, cores))
            self.top += cores
        return tuple(pieces)

    def take_all(self) -> tuple[Range, ...]:
        """Take whatever is free, for one that has the node to itself."""
        pieces, self._free = tuple(self._free), []
        return pieces or ((0, 0),)

    def give(self, pieces: tuple[Range, ...]) -> None:
        """They are free again."""
        for piece in pieces:
            if piece[1]:
                insort(self._free, piece)
        merged: list[Range] = []
        for low, length in self._free:
            if merged and sum(merged[-1]) == low:
                merged[-1] = (merged[-1][0], merged[-1][1] + length)
            else:
                merged.append((low, length))
        self._free = merged
