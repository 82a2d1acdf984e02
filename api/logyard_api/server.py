"""The life of the server process: how it starts, answers, and ends."""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable, Generator
from typing import TypeVar

import uvicorn
import uvloop
from starlette.types import ASGIApp

from logyard_api.app import application
from logyard_api.logging_setup import set_up
from logyard_api.settings import Settings
from logyard_api.wiring import Parts, Unstartable, build
from logyard_api.writing import Protocol
from logyard_engine.log.lock import FolderHeld
from logyard_engine.log.log import LogTrouble

CLOSE_S = 5
"""How long answers that are under way may take once the server stops."""
BACKLOG = 2048
SWITCH_S = 0.0002
"""How long a thread may compute while another one wants to."""

T = TypeVar("T")
_log = logging.getLogger("logyard.server")


def serve(settings: Settings) -> int:
    """Run a server until SIGTERM or SIGINT. The exit code: 0 after a clean end, 1 otherwise."""
    set_up(settings.log_level, settings.log_format)
    try:
        listener = _listener(settings)
        parts = build(settings)
    except (Unstartable, FolderHeld, LogTrouble, OSError) as trouble:
        print(f"logyard cannot start: {trouble}", file=sys.stderr)
        return 1
    _tune_collection()
    _share_fairly()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        failure = runner.run(_live(settings, parts, listener))
    if failure is not None:
        print(f"logyard stopped, nothing more is written: {failure}", file=sys.stderr, flush=True)
        return 1
    return 0


def _listener(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as trouble:
        listener.close()
        where = f"{settings.host}:{settings.port}"
        raise Unstartable(
            f"{where}: {trouble.strerror or trouble}; choose another --port, or 0 for a free one"
        ) from trouble
    return listener


def _share_fairly() -> None:
    # The writer lets go of the interpreter at every flush and wants it back at once; with the
    # default of 5 ms each thread that computes meanwhile would make it wait that long.
    sys.setswitchinterval(SWITCH_S)


def _tune_collection() -> None:
    # What was restored stays: looking through it for garbage again and again would cost pauses.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


class _Server(uvicorn.Server):
    """Uvicorn without signal handlers: the end of the process is decided here."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def _live(settings: Settings, parts: Parts, listener: socket.socket) -> BaseException | None:
    """Start everything in order, wait, and end everything in order. What went wrong, or None."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    failures: list[BaseException] = []

    def fail(failure: BaseException) -> None:
        failures.append(failure)
        loop.call_soon_threadsafe(stop.set)

    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, stop.set)
    parts.watch(fail)
    try:
        await _aside(lambda: parts.start(loop))
        yard = parts.yard(loop)
        server = _http(application(yard, settings.token))
        serving = asyncio.create_task(server.serve([listener]))
        await _accepting(server, serving)
        url = _url(settings.host, listener.getsockname()[1])
        parts.folder.announce(url, settings.cluster)
        print(f"listening on {url}", flush=True)
        _log.info("ready", extra={"url": url, "position": yard.loop.position})
        await stop.wait()
        _log.info("stopping")
        yard.end_streams()
        server.should_exit = True
        await serving
    except Unstartable as trouble:
        failures.append(trouble)
    finally:
        await _aside(lambda: parts.stop(clean=not failures))
    return failures[0] if failures else None


def _http(app: ASGIApp) -> _Server:
    return _Server(
        uvicorn.Config(
            app,
            http=Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=CLOSE_S,
        )
    )


async def _accepting(server: _Server, serving: asyncio.Task[None]) -> None:
    while not server.started:
        if serving.done():
            raise Unstartable("the HTTP server ended at once; its log says why")
        await asyncio.sleep(0.005)


def _url(host: str, port: int) -> str:
    if host in ("0.0.0.0", "::", ""):
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _aside(work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, work)
