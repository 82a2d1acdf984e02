"""`logyard workflow log`: the output of a job."""

import sys

import click

from logyard_api.cli.client import Query
from logyard_api.cli.outcomes import USAGE, Trouble
from logyard_api.cli.session import Session, asks
from logyard_api.cli.workflow import references


@click.command()
@click.argument("workflow", metavar="WORKFLOW[/STAGE[/RANK[#ATTEMPT]]]")
@click.argument("stage", required=False)
@click.option("--rank", type=click.IntRange(min=0), help="Rank of a task array.")
@click.option("--stream", type=click.Choice(["out", "err"]), help="Only stdout or only stderr.")
@click.option("--tail", type=click.IntRange(min=0), help="Only the last N lines.")
@click.option("--follow", "-f", is_flag=True, help="Wait for more until the job ends.")
@asks
def log(
    session: Session,
    workflow: str,
    stage: str | None,
    rank: int | None,
    stream: str | None,
    tail: int | None,
    follow: bool,
) -> None:
    """Print what a job wrote, byte for byte.

    The stage may be left out where the workflow has one job. With --json each piece of output is an
    object with its bytes in base64.
    """
    reference = references.parse(workflow, stage, rank)
    if not reference.stage:
        reference = reference._replace(stage=_only_job(session, reference))
    query: Query = {
        "name": reference.stage,
        "rank": reference.rank if reference.rank >= 0 else None,
        "attempt": reference.attempt or None,
        "show.tail": tail,
        "show.follow": follow or None,
        "stream": stream,
    }
    path = f"{reference.path}:log"
    if session.json:
        for line in session.client.lines(path, query):
            click.echo(line)
        return
    for piece in session.client.chunks(path, {**query, "raw": True}):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def _only_job(session: Session, reference: references.Reference) -> str:
    told = session.client.get(reference.path)
    jobs = sorted({one["name"] for one in told["jobs"] if one["kind"] == "STAGE_KIND_JOB"})
    if len(jobs) != 1:
        raise Trouble(f"which job? {reference.workflow} has {', '.join(jobs) or 'none'}", USAGE)
    return str(jobs[0])
