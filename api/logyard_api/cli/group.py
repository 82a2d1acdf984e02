"""`logyard group`: priorities of groups, and which groups they may preempt."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from logyard_api.cli import output
from logyard_api.cli.client import segment
from logyard_api.cli.session import Session, asks
from logyard_api.cli.units import hours, many

F = TypeVar("F", bound=Callable[..., Any])


def _of_organization(function: F) -> F:
    return click.option(
        "--organization",
        default="default",
        show_default=True,
        envvar="LOGYARD_ORGANIZATION",
        help="The one that the group belongs to.",
    )(function)


@click.group()
def group() -> None:
    """List groups, set priorities, say who may preempt whom."""


@group.command("list")
@click.option("--by-priority", is_flag=True, help="The highest priority first.")
@_of_organization
@asks
def list_(session: Session, by_priority: bool, organization: str) -> None:
    """List the groups that were set up or named by a workflow, and what they used."""
    query = {
        "organization": organization,
        "orderBy": "priority desc" if by_priority else None,
    }
    found = session.client.pages("/accounts", "accounts", query)
    if session.json:
        output.answer_json({"accounts": found})
        return
    if not found:
        output.say(f"organization {organization} has no groups")
        return
    output.table(
        ("GROUP", "PRIO", "MAY PREEMPT", "WORKFLOWS", "USED"),
        [
            (
                one["id"],
                str(one["priority"]),
                ", ".join(one["preemptIds"]) or "-",
                str(one["workflows"]),
                hours(one["usageCoreHours"]),
            )
            for one in found
        ],
        right=("PRIO", "WORKFLOWS", "USED"),
    )
    output.answer(f"{many(len(found), 'group')}; used is in core-hours, the longer ago the less")


@group.command()
@click.argument("name", metavar="GROUP")
@click.option("--priority", type=int, help="The higher, the sooner; 0 at first.")
@click.option("--preempt", multiple=True, metavar="GROUP", help="It may preempt this group.")
@click.option("--no-preempt", multiple=True, metavar="GROUP", help="It may not any more.")
@_of_organization
@asks
def update(
    session: Session,
    name: str,
    priority: int | None,
    preempt: tuple[str, ...],
    no_preempt: tuple[str, ...],
    organization: str,
) -> None:
    """Change GROUP; one that is not known is set up.

    A group may preempt only the groups that it was allowed to, and only what is preemptible.
    """
    body: dict[str, Any] = {"addPreemptIds": preempt, "removePreemptIds": no_preempt}
    if priority is not None:
        body |= {"priority": priority, "updatePriority": True}
    told = session.client.patch(f"/accounts/{segment(name)}", body, {"organization": organization})
    may = ", ".join(told["preemptIds"]) or "nobody"
    session.done(told, f"group {name} has priority {told['priority']} and may preempt {may}")


@group.command()
@click.argument("name", metavar="GROUP")
@_of_organization
@asks
def delete(session: Session, name: str, organization: str) -> None:
    """Forget GROUP, of which no workflow may be alive; it leaves all preempt lists."""
    path = f"/accounts/{segment(name)}"
    told = session.client.delete(path, {"organization": organization})
    session.settle("/accounts", told)
    session.done(told, f"group {name} is deleted, and gone from all preempt lists")
