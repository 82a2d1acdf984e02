"""Workflows over the API, with real jobs on a real node."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from tests.api.flows import BROKEN, CHAIN, HUGE, ONE, SLOW
from tests.services.server import YardServer, until

FINISHED = "STAGE_STATUS_FINISHED"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YardServer]:
    folder: Path = tmp_path_factory.mktemp("yard")
    server = YardServer(folder, {"node-cores": 2, "node-memory": "1GiB"}).start()
    yield server
    assert server.stop() == 0
    assert "Traceback" not in server.errors.read_text()


def test_a_workflow_runs_and_is_told(server: YardServer) -> None:
    started = server.submit(CHAIN, name="chain")
    id = started["id"]
    assert started["created"] is True and started["warnings"] == []
    assert server.outcome(id) == FINISHED
    status = server.get(f"/v4/workflows/{id}:status")
    assert [one["name"] for one in status["status"]["stages"]] == ["first", "second"]
    assert {one["status"] for one in status["status"]["stages"]} == {FINISHED}
    assert status["name"] == "chain" and status["startTime"] <= status["endTime"]
    whole = server.get(f"/v4/workflows/{id}")
    assert whole["rawSpecification"] == CHAIN and whole["totalJobs"] == 2
    assert json.loads(base64.b64decode(whole["specification"])) == yaml.safe_load(CHAIN)
    facts = server.get(f"/v4/workflows/{id}:facts")
    assert facts["status"] == "finished" and facts["finishedJobs"] == 2
    found = server.get(f"/v4/workflows/{id}/allocations")["allocations"]
    assert [one["id"] for one in found] == [f"{id}/first/0#1", f"{id}/second/0#1"]
    assert all(one["details"]["exitCode"] == 0 for one in found)


def test_output_is_kept_by_stream(server: YardServer) -> None:
    id = server.submit(CHAIN)["id"]
    assert server.outcome(id) == FINISHED
    path = f"/v4/workflows/{id}:log"
    assert server.ask("GET", path, name="first", raw="true", stream="out").body == b"one\n"
    assert server.ask("GET", path, name="first", raw="true", stream="err").body == b"two\n"
    assert server.ask("GET", path, name="second", raw="true").body == b"second\n"
    lines = server.ask("GET", path, name="first").body.splitlines()
    pieces = [base64.b64decode(json.loads(line)["result"]["output"]) for line in lines]
    assert b"".join(pieces) == b"one\ntwo\n"
    reply = server.ask("GET", path, name="frist")
    assert reply.status == 404 and "has no stage 'frist'" in reply.json["message"]


def test_output_is_followed_until_the_end(server: YardServer, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    text = f"""version: v4
jobs:
  talk:
    script: |
      for n in $(seq 2000); do echo line $n; done
      while [ ! -e {gate} ]; do sleep 0.05; done
      echo end
