"""`logyard user`: who starts work, and how much each counts."""

import click

from logyard_api.cli import output
from logyard_api.cli.client import segment
from logyard_api.cli.session import Session, asks
from logyard_api.cli.units import clock, hours, many


@click.group()
def user() -> None:
    """List users and set their priorities."""


@user.command("list")
@click.option("--by-priority", is_flag=True, help="The highest priority first.")
@asks
def list_(session: Session, by_priority: bool) -> None:
    """List the users that were set up or started a workflow, and what they used."""
    query = {"orderBy": "priority desc" if by_priority else None}
    found = session.client.pages("/organization/members", "users", query)
    if session.json:
        output.answer_json({"users": found})
        return
    if not found:
        output.say("no users yet; whoever starts a workflow is one")
        return
    output.table(
        ("USER", "PRIO", "WORKFLOWS", "USED", "LAST ACTIVE"),
        [
            (
                one["id"],
                str(one["priority"]),
                str(one["workflows"]),
                hours(one["usageCoreHours"]),
                clock(one["lastActiveTime"], "seconds"),
            )
            for one in found
        ],
        right=("PRIO", "WORKFLOWS", "USED"),
    )
    output.answer(f"{many(len(found), 'user')}; used is in core-hours, the longer ago the less")


@user.command()
@click.argument("name", metavar="USER")
@click.option("--priority", type=int, required=True, help="The higher, the sooner; 0 at first.")
@asks
def update(session: Session, name: str, priority: int) -> None:
    """Set the priority of USER; one that is not known is set up."""
    told = session.client.put(
        f"/organization/users/{segment(name)}/priority", {"priority": priority}
    )
    session.done(told, f"user {name} has priority {told['priority']}")
