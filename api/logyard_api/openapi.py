"""The OpenAPI 3.1 document, made from the operations and the types that they read and answer."""

from collections.abc import Sequence
from typing import Any, cast, get_args

import msgspec

from logyard_api.errors import Status
from logyard_api.operations import JSON, Operation, described
from logyard_api.release import VERSION

REF = "#/components/schemas/{name}"
Json = dict[str, Any]


def document(operations: Sequence[Operation], secured: bool) -> Json:
    """The document. `secured` tells that a bearer token is wanted."""
    kinds = [kind for one in operations for kind in (one.query, one.body, one.reply) if kind]
    kinds.append(Status)
    schemas, components = _schemas(kinds)
    paths: Json = {}
    for operation in operations:
        path = operation.path.replace(":path}", "}")
        paths.setdefault(path, {})[operation.method.lower()] = _operation(
            operation, schemas, components, secured
        )
    for operation in operations:
        if operation.query is not None:
            components.pop(_name(schemas[id(operation.query)]), None)
    result: Json = {
        "openapi": "3.1.0",
        "info": {
            "title": "Logyard",
            "version": VERSION,
            "description": "Workflows, their queue, nodes and the log of everything that happened.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": components},
    }
    if secured:
        result["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return result


def _schemas(kinds: Sequence[Any]) -> tuple[dict[int, Json], Json]:
    unique = list({id(kind): kind for kind in kinds}.values())
    found, components = msgspec.json.schema_components(unique, ref_template=REF)
    for kind in _structs(unique):
        schema = components.get(kind.__name__)
        if schema is None:
            continue
        for name, text in described(kind).items():
            schema.get("properties", {}).get(name, {}).setdefault("description", text)
        if kind.__doc__:
            schema["description"] = kind.__doc__.strip().split("\n\n")[0]
    return {id(kind): schema for kind, schema in zip(unique, found, strict=True)}, components


def _structs(kinds: Sequence[Any]) -> Sequence[type[msgspec.Struct]]:
    """Every struct that the types are made of."""
    found: dict[type[msgspec.Struct], None] = {}

    def visit(kind: Any) -> None:
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            if kind in found:
                return
            found[kind] = None
            for field in msgspec.structs.fields(kind):
                visit(field.type)
        for part in get_args(kind):
            visit(part)

    for kind in kinds:
        visit(kind)
    return list(found)


def _name(schema: Json) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _operation(
    operation: Operation, schemas: dict[int, Json], components: Json, secured: bool
) -> Json:
    summary, _, more = operation.description.partition("\n\n")
    result: Json = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": summary.replace("\n", " "),
        "parameters": [
            *_path(operation),
            *_query(operation, schemas, components),
            *_headers(operation),
        ],
        "responses": {
            "200": {"description": "Success.", "content": _content(operation, schemas)},
            "default": {
                "description": "What is wrong, and what would be right.",
                "content": {JSON: {"schema": {"$ref": REF.format(name="Status")}}},
            },
        },
    }
    if more:
        result["description"] = more
    if operation.body is not None:
        body = schemas[id(operation.body)]
        result["requestBody"] = {"required": True, "content": {JSON: {"schema": body}}}
    elif operation.sends:
        result["requestBody"] = {
            "required": True,
            "content": {operation.sends: {"schema": {"type": "string", "format": "binary"}}},
        }
    if operation.view:
        header = {"description": "Log position of the answer.", "schema": {"type": "integer"}}
        result["responses"]["200"]["headers"] = {"Logyard-Position": header}
    if secured:
        result["security"] = [{"token": []}]
    return result


def _content(operation: Operation, schemas: dict[int, Json]) -> Json:
    if operation.reply is not None:
        return {JSON: {"schema": schemas[id(operation.reply)]}}
    return {
        media: {"schema": {} if media.endswith("json") else {"type": "string"}}
        for media in operation.media
    }


def _path(operation: Operation) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in operation.path_names
    ]


def _query(operation: Operation, schemas: dict[int, Json], components: Json) -> list[Json]:
    if operation.query is None:
        return []
    schema = cast(Json, components[_name(schemas[id(operation.query)])])
    parameters: list[Json] = []
    for name, property in schema["properties"].items():
        shown = {key: value for key, value in property.items() if key != "description"}
        if "anyOf" in shown:
            # Null cannot be written in a query: a parameter is there or it is not.
            options = [one for one in shown.pop("anyOf") if one != {"type": "null"}]
            shown.pop("default", None)
            shown |= options[0] if len(options) == 1 else {"anyOf": options}
        parameter: Json = {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "schema": shown,
        }
        if "description" in property:
            parameter["description"] = property["description"]
        parameters.append(parameter)
    return parameters


def _headers(operation: Operation) -> list[Json]:
    return [
        {"name": name, "in": "header", "description": text, "schema": {"type": "string"}}
        for name, text in operation.headers.items()
    ]
