"""The event stream: no gap, no repeat, whatever the listener does."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.api.flows import HUGE, ONE
from tests.services.server import ServerMaker, YardServer
from tests.services.stream import EventStream


@pytest.fixture
def server(make_server: ServerMaker) -> YardServer:
    return make_server(nodes=0).start()


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YardServer]:
    """A server for questions that change nothing."""
    server = YardServer(tmp_path_factory.mktemp("asked"), {"nodes": 0}).start()
    yield server
    assert server.stop() == 0


def test_a_listener_that_comes_and_goes_misses_nothing(server: YardServer) -> None:
    for _ in range(5):
        server.submit(HUGE)
    end = server.get("/v4/log", limit=1000)["position"]
    seen: list[int] = []
    last = 0
    while last < end:
        with EventStream(server, "/v4/events", {"Last-Event-ID": str(last)}) as stream:
            taken = stream.take(min(3, end - last))
        seen += [sent.position for sent in taken]
        last = seen[-1]
    assert seen == list(range(1, end + 1))


def test_live_events_follow_the_old_ones_without_a_gap(server: YardServer) -> None:
    with EventStream(server, "/v4/events?after=0") as stream, ThreadPoolExecutor(4) as pool:
        pending = [pool.submit(server.submit, HUGE) for _ in range(40)]
        ids = {future.result()["id"] for future in pending}
        found: set[str] = set()
        positions: list[int] = []
        for sent in stream:
            positions.append(sent.position)
            assert sent.data["id"] == str(sent.position) and sent.data["type"] == sent.type
            if sent.type == "logyard.workflow.submitted":
                found.add(sent.data["data"]["workflow"])
            if found == ids:
                break
    assert positions == list(range(1, len(positions) + 1))


def test_without_a_position_the_stream_begins_at_the_end(server: YardServer) -> None:
    before = server.submit(HUGE)
    with EventStream(server) as stream:
        after = server.submit(HUGE)
        first = stream.take(1)[0]
    assert first.position > before["position"]
    assert first.data["data"]["workflow"] == after["id"]


def test_filters_intersect(server: YardServer) -> None:
    one = server.submit(HUGE)["id"]
    server.submit(ONE)
    path = f"/v4/events?follow=false&workflow={one}&type=stage.&type=workflow.submitted"
    with EventStream(server, path) as stream:
        sent = [found for found in stream if found.type]
    assert {found.type for found in sent} == {"logyard.workflow.submitted", "logyard.stage.ready"}
    assert all(found.data["data"]["workflow"] == one for found in sent)
    with EventStream(server, "/v4/events?follow=false&group=default") as stream:
        groups = [found.type for found in stream if found.type]
    assert (
        groups.count("logyard.workflow.submitted") == 2 and "logyard.server.started" not in groups
    )
    with EventStream(server, "/v4/events?follow=false&group=nobody") as stream:
        assert [found for found in stream if found.type] == []


def test_lines_of_json_are_the_same_events(server: YardServer) -> None:
    server.submit(HUGE)
    with EventStream(server, "/v4/events?follow=false&sentences=true") as stream:
        events = [found.data for found in stream]
    headers = {"Accept": "application/x-ndjson"}
    query = {"follow": "false", "sentences": "true"}
    reply = server.ask("GET", "/v4/events", headers=headers, **query)
    assert [json.loads(line) for line in reply.body.splitlines()] == events


def test_polling_goes_on_where_it_was(server: YardServer) -> None:
    for _ in range(3):
        server.submit(HUGE)
    end = server.get("/v4/log", limit=1000)["position"]
    found: list[dict[str, Any]] = []
    position = 0
    while position < end:
        reply = server.get("/v4/events:poll", after=position, limit=4)
        found += reply["events"]
        position = reply["position"]
    assert [one["logyardposition"] for one in found] == list(range(1, end + 1))
    assert server.get("/v4/events:poll", after=end)["events"] == []
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(server.get, "/v4/events:poll", after=end, waitSeconds=30)
        server.submit(HUGE)
        assert waiting.result()["events"]


def test_the_stream_ends_when_the_server_does(server: YardServer) -> None:
    with EventStream(server) as stream, ThreadPoolExecutor(1) as pool:
        ended = pool.submit(lambda: [sent.type for sent in stream])
        assert server.stop() == 0
        assert ended.result() in ([], ["logyard.server.stopped"])
        assert "the server is stopping" in stream.comments


@pytest.mark.parametrize(
    ("path", "headers", "said"),
    [
        ("/v4/events?after=999999", {}, "after: 999999 is no position of this log"),
        ("/v4/events?after=-1", {}, "query: after: Expected `int` >= 0"),
        ("/v4/events", {"Last-Event-ID": "x7"}, "Last-Event-ID: 'x7' is no position"),
        ("/v4/events?workflw=x", {}, "did you mean `workflow`?"),
        ("/v4/events:poll?limit=0", {}, "limit: Expected `int`"),
        ("/v4/events:poll?waitSeconds=1000", {}, "waitSeconds: Expected `float` <= 60"),
        ("/v4/log?limit=5000", {}, "limit: Expected `int`"),
    ],
)
def test_wrong_questions_are_refused(
    asked: YardServer, path: str, headers: dict[str, str], said: str
) -> None:
    reply = asked.ask("GET", path, headers=headers)
    assert reply.status == 400 and said in reply.json["message"]


def test_the_stream_is_described(server: YardServer) -> None:
    document = server.get("/v4/asyncapi.json")
    assert document["asyncapi"] == "3.0.0"
    server.submit(HUGE)
    messages = document["components"]["messages"]
    with EventStream(server, "/v4/events?follow=false&sentences=true") as stream:
        for sent in stream:
            message = messages[sent.type.removeprefix("logyard.")]
            name = message["payload"]["allOf"][1]["properties"]["data"]["$ref"].rpartition("/")[2]
            assert set(sent.data["data"]) <= set(
                document["components"]["schemas"][name]["properties"]
            )
            assert set(sent.data) == set(
                document["components"]["schemas"]["CloudEvent"]["properties"]
            )
