"""The JSON Schema: it is one, and it knows what the language knows."""

from typing import Any, Literal

import jsonschema_rs
import pytest

from logyard_workflows_dsl import json_schema

VERSIONS: list[Literal["v1", "v4"]] = ["v1", "v4"]


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_a_schema(version: Literal["v1", "v4"]) -> None:
    schema = json_schema(version)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert jsonschema_rs.meta.is_valid(schema)
    assert schema == json_schema(version)


def test_everything_is_described() -> None:
    schema: dict[str, Any] = json_schema()
    for name, definition in {**schema["$defs"], "Workflow": schema}.items():
        assert definition["description"], name
        checks = {"exec", "http-get", "tcp-socket", "grpc"}
        for key, field in definition["properties"].items():
            assert field.get("description") or field.get("deprecated") or key in checks, (name, key)


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("unknown field", {"jobs": {"a": {"comand": ["x"]}}}),
    ("bad name", {"jobs": {"A_b": {"command": ["x"]}}}),
    ("bad size", {"jobs": {"a": {"command": ["x"], "resource": {"memory": {"size": "4 gigs"}}}}}),
    ("bad duration", {"jobs": {"a": {"policy": {"timeout": {"execute": "2 hours"}}}}}),
    ("bad choice", {"jobs": {"a": {"resource": {"cpu": {"affinity": "node"}}}}}),
    (
        "too many at once",
        {"jobs": {"a": {"task-array": {"start": 1, "end": 2, "concurrency": 201}}}},
    ),
    ("missing", {"jobs": {"a": {"task-array": {"start": 1}}}}),
    (
        "two checks",
        {"services": {"s": {"readiness-probe": {"exec": {"command": ["x"]}, "grpc": {"port": 1}}}}},
    ),
    ("env", {"jobs": {"a": {"env": ["X"]}}}),
    ("mount", {"jobs": {"a": {"mounts": {"data": {"volume": "v"}}}}}),
    ("nothing to run", {"volumes": {}}),
]


@pytest.mark.parametrize(("what", "body"), WRONG)
def test_it_finds_what_is_wrong(what: str, body: dict[str, Any]) -> None:
    validator = jsonschema_rs.validator_for(json_schema())
    assert not validator.is_valid({"version": "v4", **body}), what


def test_versions_differ_in_volumes() -> None:
    v1, v4 = (jsonschema_rs.validator_for(json_schema(version)) for version in VERSIONS)
    body: dict[str, Any] = {"jobs": {"a": {"command": ["x"]}}, "volumes": {"v": {"size": "1GB"}}}
    assert v4.is_valid({"version": "v4", **body})
    assert not v1.is_valid({"version": "v1", **body})
    assert not v4.is_valid({"version": "v1", **body})
