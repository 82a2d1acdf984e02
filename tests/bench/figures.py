"""What a benchmark says: a JSON object a line on stdout, a table for people on stderr."""

import statistics
import sys
from collections.abc import Callable, Iterator

import msgspec
from rich.console import Console
from rich.table import Table


class Figure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One measured quantity: the median of its runs, the floor beside it, and the target.

    `target` reads ``>= 0.5`` and is about the ratio where there is a floor, else about the value.
    `met` is absent where there is no target.
    """

    bench: str
    value: float
    unit: str
    floor: float | None = None
    ratio: float | None = None
    target: str | None = None
    met: bool | None = None
    runs: tuple[float, ...] = ()
    note: str = ""


Bench = Callable[[], Iterator[Figure]]


def figure(
    bench: str,
    unit: str,
    runs: list[float],
    *,
    floors: list[float] | None = None,
    target: str | None = None,
    note: str = "",
) -> Figure:
    """Judge runs. With floors (one for each run, measured beside it) the ratio is the median of
    the pairs.
    """
    value = statistics.median(runs)
    floor = statistics.median(floors) if floors else None
    ratio = (
        statistics.median(run / beside for run, beside in zip(runs, floors, strict=True))
        if floors
        else None
    )
    met = _met(target, ratio if ratio is not None else value) if target else None
    return Figure(
        bench,
        _short(value),
        unit,
        _short(floor) if floor is not None else None,
        _short(ratio) if ratio is not None else None,
        target,
        met,
        tuple(_short(run) for run in runs),
        note,
    )


def tell(figures: list[Figure]) -> None:
    """Print the table."""
    table = Table(title="logyard bench", title_justify="left")
    for column in ("bench", "value", "unit", "floor", "ratio", "target", "", "runs", "note"):
        table.add_column(
            column, justify="right" if column in ("value", "floor", "ratio") else "left"
        )
    for one in figures:
        met = "" if one.met is None else ("met" if one.met else "MISSED")
        table.add_row(
            one.bench,
            f"{one.value:,}",
            one.unit,
            "" if one.floor is None else f"{one.floor:,}",
            "" if one.ratio is None else f"{one.ratio}",
            one.target or "",
            met,
            " ".join(f"{run:,}" for run in one.runs[:5]),
            one.note,
        )
    Console(stderr=True, width=200 if not sys.stderr.isatty() else None).print(table)


def _met(target: str, value: float) -> bool:
    sign, _, bound = target.partition(" ")
    return value >= float(bound) if sign == ">=" else value < float(bound)


def _short(value: float) -> float:
    return float(f"{value:.4g}")
