"""The bars of a picture, of which there are never more than it can hold."""

from array import array

from logyard_projections.picture.grid import Grid
from logyard_projections.picture.picture import Bar


class Bars:
    """Keeps the longest of at most `most` bars; of the others, how much of each node they used."""

    def __init__(self, grid: Grid, most: int) -> None:
        self._grid = grid
        self._most = max(most, 2)
        self._kept: list[Bar] = []
        self._shortest = 0
        self._shade: dict[int, array[float]] = {}
        self.shaded = 0

    def add(self, bar: Bar) -> None:
        """One more."""
        self._kept.append(bar)
        if len(self._kept) > self._most:
            self._kept.sort(key=lambda one: (one.begin - one.end, one.placed_position))
            half = self._most // 2
            self._shortest = self._kept[half - 1].end - self._kept[half - 1].begin
            self._drop(self._kept[half:])
            del self._kept[half:]

    def kept(self) -> tuple[Bar, ...]:
        """The bars, in the order of their placement."""
        short = [bar for bar in self._kept if bar.end - bar.begin < self._shortest]
        if short:
            self._drop(short)
            self._kept = [bar for bar in self._kept if bar.end - bar.begin >= self._shortest]
        return tuple(sorted(self._kept, key=lambda bar: bar.placed_position))

    def shade(self) -> dict[int, tuple[float, ...]]:
        """Cores that the others used of each node, as means by step."""
        return {node: self._grid.means(sums) for node, sums in sorted(self._shade.items())}

    def _drop(self, bars: list[Bar]) -> None:
        self.shaded += len(bars)
        for bar in bars:
            for piece in bar.pieces:
                sums = self._shade.get(piece.node)
                if sums is None:
                    sums = self._shade[piece.node] = self._grid.zeros()
                self._grid.add(sums, bar.begin, bar.end, piece.cores)
