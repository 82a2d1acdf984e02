"""The stream of events: read it in order, and go on where it broke off."""

import json
import time
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from logyard_api.cli.client import Client, Query
from logyard_api.cli.outcomes import NoServer
from logyard_api.cli.output import say

Event = Mapping[str, Any]
PATIENCE_S = 60.0
"""How long a stream that broke off is tried again before the command gives up."""


def past(client: Client, query: Query) -> Iterator[Event]:
    """The events up to the present end of the log."""
    for line in client.lines(
        "/events", {**query, "follow": False}, {"Accept": "application/x-ndjson"}
    ):
        if line:
            yield json.loads(line)


def following(client: Client, query: Query, after: int) -> Generator[Event]:
    """The events after a position, for ever. A broken stream is taken up after the last one seen.

    Raises NoServer when the server stays away for longer than `PATIENCE_S`.
    """
    lost_at: float | None = None
    while True:
        try:
            for event in _server_sent(client, {**query, "after": after}):
                if lost_at is not None:
                    say(f"the server is back; the stream goes on after position {after:,}")
                    lost_at = None
                after = int(event["logyardposition"])
                yield event
        except NoServer as trouble:
            now = time.monotonic()
            if lost_at is None:
                lost_at = now
                say(trouble.message.partition("\n")[0] + "; trying again")
            elif now - lost_at > PATIENCE_S:
                raise
        time.sleep(0.5)


def _server_sent(client: Client, query: Query) -> Iterator[Event]:
    """Server-sent events: the `data` lines between empty lines; comments keep the line alive."""
    data: list[bytes] = []
    for line in client.lines("/events", query, {"Accept": "text/event-stream"}):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            yield json.loads(b"\n".join(data))
            data = []
