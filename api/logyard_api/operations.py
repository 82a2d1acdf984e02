"""What the API can do, as a list of operations: each a function whose signature says what it takes.

A parameter called `query` or `body` is read into the struct it is annotated with, `yard` is the
running server, `request` the raw request; every other parameter is a text from the path. What
returns `Answer[T]` is answered with JSON. The docstring describes the operation to callers.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from logyard_api.asof import ASKED
from logyard_api.bodies import BODY_BYTES_MAX, Answer, Body, Count, Query, Reader, read, respond
from logyard_api.errors import Code, Failure

JSON = "application/json"
Handler = Callable[..., Awaitable[Any]]
_log = logging.getLogger("logyard.api")


class ViewQuery(Body, frozen=True):
    """Query of everything that is answered from a view.

    after: wait until the view has seen this position of the log, for at most 10 s
    at: answer as of an earlier moment: a position of the log, a time (ISO 8601), or how long ago
        (15m)
    """

    after: Count | None = None
    at: str = ""


class Operation:
    """One method of one path, and how it is called.

    `media` are the media types it answers with; `sends` the media type of a body that is no JSON;
    `headers` are request headers that it looks at, with their meaning; `most` the largest body in
    bytes; `view` tells that it is answered from a view, which `after` can wait for.
    """

    def __init__(
        self,
        handler: Handler,
        method: str,
        path: str,
        tag: str,
        media: tuple[str, ...],
        sends: str,
        headers: dict[str, str],
        most: int,
    ) -> None:
        hints = get_type_hints(handler)
        names = list(inspect.signature(handler).parameters)
        self.handler = handler
        self.method = method
        self.path = path
        self.tag = tag
        self.media = media
        self.sends = sends
        self.headers = headers
        self.most = most
        self.name = getattr(handler, "__name__", "")
        self.description = inspect.getdoc(handler) or ""
        self.query: type[Body] | None = hints.get("query")
        self.body: Any = hints.get("body")
        reply = hints["return"]
        self.reply: Any = get_args(reply)[0] if get_origin(reply) is Answer else None
        self.path_names = [
            name for name in names if name not in ("query", "body", "yard", "request")
        ]
        self._wants = frozenset(names)
        self.view = self.query is not None and issubclass(self.query, ViewQuery)
        self._query = Query(self.query) if self.query else None
        self._body: Reader[Any] | None = Reader(self.body) if self.body else None

    def route(self) -> Route:
        """The operation as a route of the application."""
        route = Route(self.path, self.__call__, methods=[self.method], name=self.name)
        # A HEAD of an endless stream would never be answered.
        route.methods = {self.method}
        return route

    async def __call__(self, request: Request) -> Response:
        """Answer one request. Whatever goes wrong becomes a `Status`."""
        request.scope["logyard.operation"] = self.name
        try:
            found: Response | Answer[Any] = await self.handler(**await self._arguments(request))
            if isinstance(found, Response):
                return found
            return respond(found.value, found.position)
        except Failure as failure:
            return failed(failure)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception:
            _log.exception("operation failed", extra={"operation": self.name})
            return failed(Failure(Code.INTERNAL, "the server failed; its log says why"))

    async def _arguments(self, request: Request) -> dict[str, Any]:
        arguments: dict[str, Any] = dict(request.path_params)
        if "request" in self._wants:
            arguments["request"] = request
        yard = request.app.state.yard
        if "yard" in self._wants:
            arguments["yard"] = yard
        if self._query is not None:
            query = self._query.read(request)
            arguments["query"] = query
            if isinstance(query, ViewQuery):
                if query.after:
                    await yard.seen(query.after)
                if query.at:
                    ASKED.set(await yard.moment(query.at))
        if self._body is not None:
            arguments["body"] = self._body.read(await read(request, self.most))
        return arguments


def failed(failure: Failure) -> Response:
    """The answer to a request that fails."""
    response = Response(failure.body(), failure.http, media_type=JSON)
    if failure.code is Code.UNAUTHENTICATED:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


class Routes:
    """The operations of one subject, in the order in which paths are tried."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.operations: list[Operation] = []

    def add(
        self,
        method: str,
        path: str,
        media: tuple[str, ...] = (JSON,),
        sends: str = "",
        headers: dict[str, str] | None = None,
        most: int = BODY_BYTES_MAX,
    ) -> Callable[[Handler], Handler]:
        """Make the decorated function answer `method path`."""

        def keep(handler: Handler) -> Handler:
            self.operations.append(
                Operation(handler, method, path, self.tag, media, sends, headers or {}, most)
            )
            return handler

        return keep


def described(kind: type[msgspec.Struct]) -> dict[str, str]:
    """What the docstrings of a struct and its bases say of its fields: lines ``field: meaning``.

    Fields are called as on the wire.
    """
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        name = ""
        for line in inspect.cleandoc(base.__doc__ or "").splitlines():
            head, colon, text = line.partition(": ")
            if colon and head in kind.__struct_encode_fields__:
                name = head
                found[name] = text.strip()
            elif name and line.startswith("    "):
                found[name] += " " + line.strip()
            else:
                name = ""
    return found
