"""`logyard workflow start`: hand in a workflow file, and watch it if wanted."""

import uuid
from collections.abc import Mapping
from typing import Any

import click

from logyard_api.cli import output
from logyard_api.cli.acting import acting, headers
from logyard_api.cli.client import segment
from logyard_api.cli.outcomes import Answered, Trouble
from logyard_api.cli.session import Session, asks
from logyard_api.cli.units import count, many
from logyard_api.cli.workflow import files
from logyard_api.cli.workflow.language import problems
from logyard_api.cli.workflow.progress import Progress
from logyard_api.cli.workflow.screen import Screen
from logyard_api.cli.workflow.watching import outcome, watch


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--name", help="Name of the workflow; that of the file where nothing is said.")
@click.option("--priority", type=click.IntRange(max=0), default=0, help="0 or less; 0 is first.")
@click.option("--preemptible", is_flag=True, help="It may be stopped for work of higher priority.")
@click.option("--key", help="Idempotency key: the same key starts one workflow, however often.")
@click.option("--watch", "watched", is_flag=True, help="Show progress until it is over.")
@click.option("--wait", is_flag=True, help="Wait until it is over, without showing progress.")
@click.option("--exit-code-of", metavar="STAGE", help="Exit with the code of this job; waits.")
@acting
@asks
def start(
    session: Session,
    file: str,
    name: str | None,
    priority: int,
    preemptible: bool,
    key: str | None,
    watched: bool,
    wait: bool,
    exit_code_of: str | None,
    user: str | None,
    group: str | None,
    organization: str | None,
) -> None:
    """Start the workflow in FILE (`-`: stdin).

    With --watch, --wait or --exit-code-of the exit code tells how it ended: 0 finished, 1 failed or
    canceled, 130 after Ctrl-C.
    """
    text, shown = files.read(file)
    body = {
        "name": name or files.stem(file),
        "rawSpecification": text,
        "priority": priority,
        "preemptible": preemptible,
    }
    told = submit(session, body, key, shown, headers(user, group, organization))
    waits = watched or wait or exit_code_of is not None
    if not waits and session.json:
        output.answer_json(told)
    if not session.json:
        _announce(told, str(body["name"]), waits)
    if waits:
        finish(session, told, watched, exit_code_of)


def submit(
    session: Session, body: dict[str, Any], key: str | None, shown: str, acts: Mapping[str, str]
) -> dict[str, Any]:
    """Send a start request that acts as the headers `acts` say; what the server answered.

    Raises Trouble with every problem in it.
    """
    try:
        told: dict[str, Any] = session.client.post(
            "/workflows", body, {"Idempotency-Key": key or str(uuid.uuid4()), **acts}
        )
    except Answered as trouble:
        found = len([one for one in trouble.details if "line" in one])
        verdict = (
            f"{many(found, 'problem')}; nothing was started" if found else "nothing was started"
        )
        raise Trouble(f"{problems(trouble, shown)}\n{verdict}") from None
    for warning in told.get("warnings", []):
        output.say(f"{warning} (warning)")
    session.settle(f"/workflows/{segment(str(told['id']))}:facts", told)
    return told


def finish(session: Session, told: dict[str, Any], watched: bool, exit_code_of: str | None) -> None:
    """Wait for a workflow that was started, say how it ended, and exit accordingly."""
    screen = Screen() if watched else None
    progress = watch(session, str(told["id"]), screen=screen)
    code = outcome(session, progress)
    if exit_code_of is not None:
        if exit_code_of not in progress.stages:
            there = ", ".join(progress.stages)
            raise Trouble(f"it has no stage {exit_code_of!r}; there are {there}")
        code = progress.code_of(exit_code_of)
    if session.json:
        output.answer_json({**told, **ending(progress), "exitCode": code})
    raise click.exceptions.Exit(code)


def ending(progress: Progress) -> dict[str, Any]:
    """How a workflow ended, for programs."""
    return {
        "status": progress.status,
        "error": progress.error,
        "failedStage": progress.failed_stage,
        "lastPosition": progress.position,
        "stages": [
            {
                "name": stage.name,
                "kind": stage.kind,
                "state": stage.state,
                "ranks": stage.total,
                "finished": stage.done,
                "failed": stage.failed,
                "error": stage.error,
            }
            for stage in progress.stages.values()
        ],
    }


def _announce(told: dict[str, Any], name: str, waits: bool) -> None:
    how = "started" if told.get("created", True) else "was started before, with the same key,"
    text = f"{name}: {told['id']} {how} at position {count(int(told.get('position', 0)))}"
    if waits:
        output.say(text)
        return
    output.answer(text)
    output.say(f"watch it with `logyard workflow status --watch {told['id']}`")
