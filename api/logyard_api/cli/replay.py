"""`logyard replay`: a log once more, under another policy."""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from logyard_api.cli import output
from logyard_api.cli.bars import bar
from logyard_api.cli.fresh import LOG, folder_for, settings_of
from logyard_api.cli.outcomes import USAGE, Trouble
from logyard_api.cli.places import data_folder
from logyard_api.cli.units import many, span

if TYPE_CHECKING:
    from logyard_domain.records import Record
    from logyard_engine.log.source import Source
    from logyard_engine.simulation.differences import Differences, Row

FOUND = "differences.json"


@click.command()
@click.argument("log", required=False, metavar="[LOG]")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting; repeat it.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help=f"Folder for the new log ({LOG}) and {FOUND}.",
)
@click.option("--force", is_flag=True, help="Replace what an earlier replay left in DIR.")
@click.option("--json", "as_json", is_flag=True, help="The differences as JSON.")
def replay(
    log: str | None, settings: tuple[str, ...], out: Path | None, force: bool, as_json: bool
) -> None:
    """Replay a log under other settings, and say who would have gained and who lost.

    LOG is a log's file or data folder, postgresql://..., or a file that `logyard log export` wrote;
    without it the log of the data folder.
    Arrivals, run times, stops and what happened to nodes stay as they were; every decision is made
    anew, by the code that a server runs. Without --set the decisions are the same again.
    """
    from logyard_domain.codec import Damaged, decode
    from logyard_domain.commands import Refused
    from logyard_engine.log.log import LogTrouble
    from logyard_engine.log.opening import open_log
    from logyard_engine.log.source import opened
    from logyard_engine.simulation.differences import differences, outcome
    from logyard_engine.simulation.happened import Happened
    from logyard_engine.simulation.replay import Replay

    values, formulas = settings_of(settings)
    place = log or os.environ.get("LOGYARD_LOG") or data_folder()
    try:
        with closing(opened(place)) as old:
            happened = Happened()
            happened.take(_records(old))
            new = open_log(folder_for(out, (FOUND,), force) if out else "memory:", happened.cluster)
            with closing(new):
                with bar("replayed", happened.span_ms, counted=False) as progress:
                    again = Replay(happened, new, values, formulas, progress)
                    again.run()
                found = differences(
                    outcome(_records(old)),
                    outcome(decode(at, state) for at, state in new.read_states()),
                    again.workflows,
                )
    except Refused as refusal:
        raise Trouble(f"the engine does not take this: {refusal}", USAGE) from None
    except LogTrouble as trouble:
        raise Trouble(str(trouble)) from None
    except Damaged as trouble:
        raise Trouble(f"the log does not hold: {trouble}") from None
    whole = {"set": values, **_whole(found)}
    if out:
        (out / FOUND).write_text(json.dumps(whole, indent=2) + "\n")
    if as_json:
        output.answer_json(whole)
    else:
        _shown(found, out)


def _records(log: "Source") -> "Iterator[Record]":
    from logyard_domain.codec import decode
    from logyard_engine.log.source import gapless

    return (decode(at, state) for at, state in gapless(log))


def _whole(found: "Differences") -> dict[str, object]:
    import msgspec

    whole: dict[str, object] = msgspec.to_builtins(found)
    return whole


def _shown(found: "Differences", out: Path | None) -> None:
    total = found.total
    output.answer(
        f"{many(found.changed, 'rank')} of {total.ranks:,} would have waited another time: "
        f"{total.gained:,} less, {total.lost:,} more"
    )
    lines: list[tuple[str, ...]] = [("", "BEFORE", "AFTER")]
    lines.append(("mean wait", _s(total.mean_before_s), _s(total.mean_after_s)))
    lines.append(("p90 wait", _s(total.p90_before_s), _s(total.p90_after_s)))
    lines.append(("utilization", *(f"{share:.1%}" for share in found.utilization)))
    lines.append(("backfilled", *(f"{number:,}" for number in found.backfilled)))
    lines.append(("evictions", *(f"{number:,}" for number in found.evictions)))
    lines.append(("whole span", *(_s(length) for length in found.span_s)))
    output.table(lines[0], lines[1:])
    for title, rows in (("GROUP", found.groups), ("USER", found.users)):
        output.answer()
        output.table(
            (title, "RANKS", "MEAN BEFORE", "MEAN AFTER", "CHANGE", "EVICTED", "GAIN", "LOSE"),
            [_line(row) for row in rows[:20]],
        )
    if out:
        output.answer(f"\nthe new log is {os.fspath(out / LOG)}")


def _line(row: "Row") -> tuple[str, ...]:
    change = row.mean_after_s - row.mean_before_s
    return (
        row.owner,
        f"{row.ranks:,}",
        _s(row.mean_before_s),
        _s(row.mean_after_s),
        f"{'+' if change > 0 else '-' if change < 0 else ''}{_s(abs(change))}",
        f"{row.evicted_before} -> {row.evicted_after}",
        f"{row.gained:,}",
        f"{row.lost:,}",
    )


def _s(seconds: float) -> str:
    return span(int(seconds * 1000))
