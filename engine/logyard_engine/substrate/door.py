"""A connection to a server over HTTP/1.1, kept open between requests; for one thread."""

import http.client
import ssl
from urllib.parse import urlsplit

import msgspec

from logyard_domain.commands import Refused

TIMEOUT_S = 30.0
JSON = "application/json"
BINARY = "application/octet-stream"

_KINDS = {400: "invalid", 404: "missing", 409: "conflict"}


class _Status(msgspec.Struct):
    message: str = ""


class Door:
    """`url` is the server's, with ``http`` or ``https``; `token` is sent as bearer, where not
    empty.
    """

    def __init__(self, url: str, token: str = "", timeout_s: float = TIMEOUT_S) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no server; one looks like http://yard.example:8080")
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port
        self._prefix = parts.path.rstrip("/")
        self._timeout_s = timeout_s
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connection: http.client.HTTPConnection | None = None

    def send(self, method: str, path: str, body: object = None, length: int | None = None) -> bytes:
        """One request; the answer's body. `body` is bytes or an open file of `length` bytes.

        Raises Refused where the server says that the request is wrong, OSError for everything
        that another try may cure.
        """
        try:
            with self.open(method, path, body, length) as response:
                return response.read()
        except http.client.HTTPException as error:
            self.close()
            raise ConnectionError(f"{method} {path}: {error!r}") from error

    def open(
        self, method: str, path: str, body: object = None, length: int | None = None
    ) -> http.client.HTTPResponse:
        """Like `send`, but the answer is to be read by the caller as it comes."""
        fresh = self._connection is None
        try:
            response = self._answer(method, path, body, length)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if fresh or not isinstance(body, bytes | None) or isinstance(error, TimeoutError):
                raise ConnectionError(f"{method} {path}: {error}") from error
            # The server has closed a connection that was idle.
            response = self._retried(method, path, body)
        if response.status < 300:
            return response
        text = response.read().decode("utf-8", "replace")
        try:
            text = msgspec.json.decode(text, type=_Status).message or text
        except msgspec.DecodeError:
            text = text[:200]
        message = f"{method} {path}: {response.status} {response.reason}: {text}"
        if response.status in _KINDS:
            raise Refused(message, _KINDS[response.status])
        raise ConnectionError(message)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _retried(self, method: str, path: str, body: object) -> http.client.HTTPResponse:
        try:
            return self._answer(method, path, body, None)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise ConnectionError(f"{method} {path}: {error}") from error

    def _answer(
        self, method: str, path: str, body: object, length: int | None
    ) -> http.client.HTTPResponse:
        if self._connection is None:
            self._connection = self._connected()
        headers = dict(self._headers)
        if isinstance(body, bytes):
            length = len(body)
        if body is not None:
            headers["Content-Type"] = JSON if path.startswith("/v4/substrate/") else BINARY
        if length is not None:
            headers["Content-Length"] = str(length)
        self._connection.request(method, self._prefix + path, body, headers)  # type: ignore[arg-type]
        return self._connection.getresponse()

    def _connected(self) -> http.client.HTTPConnection:
        if self._secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout_s, context=context
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)
