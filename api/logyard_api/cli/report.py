"""`logyard report`: a log as one page to look at."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from logyard_api.cli import output
from logyard_api.cli.bars import bar
from logyard_api.cli.outcomes import USAGE, Trouble
from logyard_api.cli.places import data_folder
from logyard_api.cli.units import count, many, memory, span

if TYPE_CHECKING:
    from logyard_engine.log.source import Source
    from logyard_projections.picture import Picture


@click.command()
@click.argument("log", required=False)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The page to write.",
)
@click.option(
    "--from",
    "since",
    metavar="T",
    help="Begin then: a position, a time, or 2h for the last two hours.",
)
@click.option("--to", "until", metavar="T", help="End then, in the same ways.")
@click.option(
    "--bars",
    type=click.IntRange(min=100),
    default=100_000,
    show_default=True,
    help="Draw so many allocations one by one at most, the longest.",
)
@click.option("--json", "as_json", is_flag=True, help="What the page says in numbers, as JSON.")
def report(
    log: str | None, out: Path, since: str | None, until: str | None, bars: int, as_json: bool
) -> None:
    """Draw a log: who ran where and when, what waited meanwhile and for what.

    LOG is a data folder, a log file, a file that `logyard log export` wrote, or postgresql://...;
    without it, it is the log of the data folder here. No server is asked. The page is one file
    that needs nothing else.
    """
    from logyard_api.report.page import page_of
    from logyard_domain.codec import Damaged
    from logyard_engine.log.log import LogTrouble
    from logyard_engine.log.source import opened

    place = log or os.environ.get("LOGYARD_LOG") or data_folder()
    try:
        with closing(opened(place)) as source:
            picture = _painted(source, since, until, bars)
    except LogTrouble as trouble:
        raise Trouble(str(trouble)) from None
    except Damaged as trouble:
        raise Trouble(f"the log does not hold: {trouble}") from None
    page = page_of(picture).encode()
    with click.open_file(str(out), "wb", atomic=True) as file:
        file.write(page)
    if as_json:
        output.answer_json(_numbers(picture, out, len(page)))
        return
    drawn = len(picture.bars)
    output.answer(
        f"{out}: {many(drawn + picture.shaded, 'allocation')} on {many(len(picture.nodes), 'node')}"
        f" in {span(picture.until - picture.since)}, positions {count(picture.first)} to"
        f" {count(picture.position)} of cluster {picture.cluster} ({memory(len(page))})"
    )
    if picture.shaded:
        output.say(
            f"the {count(drawn)} that ran longest are drawn one by one; for more of them: --bars"
        )
    if picture.unknown:
        output.say(f"{many(picture.unknown, 'record')} of a newer release could not be read")


def _painted(source: "Source", since: str | None, until: str | None, bars: int) -> "Picture":
    from logyard_engine.log.source import dated, gapless, instant
    from logyard_projections.feed import read
    from logyard_projections.picture import Painter

    first, last = instant(source, source.first), instant(source, source.last)
    start = _instant("--from", since, source, last) if since else first
    end = _instant("--to", until, source, last) if until else last
    start, end = max(start, first), min(end, last)
    if start >= end and (since or until):
        raise Trouble(
            f"nothing lies between --from and --to: the log goes from {_iso(first)} to"
            f" {_iso(last)}",
            USAGE,
        )
    painter = Painter(start, end, bars)
    with bar("read", source.last - source.first + 1) as progress:
        for position, state in _counted(gapless(source), progress):
            if until and dated(position, state) > end:
                break
            painter.take(read(position, state))
    return painter.picture()


def _instant(option: str, text: str, source: "Source", last: int) -> int:
    """The instant (ms) that a text names: a position, ISO 8601, or how long before the end."""
    from logyard_api.asof import instant_of
    from logyard_engine.log.source import instant

    if text.isdigit():
        position = int(text)
        if not source.first <= position <= source.last:
            raise Trouble(
                f"{option} {text}: the log has positions {source.first} to {source.last}", USAGE
            )
        return instant(source, position)
    try:
        return instant_of(text, last)
    except ValueError as trouble:
        raise Trouble(f"{option} {trouble}", USAGE) from None


def _iso(at: int) -> str:
    return datetime.fromtimestamp(at / 1000).astimezone().isoformat(timespec="seconds")


def _counted(
    states: Iterable[tuple[int, bytes]], progress: Callable[[int], None] | None
) -> Iterator[tuple[int, bytes]]:
    for number, pair in enumerate(states, 1):
        if progress is not None and number % 2_000 == 0:
            progress(number)
        yield pair


def _numbers(picture: "Picture", out: Path, size: int) -> dict[str, Any]:
    """What the page says, without its bars."""
    from logyard_projections.instants import rfc3339

    return {
        "out": str(out),
        "bytes": size,
        "cluster": picture.cluster,
        "from": rfc3339(picture.since),
        "to": rfc3339(picture.until),
        "firstPosition": picture.first,
        "position": picture.position,
        "unknownRecords": picture.unknown,
        "policies": [
            {"revision": one.revision, "since": rfc3339(one.at), "position": one.position}
            for one in picture.revisions
        ],
        "nodes": len(picture.nodes),
        "allocations": len(picture.bars) + picture.shaded,
        "drawn": len(picture.bars),
        "shaded": picture.shaded,
        "waiting": picture.waiting,
        "mostRunning": picture.running_peak,
        "utilization": {
            load.name: round(sum(load.used) / sum(load.offered), 6) if sum(load.offered) else None
            for load in picture.loads
        },
        "waits": {one.reason: {"ms": one.total_ms, "most": one.peak} for one in picture.waits},
        "groups": [
            {
                "organization": organization,
                "group": group,
                "allocations": one.allocations,
                "backfilled": one.backfilled,
                "preempting": one.preempting,
                "preempted": one.preempted,
                "endedBadly": one.bad,
                "coreHours": round(one.core_ms / 3_600_000, 6),
                "waitedMs": one.waited_ms,
            }
            for (organization, group), one in sorted(picture.groups.items())
        ],
    }
