"""A real server process on a free loopback port, for tests of any room."""

import atexit
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast
from urllib.parse import quote, urlencode, urlsplit

import pytest

START_S = 30.0
STOP_S = 30.0
T = TypeVar("T")


class NotStarted(Exception):
    """The server process ended before it listened; the text is what it said on stderr."""


class Reply(NamedTuple):
    """What a server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def position(self) -> int:
        """The log position of the answer."""
        return int(self.headers["logyard-position"])


class YardServer:
    """A data folder and the server process on it, to be stopped, killed and started again."""

    def __init__(self, folder: Path, flags: dict[str, Any]) -> None:
        self.folder = folder
        self.flags: dict[str, Any] = {"data": str(folder / "data"), "port": 0} | flags
        self.token = ""
        self.process: subprocess.Popen[str] | None = None
        self.url = ""
        self.code = 0
        """Exit code of the last process."""
        self.errors = folder / "stderr.txt"
        # Jobs outlive their server, as they should; not the tests.
        atexit.register(end_keepers, folder)

    def start(self) -> "YardServer":
        """Start the process and wait until it answers. Raises NotStarted."""
        settings = self.folder / "logyard.toml"
        settings.touch()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LOGYARD_")}
        if self.token:
            environment["LOGYARD_TOKEN"] = self.token
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "logyard",
                    "serve",
                    "--config",
                    str(settings),
                    *self._flags(),
                ],
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            self._end(signal.SIGTERM)
            raise NotStarted(self.errors.read_text())
        self.url = line.split()[-1]
        return self

    def _flags(self) -> Iterator[str]:
        for name, value in self.flags.items():
            if isinstance(value, dict):
                pairs = cast("dict[str, Any]", value)
                text = ",".join(f"{key}={part}" for key, part in pairs.items())
                yield f"--{name}={text}"
            else:
                yield f"--{name}={value}"

    def stop(self) -> int:
        """Ask the process to end, and wait for it; its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process at once, as a power cut would."""
        self._end(signal.SIGKILL)

    def _end(self, sign: signal.Signals) -> int:
        process = self.process
        assert process is not None
        if process.poll() is None:
            process.send_signal(sign)
        code = process.wait(STOP_S)
        assert process.stdout is not None
        process.stdout.close()
        self.process = None
        self.code = code
        return code

    def open(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        timeout: float = 30.0,
    ) -> tuple[HTTPConnection, HTTPResponse]:
        """Send a request; reading the answer and closing the connection is the caller's."""
        parts = urlsplit(self.url)
        connection = HTTPConnection(parts.hostname or "", parts.port or 0, timeout=timeout)
        sent = dict(headers or {})
        if self.token:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        connection.request(method, path, body, sent)
        return connection, connection.getresponse()

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        **query: Any,
    ) -> Reply:
        """Send a request and read its answer. `body` is bytes, or a value to be sent as JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if query:
            path = f"{path}?{urlencode(query, doseq=True)}"
        connection, response = self.open(method, path, data, headers)
        try:
            found = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, found, response.read())
        finally:
            connection.close()

    def get(self, path: str, **query: Any) -> Any:
        """The JSON that a GET is answered with. Fails where it is no success."""
        reply = self.ask("GET", path, **query)
        assert reply.status == 200, (path, reply.status, reply.body[:2000])
        return reply.json

    def submit(self, text: str, **fields: Any) -> dict[str, Any]:
        """Start a workflow from the text of its file; what the server answered."""
        body = {"name": "test", "rawSpecification": text} | fields
        reply = self.ask("POST", "/v4/workflows", body)
        assert reply.status == 200, (reply.status, reply.body[:2000])
        answer: dict[str, Any] = reply.json
        return answer

    def outcome(self, workflow: str, seconds: float = 60.0) -> str:
        """Wait until a workflow has ended; its status, such as STAGE_STATUS_FINISHED."""
        ended = ("STAGE_STATUS_FINISHED", "STAGE_STATUS_FAILED", "STAGE_STATUS_CANCELED")

        def status() -> str | None:
            found = self.get(f"/v4/workflows/{quote(workflow)}:status")["workflowStatus"]
            return found if found in ended else None

        return until(status, seconds)


def end_keepers(folder: Path) -> None:
    """End what keepers below the folder still run, and them."""
    for lock in folder.rglob("keeper.lock"):
        pid = lock.read_text().strip()
        command = Path(f"/proc/{pid}/cmdline")
        if pid and command.is_file() and str(lock.parent) in command.read_text():
            os.kill(int(pid), signal.SIGTERM)


def until(look: Callable[[], T | None], seconds: float = 60.0) -> T:
    """What `look` finds once it finds something. Fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found is not None and found is not False:
            return found
        assert time.monotonic() < deadline, "what was waited for did not come"
        time.sleep(0.01)


ServerMaker = Callable[..., YardServer]


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[ServerMaker]:
    """Makes servers; their settings are given as keyword arguments (`node_cores=2`)."""
    made: list[YardServer] = []

    def make(token: str = "", **settings: Any) -> YardServer:
        folder = tmp_path / f"server{len(made)}"
        folder.mkdir()
        flags = {name.replace("_", "-"): value for name, value in settings.items()}
        server = YardServer(folder, flags)
        server.token = token
        made.append(server)
        return server

    yield make
    for server in made:
        if server.process is not None:
            server.kill()


@pytest.fixture
def yard_server(make_server: ServerMaker) -> YardServer:
    """A running server with one embedded node of 2 cores."""
    return make_server(node_cores=2, node_memory="1GiB").start()
