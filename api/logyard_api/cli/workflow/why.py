"""`logyard workflow why`: why something waits, runs or ended, and what that rests on."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from logyard_api.cli import output
from logyard_api.cli.client import segment
from logyard_api.cli.outcomes import FAILED
from logyard_api.cli.sentences import local
from logyard_api.cli.session import Session, as_of, asks
from logyard_api.cli.units import clock, count, span
from logyard_api.cli.workflow import references
from logyard_api.cli.workflow.verified import advice_lines, proof_lines

WIDTH_MAX = 100
"""Columns beyond which the positions no longer stand below each other."""


@click.command()
@click.argument("workflow", metavar="WORKFLOW[/STAGE[/RANK[#ATTEMPT]]]")
@click.argument("stage", required=False)
@click.option("--rank", type=click.IntRange(min=0), help="Rank of a task array.")
@click.option("--history", is_flag=True, help="Tell the reasons one after the other.")
@click.option(
    "--advice", is_flag=True, help="Tell what to change so that it starts now, or sooner."
)
@click.option("--proof", is_flag=True, help="Make the decision once more, and cite the records.")
@as_of
@asks
def why(
    session: Session,
    workflow: str,
    stage: str | None,
    rank: int | None,
    history: bool,
    advice: bool,
    proof: bool,
) -> None:
    """Say why something waits, runs or ended.

    The numbers in brackets are the positions of the records that a line rests on; `logyard log show
    --after` shows them. With --proof the exit code is 1 where a decision does not come out again.
    """
    reference = references.parse(workflow, stage, rank)
    path = f"{reference.path}/allocations/{segment(reference.text)}"
    told: Mapping[str, Any] = session.client.get(f"{path}/explain")
    helps = session.client.get(f"{path}/advice") if advice else None
    proven = session.client.get(f"{path}/proof") if proof else None
    failed = proven is not None and proven.get("equal") is False
    if session.json:
        more = {"advice": helps, "proof": proven}
        output.answer_json({**told, **{key: value for key, value in more.items() if value}})
    else:
        _tell(told, history)
        for line in [*advice_lines(helps), *proof_lines(proven)]:
            output.answer(line)
    if failed:
        raise click.exceptions.Exit(FAILED)


def _tell(told: Mapping[str, Any], history: bool) -> None:
    output.answer(local(told["summary"]))
    output.answer()
    for line in explained(told["lines"]):
        output.answer(line)
    if history:
        output.answer()
        output.table(
            ("SINCE", "FOR", "WAITED FOR", "POSITION"),
            [_stretch(one) for one in told["history"]],
            right=("FOR", "POSITION"),
        )
    output.answer(f"as of position {count(told['position'])}")


def _stretch(one: Mapping[str, Any]) -> tuple[str, str, str, str]:
    reason = f"{one['reason']} (of the time until {clock(one['until'], 'seconds')})"
    return (
        clock(one["since"], "seconds"),
        span(one["ms"]),
        reason if one["together"] else one["reason"],
        count(one["position"]),
    )


def explained(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Label, text, and the positions that it rests on, below each other."""
    labels = max((len(line["label"]) for line in lines), default=0)
    texts = [f"  {line['label']:<{labels}}  {local(line['text'])}" for line in lines]
    edge = min(WIDTH_MAX, max(map(len, texts), default=0))
    return [
        f"{text:<{edge}}  [{' '.join(map(count, line['positions']))}]"
        if line["positions"]
        else text
        for text, line in zip(texts, lines, strict=True)
    ]
