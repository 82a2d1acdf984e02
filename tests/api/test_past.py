"""Questions about an earlier moment: the view as it was, from the log."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.flows import ONE, SLOW
from tests.services.server import YardServer

PATHS = ("/v4/queue", "/v4/queue/stats", "/v4/nodes", "/v4/workflows")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YardServer]:
    folder: Path = tmp_path_factory.mktemp("yard")
    server = YardServer(folder, {"node-cores": 2, "node-memory": "1GiB"}).start()
    yield server
    assert server.stop() == 0
    assert "Traceback" not in server.errors.read_text()


def test_every_view_answers_as_it_did(server: YardServer) -> None:
    id = server.submit(SLOW)["id"]
    running = server.ask("GET", "/v4/queue")
    then = {path: server.ask("GET", path, after=running.position) for path in PATHS}
    status = server.ask("GET", f"/v4/workflows/{id}:status", after=running.position)
    server.ask("PATCH", f"/v4/workflows/{id}:stop", {})
    server.outcome(id)
    for path, answer in then.items():
        again = server.ask("GET", path, at=answer.position)
        assert again.position == answer.position
        if path in ("/v4/nodes", "/v4/workflows"):
            assert again.json == answer.json
    now = server.get(f"/v4/workflows/{id}:status")
    assert now != status.json
    was = server.ask("GET", f"/v4/workflows/{id}:status", at=status.position)
    assert was.json == status.json
    before = server.ask("GET", f"/v4/workflows/{id}:status", at=1)
    assert before.status == 404


def test_a_time_names_the_last_position_before_it(server: YardServer) -> None:
    id = server.submit(ONE)["id"]
    server.outcome(id)
    end = server.ask("GET", "/v4/workflows").position
    assert server.ask("GET", "/v4/workflows", at="2100-01-01T00:00:00Z").position == end
    assert server.ask("GET", "/v4/workflows", at="2001-01-01").position == 0
    assert server.ask("GET", "/v4/workflows", at="9000h").json["workflows"] == []


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("10000000", "at: 10000000 is not written yet; the log ends at"),
        ("yesterday", "at: 'yesterday' is neither a position, nor a time, nor how long ago"),
    ],
)
def test_what_is_no_moment_is_refused(server: YardServer, at: str, said: str) -> None:
    reply = server.ask("GET", "/v4/queue", at=at)
    assert reply.status == 400
    assert said in reply.json["message"]