"""
    id = server.submit(text)["id"]
    query = "name=talk&raw=true&stream=out&show.follow=true"
    connection, response = server.open("GET", f"/v4/workflows/{id}:log?{query}")
    seen = [response.readline() for _ in range(2000)]
    gate.touch()
    seen.append(response.readline())
    assert response.readline() == b""
    response.close()
    connection.close()
    assert seen == [b"line %d\n" % n for n in range(1, 2001)] + [b"end\n"]
    assert server.outcome(id) == FINISHED
    query = "name=talk&raw=true&stream=out&show.tail=3"
    tail = server.ask("GET", f"/v4/workflows/{id}:log?{query}").body
    assert tail == b"line 1999\nline 2000\nend\n"


def test_the_same_key_is_the_same_workflow(server: YardServer) -> None:
    first = server.submit(ONE, workflowId="my-key")
    again = server.submit(ONE, workflowId="my-key")
    body = {"name": "test", "rawSpecification": ONE}
    headers = {"Idempotency-Key": "my-key"}
    header = server.ask("POST", "/v4/workflows", body, headers).json
    assert {first["id"], again["id"], header["id"]} == {first["id"]}
    assert [one["created"] for one in (first, again, header)] == [True, False, False]
    assert server.submit(ONE)["id"] != first["id"]


def test_a_definition_may_come_as_an_object_with_nulls(server: YardServer) -> None:
    definition = {"version": "v1", "jobs": {"j": {"command": ["true"], "env": None, "cwd": None}}}
    body = {"name": "nf", "definition": definition, "secretsMap": None, "priority": None}
    reply = server.ask("POST", "/v4/workflows", body)
    assert reply.status == 200, reply.body
    id = reply.json["id"]
    assert server.outcome(id) == FINISHED
    whole = server.get(f"/v4/workflows/{id}")
    sent = json.loads(base64.b64decode(whole["specification"]))
    assert sent == {"version": "v1", "jobs": {"j": {"command": ["true"]}}}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "give the workflow as `definition` (object) or `rawSpecification` (text)"),
        ({"rawSpecification": ONE, "nmae": "x"}, "unknown field `nmae`"),
        ({"rawSpecification": ONE, "priority": 3}, "priority: Expected `int` <= 0"),
        ({"rawSpecification": ONE, "priority": "3"}, "priority: Expected `int | null`"),
        ({"rawSpecification": ONE, "workflowId": "k" * 300}, "idempotency key has 1 to 200"),
        ({"rawSpecification": ONE, "secretsMap": {"a": "b"}}, "secrets are not resolved yet"),
        ({"rawSpecification": "version: v4\nservices: {s: {command: [x]}}\n"}, "services are not"),
    ],
)
def test_a_wrong_start_says_what_would_be_right(
    server: YardServer, body: dict[str, Any], said: str
) -> None:
    reply = server.ask("POST", "/v4/workflows", body)
    assert reply.status == 400 and said in reply.json["message"], reply.json
    assert reply.json["code"] in (3, 9)


def test_every_problem_of_a_file_is_told_at_once(server: YardServer) -> None:
    for path in ("/v4/workflows", "/v4/workflows:validate"):
        reply = server.ask("POST", path, {"rawSpecification": BROKEN})
        assert reply.status == 400 and reply.json["code"] == 3
        details = reply.json["details"]
        assert {one["path"] for one in details} >= {
            "jobs.a.depends-on[0].name",
            "jobs.a.resource.cpu.corse",
        }
        assert all(one["line"] > 1 and one["column"] > 1 and one["message"] for one in details)
    upgraded = server.ask("POST", "/v4/workflows:upgrade", {"rawSpecification": BROKEN}).json
    assert len(upgraded["errors"]) == len(details) and upgraded["upgraded"] is False


def test_validate_and_upgrade(server: YardServer) -> None:
    old = """version: v1
jobs:
  a: {command: ["true"]}
  b: {command: ["true"], requires: [a]}
