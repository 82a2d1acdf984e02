"""The served OpenAPI document against the server that serves it, with schemathesis."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis import checks as common_checks
from schemathesis.specs.openapi import checks as openapi_checks

from logyard_api.app import operations
from tests.api.flows import CHAIN, HUGE
from tests.services.server import YardServer

ENDLESS = ("/v4/events", "/v4/workflows/{id}:log", "/v4/substrate/{node}/orders")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YardServer]:
    folder: Path = tmp_path_factory.mktemp("openapi")
    server = YardServer(folder, {"node-cores": 2}).start()
    for number in range(30):
        server.submit(HUGE, name=f"n{number}")
    assert server.outcome(server.submit(CHAIN, workflowId="known")["id"]) == "STAGE_STATUS_FINISHED"
    yield server
    assert server.stop() == 0
    assert "Traceback" not in server.errors.read_text()


DETAILS = (
    "after",
    "pageToken",
    "cursor",
    "filter",
    "aipFilter",
    "orderBy",
    "status",
    "scope",
    "requestedStatuses",
    "kindFilter",
    "queue",
    "stageId",
)
"""Parameters that are texts to the document, and only some texts to the server."""

CHECKS: list[Any] = [
    getattr(common_checks, "not_a_server_error"),  # noqa: B009
    *(
        getattr(openapi_checks, name)
        for name in (
            "status_code_conformance",
            "content_type_conformance",
            "response_schema_conformance",
            "negative_data_rejection",
            "unsupported_method",
            "allow_header_conformance",
        )
    ),
]


def described() -> list[str]:
    """Every operation that ends by itself, as METHOD PATH."""
    return [
        f"{operation.method} {operation.path.replace(':path}', '}')}"
        for operation in operations()
        if operation.path not in ENDLESS
    ]


@pytest.mark.parametrize("label", described())
def test_answers_are_as_described(server: YardServer, label: str) -> None:
    schema: Any = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    known = server.submit(CHAIN, workflowId="known")["id"]
    method, path = label.split(" ")
    operation = schema[path][method]
    for mode in GenerationMode:
        _explore(operation, mode, known)


def _explore(operation: Any, mode: GenerationMode, known: str) -> None:
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=10,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    def check(case: Any) -> None:
        if mode is GenerationMode.POSITIVE:
            _aim(case, known)
        case.call_and_validate(checks=CHECKS)

    try:
        check()
    except Unsatisfiable:
        # Nothing is wrong for an operation that takes nothing.
        assert mode is GenerationMode.NEGATIVE


def _aim(case: Any, workflow: str) -> None:
    """Let a right question be about things that are there."""
    there = {"id": workflow, "w": workflow, "a": "first/0%231", "node": "node1"}
    if "/nodes/" in case.path:
        there["id"] = "node1"
    parameters: dict[str, Any] = case.path_parameters or {}
    parameters.update({name: there[name] for name in parameters if name in there})
    query: dict[str, Any] = case.query or {}
    if "stageName" in query:
        query["stageName"] = "first"
    for name in DETAILS:
        query.pop(name, None)


def test_every_operation_is_described(server: YardServer) -> None:
    document = server.get("/openapi.json")
    assert document == server.get("/v4/schema")
    assert document["openapi"] == "3.1.0"
    operations = [one for path in document["paths"].values() for one in path.values()]
    assert len({one["operationId"] for one in operations}) == len(operations) > 30
    for one in operations:
        assert one["summary"] and one["tags"], one["operationId"]
        for parameter in one["parameters"]:
            if parameter["in"] != "path":
                assert parameter["description"], (one["operationId"], parameter["name"])
    for name, found in document["components"]["schemas"].items():
        assert found["properties"] or name == "UncordonBody", name
