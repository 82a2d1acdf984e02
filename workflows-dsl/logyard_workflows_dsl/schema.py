"""The language as JSON Schema, for editors."""

from logyard_workflows_dsl.groups import Record
from logyard_workflows_dsl.language import language
from logyard_workflows_dsl.reading import Version
from logyard_workflows_dsl.shapes import Schema, Shape


def json_schema(version: Version = "v4") -> Schema:
    """JSON Schema (draft 2020-12) of the files of a version, made from the types."""
    definitions: dict[str, Schema] = {}

    def refer(shape: Shape) -> Schema:
        if not isinstance(shape, Record):
            return shape.schema(refer)
        name = shape.kind.__name__
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = shape.schema(refer)
        return {"$ref": f"#/$defs/{name}"}

    root = language(version).schema(refer)
    properties = root["properties"]
    assert isinstance(properties, dict)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **root,
        "title": f"Logyard workflow, version {version}",
        "properties": {
            **properties,
            "version": {"const": version, "description": "version of the language"},
        },
        "required": ["version"],
        "anyOf": [{"required": ["jobs"]}, {"required": ["services"]}],
        "$defs": dict(sorted(definitions.items())),
    }