"""
    upgraded = server.ask("POST", "/v4/workflows:upgrade", {"rawSpecification": old}).json
    assert upgraded["detectedVersion"] == "v1" and upgraded["upgraded"] is True
    assert upgraded["changes"] and upgraded["definition"]["version"] == "v4"
    valid = server.ask(
        "POST", "/v4/workflows:validate", {"rawSpecification": upgraded["rawSpecification"]}
    )
    assert valid.status == 200 and valid.json["definition"] == upgraded["definition"]
    schema = server.get("/v4/workflows:schema", version="v1")
    assert schema["properties"]["version"] == {
        "const": "v1",
        "description": "version of the language",
    }


def test_stop_and_explain(server: YardServer) -> None:
    running = server.submit(SLOW, name="slow")["id"]
    parked = server.submit(HUGE, name="huge")["id"]
    until(lambda: server.get(f"/v4/workflows/{running}:facts")["runningStages"] == 1)
    for name in ("huge", "huge/0", "huge/0#1", f"{parked}/huge/0#1"):
        why = server.get(f"/v4/workflows/{parked}/allocations/{quote(name, safe='')}/explain")
        assert why["allocationId"] == f"{parked}/huge/0#1"
        assert why["reason"].startswith("EXPLAIN_ALLOCATION_REASON_")
        assert "4096 cpu" in why["summary"]
    runs = server.get(f"/v4/workflows/{running}/allocations/wait/explain")
    assert runs["reason"] == "EXPLAIN_ALLOCATION_REASON_RUNNING"
    assert runs["nearestNodeId"] == "node1"
    for id in (running, parked):
        stopped = server.ask("PATCH", f"/v4/workflows/{id}:stop", {})
        assert stopped.status == 200 and stopped.json["id"] == id
        assert server.outcome(id) == "STAGE_STATUS_CANCELED"
        again = server.ask("PATCH", f"/v4/workflows/{id}:stop", {})
        assert again.status == 200 and again.json["id"] == id
    reply = server.ask("PATCH", "/v4/workflows/wf-nowhere:stop", {})
    assert reply.status == 404 and reply.json["code"] == 5


def test_what_was_written_can_be_read_after_its_position(server: YardServer) -> None:
    for _ in range(20):
        started = server.submit(HUGE)
        reply = server.ask("GET", f"/v4/workflows/{started['id']}", after=started["position"])
        assert reply.status == 200 and reply.position >= started["position"]
        server.ask("PATCH", f"/v4/workflows/{started['id']}:stop", {})
    reply = server.ask("GET", "/v4/workflows", after=10**9)
    assert reply.status == 400 and "is not written yet" in reply.json["message"]


def test_pages_are_complete_and_filters_intersect(server: YardServer) -> None:
    ids = [server.submit(HUGE, name=f"page{n % 2}", workflowId=f"p{n}")["id"] for n in range(30)]
    last = server.ask("PATCH", f"/v4/workflows/{ids[0]}:stop", {}).json["position"]
    assert server.outcome(ids[0]) == "STAGE_STATUS_CANCELED"

    def pages(**query: Any) -> list[str]:
        found: list[str] = []
        token = ""
        while True:
            page = server.get("/v4/workflows", pageSize=7, pageToken=token, after=last, **query)
            assert len(page["workflows"]) <= 7
            found += [one["id"] for one in page["workflows"]]
            token = page["pageToken"]
            if not token:
                return found

    every = pages(filter="name=page0") + pages(aipFilter='name="page1"')
    assert sorted(every) == sorted(ids)
    assert pages(filter="name=page0", orderBy="createTime asc") == ids[0::2]
    open_ones = pages(filter="name=page0", requestedStatuses="STAGE_STATUS_UNSPECIFIED")
    assert sorted(open_ones) == sorted(ids[2::2])
    assert pages(filter="name=page0", status="STAGE_STATUS_CANCELED") == [ids[0]]
    assert pages(filter="name=page0 AND status=FINISHED") == []
    assert pages(filter="name=page0", aipFilter="user=nobody") == []
    assert set(pages(filter="name=page1", scope="SCOPE_USER")) == set(ids[1::2])
    queue = server.get("/v4/queue", queue="parked", workflow=ids[5])
    assert [one["workflowId"] for one in queue["allocations"]] == [ids[5]]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"orderBy": "creatTime"}, "did you mean createTime?"),
        ({"filter": "nmae=x"}, "did you mean name?"),
        ({"pageToken": "nonsense"}, "page token"),
        ({"pageSize": -1}, "pageSize"),
        ({"scope": "SCOPE_ME"}, "scope"),
        ({"requestedStatuses": "DONE"}, "not known"),
    ]
    for query, said in wrong:
        reply = server.ask("GET", "/v4/workflows", **query)
        assert reply.status == 400 and said in reply.json["message"], reply.json
    for id in ids[1:]:
        server.ask("PATCH", f"/v4/workflows/{id}:stop", {})


def test_activity_tells_what_happened_in_order(server: YardServer) -> None:
    id = server.submit(CHAIN)["id"]
    assert server.outcome(id) == FINISHED
    path = f"/v4/workflows/{id}:activity"
    whole = server.get(path, pageSize=1000)
    assert whole["cursor"] == ""
    positions = [int(one["metadata"]["position"]) for one in whole["events"]]
    assert positions == sorted(positions) and len(positions) > 10
    assert whole["events"][0]["message"].startswith("test started by ")
    assert whole["events"][-1]["eventType"] == "STAGE_EVENT_TYPE_WORKFLOW_FINISHED"
    paged: list[Any] = []
    cursor = ""
    while True:
        page = server.get(path, pageSize=3, cursor=cursor)
        paged += page["events"]
        cursor = page["cursor"]
        if not cursor:
            break
    assert paged == whole["events"]
    second = server.get(path, stageName="second", pageSize=1000)["events"]
    assert second and {one["stageName"] for one in second} == {"second"}
    assert server.get(path, tail=2)["events"] == whole["events"][-2:]


def test_results_are_listed_and_fetched(server: YardServer) -> None:
    text = """version: v4
