"""`logyard substrate`: this machine as a node of a server."""

import socket
from pathlib import Path
from typing import TYPE_CHECKING

import click

from logyard_api.cli import output, places
from logyard_api.cli.outcomes import USAGE, Trouble
from logyard_api.release import VERSION

if TYPE_CHECKING:
    from logyard_api.logging_setup import Level


@click.command()
@click.option("--server", metavar="URL", help="Server to work for (also LOGYARD_SERVER).")
@click.option("--name", help="Name of the node; the host's by default.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Its own folder.")
@click.option("--cores", type=click.IntRange(min=1), help="Cores to offer; all by default.")
@click.option("--memory", metavar="SIZE", help="Memory to offer, such as 8GiB; all by default.")
@click.option("--device", metavar="NAME=N", multiple=True, help="Devices, nvidia.com/gpu=1.")
@click.option("--annotation", metavar="KEY=VALUE", multiple=True, help="What jobs may ask for.")
@click.option(
    "--volumes",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of ephemeral volumes; nodes that are given the same one share them.",
)
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]))
@click.pass_context
def substrate(
    ctx: click.Context,
    server: str | None,
    name: str | None,
    folder: Path | None,
    cores: int | None,
    memory: str | None,
    device: tuple[str, ...],
    annotation: tuple[str, ...],
    volumes: Path | None,
    log_level: "Level | None",
) -> None:
    """Be a node until a signal: register, run what is placed here, report what became of it.

    SIGTERM leaves the jobs running for the next agent on the same folder. Ctrl-C starts nothing
    more and waits for them; a second Ctrl-C ends them.
    """
    place = places.find(server or ctx.find_root().obj)
    called = name or socket.gethostname()
    devices = {key: _number(key, value) for key, value in _pairs("--device", device).items()}
    size = _size(memory) if memory else None

    from logyard_api.logging_setup import set_up
    from logyard_engine.substrate.keeping import KeeperError
    from logyard_engine.substrate.node import NodeError, run_substrate

    set_up(log_level or "info", "human")
    try:
        code = run_substrate(
            place.url,
            folder or places.data_folder() / "nodes" / called,
            name=called,
            token=place.token,
            cores=cores,
            memory=size,
            devices=devices or None,
            annotations=_pairs("--annotation", annotation) or None,
            volumes=volumes,
            version=VERSION,
            on_ready=lambda node: output.answer(f"node {node} works for {place.url}"),
        )
    except (NodeError, KeeperError, ValueError) as trouble:
        raise Trouble(f"the node cannot start: {trouble}") from None
    raise click.exceptions.Exit(code)


def _pairs(option: str, given: tuple[str, ...]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise Trouble(f"{option}: {text!r} is no NAME=VALUE", USAGE)
        pairs[key] = value
    return pairs


def _number(name: str, text: str) -> int:
    if not text.isdigit():
        raise Trouble(f"--device: {name}={text}: write a whole number, such as {name}=1", USAGE)
    return int(text)


def _size(text: str) -> int:
    from logyard_domain.quantities import parse_size

    try:
        return parse_size(text)
    except ValueError as trouble:
        raise Trouble(f"--memory: {trouble}", USAGE) from None
