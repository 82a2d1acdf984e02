"""`logyard workflow list`, `describe`, `status`, `events` and `get`."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import click

from logyard_api.cli import events as event_stream
from logyard_api.cli import output
from logyard_api.cli.client import Query
from logyard_api.cli.outcomes import USAGE, Trouble
from logyard_api.cli.session import Session, as_of, asks
from logyard_api.cli.units import clock, count, many, memory, millis, now_ms, span
from logyard_api.cli.workflow import references
from logyard_api.cli.workflow.screen import Screen
from logyard_api.cli.workflow.watching import outcome, watch

_STATUSES = ("pending", "started", "finished", "failed", "canceled")
_SORTS = {
    "newest": "createTime desc",
    "name": "name",
    "status": "status",
    "user": "userId",
    "priority": "priority desc",
}
_WORDS = {"unspecified": "pending", "started": "running"}

Answer = Mapping[str, Any]


@click.command("list")
@click.option("--status", multiple=True, type=click.Choice(_STATUSES), help="Only these.")
@click.option("--user", help="Only this user's.")
@click.option("--name", help="Only those with this name.")
@click.option(
    "--sort",
    type=click.Choice([*_SORTS]),
    default="newest",
    help="Newest first, or by name, status, user or priority.",
)
@click.option("--limit", type=click.IntRange(min=1), default=25, help="At most so many; 25.")
@click.option("--all", "everything", is_flag=True, help="All of them.")
@as_of
@asks
def list_(
    session: Session,
    status: tuple[str, ...],
    user: str | None,
    name: str | None,
    sort: str,
    limit: int,
    everything: bool,
) -> None:
    """List workflows, newest first. PRIO is the priority of the workflow itself."""
    conditions = {"user": user, "name": name}
    query: Query = {
        "orderBy": _SORTS[sort],
        "requestedStatuses": [one.upper() for one in status],
        "filter": " AND ".join(f'{key}="{value}"' for key, value in conditions.items() if value),
    }
    found = session.client.pages("/workflows", "workflows", query, 0 if everything else limit)
    if session.json:
        output.answer_json({"workflows": found})
        return
    if not found:
        output.say("no workflows" if not any((status, user, name)) else "no such workflows")
        return
    output.table(
        ("WORKFLOW", "NAME", "STATUS", "PRIO", "USER", "CREATED", "TOOK", "ERROR"),
        [
            (
                one["id"],
                one["name"],
                word(one["status"]),
                str(one.get("priority", 0)),
                one["userId"],
                clock(one["createTime"], "seconds"),
                _took(one),
                _short(one.get("error", "")),
            )
            for one in found
        ],
        right=("PRIO",),
    )


@click.command()
@click.argument("workflow", metavar="WORKFLOW[/STAGE]")
@click.argument("stage", required=False)
@click.option("--rank", type=click.IntRange(min=0), help="Only this rank of the stage.")
@as_of
@asks
def describe(session: Session, workflow: str, stage: str | None, rank: int | None) -> None:
    """Describe a workflow and its stages; or one stage, its ranks and its place in the queue."""
    reference = references.parse(workflow, stage, rank)
    if reference.stage:
        query: Query = {
            "stageName": reference.stage,
            "rank": reference.rank if reference.rank >= 0 else None,
        }
        told: Answer = session.client.get(f"{reference.path}:stage", query)
    else:
        told = session.client.get(reference.path)
    if session.json:
        output.answer_json(told)
    elif reference.stage:
        _describe_stage(told)
    else:
        _describe(told)


@click.command()
@click.argument("workflow")
@click.option("--watch", "watched", is_flag=True, help="Show progress until it is over.")
@as_of
@asks
def status(session: Session, workflow: str, watched: bool) -> None:
    """Say where WORKFLOW stands.

    With --watch the exit code tells how it ended: 0 finished, 1 failed or canceled.
    """
    reference = references.parse(workflow)
    told = session.client.get(f"{reference.path}:status")
    if watched:
        progress = watch(session, reference.workflow, screen=Screen())
        code = outcome(session, progress)
        if session.json:
            output.answer_json(session.client.get(f"{reference.path}:status"))
        raise click.exceptions.Exit(code)
    if session.json:
        output.answer_json(told)
    else:
        output.answer(_headline(reference.workflow, told, told["status"]["stages"]))


@click.command()
@click.argument("workflow")
@click.option("--follow", "-f", is_flag=True, help="Wait for more, until Ctrl-C.")
@click.option("--tail", type=click.IntRange(min=0), help="Only the last N.")
@asks
def events(session: Session, workflow: str, follow: bool, tail: int | None) -> None:
    """Print what happened in WORKFLOW; with --json one CloudEvent a line."""
    reference = references.parse(workflow)
    # An unknown workflow has no events; asking for it first says that there is none.
    session.client.get(f"{reference.path}:status")
    event_stream.show(
        session,
        {"workflow": reference.workflow},
        after=0,
        tail=tail,
        follow=follow,
        workflows=False,
    )


@click.command()
@click.argument("workflow")
@asks
def get(session: Session, workflow: str) -> None:
    """Print the file that WORKFLOW was started from; with --json its definition."""
    told = session.client.get(references.parse(workflow).path)
    definition = json.loads(base64.b64decode(told["specification"]))
    if session.json:
        output.answer_json(definition)
    elif told.get("rawSpecification"):
        text = str(told["rawSpecification"])
        click.echo(text, nl=not text.endswith("\n"))
    else:
        output.answer(json.dumps(definition, indent=2, ensure_ascii=False))


def word(status: str) -> str:
    """A status of the wire in one small word: `pending`, `running`, `finished`, ..."""
    plain = status.rpartition("_")[2].lower()
    return _WORDS.get(plain, plain)


def _headline(workflow: str, told: Answer, stages: list[dict[str, Any]]) -> str:
    state = word(told.get("workflowStatus") or told.get("status", ""))
    done = sum(word(stage["status"]) == "finished" for stage in stages)
    text = f"{told['name']}: {workflow} {output.tinted(state)}"
    if took := _took(told):
        text += f" {'after' if told.get('endTime') else 'for'} {took}"
    if state in {"pending", "running"}:
        text += f", {done} of {many(len(stages), 'stage')} done"
        moving = [_ranks(stage) for stage in stages if word(stage["status"]) == "running"]
        text += f": {', '.join(moving)}" if moving else ""
    elif told.get("error"):
        text += f": {told['error']}"
    return text


def _ranks(stage: Answer) -> str:
    ranks = stage["details"]["ranks"]
    name = str(stage["name"])
    return f"{name} {ranks['finished']}/{ranks['total']}" if ranks["total"] > 1 else name


def _describe(told: Answer) -> None:
    stages: list[dict[str, Any]] = told["jobs"]
    output.answer(_headline(told["id"], told, stages))
    output.answer(f"  user      {told['userId']} (group {told['accountId']})")
    output.answer(f"  priority  {told.get('priority', 0)}")
    output.answer(f"  created   {clock(told['createTime'])}")
    output.answer(f"  started   {clock(told.get('startTime'))}")
    output.answer(f"  ended     {clock(told.get('endTime'))}")
    output.answer()
    output.table(
        ("STAGE", "KIND", "STATUS", "RANKS", "WANTS", "STARTED", "TOOK", "ERROR"),
        [
            (
                stage["name"],
                stage["details"]["kind"],
                stage["details"]["state"],
                _counts(stage["details"]["ranks"]),
                stage["details"]["wants"],
                clock(stage.get("startTime"), "seconds"),
                _took(stage),
                _short(stage.get("error", "")),
            )
            for stage in stages
        ],
    )


def _describe_stage(told: Answer) -> None:
    found: list[dict[str, Any]] = told["stages"]
    if not found:
        raise Trouble("there is no such stage", USAGE)
    stage, attempts = found[0], found[1:]
    details = stage["details"]
    state = output.tinted(details["state"])
    text = f"{stage['id']} {state}" + (f": {stage['error']}" if stage.get("error") else "")
    output.answer(text)
    output.answer(f"  kind      {details['kind']}: {details['title']}")
    if details["wants"]:
        output.answer(f"  wants     {details['wants']}")
    if details["needs"]:
        output.answer(f"  needs     {', '.join(details['needs'])}")
    if details["ranks"]["total"] > 1:
        output.answer(f"  ranks     {_counts(details['ranks'])}")
    if details.get("limitMs"):
        output.answer(f"  limit     {span(details['limitMs'])} a run")
    if priority := told.get("priority"):
        output.answer(f"  priority  {_priority(priority)}")
    if attempts:
        output.answer()
        output.table(
            ("ALLOCATION", "STATE", "NODE", "STARTED", "RAN", "EXIT", "PEAK", "ERROR"),
            [_attempt(one) for one in attempts],
            right=("EXIT",),
        )


def _priority(told: Answer) -> str:
    """The value, and the terms that sum to it."""
    terms = [
        f"{one['name']} {'?' if one['value'] is None else format(one['value'], '.3g')}"
        for one in told["terms"]
    ]
    value = f"{told['effectivePriority']:.3g}" if told["computed"] else "lowest"
    revision = told["policyRevision"]
    policy = f"policy r{revision}" if revision else "the default policy"
    return f"{value} = {' + '.join(terms)}; {policy}"


def _attempt(one: Answer) -> tuple[str, ...]:
    details = one["details"]
    if details.get("signal") is not None:
        code = f"signal {details['signal']}"
    else:
        code = "" if details.get("exitCode") is None else str(details["exitCode"])
    return (
        one["id"],
        details["state"],
        details.get("nodeId", ""),
        clock(one.get("startTime"), "seconds"),
        span(details["runMs"]) if one.get("endTime") else _took(one),
        code,
        memory(details["peakBytes"]) if details.get("peakBytes") else "",
        _short(one.get("error", "")),
    )


def _counts(ranks: Mapping[str, int]) -> str:
    if ranks["total"] == 1:
        return ""
    parts = [
        f"{count(number)} {name}" for name, number in ranks.items() if number and name != "total"
    ]
    return f"{count(ranks['total'])}: {', '.join(parts)}"


def _took(told: Answer) -> str:
    began = millis(told.get("startTime"))
    if not began:
        return ""
    return span((millis(told.get("endTime")) or now_ms()) - began)


def _short(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= 60 else f"{line[:57]}..."
