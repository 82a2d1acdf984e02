"""The workflow language: validate, upgrade, and its JSON Schema."""

from typing import Any, Literal

import msgspec
from starlette.responses import Response

from logyard_api.bodies import Body, Reply, respond
from logyard_api.operations import Routes
from logyard_api.texts import Text, load, plain, problem_of, text_of, upgrade
from logyard_workflows_dsl import Problem, Unreadable, json_schema

routes = Routes("workflow language")


class DefinitionBody(Body, frozen=True):
    """A workflow, as an object or as the text of a file.

    definition: the workflow as an object
    rawSpecification: the text of a workflow file, YAML or JSON
    """

    definition: dict[str, Any] | None = None
    raw_specification: str | None = None


class Doubt(Reply, frozen=True):
    """A thing in a workflow file that is doubtful or wrong.

    file: name of the file
    line: from 1
    column: from 1
    path: where, such as jobs.render.env[0]
    message: what is wrong, and what would be right
    """

    file: str
    line: int
    column: int
    path: str
    message: str


class Validated(Reply, frozen=True):
    """A workflow that is valid.

    definition: the workflow in version v4
    warnings: what is doubtful, a sentence each
    problems: the same with places
    """

    definition: dict[str, Any]
    warnings: list[str]
    problems: list[Doubt]


class UpgradedReply(Reply, frozen=True):
    """A workflow in the newest form of the language.

    definition: the workflow in version v4
    detectedVersion: the version that the text was written in
    upgraded: whether anything had to change
    errors: why it cannot be used, a sentence each
    warnings: what is doubtful, a sentence each
    rawSpecification: the new text
    changes: what is otherwise than before, a sentence each
    """

    definition: dict[str, Any]
    detected_version: str
    upgraded: bool
    errors: list[str]
    warnings: list[str]
    raw_specification: str
    changes: list[str]


class SchemaQuery(Body, frozen=True):
    """Which schema.

    version: version of the language
    """

    version: Literal["v4", "v1"] = "v4"


@routes.add("POST", "/v4/workflows:validate")
async def validate_workflow(body: DefinitionBody) -> Response:
    """Check a workflow without starting it.

    What is wrong is answered with status 400 and one detail for each problem.
    """
    loaded = await load(_text(body))
    return respond(
        Validated(
            definition=plain(loaded.workflow),
            warnings=[str(warning) for warning in loaded.warnings],
            problems=[doubt(warning) for warning in loaded.warnings],
        )
    )


@routes.add("POST", "/v4/workflows:upgrade")
async def upgrade_workflow(body: DefinitionBody) -> Response:
    """Rewrite a workflow in version v4, with the same meaning. What is wrong stands in `errors`."""
    text = _text(body)
    try:
        done = await upgrade(text)
    except Unreadable as trouble:
        return respond(
            UpgradedReply(
                definition={},
                detected_version="",
                upgraded=False,
                errors=[str(problem) for problem in trouble.problems],
                warnings=[],
                raw_specification=text.source,
                changes=[],
            )
        )
    return respond(
        UpgradedReply(
            definition=plain(done.workflow),
            detected_version=done.detected_version,
            upgraded=bool(done.changes),
            errors=[],
            warnings=[str(warning) for warning in done.warnings],
            raw_specification=done.text,
            changes=list(done.changes),
        )
    )


@routes.add("GET", "/v4/workflows:schema", media=("application/schema+json",))
async def get_workflow_schema(query: SchemaQuery) -> Response:
    """JSON Schema of workflow files, for editors."""
    text = msgspec.json.encode(json_schema(query.version))
    return Response(text, media_type="application/schema+json")


def _text(body: DefinitionBody) -> Text:
    return text_of(body.definition, body.raw_specification)


def doubt(problem: Problem) -> Doubt:
    """The problem as it is answered."""
    return Doubt(**problem_of(problem))
