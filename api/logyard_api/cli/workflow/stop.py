"""`logyard workflow stop`: end workflows before they are done."""

from typing import Any

import click

from logyard_api.cli import output
from logyard_api.cli.session import Session, asks
from logyard_api.cli.workflow import references


@click.command()
@click.argument("workflows", metavar="WORKFLOW...", nargs=-1, required=True)
@click.option("--reason", default="", help="Why, for the log.")
@asks
def stop(session: Session, workflows: tuple[str, ...], reason: str) -> None:
    """Stop workflows: what runs gets SIGTERM, and SIGKILL after the grace time."""
    told: list[Any] = []
    for text in workflows:
        reference = references.parse(text)
        body = {"reason": reason} if reason else {}
        answer = session.client.patch(f"{reference.path}:stop", body)
        session.settle(f"{reference.path}:facts", answer)
        told.append(answer)
        if not session.json:
            output.answer(f"{reference.workflow} is being stopped")
    if session.json:
        output.answer_json({"stopped": list(workflows), "answers": told})
