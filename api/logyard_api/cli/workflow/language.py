"""`logyard workflow validate`, `upgrade` and `schema`: the language, without a server.

They ask a server only where one is named by ``--server``: another release may know more, or less.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from logyard_api.cli import output
from logyard_api.cli.outcomes import Answered, Trouble
from logyard_api.cli.units import many
from logyard_api.cli.workflow import files

if TYPE_CHECKING:
    from logyard_api.cli.client import Client

_file = click.argument("file", metavar="FILE")
_json = click.option("--json", "as_json", is_flag=True, help="The whole answer as JSON.")
_server = click.option("--server", metavar="URL", help="Let this server do it.")


class _Verdict(NamedTuple):
    """What is wrong, what is doubtful, and what stands in the way of a start."""

    definition: Any
    errors: list[dict[str, Any]]
    warnings: list[dict[str, Any]]
    refusals: list[str]


@click.command()
@_file
@_json
@_server
def validate(file: str, as_json: bool, server: str | None) -> None:
    """Check FILE (`-`: stdin): every problem with its place and what would be right.

    Exit code 0 when the file is well; warnings, and features that are valid but not run yet, do not
    change that.
    """
    text, name = files.read(file)
    verdict = _asked(server, text, name) if server else _judged(text, name)
    if as_json:
        output.answer_json(
            {
                "valid": not verdict.errors,
                "definition": verdict.definition,
                "errors": verdict.errors,
                "warnings": verdict.warnings,
                "notRunYet": verdict.refusals,
            }
        )
    else:
        _show(verdict, name)
    if verdict.errors:
        raise click.exceptions.Exit(1)


@click.command()
@_file
@_json
@_server
def upgrade(file: str, as_json: bool, server: str | None) -> None:
    """Print FILE (`-`: stdin) as version v4; what changed goes to stderr."""
    text, name = files.read(file)
    told = _upgraded_there(server, text, name) if server else _upgraded_here(text, name)
    if as_json:
        output.answer_json(told)
        return
    click.echo(told["rawSpecification"], nl=False)
    for change in told["changes"]:
        output.say(f"{name}: {change}")
    if not told["changes"]:
        output.say(f"{name}: nothing to change")
    for warning in told["warnings"]:
        output.say(f"{warning} (warning)")


@click.command()
@click.option("--version", "release", type=click.Choice(["v4", "v1"]), default="v4")
@_server
def schema(release: str, server: str | None) -> None:
    """Print the JSON Schema of workflow files, for editors."""
    if server:
        with _client(server) as client:
            output.answer_json(client.get("/workflows:schema", {"version": release}))
        return
    from logyard_workflows_dsl import json_schema

    output.answer_json(json_schema("v1" if release == "v1" else "v4"))


def lines(found: list[dict[str, Any]]) -> list[str]:
    """Problems as lines: place, path, what is wrong and what would be right, places aligned."""
    places = [f"{one['file']}:{one['line']}:{one['column']}" for one in found]
    width = max(map(len, places), default=0)
    texts = [f"{one['path']}: {one['message']}" if one["path"] else one["message"] for one in found]
    return [f"{place:<{width}}  {text}" for place, text in zip(places, texts, strict=True)]


def problems(trouble: Answered, name: str) -> str:
    """What a server found wrong in a file, a line each; its message where it lists nothing."""
    found: list[dict[str, Any]] = [one for one in trouble.details if "line" in one]
    if not found:
        return f"{name}: {trouble.message}"
    return "\n".join(lines([{**one, "file": name} for one in found]))


def _client(server: str) -> "Client":
    # An HTTP client takes as long to load as the language; mostly it is not needed here.
    from logyard_api.cli.client import Client
    from logyard_api.cli.places import find

    return Client(find(server))


def _show(verdict: _Verdict, name: str) -> None:
    for problem in lines(verdict.errors):
        output.answer(problem)
    if verdict.errors:
        output.say(many(len(verdict.errors), "problem"))
        return
    parts = [
        many(len(verdict.definition[key]), noun)
        for key, noun in (("jobs", "job"), ("services", "service"), ("volumes", "volume"))
        if verdict.definition.get(key)
    ]
    output.answer(f"{name} is valid: {', '.join(parts)}")
    for warning in lines(verdict.warnings):
        output.answer(f"{warning} (warning)")
    if verdict.refusals:
        output.answer("a start would be refused:")
    for sentence in verdict.refusals:
        output.answer(f"  {sentence}")


def _judged(text: str, name: str) -> _Verdict:
    from msgspec import to_builtins

    from logyard_domain.capabilities import refusals
    from logyard_workflows_dsl import Unreadable, load

    try:
        loaded = load(text, file=name)
    except Unreadable as trouble:
        return _Verdict({}, [to_builtins(one) for one in trouble.problems], [], [])
    return _Verdict(
        _definition(loaded.workflow),
        [],
        [to_builtins(one) for one in loaded.warnings],
        list(refusals(loaded.workflow)),
    )


def _definition(workflow: Any) -> Any:
    """A workflow as the object that its file would be in JSON."""
    import yaml

    from logyard_workflows_dsl import dump

    return yaml.safe_load(dump(workflow))


def _asked(server: str, text: str, name: str) -> _Verdict:
    try:
        with _client(server) as client:
            told = client.post("/workflows:validate", {"rawSpecification": text})
    except Answered as trouble:
        if trouble.status != 400:
            raise
        found: list[dict[str, Any]] = [{**one, "file": name} for one in trouble.details]
        fallback = {"file": name, "line": 1, "column": 1, "path": "", "message": trouble.message}
        return _Verdict({}, found or [fallback], [], [])
    warnings = [{**one, "file": name} for one in told.get("problems", [])]
    return _Verdict(told["definition"], [], warnings, told.get("notRunYet", []))


def _upgraded_here(text: str, name: str) -> dict[str, Any]:
    from logyard_workflows_dsl import Unreadable
    from logyard_workflows_dsl import upgrade as upgraded

    try:
        done = upgraded(text, file=name)
    except Unreadable as trouble:
        raise Trouble(f"{trouble}\n{many(len(trouble.problems), 'problem')}") from None
    return {
        "rawSpecification": done.text,
        "definition": _definition(done.workflow),
        "detectedVersion": done.detected_version,
        "upgraded": bool(done.changes),
        "changes": list(done.changes),
        "warnings": [str(one) for one in done.warnings],
        "errors": [],
    }


def _upgraded_there(server: str, text: str, name: str) -> dict[str, Any]:
    try:
        with _client(server) as client:
            told: dict[str, Any] = client.post("/workflows:upgrade", {"rawSpecification": text})
    except Answered as trouble:
        raise Trouble(problems(trouble, name)) from None
    if told.get("errors"):
        raise Trouble("\n".join(told["errors"]))
    return told
