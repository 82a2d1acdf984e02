"""The ASGI application: every operation as a route, behind the door."""

from collections.abc import Sequence

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from logyard_api import openapi
from logyard_api.auth import Guard
from logyard_api.door import Door
from logyard_api.errors import CODE_OF_STATUS, Code, Failure
from logyard_api.operations import Operation, failed
from logyard_api.release import VERSION
from logyard_api.routes import (
    activity,
    advice,
    allocations,
    configuration,
    entities,
    events,
    language,
    meta,
    nodes,
    output,
    preemption,
    queue,
    results,
    starting,
    substrate,
    workflows,
)
from logyard_api.yard import Yard


def operations() -> list[Operation]:
    """Every operation, in the order in which paths are tried: fixed words come first."""
    return [
        operation
        for routes in (
            starting.routes,
            workflows.routes,
            activity.routes,
            language.routes,
            output.routes,
            results.routes,
            allocations.routes,
            advice.routes,
            workflows.last,
            substrate.routes,
            queue.routes,
            preemption.routes,
            configuration.routes,
            entities.routes,
            nodes.routes,
            events.routes,
            meta.routes,
        )
        for operation in routes.operations
    ]


def application(yard: Yard, token: str) -> ASGIApp:
    """The application over a running yard. With a `token`, requests must carry it."""
    served = operations()
    app = FastAPI(
        title="Logyard",
        version=VERSION,
        openapi_url="/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.yard = yard
    app.openapi = lambda: _document(app, served, bool(token))  # type: ignore[method-assign]
    app.router.routes[:0] = [operation.route() for operation in served]
    app.add_exception_handler(HTTPException, _refuse)
    return Door(_Hall(app, served), Guard(token), yard.metrics)


class _Hall:
    """Hands requests on. Operations at fixed paths are found at once; the rest is looked for by
    FastAPI, which costs as much as a small operation itself.
    """

    def __init__(self, app: FastAPI, served: Sequence[Operation]) -> None:
        self._app = app
        self._fixed = {(one.method, one.path): one for one in served if "{" not in one.path}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = None
        if scope["type"] == "http" and not scope.get("root_path"):
            operation = self._fixed.get((scope["method"], scope["path"]))
        if operation is None:
            await self._app(scope, receive, send)
            return
        scope["app"] = self._app
        response = await operation(Request(scope, receive, send))
        await response(scope, receive, send)


def _document(app: FastAPI, served: Sequence[Operation], secured: bool) -> openapi.Json:
    if app.openapi_schema is None:
        app.openapi_schema = openapi.document(served, secured)
    return app.openapi_schema


async def _refuse(request: Request, trouble: Exception) -> Response:
    assert isinstance(trouble, HTTPException)
    status = trouble.status_code
    if status == 404:
        message = f"there is nothing at {request.url.path}; GET /v4/schema lists every operation"
    elif status == 405:
        message = f"{request.method} does not go with {request.url.path}"
    else:
        message = str(trouble.detail)
    code = CODE_OF_STATUS.get(status, Code.INTERNAL)
    response = failed(Failure(code, message, http=status))
    response.headers.update(trouble.headers or {})
    return response
