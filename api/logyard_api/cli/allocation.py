"""`logyard allocation`: what an administrator can do to one."""

import click

from logyard_api.cli.session import Session, asks


@click.group()
def allocation() -> None:
    """Evict allocations by name."""


@allocation.command()
@click.argument("name", metavar="ALLOCATION")
@asks
def preempt(session: Session, name: str) -> None:
    """Evict ALLOCATION, such as wf-3f8mk2qa7c/render/17#1, whether or not it is preemptible.

    It gets SIGTERM, then SIGKILL after the grace time, and is queued again.
    """
    told = session.client.post("/scheduler/allocations:preempt", {"allocationId": name})
    session.settle("/queue/stats", told)
    session.done(told, f"{name} is being evicted; it is queued again with its old place")
