"""Reading endless answers of a server in tests."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.services.server import YardServer


class Sent(NamedTuple):
    """One server-sent event; `type` is empty where only a position was sent."""

    position: int
    type: str
    data: dict[str, Any]


class EventStream:
    """An open stream of server-sent events. A line is waited for at most `timeout` seconds."""

    def __init__(
        self,
        server: YardServer,
        path: str = "/v4/events",
        headers: dict[str, str] | None = None,
        timeout: float = 30.0,
    ) -> None:
        opened = server.open("GET", path, headers=headers, timeout=timeout)
        self.connection: HTTPConnection = opened[0]
        self.response: HTTPResponse = opened[1]
        self.comments: list[str] = []
        assert self.response.status == 200, self.response.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        trouble: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.response.close()
        self.connection.close()

    def __iter__(self) -> Iterator[Sent]:
        """Events until the server ends the stream."""
        fields: dict[str, str] = {}
        while line := self.response.readline():
            text = line.decode().rstrip("\n")
            if text.startswith(":"):
                self.comments.append(text[1:].strip())
            elif text:
                name, _, value = text.partition(": ")
                fields[name] = value
            elif fields:
                yield Sent(
                    int(fields["id"]), fields.get("event", ""), json.loads(fields.get("data", "{}"))
                )
                fields = {}

    def take(self, count: int) -> list[Sent]:
        """The next `count` events."""
        found: list[Sent] = []
        for sent in self:
            found.append(sent)
            if len(found) == count:
                break
        return found
