"""The HTTP client, against real sockets that behave and misbehave."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from logyard_api.cli.client import BUSY_TRIES, Client
from logyard_api.cli.outcomes import Answered, NoServer
from logyard_api.cli.places import Place
from logyard_api.cli.stream import following

Answer = Callable[[BaseHTTPRequestHandler], None]


class Door:
    """An HTTP server that answers each request with the next of `answers`."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        door = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size)
                door.requests.append((self.command, self.path, dict(self.headers), body))
                door.answers.pop(0)(self)

            do_GET = do_POST = do_PATCH = do_DELETE = answer

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    @property
    def place(self) -> Place:
        return Place(f"http://127.0.0.1:{self.server.server_address[1]}", "secret", "test")

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def door() -> Iterator[Door]:
    with closing(Door()) as made:
        yield made


@pytest.fixture
def client(door: Door) -> Iterator[Client]:
    with Client(door.place) as made:
        yield made


def says(value: Any, status: int = 200, position: int = 0) -> Answer:
    """An answer in JSON."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        body = json.dumps(value).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.send_header("Logyard-Position", str(position))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def streams(*pieces: bytes) -> Answer:
    """An answer in pieces, whose end is the end of the connection."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        for piece in pieces:
            handler.wfile.write(piece)
            handler.wfile.flush()
        handler.close_connection = True

    return answer


def hangs_up(handler: BaseHTTPRequestHandler) -> None:
    """No answer: the connection just ends."""
    handler.close_connection = True


def test_a_question_carries_token_query_and_body(door: Door, client: Client) -> None:
    door.answers += [says({"a": 1}, position=7), says({})]
    reply = client.ask("GET", "/x", {"tag": ["a", "b&"], "on": True, "none": None, "n": 3})
    client.post("/y", {"é": 1}, {"Idempotency-Key": "k"})
    assert (reply.json(), reply.position) == ({"a": 1}, 7)
    (_, path, headers, _), (method, _, sent, body) = door.requests
    assert path == "/v4/x?tag=a&tag=b%26&on=true&n=3"
    assert headers["Authorization"] == "Bearer secret"
    assert (method, sent["Idempotency-Key"], json.loads(body)) == ("POST", "k", {"é": 1})


def test_pages_are_put_together(door: Door, client: Client) -> None:
    door.answers += [
        says({"nodes": [1, 2], "pageToken": "t"}),
        says({"nodes": [3], "pageToken": ""}),
        says({"nodes": [1, 2], "pageToken": "t"}),
    ]
    assert client.pages("/nodes", "nodes", {}) == [1, 2, 3]
    assert client.pages("/nodes", "nodes", {}, most=2) == [1, 2]
    assert "pageToken=t" in door.requests[1][1]


def test_a_kept_connection_that_was_closed_is_opened_again(door: Door, client: Client) -> None:
    def answers_and_goes(handler: BaseHTTPRequestHandler) -> None:
        says({"n": 1})(handler)
        handler.close_connection = True

    door.answers += [answers_and_goes, says({"n": 2})]
    assert client.get("/a") == {"n": 1}
    assert client.get("/a") == {"n": 2}


def test_a_server_that_always_hangs_up_is_no_server(door: Door, client: Client) -> None:
    door.answers += [hangs_up, hangs_up]
    with pytest.raises(NoServer):
        client.get("/a")


def test_an_error_of_the_server_is_told(door: Door, client: Client) -> None:
    door.answers += [says({"code": 5, "message": "no such workflow", "details": []}, 404)]
    with pytest.raises(Answered, match="no such workflow") as found:
        client.get("/a")
    assert (found.value.status, found.value.grpc_code, found.value.code) == (404, 5, 1)


def test_without_a_token_it_says_how_to_give_one(door: Door, client: Client) -> None:
    door.answers += [says({"code": 16, "message": "a token is needed", "details": []}, 401)]
    with pytest.raises(Answered, match="LOGYARD_TOKEN"):
        client.get("/a")


def test_a_full_inbox_is_tried_again(door: Door, client: Client) -> None:
    full = says({"code": 14, "message": "the inbox is full", "details": []}, 503)
    door.answers += [full, full, says({"id": "wf-1"})]
    assert client.post("/workflows", {}) == {"id": "wf-1"}
    door.answers += [full] * BUSY_TRIES
    with pytest.raises(Answered, match="full"):
        client.post("/workflows", {})
    assert not door.answers


def test_what_is_no_logyard_server_is_called_so(door: Door, client: Client) -> None:
    door.answers += [streams(b"hello"), says({"detail": "Not Found"}, 404)]
    with pytest.raises(NoServer, match="is no Logyard server"):
        client.get("/a")
    with pytest.raises(NoServer, match="is no Logyard server"):
        client.get("/a")


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(NoServer, match="no server answers") as found:
            Client(Place(url, "", "context lab")).get("/version")
    assert url in found.value.message
    assert "context lab" in found.value.message
    assert "logyard serve" in found.value.message


def event(position: int) -> bytes:
    data = json.dumps({"logyardposition": position})
    return f"id: {position}\nevent: x\ndata: {data}\n\n".encode()


def test_a_stream_goes_on_where_it_broke_off(door: Door, client: Client) -> None:
    door.answers += [
        streams(b": hello\n\n", event(5), event(6)),
        streams(event(7)[:20]),
        streams(event(7), event(8)),
    ]
    found = following(client, {"workflow": "wf-1"}, 4)
    assert [next(found)["logyardposition"] for _ in range(4)] == [5, 6, 7, 8]
    found.close()
    asked = [path.partition("?")[2] for _, path, _, _ in door.requests]
    assert asked == ["workflow=wf-1&after=4", "workflow=wf-1&after=6", "workflow=wf-1&after=6"]
