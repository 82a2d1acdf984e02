"""`logyard organization`: who the cluster is shared between, and how much each counts."""

import click

from logyard_api.cli import output
from logyard_api.cli.client import segment
from logyard_api.cli.session import Session, asks
from logyard_api.cli.units import clock, many

PATH = "/admin/organizations"


@click.group()
def organization() -> None:
    """List organizations and set their priorities."""


@organization.command("list")
@click.option("--by-priority", is_flag=True, help="The highest priority first.")
@asks
def list_(session: Session, by_priority: bool) -> None:
    """List the organizations that were set up or named by a workflow."""
    query = {"orderBy": "priority desc" if by_priority else None}
    found = session.client.pages(PATH, "organizations", query)
    if session.json:
        output.answer_json({"organizations": found})
        return
    output.table(
        ("ORGANIZATION", "PRIO", "WORKFLOWS", "KNOWN SINCE"),
        [
            (
                one["id"],
                str(one["priority"]),
                str(one["workflows"]),
                clock(one["createTime"], "seconds"),
            )
            for one in found
        ],
        right=("PRIO", "WORKFLOWS"),
    )
    output.answer(many(len(found), "organization"))


@organization.command()
@click.argument("name", metavar="ORGANIZATION")
@click.option("--priority", type=int, required=True, help="The higher, the sooner; 0 at first.")
@asks
def update(session: Session, name: str, priority: int) -> None:
    """Set the priority of ORGANIZATION; one that is not known is set up."""
    told = session.client.patch(f"{PATH}/{segment(name)}/priority", {"priority": priority})
    session.done(told, f"organization {name} has priority {told['priority']}")
