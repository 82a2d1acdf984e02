"""Around the whole application: who may enter, and how long each answer took."""

import logging
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from logyard_api.auth import Guard
from logyard_api.errors import Code, Failure
from logyard_api.metrics import Metrics
from logyard_api.operations import failed

_log = logging.getLogger("logyard.api")


class Door:
    """Turns strangers away, counts and times everybody else. Plain ASGI: it costs microseconds."""

    def __init__(self, app: ASGIApp, guard: Guard, metrics: Metrics) -> None:
        self._app = app
        self._guard = guard
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = perf_counter()
        status = 0

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            if self._guard.admits(scope["path"], scope["headers"]):
                await self._app(scope, receive, watch)
            else:
                stranger = Failure(
                    Code.UNAUTHENTICATED,
                    "this server wants its token: send `Authorization: Bearer TOKEN` "
                    "(LOGYARD_TOKEN or a context of the command line)",
                )
                await failed(stranger)(scope, receive, watch)
        finally:
            seconds = perf_counter() - start
            operation = scope.get("logyard.operation", "")
            self._metrics.request(operation, status, seconds)
            if _log.isEnabledFor(logging.DEBUG):
                _log.debug(
                    "%s %s",
                    scope["method"],
                    scope["path"],
                    extra={"operation": operation, "status": status, "seconds": round(seconds, 6)},
                )
