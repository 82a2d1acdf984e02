"""`logyard workflow results`: what a workflow kept by egress to `results://`."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from logyard_api.cli import output
from logyard_api.cli.outcomes import Trouble
from logyard_api.cli.session import Session, asks
from logyard_api.cli.units import many, memory
from logyard_api.cli.workflow import references


@click.command()
@click.argument("workflow")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Fetch them into this folder instead of listing them.",
)
@asks
def results(session: Session, workflow: str, paths: tuple[str, ...], folder: Path | None) -> None:
    """List the results of WORKFLOW, or fetch them (or only PATHs of them) with --to."""
    reference = references.parse(workflow)
    told = session.client.get(f"{reference.path}/results")
    found: list[dict[str, Any]] = told.get("results", [])
    if paths:
        found = [one for one in found if _chosen(str(one["path"]), paths)]
        if not found:
            raise Trouble(f"{workflow} has no result {', '.join(paths)}")
    if folder is not None:
        for one in found:
            one["file"] = str(_fetch(session, reference, str(one["path"]), folder))
    if session.json:
        output.answer_json({**told, "results": found})
    elif folder is not None:
        for one in found:
            output.answer(str(one["file"]))
    elif found:
        output.table(
            ("PATH", "SIZE"),
            [(str(one["path"]), memory(int(one["sizeBytes"]))) for one in found],
            right=("SIZE",),
        )
        output.say(f"{many(len(found), 'result')}; fetch with --to FOLDER")
    else:
        output.say(f"{workflow} has kept no results")


def _chosen(path: str, wanted: tuple[str, ...]) -> bool:
    return any(path == one or path.startswith(one.rstrip("/") + "/") for one in wanted)


def _fetch(session: Session, reference: references.Reference, path: str, folder: Path) -> Path:
    target = (folder / path).resolve()
    if not target.is_relative_to(folder.resolve()):
        raise Trouble(f"the result {path!r} would leave {folder}; it was not fetched")
    target.parent.mkdir(parents=True, exist_ok=True)
    partly = target.with_name(target.name + ".part")
    with partly.open("wb") as file:
        for piece in session.client.chunks(f"{reference.path}/results/{quote(path)}"):
            file.write(piece)
    partly.replace(target)
    return target