volumes:
  data:
    egress:
      - source: {uri: "file://out/a.txt"}
        destination: {uri: "results://deep/a.txt"}
jobs:
  write:
    script: |
      mkdir -p /data/out
      printf 'kept' > /data/out/a.txt
    mounts:
      /data: {volume: data}
"""
    id = server.submit(text)["id"]
    outcome = server.outcome(id)
    features = server.get("/v4/nodes/node1")["features"]
    if "mounts" not in features:
        pytest.skip("this machine cannot mount: bubblewrap does not work here")
    assert outcome == FINISHED, server.get(f"/v4/workflows/{id}:status")
    assert server.get(f"/v4/workflows/{id}/results")["results"] == [
        {"path": "deep/a.txt", "sizeBytes": 4}
    ]
    assert server.ask("GET", f"/v4/workflows/{id}/results/deep/a.txt").body == b"kept"
    part = server.ask(
        "GET", f"/v4/workflows/{id}/results/deep/a.txt", headers={"Range": "bytes=1-2"}
    )
    assert (part.status, part.body) == (206, b"ep")
    for path in (
        "deep",
        "deep/b.txt",
        "..%2F..%2Flog.sqlite",
        "%2Fetc%2Fpasswd",
        "deep/../deep/a.txt",
    ):
        reply = server.ask("GET", f"/v4/workflows/{id}/results/{path}")
        assert reply.status in (400, 404), path
        assert reply.json["message"]


def test_nodes_are_closed_emptied_and_opened(server: YardServer) -> None:
    nodes = server.get("/v4/nodes")["nodes"]
    assert [one["id"] for one in nodes] == ["node1"] and nodes[0]["cores"] == 2
    position = server.ask("POST", "/v4/nodes/node1:cordon", {"reason": "new disk"}).position
    node = server.get("/v4/nodes/node1", after=position)
    assert (node["state"], node["reason"]) == ("cordoned", "new disk")
    waiting = server.submit(ONE)
    why = server.get(
        f"/v4/workflows/{waiting['id']}/allocations/hello/explain", after=waiting["position"]
    )
    assert "closed" in why["summary"] or "cordoned" in why["summary"]
    assert server.ask("POST", "/v4/nodes/node1:drain", {}).status == 200
    until(lambda: server.get("/v4/nodes/node1")["state"] == "drained")
    assert server.ask("POST", "/v4/nodes/node1:uncordon", {}).status == 200
    assert server.outcome(waiting["id"]) == FINISHED
    for method, path in (("POST", "/v4/nodes/none:cordon"), ("DELETE", "/v4/nodes/none")):
        reply = server.ask(method, path, {} if method == "POST" else None)
        assert reply.status == 404 and reply.json["code"] == 5


def test_metrics_count(server: YardServer) -> None:
    id = server.submit(ONE)["id"]
    assert server.outcome(id) == FINISHED
    text = server.ask("GET", "/metrics").body.decode()
    values = {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if not line.startswith("#")
    }
    assert values['logyard_scheduler_placements_total{kind="direct"}'] >= 1
    assert values["logyard_log_appends_total"] == values["logyard_log_append_seconds_count"] > 0
    assert values["logyard_log_position"] == values["logyard_log_records_total"]
    assert values['logyard_projection_lag_positions{projection="views"}'] >= 0
    assert values['logyard_api_requests_total{code="200",operation="start_workflow"}'] >= 1
    assert sum(v for k, v in values.items() if k.startswith("logyard_scheduler_ticks_total")) > 0


def test_jobs_outlive_the_server(server: YardServer, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    text = f"""version: v4
jobs:
  wait:
    script: |
      echo begun
      while [ ! -e {gate} ]; do sleep 0.05; done
      echo done
"""
    id = server.submit(text)["id"]
    log = f"/v4/workflows/{id}:log"
    until(lambda: server.ask("GET", log, name="wait", raw="true").body == b"begun\n")
    assert server.stop() == 0
    server.start()
    gate.touch()
    assert server.outcome(id) == FINISHED
    assert server.ask("GET", log, name="wait", raw="true").body == b"begun\ndone\n"
    found = server.get(f"/v4/workflows/{id}/allocations")["allocations"]
    assert [one["details"]["attempt"] for one in found] == [1]
