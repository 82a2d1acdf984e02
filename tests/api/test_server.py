"""The life of the server process: start, end, failure, and who may talk to it."""

import json
import stat
from pathlib import Path

import pytest

import logyard
from logyard_domain.events import ServerStopped
from logyard_domain.identifiers import Millis
from logyard_domain.records import Entry
from logyard_engine.log.opening import open_log
from tests.api.flows import HUGE
from tests.services.server import NotStarted, ServerMaker, YardServer

TOKEN = "a-token-for-tests-0123"


def test_it_says_where_it_listens_and_cleans_up(make_server: ServerMaker) -> None:
    server = make_server(nodes=0).start()
    file = server.folder / "data" / "server.json"
    told = json.loads(file.read_text())
    assert told["url"] == server.url and server.process is not None
    assert told["pid"] == server.process.pid
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    version = server.get("/v4/version")
    assert (version["version"], version["logyard"]) == ("v4.1.0", logyard.__version__)
    assert version["cluster"] == "main"
    assert server.get("/readyz")["status"] == "ok"
    assert server.stop() == 0
    assert not file.exists()
    assert "Traceback" not in server.errors.read_text()


def test_what_was_acknowledged_is_there_after_a_clean_end_and_after_a_kill(
    make_server: ServerMaker,
) -> None:
    server = make_server(nodes=0).start()
    first = server.submit(HUGE, workflowId="k1")
    assert server.stop() == 0
    assert list((server.folder / "data" / "snapshots").glob("*.snapshot"))
    server.start()
    again = server.submit(HUGE, workflowId="k1")
    assert again["id"] == first["id"] and again["created"] is False
    second = server.submit(HUGE, workflowId="k2")
    server.kill()
    server.start()
    again = server.submit(HUGE, workflowId="k2")
    assert again["id"] == second["id"] and again["created"] is False
    records = server.get("/v4/log", limit=1000)["records"]
    assert [one["position"] for one in records] == list(range(1, len(records) + 1))
    terms = [one["event"]["term"] for one in records if one["event"]["type"] == "server.started"]
    assert terms == [1, 2, 3]
    assert server.stop() == 0


def test_a_second_server_on_the_folder_refuses(make_server: ServerMaker) -> None:
    server = make_server(nodes=0).start()
    other = make_server(nodes=0, data=server.flags["data"])
    with pytest.raises(NotStarted, match="in use by the server with process id"):
        other.start()
    assert other.code == 1
    assert server.get("/healthz")["status"] == "ok"


def test_a_taken_port_is_named(make_server: ServerMaker) -> None:
    server = make_server(nodes=0).start()
    port = int(server.url.rpartition(":")[2])
    other = make_server(nodes=0, port=port)
    with pytest.raises(NotStarted, match=f"127.0.0.1:{port}: Address already in use"):
        other.start()


def test_a_log_of_another_cluster_is_refused(make_server: ServerMaker) -> None:
    server = make_server(nodes=0, cluster="one").start()
    assert server.stop() == 0
    server.flags["cluster"] = "two"
    with pytest.raises(NotStarted, match="cluster 'one', not of 'two'"):
        server.start()


def test_decisions_are_set_when_they_differ(make_server: ServerMaker) -> None:
    server = make_server(nodes=0, decisions={"node.lostAfter": 5000}).start()
    assert server.stop() == 0
    server.start()
    assert server.stop() == 0
    server.flags["decisions"] = {"workflow.killGrace": 7}
    server.start()
    records = server.get("/v4/log", limit=1000)["records"]
    revisions = [one["event"] for one in records if one["event"]["type"] == "config.set"]
    assert [one["revision"] for one in revisions] == [1, 2]
    assert revisions[1]["values"]["node.lostAfter"] == 5000
    assert revisions[1]["values"]["workflow.killGrace"] == 7


def test_a_token_is_wanted_everywhere_but_at_the_open_doors(make_server: ServerMaker) -> None:
    server = make_server(token=TOKEN, nodes=0).start()
    assert server.get("/v4/workflows")["workflows"] == []
    server.token = ""
    for path in ("/v4/version", "/healthz", "/readyz"):
        assert server.ask("GET", path).status == 200
    for path in ("/v4/workflows", "/v4/events", "/metrics", "/openapi.json", "/nowhere"):
        reply = server.ask("GET", path)
        assert reply.status == 401 and reply.json["code"] == 16, path
        assert reply.headers["www-authenticate"] == "Bearer"
    wrong = {"Authorization": "Bearer not-the-token-at-all"}
    assert server.ask("GET", "/v4/workflows", headers=wrong).status == 401


def test_a_lost_log_stops_the_writer_and_the_process(make_server: ServerMaker) -> None:
    server = make_server(nodes=0).start()
    server.submit(HUGE)
    _forge(server)
    reply = server.ask("POST", "/v4/workflows", {"name": "x", "rawSpecification": HUGE})
    assert reply.status == 503 and reply.json["code"] == 14
    assert server.process is not None
    assert server.process.wait(30) == 1
    assert "logyard stopped, nothing more is written" in server.errors.read_text()


def _forge(server: YardServer) -> None:
    """Append behind the server's back, as a second writer would."""
    log = open_log(Path(server.flags["data"]), "main")
    log.append([Entry(ServerStopped(term=9), Millis(1), "test", "test")])
    log.close()


def test_a_wrong_setting_stops_the_start(make_server: ServerMaker) -> None:
    server = make_server(nodes=0, node_memory="much")
    with pytest.raises(NotStarted, match="`much` is no size"):
        server.start()
    assert server.code == 2


def test_logs_are_objects_where_that_is_asked(make_server: ServerMaker) -> None:
    server = make_server(nodes=0, log_format="json", log_level="debug").start()
    server.get("/v4/version")
    assert server.stop() == 0
    lines = [json.loads(line) for line in server.errors.read_text().splitlines()]
    assert all({"time", "level", "logger", "message"} <= set(line) for line in lines)
    ready = next(line for line in lines if line["message"] == "ready")
    assert ready["url"] == server.url and ready["level"] == "info"
    asked = next(line for line in lines if line["message"] == "GET /v4/version")
    assert (asked["operation"], asked["status"]) == ("get_version", 200)
