"""A picture as columns: the form in which the page holds it.

A column is a list with one entry for each row, or that entry alone where all are equal. Instants
are milliseconds since the beginning of the picture, or since another column, as told beside each;
lists with few entries are pairs of row and value. Words that repeat are numbers into `words`.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from logyard_projections.answers.words import wants
from logyard_projections.picture.picture import Bar, Owner, Picture, Piece

ERROR_CHARS = 240
Column = list[int] | int


class _Words:
    """Numbers for texts, in the order in which they are first met."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def columns_of(picture: Picture) -> dict[str, Any]:
    """The picture, ready to be written as JSON."""
    words = _Words()
    owners: dict[str, int] = {}
    known: list[Owner] = []
    for bar in picture.bars:
        if bar.owner.id not in owners:
            owners[bar.owner.id] = len(known)
            known.append(bar.owner)
    shapes = {shape: index for index, shape in enumerate(picture.shapes)}
    return {
        "cluster": picture.cluster,
        "since": picture.since,
        "until": picture.until,
        "width": picture.width,
        "steps": picture.steps,
        "nodes": {
            "name": [node.name for node in picture.nodes],
            "cores": _column([node.cores for node in picture.nodes]),
            "top": _column([node.top for node in picture.nodes]),
        },
        "spans": [
            [span.node, words(span.state), span.since - picture.since, span.until - picture.since]
            for span in picture.spans
        ],
        "shapes": [wants(request) for request in picture.shapes.values()],
        "owners": _owners(known, picture, words),
        "bars": _bars(picture, owners, shapes, words),
        "loads": [
            {"name": load.name, "share": _shares(load.used, load.offered), "peak": load.peak}
            for load in picture.loads
        ],
        "waits": [
            {"reason": one.reason, "counts": _rounded(one.counts), "total": one.total_ms}
            for one in picture.waits
        ],
        "running": _rounded(picture.running),
        "shade": {
            str(node): [round(cores / max(picture.nodes[node].cores, 1), 3) for cores in steps]
            for node, steps in picture.shade.items()
        },
        "words": list(words.numbers),
    }


def _owners(owners: Sequence[Owner], picture: Picture, words: _Words) -> dict[str, Any]:
    return {
        "id": [one.id for one in owners],
        "name": _column([words(one.name) for one in owners]),
        "organization": _column([words(one.organization) for one in owners]),
        "group": _column([words(one.group) for one in owners]),
        "user": _column([words(one.user) for one in owners]),
        "priority": _column([one.priority for one in owners]),
        "submitted": _column([one.submitted - picture.since for one in owners]),
        "position": _column([one.position for one in owners]),
    }


def _bars(
    picture: Picture, owners: dict[str, int], shapes: dict[int, int], words: _Words
) -> dict[str, Any]:
    bars = picture.bars
    runs = [_runs(bar.pieces) for bar in bars]
    return {
        "count": len(bars),
        "owner": _column([owners[bar.owner.id] for bar in bars]),
        "stage": _column([words(bar.stage) for bar in bars]),
        "staging": _column([int(bar.stage_kind != "job") for bar in bars]),
        "rank": _column([bar.rank if bar.array else -1 for bar in bars]),
        "attempt": _column([bar.attempt for bar in bars]),
        "shape": _column([shapes.get(bar.shape, -1) for bar in bars]),
        "kind": _column([words(bar.kind) for bar in bars]),
        "revision": _column([bar.revision for bar in bars]),
        # Instants: placed since the one before, the others since or until placed.
        "placed": _deltas([bar.placed - picture.since for bar in bars]),
        "queued": _column([bar.placed - bar.queued for bar in bars]),
        "ready": _column([bar.placed - bar.ready for bar in bars]),
        "begin": _column([bar.begin - bar.placed for bar in bars]),
        "started": _column([bar.started - bar.placed if bar.started else -1 for bar in bars]),
        "end": _column([bar.end - bar.placed for bar in bars]),
        # Positions, in the same way; an end of 0 has not come.
        "placedAt": _deltas([bar.placed_position for bar in bars]),
        "queuedAt": _column([bar.placed_position - bar.queued_position for bar in bars]),
        "readyAt": _column([bar.placed_position - bar.ready_position for bar in bars]),
        "beginAt": _column([bar.begin_position - bar.placed_position for bar in bars]),
        "endAt": _column([max(bar.end_position - bar.placed_position, 0) for bar in bars]),
        "outcome": _column([words(bar.outcome) for bar in bars]),
        # Runs of nodes: the first, how many, the first core, cores.
        "runs": _column([len(one) // 4 for one in runs]),
        "seats": [number for one in runs for number in one],
        # Parts of the wait: the reason and its length.
        "parts": _column([len(bar.waits) for bar in bars]),
        "waits": [n for bar in bars for reason, ms in bar.waits for n in (words(reason), ms)],
        "requeued": _few(bars, lambda bar: words(bar.requeued) if bar.requeued else None),
        "exit": _few(bars, lambda bar: bar.exit_code or None),
        "signal": _few(bars, lambda bar: bar.signal),
        "peak": _few(bars, lambda bar: bar.peak_bytes or None),
        "error": _few(bars, lambda bar: _cut(bar.error) if bar.error else None),
        "behind": _few(bars, lambda bar: bar.behind or None),
        "after": _few(bars, lambda bar: list(bar.after) or None),
        "stop": _few(bars, lambda bar: _stop(bar, picture.since, words)),
        "promise": _few(bars, lambda bar: _promise(bar, picture.since)),
    }


def _stop(bar: Bar, since: int, words: _Words) -> list[Any] | None:
    stop = bar.stop
    if stop is None:
        return None
    return [words(stop.reason), stop.at - since, stop.position, stop.by, round(stop.gap, 3)]


def _promise(bar: Bar, since: int) -> list[int] | None:
    one = bar.promise
    if one is None:
        return None
    first = [one.first - since, one.first_position]
    return [*first, one.last - since, one.last_position, one.moves]


def _runs(pieces: Iterable[Piece]) -> list[int]:
    """Pieces with the same cores of nodes that follow each other, as one."""
    found: list[int] = []
    for piece in sorted(pieces, key=lambda one: (one.low, one.cores, one.node)):
        if found[-2:] == [piece.low, piece.cores] and sum(found[-4:-2]) == piece.node:
            found[-3] += 1
        else:
            found += [piece.node, 1, piece.low, piece.cores]
    return found


def _column(values: list[int]) -> Column:
    return values[0] if values and values.count(values[0]) == len(values) else values


def _deltas(values: list[int]) -> Column:
    return values[:1] + [after - before for before, after in pairwise(values)]


def _few(bars: Sequence[Bar], value: Callable[[Bar], Any]) -> list[Any]:
    found = ((row, value(bar)) for row, bar in enumerate(bars))
    return [[row, one] for row, one in found if one is not None]


def _cut(text: str) -> str:
    return text if len(text) <= ERROR_CHARS else f"{text[: ERROR_CHARS - 1]}\u2026"


def _rounded(values: Iterable[float]) -> list[int | float]:
    """To three digits, without the point where nothing is behind it."""
    return [int(one) if one == int(one) else round(one, 3) for one in values]


def _shares(used: Iterable[float], offered: Iterable[float]) -> list[float | int | None]:
    """Parts of what was offered; nothing where nothing was."""
    return [
        None if not there else _rounded((some / there,))[0]
        for some, there in zip(used, offered, strict=True)
    ]
