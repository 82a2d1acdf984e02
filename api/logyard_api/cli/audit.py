"""`logyard audit`: hold a log against the promises of the scheduler."""

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from logyard_api.cli import output
from logyard_api.cli.bars import bar
from logyard_api.cli.outcomes import USAGE, Trouble
from logyard_api.cli.places import data_folder
from logyard_api.cli.units import count, many

if TYPE_CHECKING:
    from logyard_engine.audit.findings import Report, Verdict

SHOWN = 20
"""Violations of one rule that are printed; --json has more of them."""


@click.command()
@click.argument("log", required=False)
@click.option("--rule", "rules", metavar="I4,...", help="Report these rules only.")
@click.option("--json", "as_json", is_flag=True, help="The whole answer as JSON.")
def audit(log: str | None, rules: str | None, as_json: bool) -> None:
    """Check the rules I1 to I14 over a whole log, by code that shares nothing with the scheduler.

    LOG is a log's file or data folder, postgresql://..., or a file that `logyard log export` wrote;
    without it the log of the data folder. It asks no server, and a server may run meanwhile. Exit
    code 0 when every rule was kept, 1 when one was broken.
    """
    from logyard_domain.codec import Damaged, UnknownEvent, decode
    from logyard_engine.audit.auditor import audit as audited
    from logyard_engine.audit.rules import RULE_IDS
    from logyard_engine.log.log import LogTrouble
    from logyard_engine.log.source import opened

    wanted = _rules(rules, RULE_IDS)
    place = log or os.environ.get("LOGYARD_LOG", "") or data_folder()
    try:
        with closing(opened(place)) as source:
            records = (decode(at, state) for at, state in source.states())
            with bar("audited", source.last - source.first + 1) as progress:
                report = audited(records, wanted, progress)
    except (LogTrouble, UnknownEvent) as trouble:
        raise Trouble(str(trouble), USAGE) from None
    except Damaged as trouble:
        raise Trouble(f"{trouble}; `logyard log verify` finds what was changed in a log") from None
    if as_json:
        output.answer_json(_whole(report))
    else:
        _print(report)
    if not report.clean:
        raise click.exceptions.Exit(1)


def _rules(text: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    if not text:
        return known
    wanted = tuple(one.strip().upper() for one in text.split(","))
    for one in wanted:
        if one not in known:
            raise Trouble(f"--rule: {one!r} is no rule; there are {', '.join(known)}", USAGE)
    return wanted


def _whole(report: "Report") -> dict[str, Any]:
    import msgspec

    told: dict[str, Any] = msgspec.to_builtins(report)
    return {"clean": report.clean, **told}


def _print(report: "Report") -> None:
    found = sum(verdict.found for verdict in report.verdicts)
    where = f"{count(report.records)} records of cluster {report.cluster}"
    if found:
        output.answer(f"{many(found, 'violation')} in {where}")
    else:
        output.answer(f"every rule was kept: {where}")
    if report.alive:
        output.answer(f"{many(report.alive, 'workflow')} had not ended at the end of the log")
    output.answer()
    output.table(
        ("RULE", "NAME", "CHECKED", "BROKEN"),
        [
            (verdict.rule, verdict.name, count(verdict.checked), count(verdict.found) or "0")
            for verdict in report.verdicts
        ],
        right=("CHECKED", "BROKEN"),
    )
    for verdict in report.verdicts:
        if verdict.found:
            _broken(verdict)


def _broken(verdict: "Verdict") -> None:
    output.answer()
    output.answer(f"{verdict.rule} {verdict.name}: {verdict.statement}")
    for one in verdict.violations[:SHOWN]:
        output.answer(f"  position {count(one.position)}  {one.subject}: {one.what}")
    more = verdict.found - min(SHOWN, len(verdict.violations))
    if more:
        output.answer(f"  and {count(more)} more")
