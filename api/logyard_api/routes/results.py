"""The files that a workflow leaves: listed, fetched, and handed in by nodes."""

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from logyard_api.bodies import Answer, Reply, respond
from logyard_api.errors import missing
from logyard_api.folders import aside, inside, listed, store
from logyard_api.operations import Routes
from logyard_api.yard import Yard

BINARY = "application/octet-stream"
RESULT_BYTES_MAX = 256 * 1024**3
RESULTS_MAX = 10_000
"""Files that one answer lists."""

routes = Routes("results")


class Result(Reply, frozen=True):
    """A file that a workflow left.

    path: below the results of the workflow
    sizeBytes: its size
    """

    path: str
    size_bytes: int


class Results(Reply, frozen=True):
    """The files that a workflow left.

    results: sorted by path
    position: of the log
    """

    results: list[Result]
    position: int


class Stored(Reply, frozen=True):
    """A file that was handed in.

    path: below the results of the workflow
    sizeBytes: its size
    """

    path: str
    size_bytes: int


@routes.add("GET", "/v4/workflows/{id}/results")
async def list_results(yard: Yard, id: str) -> Answer[Results]:
    """List the files that a workflow left with egress to results://."""
    folder = inside(yard.results, id)
    position = yard.loop.position
    found = await aside(lambda: listed(folder, RESULTS_MAX))
    if not found:
        await yard.must_know(id)
    results = [Result(path=one.path, size_bytes=one.size) for one in found]
    return Answer(Results(results=results, position=position), position)


@routes.add("GET", "/v4/workflows/{id}/results/{path:path}", media=(BINARY,))
async def get_result(yard: Yard, id: str, path: str) -> Response:
    """Fetch one file; parts of it with a Range header."""
    file = inside(inside(yard.results, id), path)
    if not await aside(file.is_file):
        raise missing(f"workflow {id} has no result {path!r}; list its results")
    return FileResponse(file, media_type=BINARY, filename=file.name)


@routes.add("PUT", "/v4/workflows/{id}/results/{path:path}", sends=BINARY)
async def put_result(request: Request, yard: Yard, id: str, path: str) -> Response:
    """Hand in a file from a node: whole or not at all. It replaces one of that name."""
    file = inside(inside(yard.results, id), path)
    await yard.must_know(id)
    size = await store(file, request.stream(), RESULT_BYTES_MAX)
    return respond(Stored(path=path, size_bytes=size))
