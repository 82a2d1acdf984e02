"""Nodes on other machines: a real agent in its own process, over HTTP."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import pytest

from tests.api.flows import CHAIN
from tests.services.server import ServerMaker, YardServer, until

TOKEN = "a-token-for-tests-0123"
REGISTRATION: dict[str, Any] = {
    "type": "node.register",
    "node": "far",
    "capacity": {"cores": 2, "memory": 1 << 30},
    "incarnation": "1",
}

_AGENT = """
import sys
from pathlib import Path
from logyard_engine.substrate.node import run_substrate
sys.exit(run_substrate(sys.argv[1], Path(sys.argv[2]), name="far", token=sys.argv[3], cores=2))
"""


@pytest.fixture
def server(make_server: ServerMaker) -> YardServer:
    return make_server(token=TOKEN, nodes=0).start()


@pytest.fixture
def agent(server: YardServer, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-c", _AGENT, server.url, str(tmp_path / "agent"), TOKEN],
        env={**os.environ},
    )
    yield process
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_a_far_node_runs_work_and_hands_over_output(
    server: YardServer, agent: subprocess.Popen[bytes]
) -> None:
    id = server.submit(CHAIN)["id"]
    assert server.outcome(id) == "STAGE_STATUS_FINISHED"
    node = server.get("/v4/nodes/far")
    assert node["state"] == "up" and node["cores"] == 2
    path = f"/v4/workflows/{id}:log"
    assert server.ask("GET", path, name="first", raw="true", stream="out").body == b"one\n"
    assert server.ask("GET", path, name="first", raw="true", stream="err").body == b"two\n"


def test_a_far_node_comes_back_after_a_restart_of_the_server(
    server: YardServer, agent: subprocess.Popen[bytes]
) -> None:
    until(lambda: server.get("/v4/nodes")["nodes"] or None)
    server.flags["port"] = int(server.url.rpartition(":")[2])
    server.kill()
    server.start()
    id = server.submit(CHAIN)["id"]
    assert server.outcome(id) == "STAGE_STATUS_FINISHED"


def test_the_first_order_is_everything_and_a_new_stream_ends_the_old(server: YardServer) -> None:
    orders = "/v4/substrate/far/orders"
    unknown = server.ask("GET", orders)
    assert unknown.status == 404 and "register it first" in unknown.json["message"]
    assert server.ask("POST", "/v4/substrate/far:heartbeat").json["known"] is False
    reply = server.ask("POST", "/v4/substrate/far:register", REGISTRATION)
    assert reply.status == 200 and reply.json["position"] == server.get("/healthz")["position"]
    assert server.ask("POST", "/v4/substrate/far:heartbeat").json["known"] is True
    with ExitStack() as stack:

        def follow() -> HTTPResponse:
            connection, response = server.open("GET", orders)
            stack.callback(connection.close)
            stack.callback(response.close)
            return response

        old = follow()
        assert json.loads(old.readline())["type"] == "sync"
        new = follow()
        sync = json.loads(new.readline())
        assert sync["type"] == "sync" and not sync.get("starts")
        assert old.readline() == b""
        id = server.submit(CHAIN)["id"]
        task, start = json.loads(new.readline()), json.loads(new.readline())
    assert task["task"] == f"{id}/first" and start["allocation"] == f"{id}/first/0#1"
    report = {
        "type": "node.report",
        "node": "far",
        "ended": [{"allocation": start["allocation"], "outcome": "failed", "exit_code": 3}],
    }
    for _ in range(2):
        assert server.ask("POST", "/v4/substrate/far:report", report).status == 200
    assert server.outcome(id) == "STAGE_STATUS_FAILED"


def test_what_does_not_fit_is_refused(server: YardServer) -> None:
    for path, body, said in (
        ("/v4/substrate/near:register", REGISTRATION, "node is 'far' and the path names 'near'"),
        ("/v4/substrate/far:register", {**REGISTRATION, "type": "x"}, "type"),
        ("/v4/substrate/far:report", {"type": "node.report"}, "missing required field `node`"),
    ):
        reply = server.ask("POST", path, body)
        assert reply.status == 400 and said in reply.json["message"], reply.json
    bad = {**REGISTRATION, "node": "a b"}
    reply = server.ask("POST", "/v4/substrate/a%20b:register", bad)
    assert reply.status == 400 and "is no name for a node" in reply.json["message"]


def test_output_comes_in_pieces_that_may_be_sent_twice(server: YardServer) -> None:
    server.ask("POST", "/v4/substrate/far:register", REGISTRATION)
    id = server.submit(CHAIN)["id"]
    path = f"/v4/workflows/{id}/output?stream=out&allocation={id}/first/0%231"
    for offset, piece, size in ((0, b"hello ", 6), (6, b"world\n", 12), (0, b"hello ", 12)):
        reply = server.ask("POST", f"{path}&offset={offset}", piece)
        assert (reply.status, reply.json) == (200, {"size": size})
    hole = server.ask("POST", f"{path}&offset=99", b"x")
    assert hole.status == 400 and "the server has 12 bytes" in hole.json["message"]
    log = server.ask("GET", f"/v4/workflows/{id}:log", name="first", attempt=1, raw="true")
    assert log.body == b"hello world\n"
    for allocation in (f"{id}/../../x/0%231", f"{id}/nothing", "wf-other/first/0%231"):
        reply = server.ask(
            "POST", f"/v4/workflows/{id}/output?stream=out&offset=0&allocation={allocation}", b"x"
        )
        assert reply.status in (400, 404), allocation


def test_results_are_taken_whole_and_only_inside(server: YardServer) -> None:
    id = server.submit(CHAIN)["id"]
    path = f"/v4/workflows/{id}/results"
    content = os.urandom(300_000)
    stored = server.ask("PUT", f"{path}/a/b.bin", content)
    assert stored.json == {"path": "a/b.bin", "sizeBytes": 300_000}
    assert server.ask("PUT", f"{path}/a/b.bin", b"new").status == 200
    assert server.ask("GET", f"{path}/a/b.bin").body == b"new"
    assert server.get(path)["results"] == [{"path": "a/b.bin", "sizeBytes": 3}]
    for name in ("../x", "..%2F..%2Fx", "%2Fetc%2Fx", "a/", "a", "a/%00"):
        reply = server.ask("PUT", f"{path}/{name}", b"x")
        assert reply.status in (400, 404), name
    assert server.get(path)["results"] == [{"path": "a/b.bin", "sizeBytes": 3}]
    assert server.ask("PUT", "/v4/workflows/wf-none/results/x", b"x").status == 404
