"""`logyard serve`: the server."""

import os
from pathlib import Path
from typing import Any

import click

from logyard_api.cli.outcomes import USAGE, Trouble


@click.command()
@click.option("--data", type=click.Path(file_okay=False), help="Folder of log, results, output.")
@click.option("--host", help="Address to listen on; 127.0.0.1 by default.")
@click.option("--port", type=int, help="TCP port, 8400 by default; 0 takes a free one.")
@click.option("--cluster", help="Name of the cluster; `main` by default.")
@click.option("--log", metavar="URL", help="The log: memory, postgresql://...; SQLite by default.")
@click.option("--projections", metavar="URL", help="Where views are kept; said like --log.")
@click.option("--nodes", type=int, help="Nodes inside this process; 1 by default, 0 for none.")
@click.option("--node-cores", type=int, help="Cores of each; the machine's by default.")
@click.option("--node-memory", metavar="SIZE", help="Memory of each, such as 8GiB.")
@click.option("--node-devices", metavar="NAME=N,...", help="Devices of each.")
@click.option("--node-annotations", metavar="KEY=VALUE,...", help="Annotations of each.")
@click.option("--token", help="The bearer token; others can see it here, so prefer a file.")
@click.option("--token-file", type=click.Path(dir_okay=False), help="File with the bearer token.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]))
@click.option("--log-format", type=click.Choice(["human", "json"]))
@click.option(
    "--set",
    "--decisions",
    "decisions",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set configuration, such as node.lostAfter=30000.",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file with the same settings; `logyard.toml` here by default.",
)
def serve(config: Path | None, decisions: tuple[str, ...], **flags: Any) -> None:
    """Run a server until SIGTERM or Ctrl-C.

    Every setting may also stand in the file or in the environment, as LOGYARD_NODE_CORES does.
    It prints one line, `listening on URL`, when it is ready.
    """
    from logyard_api.settings import Unusable, load

    given = {name.replace("_", "-"): value for name, value in flags.items() if value is not None}
    if decisions:
        given["decisions"] = ",".join(decisions)
    try:
        settings = load(given, os.environ, config)
    except Unusable as trouble:
        raise Trouble(str(trouble), USAGE) from None
    from logyard_api.server import serve as run_server

    raise click.exceptions.Exit(run_server(settings))
