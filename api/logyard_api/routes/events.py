"""What happens, as it happens: server-sent events, lines of JSON, or one question at a time."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from logyard_api.bodies import Answer, Body, Count, Reply, encode
from logyard_api.choice import Choice, Sieve
from logyard_api.errors import invalid
from logyard_api.operations import Routes
from logyard_api.tail import BATCH_MAX
from logyard_api.telling import Telling
from logyard_api.yard import SEEN_S, Yard
from logyard_domain.records import Record
from logyard_projections.answers.streams import CloudEvent
from logyard_projections.entities import OF_ENTITY

PASSED_S = 1.0
"""How often a listener is told of a position at which nothing was chosen."""
KEEP_ALIVE_S = 15.0
LINES = "application/x-ndjson"
SSE = "text/event-stream"
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]
WaitSeconds = Annotated[float, msgspec.Meta(ge=0, le=60)]

routes = Routes("events")


class EventsQuery(Body, frozen=True):
    """Which events, and from where on.

    after: position after which to begin; the end of the log when absent, also as Last-Event-ID
    workflow: events of this workflow
    group: events of workflows of this group
    type: prefixes of event types, such as `workflow.` or `allocation.ended`
    node: events of this node and of what runs on it
    sentences: `true` adds to each event what it says in a line for people
    follow: `false` ends the stream at the end of the log; then `after` is 0 when absent
    """

    after: Count | None = None
    workflow: str | None = None
    group: str | None = None
    type: tuple[str, ...] = ()
    node: str | None = None
    sentences: bool = False
    follow: bool = True


class PollQuery(Body, frozen=True):
    """Which events, and how long to wait for the first.

    after: position after which to begin
    limit: most records to look at, up to 1000
    waitSeconds: how long to wait when there is nothing yet, at most 60
    workflow: events of this workflow
    group: events of workflows of this group
    type: prefixes of event types
    node: events of this node and of what runs on it
    sentences: `true` adds to each event what it says in a line for people
    """

    after: Count = 0
    limit: Limit = 100
    wait_seconds: WaitSeconds = 0.0
    workflow: str | None = None
    group: str | None = None
    type: tuple[str, ...] = ()
    node: str | None = None
    sentences: bool = False


class Events(Reply, frozen=True):
    """Some events, in order.

    events: the events that were chosen
    position: where to go on: the last position that was looked at
    """

    events: list[CloudEvent]
    position: int


class LogQuery(Body, frozen=True):
    """Which records.

    after: position after which to begin
    limit: most records to answer, up to 1000
    """

    after: Count = 0
    limit: Limit = 100


class LogRecords(Reply, frozen=True):
    """Records of the log as they are written, and the position of the last one.

    records: each with position, at, cluster, actor, cause, event and chain
    position: where to go on
    """

    records: list[dict[str, Any]]
    position: int


@routes.add(
    "GET",
    "/v4/events",
    media=(SSE, LINES),
    headers={"Last-Event-ID": "position after which to begin; counts before `after`"},
)
async def follow_events(request: Request, yard: Yard, query: EventsQuery) -> Response:
    """Follow what happens, from any position, without a gap.

    Server-sent events: `id` is the position, `event` the type, `data` a CloudEvent 1.0. A listener
    that connects again sends Last-Event-ID. With `Accept: application/x-ndjson` the same events are
    lines of JSON.
    """
    start = _start(request, yard, query)
    lines = LINES in request.headers.get("accept", "")
    stream = (_lines if lines else _sse)(yard, start, query)
    return StreamingResponse(stream, media_type=LINES if lines else SSE, headers=_UNBUFFERED)


_UNBUFFERED = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@routes.add("GET", "/v4/events:poll")
async def poll_events(yard: Yard, query: PollQuery) -> Answer[Events]:
    """Ask for the next events, and wait a while when there are none.

    `position` is where to go on, also when no event was chosen.
    """
    _position(yard, query.after, "after")
    if query.wait_seconds:
        await yard.tail.beyond(query.after, query.wait_seconds)
    records = await yard.tail.after(query.after, query.limit)
    sieve = _sieve(yard, query)
    found = await Telling(yard, query).events(await _chosen(yard, records, sieve))
    position = int(records[-1].position) if records else query.after
    return Answer(Events(events=found, position=position), position)


@routes.add("GET", "/v4/log")
async def read_log(yard: Yard, query: LogQuery) -> Answer[LogRecords]:
    """Read records of the log as they are, with the chain that proves them."""
    _position(yard, query.after, "after")
    records = await yard.tail.after(query.after, query.limit)
    position = int(records[-1].position) if records else query.after
    found = [msgspec.to_builtins(record) for record in records]
    return Answer(LogRecords(records=found, position=position), position)


def _start(request: Request, yard: Yard, query: EventsQuery) -> int:
    last = request.headers.get("last-event-id", "")
    if last:
        if not last.isascii() or not last.isdigit():
            raise invalid(f"Last-Event-ID: {last[:40]!r} is no position; ids are positions")
        return _position(yard, int(last), "Last-Event-ID")
    if query.after is None:
        return yard.tail.position if query.follow else 0
    return _position(yard, query.after, "after")


def _position(yard: Yard, position: int, where: str) -> int:
    end = max(yard.tail.position, yard.loop.position)
    if not 0 <= position <= end:
        raise invalid(f"{where}: {position} is no position of this log, which ends at {end}")
    return position


def _sieve(yard: Yard, query: EventsQuery | PollQuery) -> Sieve | None:
    choice = Choice(query.workflow or "", query.group or "", query.node or "", tuple(query.type))
    if choice.everything:
        return None
    return Sieve(choice)


async def _chosen(yard: Yard, records: Sequence[Record], sieve: Sieve | None) -> Sequence[Record]:
    if sieve is None or not records:
        return records
    if sieve.by_type:
        return [record for record in records if sieve.right_type(record)]
    if any(isinstance(record.event, OF_ENTITY) for record in records):
        # Whom they concern is known once the views have seen who came before.
        await yard.views.reach(records[-1].position, SEEN_S)
    return await yard.views.ask(
        lambda view: [record for record in records if sieve.wants(record, view)]
    )


async def _sse(yard: Yard, start: int, query: EventsQuery) -> AsyncIterator[bytes]:
    sieve, telling = _sieve(yard, query), Telling(yard, query)
    yield f": from position {start}\n\n".encode()
    said_at = yard.clock.monotonic()
    async for records, position in _batches(yard, start, query.follow):
        chosen = await _chosen(yard, records, sieve)
        now = yard.clock.monotonic()
        if chosen:
            yield b"".join(map(_frame, await telling.events(chosen)))
        elif not records:
            yield b": alive\n\n"
        elif now - said_at >= PASSED_S:
            # Nothing was chosen; who connects again need not go through all of it again.
            yield b"id: %d\n\n" % position
        else:
            continue
        said_at = now
    if query.follow:
        yield b": the server is stopping\n\n"


async def _lines(yard: Yard, start: int, query: EventsQuery) -> AsyncIterator[bytes]:
    sieve, telling = _sieve(yard, query), Telling(yard, query)
    async for records, _ in _batches(yard, start, query.follow):
        chosen = await telling.events(await _chosen(yard, records, sieve))
        yield b"".join(encode(event) + b"\n" for event in chosen) or b"\n"


async def _batches(
    yard: Yard, position: int, follow: bool
) -> AsyncIterator[tuple[Sequence[Record], int]]:
    """Records in order with the position of the last; an empty batch is a sign of life."""
    tail = yard.tail
    while not tail.closed:
        records = await tail.after(position, BATCH_MAX)
        if records:
            position = int(records[-1].position)
            yield records, position
        elif not follow:
            return
        elif not await tail.beyond(position, KEEP_ALIVE_S) and not tail.closed:
            yield (), position


def _frame(event: CloudEvent) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (
        event.logyardposition,
        event.type.encode(),
        encode(event),
    )
