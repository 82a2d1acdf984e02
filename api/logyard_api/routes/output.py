"""What jobs print: read, followed until they end, and handed in by nodes on other machines."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Annotated, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from logyard_api.bodies import Body, Count, Reply, read, respond
from logyard_api.errors import invalid
from logyard_api.folders import aside
from logyard_api.operations import JSON, Routes, ViewQuery
from logyard_api.outputs import Output, far_file, write_piece
from logyard_api.yard import Yard
from logyard_engine.substrate.printed import Stream
from logyard_projections.stages import ALLOCATIONS, OVER, STAGES, Stage, allocation_key, stage_key
from logyard_projections.view import View

BINARY = "application/octet-stream"
LOOK_S = 0.1
"""How often a file that is followed is looked at."""
PIECE_BYTES_MAX = 8 * 1024 * 1024
Lines = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]

routes = Routes("output")


class OutputQuery(ViewQuery, frozen=True, kw_only=True):
    """Which output.

    name: the stage
    rank: of a task array; the first rank when absent
    attempt: which try; the last one when absent
    show.tail: only so many lines at the end
    show.follow: go on until the attempt has ended
    stream: `out` or `err`; both when absent
    raw: plain bytes instead of objects
    """

    name: str
    rank: Count | None = None
    attempt: Count | None = None
    tail: Lines | None = msgspec.field(default=None, name="show.tail")
    follow: bool = msgspec.field(default=False, name="show.follow")
    stream: Literal["out", "err"] | None = None
    raw: bool = False


class PieceQuery(Body, frozen=True, kw_only=True):
    """Where a piece of output belongs.

    allocation: the attempt that printed it
    stream: `out` or `err`
    offset: bytes that it printed before
    """

    allocation: str
    stream: Literal["out", "err"]
    offset: Count


class Size(Reply, frozen=True):
    """How much the server has.

    size: bytes of this stream
    """

    size: int


class _Standing(msgspec.Struct, frozen=True):
    """The attempt whose output is meant (0: none yet), its node, and whether more can come."""

    rank: int
    attempt: int
    node: str
    over: bool


@routes.add("GET", "/v4/workflows/{id}:log", media=(JSON, BINARY))
async def get_output(yard: Yard, id: str, query: OutputQuery) -> Response:
    """What a stage printed.

    A line for each piece: `{"result":{"output":BASE64}}`; with `raw` the bytes themselves. With
    `show.follow` it goes on until the attempt has ended.
    """
    await yard.must_know(id)
    absent = f"workflow {id!r} has no stage {query.name!r}, or no such rank; see its :status"
    await yard.find(lambda view: _standing(view, id, query), absent)
    pieces = _pieces(yard, id, query)
    if query.raw:
        return StreamingResponse(pieces, media_type=BINARY)
    return StreamingResponse(_wrapped(pieces), media_type=JSON)


@routes.add("POST", "/v4/workflows/{id}/output", sends=BINARY)
async def put_output(request: Request, yard: Yard, id: str, query: PieceQuery) -> Response:
    """Hand in what an attempt printed, from a node that shares no folder with the server.

    The same piece may be sent twice. An offset beyond what is there is refused, and says how much
    is there.
    """
    if not query.allocation.startswith(f"{id}/"):
        raise invalid(f"query: allocation: {query.allocation!r} is not of workflow {id!r}")
    path = far_file(yard.outputs, query.allocation, query.stream)
    await yard.must_know(id)
    data = await read(request, PIECE_BYTES_MAX)
    return respond(Size(size=await aside(lambda: write_piece(path, query.offset, data))))


def _standing(view: View, workflow: str, query: OutputQuery) -> _Standing | None:
    stage = view.get(STAGES, stage_key(workflow, query.name))
    if stage is None:
        return None
    rank = stage.first if query.rank is None else query.rank
    if not stage.first <= rank <= stage.last:
        return None
    attempts = _attempts(view, stage, rank)
    wanted = query.attempt or max(attempts, default=0)
    node, state = attempts.get(wanted, ("", ""))
    return _Standing(rank, wanted, node, stage.status in OVER or state == "ended")


def _attempts(view: View, stage: Stage, rank: int) -> dict[int, tuple[str, str]]:
    """Node and state of each attempt that was placed."""
    prefix = allocation_key(stage.workflow, stage.name, rank, 0).partition("#")[0] + "#"
    page = view.scan(ALLOCATIONS, prefix=prefix)
    return {
        row.attempt: (row.node, row.state)
        for row in page.rows
        if row.state not in ("waiting", "delayed")
    }


async def _pieces(yard: Yard, workflow: str, query: OutputQuery) -> AsyncIterator[bytes]:
    streams: tuple[Stream, ...] = (query.stream,) if query.stream else ("out", "err")
    offsets: dict[Stream, int] = {}
    attempt = query.attempt
    output: Output | None = None
    while True:
        standing = await _stands(yard, workflow, msgspec.structs.replace(query, attempt=attempt))
        if standing is None:
            return
        if standing.attempt:
            # Once begun, this attempt is followed, and not a later one.
            attempt = standing.attempt
            if output is None:
                name = f"{workflow}/{query.name}/{standing.rank}#{attempt}"
                output = Output(yard.outputs, standing.node, name)
            for stream in streams:
                async for piece in _rest(output, stream, offsets, query.tail):
                    yield piece
        if standing.over or not query.follow or yard.tail.closed:
            return
        await asyncio.sleep(LOOK_S)


async def _stands(yard: Yard, workflow: str, query: OutputQuery) -> _Standing | None:
    return (await yard.look(lambda view: _standing(view, workflow, query))).value


async def _rest(
    output: Output, stream: Stream, offsets: dict[Stream, int], lines: int | None
) -> AsyncIterator[bytes]:
    """What was printed since the last look."""
    if stream not in offsets:
        offsets[stream] = 0
        if lines is not None:
            offsets[stream] = await aside(lambda: output.tail_offset(stream, lines))
    while True:
        piece = await aside(lambda: output.read(stream, offsets[stream]))
        if not piece:
            return
        offsets[stream] += len(piece)
        yield piece


async def _wrapped(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for piece in pieces:
        yield b'{"result":{"output":"%s"}}\n' % b64encode(piece)
