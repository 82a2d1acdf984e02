"""HTTP to a Logyard server: one connection kept alive, JSON in and out, streams line by line.

Built on the standard library alone, because loading a larger HTTP library costs more than most
commands take.
"""

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from logyard_api.cli.outcomes import Answered, NoServer
from logyard_api.cli.places import Place

BASE = "/v4"
TIMEOUT_S = 30.0
STREAM_SILENCE_S = 90.0
"""Streams send a keep-alive more often than this; a longer silence is a dead connection."""
BUSY_TRIES = 6
"""A full inbox is asked again this often, first after 50 ms, then after twice as long each time."""

Query = Mapping[str, str | int | bool | list[str] | None]


class Reply(NamedTuple):
    """What a server answered: its status, the position of the view (0: none) and the bytes."""

    status: int
    position: int
    body: bytes

    def json(self) -> Any:
        """The body as a value. Raises NoServer where it is no JSON."""
        try:
            return json.loads(self.body) if self.body else {}
        except ValueError:
            raise NoServer(_stranger(self.status, self.body)) from None


class Client:
    """Asks one server. Raises NoServer, Answered. With `at`, what it gets is as of that moment."""

    def __init__(self, place: Place, at: str = "") -> None:
        self.place = place
        self._at = at
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        trouble: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def get(self, path: str, query: Query | None = None) -> Any:
        """The JSON that `path` (below the base) answers with."""
        if self._at:
            query = {**(query or {}), "at": self._at}
        return self.ask("GET", path, query).json()

    def post(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Any:
        """The JSON answer to a JSON body."""
        return self.ask("POST", path, body=body, headers=headers).json()

    def patch(self, path: str, body: Any, query: Query | None = None) -> Any:
        """The JSON answer to a JSON body."""
        return self.ask("PATCH", path, query, body=body).json()

    def put(self, path: str, query: Query) -> Any:
        """The JSON answer."""
        return self.ask("PUT", path, query).json()

    def delete(self, path: str, query: Query | None = None) -> Any:
        """The JSON answer."""
        return self.ask("DELETE", path, query).json()

    def pages(self, path: str, items: str, query: Query, most: int = 0) -> list[Any]:
        """Every item of a paged list, or the first `most` (0: all)."""
        found: list[Any] = []
        token = ""
        while True:
            size = min(1000, most - len(found)) if most else 1000
            page = self.get(path, {**query, "pageSize": size, "pageToken": token or None})
            found += page.get(items, [])
            token = page.get("pageToken", "")
            if not token or (most and len(found) >= most):
                return found

    def ask(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """One request and its whole answer."""
        for attempt in range(BUSY_TRIES):
            response = self._exchange(method, path, query, body, headers, TIMEOUT_S)
            data = response.read()
            position = int(response.getheader("Logyard-Position") or 0)
            if response.status < 300:
                return Reply(response.status, position, data)
            trouble = _trouble(response.status, data)
            if response.status != 503 or attempt == BUSY_TRIES - 1:
                raise trouble
            time.sleep(0.05 * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def lines(
        self, path: str, query: Query | None = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[bytes]:
        """The lines of a stream as they come, without line ends, until the server ends it."""
        response = self._exchange("GET", path, query, None, headers, STREAM_SILENCE_S)
        if response.status >= 300:
            raise _trouble(response.status, response.read())
        try:
            while line := response.readline():
                yield line.rstrip(b"\r\n")
        except (OSError, http.client.HTTPException) as trouble:
            raise NoServer(f"the stream from {self.place.url} broke off: {trouble}") from trouble
        finally:
            self.close()

    def chunks(self, path: str, query: Query | None = None) -> Iterator[bytes]:
        """The bytes of a body as they come, in pieces of any size."""
        response = self._exchange("GET", path, query, None, None, STREAM_SILENCE_S)
        if response.status >= 300:
            raise _trouble(response.status, response.read())
        try:
            while piece := response.read1(65536):
                yield piece
        except (OSError, http.client.HTTPException) as trouble:
            raise NoServer(f"the stream from {self.place.url} broke off: {trouble}") from trouble
        finally:
            self.close()

    def _exchange(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Any,
        headers: Mapping[str, str] | None,
        timeout_s: float,
    ) -> http.client.HTTPResponse:
        sent = {"Accept": "application/json", **(headers or {})}
        if self.place.token:
            sent["Authorization"] = f"Bearer {self.place.token}"
        data: bytes | None = None
        if body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        target = self.place.prefix + BASE + path + _query(query)
        reused = self._connection is not None
        while True:
            connection = self._connected()
            if connection.sock is not None:
                connection.sock.settimeout(timeout_s)
            try:
                connection.request(method, target, data, sent)
                return connection.getresponse()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as gone:
                self.close()
                # A kept connection may have been closed meanwhile; a new one says how things are.
                if not reused:
                    raise NoServer(self._nobody(gone)) from gone
                reused = False
            except (OSError, http.client.HTTPException) as trouble:
                self.close()
                raise NoServer(self._nobody(trouble)) from trouble

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            address = urlsplit(self.place.url)
            kind = (
                http.client.HTTPSConnection
                if address.scheme == "https"
                else http.client.HTTPConnection
            )
            self._connection = kind(address.hostname or "", address.port, timeout=TIMEOUT_S)
            try:
                self._connection.connect()
            except OSError as trouble:
                self._connection = None
                raise NoServer(self._nobody(trouble)) from trouble
        return self._connection

    def _nobody(self, trouble: BaseException) -> str:
        reason = getattr(trouble, "strerror", None) or str(trouble) or type(trouble).__name__
        return (
            f"no server answers at {self.place.url} ({self.place.origin}): {reason}\n"
            "start one with `logyard serve`, or name another with --server URL, LOGYARD_SERVER"
            " or `logyard context use NAME`"
        )


def segment(text: str) -> str:
    """`text` as one segment of a path."""
    return quote(text, safe="")


def _query(query: Query | None) -> str:
    pairs: list[tuple[str, str]] = []
    for key, value in (query or {}).items():
        if isinstance(value, list):
            pairs += [(key, item) for item in value]
        elif isinstance(value, bool):
            pairs.append((key, "true" if value else "false"))
        elif value is not None:
            pairs.append((key, str(value)))
    return "?" + urlencode(pairs) if pairs else ""


def _trouble(status: int, body: bytes) -> Exception:
    try:
        told = json.loads(body)
        message, code = str(told["message"]), int(told["code"])
        details = list(told.get("details", []))
    except (ValueError, KeyError, TypeError):
        return NoServer(_stranger(status, body))
    if status == 401:
        message += "; give the token by LOGYARD_TOKEN or a context with --token-file"
    return Answered(status, code, message, details)


def _stranger(status: int, body: bytes) -> str:
    start = body[:200].decode(errors="replace").strip()
    return f"what answered with status {status} is no Logyard server: {start or 'empty body'}"
