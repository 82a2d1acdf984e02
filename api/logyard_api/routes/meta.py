"""What the server is, how it feels, and the documents that describe it."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from logyard_api import asyncapi
from logyard_api.bodies import Reply, encode, respond
from logyard_api.errors import unavailable
from logyard_api.metrics import CONTENT_TYPE
from logyard_api.operations import Routes
from logyard_api.release import VERSION
from logyard_api.yard import Yard

WIRE_VERSION = "v4.1.0"
"""Version of the wire API whose operations these are."""

routes = Routes("server")
_asyncapi = encode(asyncapi.document())


class Version(Reply, frozen=True):
    """Versions of the API and of this program.

    version: version of the wire API
    logyard: version of this program
    cluster: name of the cluster
    """

    version: str
    logyard: str
    cluster: str


class Health(Reply, frozen=True):
    """How the server feels.

    status: `ok` as long as the writer can write
    position: last position of the log
    """

    status: str
    position: int


@routes.add("GET", "/v4/version")
async def get_version(yard: Yard) -> Response:
    """Versions. Needs no token."""
    return respond(Version(version=WIRE_VERSION, logyard=VERSION, cluster=yard.cluster))


@routes.add("GET", "/healthz")
async def get_health(yard: Yard) -> Response:
    """Whether the process is alive and its writer can write. Needs no token."""
    if yard.loop.failure is not None:
        raise unavailable(f"the writer has stopped: {yard.loop.failure}")
    return respond(Health(status="ok", position=yard.loop.position))


@routes.add("GET", "/readyz")
async def get_readiness(yard: Yard) -> Response:
    """Whether requests are served: the log is open, the views have caught up. Needs no token."""
    if yard.loop.failure is not None:
        raise unavailable(f"the writer has stopped: {yard.loop.failure}")
    if yard.tail.closed:
        raise unavailable("the server is stopping")
    return respond(Health(status="ok", position=yard.loop.position))


@routes.add("GET", "/metrics", media=(CONTENT_TYPE,))
async def get_metrics(yard: Yard) -> Response:
    """Prometheus metrics."""
    return Response(yard.metrics.text(), media_type=CONTENT_TYPE)


@routes.add("GET", "/v4/schema")
async def get_openapi(request: Request) -> Response:
    """This document: OpenAPI 3.1."""
    document: dict[str, Any] = request.app.openapi()
    return respond(document)


@routes.add("GET", "/v4/asyncapi.json")
async def get_asyncapi() -> Response:
    """The event stream as an AsyncAPI 3.0 document."""
    return Response(_asyncapi, media_type="application/json")
