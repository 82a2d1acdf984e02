"""Lines of the queue in the order of priority, also where priorities move by themselves.

Where they only grow with age, all by the same rate, the stored score gives the order at any
instant. Under other expressions the order is made at reading: what differs in nothing but its age
is one lane, so that a priority is asked for once for each lane, and for each line that is told.
Where that does not hold (age may lower a priority) or too many lanes wait, the oldest `ROWS_MOST`
lines are put in order, and the others follow by age; `bounded` then says so.
"""

from collections.abc import Generator, Iterator, Mapping
from heapq import heapify, heappop, heapreplace
from typing import Literal

from logyard_projections.answers.ranking import Ranker
from logyard_projections.queue import LANES, WAITING, Lane, Waiting, key_of
from logyard_projections.tables import Table, Value
from logyard_projections.view import BadToken, View, Wanted
from logyard_projections.view import read_token as read_row_token
from logyard_projections.view import token as row_token

LANES_MOST = 2_000
ROWS_MOST = 5_000
AHEAD = 50
"""Lines of a lane that are fetched at a time."""
Sort = Literal["priority", "age", "user", "group"]
COLUMNS: dict[Sort, str] = {"priority": "score", "age": "", "user": "user", "group": "group"}
Told = Iterator[tuple[Waiting, str]]
"""Lines, and for each the token of what comes after it."""


class Ordering:
    """Asks for lines in one order. `bounded` tells that not all of them are in it."""

    def __init__(self, view: View, ranker: Ranker, sort: Sort = "priority") -> None:
        self.view = view
        self.ranker = ranker
        self.sort: Sort = sort
        self.bounded = False

    @property
    def timed(self) -> bool:
        """Whether the order is made at reading."""
        return self.sort == "priority" and self.ranker.formula.moving

    def lines(
        self,
        table: Table[Waiting],
        where: Mapping[str, Wanted],
        unless: Mapping[str, tuple[Value, ...]],
        after: str,
        want: int,
    ) -> Told:
        """Lines that fulfil the conditions, after the token. Raises BadToken."""
        if not self.timed:
            yield from self._stored(table, where, unless, after, want)
            return
        beyond, rest = self._read(after)
        if not rest:
            narrow = "workflow" in where or table is not WAITING
            if not narrow and self.ranker.formula.rising:
                lanes = self._lanes(where, unless)
                if lanes is not None:
                    yield from self._merged(lanes, where, beyond)
                    return
            rest = yield from self._sorted(table, where, unless, beyond)
        if rest:
            self.bounded = True
            yield from self._aged(table, where, unless, rest)

    def _stored(
        self,
        table: Table[Waiting],
        where: Mapping[str, Wanted],
        unless: Mapping[str, tuple[Value, ...]],
        after: str,
        want: int,
    ) -> Told:
        column = COLUMNS[self.sort]
        while True:
            page = self.view.scan(
                table, where=where, unless=unless, order=column, after=after, limit=want
            )
            for row in page.rows:
                value = getattr(row, column) if column else None
                yield row, row_token(table, column, False, value, key_of(row))
            after = page.token
            if not after:
                return

    def _read(self, after: str) -> tuple[tuple[Value, str] | None, str]:
        """The line that a token is after, or the token of those that follow by age."""
        if not after:
            return None, ""
        kind, at, text = (*after.split("~", 2), "", "")[:3]
        if not (at.isascii() and at.isdigit() and len(at) < 17 and kind in ("p", "a")):
            raise BadToken("this page token belongs to another question; start again without one")
        # Following pages go on with the order that the first one had.
        self.ranker.at = int(at)
        return (None, text) if kind == "a" else (read_row_token(WAITING, "score", False, text), "")

    def _place(self, value: float, key: str) -> str:
        return f"p~{self.ranker.at}~{row_token(WAITING, 'score', False, value, key)}"

    def _lanes(
        self, where: Mapping[str, Wanted], unless: Mapping[str, tuple[Value, ...]]
    ) -> dict[str, Lane] | None:
        """Lanes in which something waits that is asked for; None where there are too many."""
        asked = {name: value for name, value in where.items() if name != "queue"}
        found: dict[str, Lane] = {}
        token = ""
        while True:
            page = self.view.scan(LANES, where=asked, unless=unless, after=token)
            for lane in page.rows:
                found[lane.key] = lane
            token = page.token
            if len(found) > LANES_MOST:
                return None
            if not token:
                return found

    def _merged(
        self, lanes: dict[str, Lane], where: Mapping[str, Wanted], beyond: tuple[Value, str] | None
    ) -> Told:
        heap: list[tuple[float, str, int, Waiting, Iterator[Waiting]]] = []
        for number, lane in enumerate(lanes):
            rows = self._in_lane(lane)
            first = next(rows, None)
            if first is not None:
                heap.append((-self.ranker.of_row(first), key_of(first), number, first, rows))
        heapify(heap)
        while heap:
            value, key, number, row, rows = heap[0]
            if beyond is None or (value, key) > beyond:
                yield row, self._place(value, key)
            following = next(rows, None)
            if following is None:
                heappop(heap)
            else:
                value, key = -self.ranker.of_row(following), key_of(following)
                heapreplace(heap, (value, key, number, following, rows))

    def _in_lane(self, lane: str) -> Iterator[Waiting]:
        token, limit = "", 1
        while True:
            page = self.view.scan(WAITING, where={"lane": lane}, after=token, limit=limit)
            yield from page.rows
            token, limit = page.token, AHEAD
            if not token:
                return

    def _sorted(
        self,
        table: Table[Waiting],
        where: Mapping[str, Wanted],
        unless: Mapping[str, tuple[Value, ...]],
        beyond: tuple[Value, str] | None,
    ) -> Generator[tuple[Waiting, str], None, str]:
        """The oldest lines by priority; gives the token of the others."""
        rows: list[Waiting] = []
        token = ""
        while len(rows) < ROWS_MOST:
            page = self.view.scan(table, where=where, unless=unless, after=token)
            rows += page.rows
            token = page.token
            if not token:
                break
        self.bounded = bool(token)
        self.ranker.expect_priorities(rows)
        ordered = sorted((-self.ranker.of_row(row), key_of(row), n) for n, row in enumerate(rows))
        for value, key, number in ordered:
            if beyond is None or (value, key) > beyond:
                yield rows[number], self._place(value, key)
        return token

    def _aged(
        self,
        table: Table[Waiting],
        where: Mapping[str, Wanted],
        unless: Mapping[str, tuple[Value, ...]],
        after: str,
    ) -> Told:
        while True:
            page = self.view.scan(table, where=where, unless=unless, after=after, limit=100)
            for row in page.rows:
                token = row_token(table, "", False, None, key_of(row))
                yield row, f"a~{self.ranker.at}~{token}"
            after = page.token
            if not after:
                return
