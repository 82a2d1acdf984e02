"""`logyard context`: remember servers by name."""

from pathlib import Path

import click

from logyard_api.cli import contexts, output, places
from logyard_api.cli.contexts import Context, Contexts
from logyard_api.cli.outcomes import USAGE, Trouble


@click.group()
def context() -> None:
    """Remember servers by name.

    The context in use is asked unless --server or LOGYARD_SERVER say otherwise.
    """


@context.command()
@click.argument("name")
@click.argument("server", metavar="URL")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File that holds the server's token.",
)
def create(name: str, server: str, token_file: Path | None) -> None:
    """Remember the server at URL as NAME, and use it."""
    url = places.find(server).url
    file = places.config_file()
    kept = contexts.load(file)
    entry = Context(url, str(token_file.resolve()) if token_file else "")
    contexts.save(file, Contexts(name, {**kept.contexts, name: entry}))
    output.answer(f"{name} is {url}, and is in use")


@context.command()
@click.argument("name")
def use(name: str) -> None:
    """Ask the server called NAME from now on; `-` uses none."""
    file = places.config_file()
    kept = contexts.load(file)
    if name == "-":
        contexts.save(file, Contexts("", kept.contexts))
        output.answer("no context is in use")
        return
    contexts.save(file, Contexts(name, {name: _known(kept, name), **kept.contexts}))
    output.answer(f"{name} ({kept.contexts[name].server}) is in use")


@context.command("list")
@click.option("--json", "as_json", is_flag=True, help="The whole answer as JSON.")
def list_(as_json: bool) -> None:
    """List the servers that are known by name."""
    kept = contexts.load(places.config_file())
    if as_json:
        rows = [
            {"name": name, "current": name == kept.current, **_plain(entry)}
            for name, entry in sorted(kept.contexts.items())
        ]
        output.answer_json({"contexts": rows})
        return
    if not kept.contexts:
        output.say("no contexts; make one with `logyard context create NAME URL`")
        return
    output.table(
        ("USED", "NAME", "SERVER", "TOKEN FILE"),
        [
            ("*" if name == kept.current else "", name, entry.server, entry.token_file)
            for name, entry in sorted(kept.contexts.items())
        ],
    )


@context.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="The whole answer as JSON.")
def show(name: str | None, as_json: bool) -> None:
    """Show a context, or which server would be asked now and why."""
    if name is None:
        place = places.find(None)
        if as_json:
            output.answer_json({"server": place.url, "origin": place.origin})
        else:
            output.answer(f"{place.url} ({place.origin})")
        return
    entry = _known(contexts.load(places.config_file()), name)
    if as_json:
        output.answer_json({"name": name, **_plain(entry)})
    else:
        output.answer(f"{name}: {entry.server}")
        if entry.token_file:
            output.answer(f"  token from {entry.token_file}")


def _known(kept: Contexts, name: str) -> Context:
    if name not in kept.contexts:
        there = ", ".join(sorted(kept.contexts)) or "none"
        raise Trouble(f"there is no context {name!r}; there are: {there}", USAGE)
    return kept.contexts[name]


def _plain(entry: Context) -> dict[str, str]:
    return {"server": entry.server, "tokenFile": entry.token_file}
