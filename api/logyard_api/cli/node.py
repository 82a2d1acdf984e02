"""`logyard node`: what the cluster runs on."""

from collections.abc import Mapping
from typing import Any

import click

from logyard_api.cli import output
from logyard_api.cli.client import segment
from logyard_api.cli.session import Session, asks
from logyard_api.cli.units import clock, many, memory

Answer = Mapping[str, Any]


@click.group()
def node() -> None:
    """List nodes, close them to new work, empty them, remove them."""


@node.command("list")
@asks
def list_(session: Session) -> None:
    """List the nodes: what they have, what is free, in which state they are and why."""
    found = session.client.pages("/nodes", "nodes", {})
    if session.json:
        output.answer_json({"nodes": found})
        return
    if not found:
        output.say("no nodes; `logyard substrate` makes this machine one")
        return
    output.table(
        ("NODE", "STATE", "CPU FREE", "MEMORY FREE", "DEVICES FREE", "RUNNING", "WHY"),
        [
            (
                one["id"],
                one["state"],
                f"{one['free']['cores']} of {one['capacity']['cores']}",
                f"{_bytes(one['free'])} of {_bytes(one['capacity'])}",
                _devices(one),
                str(one["runningJobs"]),
                one.get("reason", ""),
            )
            for one in found
        ],
        right=("RUNNING",),
    )
    up = sum(one["state"] == "up" for one in found)
    output.answer(f"{many(len(found), 'node')}, {up} up")


@node.command()
@click.argument("name")
@asks
def describe(session: Session, name: str) -> None:
    """Describe a node and what runs on it."""
    told: Answer = session.client.get(f"/nodes/{segment(name)}")
    if session.json:
        output.answer_json(told)
        return
    state = output.tinted(told["state"])
    why = f": {told['reason']}" if told.get("reason") else ""
    output.answer(f"{told['id']} is {state} since {clock(told['since'], 'seconds')}{why}")
    capacity, free = told["capacity"], told["free"]
    output.answer(f"  host         {told['hostName']}")
    output.answer(f"  cpu          {free['cores']} of {capacity['cores']} free")
    output.answer(f"  memory       {_bytes(free)} of {_bytes(capacity)} free")
    if capacity["devices"]:
        output.answer(f"  devices      {_devices(told)}")
    pairs = sorted(told["annotations"].items())
    if pairs:
        output.answer(f"  annotations  {', '.join(f'{key}={value}' for key, value in pairs)}")
    output.answer(f"  features     {', '.join(told['features']) or 'none: it runs no mounts'}")
    output.answer(f"  limits       {told['limits'] or '-'}")
    output.answer(f"  release      {told['version'] or '-'}")
    running = told["runningJobs"]
    if running:
        output.answer()
        output.table(
            ("ALLOCATION", "STATE", "SINCE"),
            [(one["id"], one["state"], clock(one["since"], "seconds")) for one in running],
        )


@node.command()
@click.argument("name")
@click.option("--reason", default="", help="Why, for people.")
@asks
def cordon(session: Session, name: str, reason: str) -> None:
    """Close a node: nothing new is placed there, what runs goes on."""
    told = _act(session, name, "cordon", {"reason": reason} if reason else {})
    session.done(told, f"{name} is cordoned; `logyard node uncordon {name}` opens it again")


@node.command()
@click.argument("name")
@asks
def uncordon(session: Session, name: str) -> None:
    """Open a node again; also ends a drain."""
    session.done(_act(session, name, "uncordon", {}), f"{name} is open for work")


@node.command()
@click.argument("name")
@click.option("--reason", default="", help="Why, for people.")
@click.option("--evict", is_flag=True, help="Requeue what runs there instead of waiting for it.")
@asks
def drain(session: Session, name: str, reason: str, evict: bool) -> None:
    """Close a node and empty it."""
    body: dict[str, Any] = {"reason": reason} if reason else {}
    told = _act(session, name, "drain", {**body, "evict": True} if evict else body)
    how = "what runs there is evicted" if evict else "what runs there goes on to its end"
    session.done(told, f"{name} is draining: {how}")


@node.command()
@click.argument("name")
@asks
def remove(session: Session, name: str) -> None:
    """Forget a node that is lost, or that is empty."""
    path = f"/nodes/{segment(name)}"
    told = session.client.delete(path)
    session.settle(path, told)
    session.done(told, f"{name} is removed")


def _act(session: Session, name: str, verb: str, body: dict[str, Any]) -> Any:
    path = f"/nodes/{segment(name)}"
    told = session.client.post(f"{path}:{verb}", body)
    session.settle(path, told)
    return told


def _bytes(amounts: Answer) -> str:
    return memory(int(amounts["memoryBytes"]))


def _devices(one: Answer) -> str:
    free: Mapping[str, int] = one["free"]["devices"]
    has: Mapping[str, int] = one["capacity"]["devices"]
    return ", ".join(f"{free.get(name, 0)} of {number} {name}" for name, number in has.items())
