"""Advice and proofs from a real server, over HTTP and on the command line."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from logyard_domain.events import AllocationPlaced
from logyard_domain.records import Entry
from logyard_engine.log.opening import open_log
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import Yard
from tests.audit.planting import changed
from tests.cli.terminal import Done, Terminal, terminal
from tests.engine.work import flow, job
from tests.services.server import Reply, YardServer, until

__all__ = ["terminal"]

HOUR = 3_600_000

FILE = """version: v4
jobs:
  {name}:
    command: [sleep, "600"]
    resource: {{cpu: {{cores: {cores}}}, memory: {{size: 64MiB}}}}
    policy: {{timeout: {{execute: {limit}}}}}
"""


class Busy(NamedTuple):
    """A server with two nodes of four cores. `hold` has three of node1, `part` two of node2,
    `late` the other two of it, `wide` waits for four, `huge` can never run.
    """

    server: YardServer
    ids: dict[str, str]

    def ask(self, name: str, what: str, **query: Any) -> Reply:
        """Advice or a proof of the job of that name."""
        path = f"/v4/workflows/{self.ids[name]}/allocations/{name}/{what}"
        return self.server.ask("GET", path, **query)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Busy]:
    folder: Path = tmp_path_factory.mktemp("yard")
    flags = {"node-cores": 4, "node-memory": "1GiB", "nodes": 2}
    server = YardServer(folder, flags).start()
    found = Busy(server, {})
    for name, cores, limit in (
        ("hold", 3, "1h"),
        ("part", 2, "1h"),
        ("wide", 4, "1h"),
        ("late", 2, "3h"),
        ("huge", 64, "1h"),
    ):
        text = FILE.format(name=name, cores=cores, limit=limit)
        found.ids[name] = server.submit(text, name=name)["id"]
    for name in ("hold", "part", "late"):
        path = f"/v4/workflows/{found.ids[name]}/allocations/{name}/explain"
        _running(server, path)
    yield found
    assert server.stop() == 0
    assert "Traceback" not in server.errors.read_text()


def _running(server: YardServer, path: str) -> None:
    until(lambda: server.get(path)["kind"] == "running")


def test_a_smaller_request_is_advised(busy: Busy) -> None:
    reply = busy.ask("wide", "advice")
    told = reply.json
    assert reply.status == 200
    assert told["allocationId"] == f"{busy.ids['wide']}/wide/0#1"
    assert told["position"] == reply.position
    (change,) = told["changes"]
    assert (change["what"], change["before"], change["after"]) == ("cores", 4, 1)
    assert change["where"] == "jobs.wide.resource.cpu.cores"
    assert change["text"] == "1 cpu instead of 4: starts now on node1"
    assert change["result"]["startsNow"]
    assert "would start now with 1 cpu instead of 4 (checked at position" in told["summary"]
    assert told["unchanged"]["promisedAt"]
    assert {"cores", "memory", "limit"} <= {one["what"] for one in told["tried"]}


def test_what_can_never_run_and_what_runs_are_told_apart(busy: Busy) -> None:
    huge = busy.ask("huge", "advice").json
    assert [one["what"] for one in huge["changes"]] == ["cores"]
    assert "could run with 4 cpu instead of 64; no single change starts it now" in huge["summary"]
    runs = busy.ask("hold", "advice").json
    assert not runs["changes"]
    assert "waits for no room, so no change of its request helps: runs on node1" in runs["summary"]


def test_a_placement_is_proved_with_its_placement_of(busy: Busy) -> None:
    told = busy.ask("hold", "proof").json
    assert told["equal"] is True
    (decision,) = told["decisions"]
    assert (decision["what"], decision["chosen"], decision["equal"]) == ("placed", "node1", True)
    assert (decision["fitted"], decision["first"]) == (2, True)
    (second,) = decision["runnersUp"]
    assert (second["nodeId"], second["cause"]) == ("node2", "order")
    read, record = decision["read"], decision["decision"]
    assert (read["nodes"], read["nodesUp"], read["waiting"]) == (2, 2, 1)
    assert read["formula"].startswith("organization.priority + ")
    log = busy.server.get("/v4/log", after=read["position"] - 1, limit=100)["records"]
    chains = {one["position"]: one["chain"] for one in log}
    assert chains[read["position"]] == read["chain"]
    assert chains[record["position"]] == record["chain"]
    assert record["position"] in {one["position"] for one in told["cited"]}
    late = busy.ask("late", "proof").json["decisions"][0]
    assert late["equal"]
    assert late["decision"]["text"].startswith("backfilled on node2")


def test_what_waits_is_proved_to_wait(busy: Busy) -> None:
    told = busy.ask("wide", "proof").json
    assert told["equal"] is True
    assert not told["decisions"]
    waits = told["waits"]
    assert (waits["placed"], waits["hold"], waits["foundHold"]) == (0, "nodes busy", "nodes busy")
    assert waits["promisedAt"] == waits["foundPromisedAt"]
    assert waits["read"]["promises"] == 1


def test_an_earlier_moment_is_asked_about_as_it_was(busy: Busy) -> None:
    now = busy.ask("late", "advice").json
    assert not now["waiting"]
    placed = busy.ask("late", "proof").json["decisions"][0]["decision"]["position"]
    then = busy.ask("late", "advice", at=placed - 1)
    assert then.position == then.json["position"] == placed - 1
    assert "starts without any change: starts now on node2, backfilled" in then.json["summary"]
    again = busy.ask("late", "advice")
    assert again.json["position"] >= now["position"]


def test_what_is_not_there_is_said_so(busy: Busy) -> None:
    for what in ("advice", "proof"):
        reply = busy.server.ask("GET", f"/v4/workflows/wf-none/allocations/a/{what}")
        assert reply.status == 404
        assert "there is no allocation 'wf-none/a'" in reply.json["message"]
        assert busy.ask("wide", what, at="10000000").status == 400


def test_one_is_answered_one_waits_and_the_others_are_sent_away(busy: Busy) -> None:
    with ThreadPoolExecutor(8) as threads:
        asking = [threads.submit(busy.ask, "wide", "advice") for _ in range(8)]
    replies = [one.result() for one in asking]
    found = sorted(reply.status for reply in replies)
    assert set(found) == {200, 429}
    assert found.count(200) >= 2
    sent_away = next(reply for reply in replies if reply.status == 429).json
    assert sent_away["code"] == 8
    assert "one at a time" in sent_away["message"]


def well(done: Done) -> str:
    """What a command that went well said."""
    assert done.code == 0, (done.out, done.err)
    return done.out


def test_the_command_tells_what_to_change(busy: Busy, terminal: Terminal) -> None:
    terminal.server = busy.server.url
    wide = busy.ids["wide"]
    text = well(terminal.run("workflow", "why", wide, "--advice"))
    lines = text.splitlines()
    assert lines[0].startswith(f"{wide}/wide/0#1 waits for capacity: ")
    advice = lines.index(next(line for line in lines if "would start now" in line))
    assert lines[advice].startswith(f"{wide}/wide/0#1 would start now with 1 cpu instead of 4 (")
    assert lines[advice + 2] == (
        "  1 cpu instead of 4: starts now on node1  jobs.wide.resource.cpu.cores"
    )
    assert "the tick was run" in lines[advice + 3]
    told = json.loads(well(terminal.run("workflow", "why", wide, "--advice", "--json")))
    assert told["kind"] == "capacity"
    assert told["advice"]["changes"][0]["after"] == 1
    assert "proof" not in told


def test_the_command_proves(busy: Busy, terminal: Terminal) -> None:
    terminal.server = busy.server.url
    text = well(terminal.run("workflow", "why", busy.ids["hold"], "--proof"))
    assert "in the world as of" in text
    assert "makes the same 1 event" in text
    assert "fitted    2 nodes; after node1 came" in text
    assert "is just like it, and comes after it" in text
    assert "rests on" in text
    text = well(terminal.run("workflow", "why", busy.ids["wide"], "--proof"))
    assert "leaves it unplaced: nodes busy (as recorded), promised by" in text
    told = json.loads(well(terminal.run("workflow", "why", busy.ids["wide"], "--proof", "--json")))
    assert told["proof"]["waits"]["equal"] is True


def test_what_was_advised_is_what_happens(busy: Busy) -> None:
    change = busy.ask("wide", "advice").json["changes"][0]
    wide = busy.ids["wide"]
    busy.server.ask("PATCH", f"/v4/workflows/{wide}:stop", {})
    busy.server.outcome(wide)
    text = FILE.format(name="thin", cores=change["after"], limit="1h")
    thin = busy.server.submit(text, name="thin")["id"]
    path = f"/v4/workflows/{thin}/allocations/thin/explain"
    here = until(lambda: busy.server.get(path)["here"])
    assert here["nodes"] == change["result"]["nodes"]


def test_a_decision_that_was_tampered_with_does_not_come_out_again(
    tmp_path: Path, terminal: Terminal
) -> None:
    yard = Yard(open_log("memory:", "main"), {"n1": 4, "n2": 4}, lambda _: Run(ms=HOUR))
    workflow = yard.submit(flow(a=job(2, timeout_ms=HOUR)))
    edited = [
        changed(one, node="n2") if isinstance(one.event, AllocationPlaced) else one
        for one in yard.records
    ]
    folder = tmp_path / "data"
    folder.mkdir()
    log = open_log(folder, "main")
    log.append([Entry(one.event, one.at, one.actor, one.cause) for one in edited])
    log.close()
    server = YardServer(tmp_path, {"nodes": 0}).start()
    try:
        terminal.server = server.url
        done = terminal.run("workflow", "why", workflow, "--proof")
    finally:
        server.kill()
    assert done.code == 1
    assert "does NOT make the same: 1 of 1 differ" in done.out
    assert "fitted    2 nodes; n2 is not the first of them by the rules" in done.out
    assert f"recorded allocation.placed: allocation {workflow}/a/0#1, node n2" in done.out
    assert f"found allocation.placed: allocation {workflow}/a/0#1, node n1" in done.out
