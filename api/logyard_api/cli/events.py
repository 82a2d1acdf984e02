"""`logyard events`: everything that happens, as it happens."""

import json
from collections import deque
from collections.abc import Iterable

import click

from logyard_api.cli import output, sentences
from logyard_api.cli.client import Query
from logyard_api.cli.session import Session, asks
from logyard_api.cli.stream import Event, following, past


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Wait for more, until Ctrl-C.")
@click.option("--after", type=click.IntRange(min=0), default=0, help="Begin after this position.")
@click.option("--tail", type=click.IntRange(min=0), help="Begin with the last N that match.")
@click.option("--workflow", help="Events of this workflow only.")
@click.option("--group", help="Events of this group's workflows only.")
@click.option("--node", help="Events of this node only.")
@click.option("--type", "kind", help="Types that begin so, such as `allocation` or `node.lost`.")
@asks
def events(
    session: Session,
    follow: bool,
    after: int,
    tail: int | None,
    workflow: str | None,
    group: str | None,
    node: str | None,
    kind: str | None,
) -> None:
    """Print the events of the log, oldest first: time, position, what it is about, what happened.

    With --json one CloudEvent a line.
    """
    query: Query = {"workflow": workflow, "group": group, "node": node, "type": kind}
    show(session, query, after=after, tail=tail, follow=follow, workflows=workflow is None)


def show(
    session: Session, query: Query, *, after: int, tail: int | None, follow: bool, workflows: bool
) -> None:
    """Print the events that `query` chooses; see `events`."""
    if tail is not None and not any(query.values()):
        # Without conditions every record counts: what lies before the last ones need not be sent.
        position = session.client.ask("GET", "/nodes", {"pageSize": 1}).position
        after = max(after, position - tail)
    query = {**query, "sentences": True}
    found: Iterable[Event] = past(session.client, {**query, "after": after})
    if tail is not None:
        found = deque(found, maxlen=tail)
    for event in found:
        after = int(event["logyardposition"])
        _print(session, event, workflows)
    if follow:
        for event in following(session.client, query, after):
            _print(session, event, workflows)


def _print(session: Session, event: Event, workflows: bool) -> None:
    if session.json:
        click.echo(json.dumps(event, ensure_ascii=False))
    else:
        output.answer(sentences.line(event, workflows))
