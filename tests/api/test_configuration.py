"""The configuration over HTTP: in parts and whole, refused and kept, tried before it is set."""

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml

from logyard_domain.configuration import DEFAULTS
from tests.services.server import NotStarted, Reply, ServerMaker, YardServer

PATH = "/v4/admin/centralconfig"
PRIORITY = "scheduler.priority"
WAITS = (
    "version: v4\njobs:\n  wait:\n    command: [sleep, '600']\n    resource: {cpu: {cores: 2}}\n"
)


@pytest.fixture
def server(yard_server: YardServer) -> Iterator[YardServer]:
    """A server that ends well."""
    yield yard_server
    assert yard_server.stop() == 0
    assert "Traceback" not in yard_server.errors.read_text()


def values(server: YardServer, **query: Any) -> dict[str, Any]:
    """The configuration by key, as of the end of the log."""
    query.setdefault("after", server.get("/healthz")["position"])
    return {one["key"]: one["value"] for one in server.get(PATH, **query)["settings"]}


def patch(server: YardServer, changes: dict[str, Any]) -> Reply:
    """Change some settings."""
    return server.ask("PATCH", PATH, {"values": changes})


def changed(server: YardServer, changes: dict[str, Any]) -> Any:
    """The same where it must be let through."""
    reply = patch(server, changes)
    assert reply.status == 200, reply.body
    return reply.json


def test_parts_are_changed_and_history_tells_who_and_what(server: YardServer) -> None:
    nothing = server.get(PATH)
    assert (nothing["revision"], nothing["actor"], nothing["createdTime"]) == ("0", "", None)
    assert values(server) == DEFAULTS
    told = changed(server, {"workflow.killGrace": "45s", "scheduler.backfill.depth": 7})
    assert (told["revision"], told["changed"]) == ("1", True)
    first = values(server, after=told["position"])
    assert first == DEFAULTS | {"workflow.killGrace": 45_000, "scheduler.backfill.depth": 7}
    again = changed(server, {"workflow.killGrace": 45_000})
    assert (again["revision"], again["changed"]) == ("1", False)
    nested = changed(server, {"scheduler": {"preemption": {"priorityGap": 2}}})
    back = changed(server, {"workflow.killGrace": None})
    assert (nested["revision"], back["revision"]) == ("2", "3")
    assert values(server, after=back["position"])["scheduler.preemption.priorityGap"] == 2.0
    assert values(server, revision=1) == first
    newest, _, oldest = server.get(f"{PATH}/revisions")["revisions"]
    assert newest["actor"].startswith("user:")
    assert newest["changes"] == [
        {
            "key": "workflow.killGrace",
            "before": 45_000,
            "after": 30_000,
            "beforeText": "45s",
            "afterText": "30s",
        }
    ]
    assert [one["key"] for one in oldest["changes"]] == [
        "scheduler.backfill.depth",
        "workflow.killGrace",
    ]
    page = server.get(f"{PATH}/revisions", pageSize=2)
    rest = server.get(f"{PATH}/revisions", pageSize=2, pageToken=page["pageToken"])
    assert [one["revision"] for one in page["revisions"] + rest["revisions"]] == ["3", "2", "1"]
    assert server.ask("GET", PATH, revision=9).status == 404


def test_the_whole_is_replaced_as_yaml(server: YardServer) -> None:
    changed(server, {"workflow.killGrace": "45s", PRIORITY: "group.priority"})
    table = yaml.safe_load(base64.b64decode(server.get(PATH, revision=1)["config"]))
    assert table["workflow"]["killGrace"] == 45_000
    assert table["scheduler"]["priority"] == "group.priority"
    text = "workflow: {executeTimeout: 2h}\nscheduler.priority: user.priority * 2\n"
    reply = server.ask("POST", PATH, {"config": base64.b64encode(text.encode()).decode()})
    assert reply.status == 200, reply.body
    assert values(server, after=reply.json["position"]) == DEFAULTS | {
        "workflow.executeTimeout": 7_200_000,
        PRIORITY: "user.priority * 2",
    }
    for bad, words in (
        ("a: [", "this is no YAML"),
        ("- a", "is a table"),
        ("&a {b: *a}", "so many keys"),
        ("workflow: {killGrace: soon}", "workflow.killGrace: `soon` is no duration"),
        ("workflow: {killGrace: [1]}", "workflow.killGrace: [1] is no value"),
    ):
        sent = {"config": base64.b64encode(bad.encode()).decode()}
        refused = server.ask("POST", PATH, sent)
        assert refused.status == 400 and words in refused.json["message"], refused.body
    assert server.get(PATH)["revision"] == "2"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"workflow.killGrac": 1},
            "workflow.killGrac: no such setting; did you mean workflow",
        ),
        ({"workflow.killGrac": None}, "workflow.killGrac: no such setting"),
        (
            {"workflow.killGrace": "45"},
            "workflow.killGrace: `45` has no unit; write for",
        ),
        ({"scheduler.backfill.depth": -1}, "scheduler.backfill.depth: -1 is too small; the least"),
        ({"scheduler.backfill.enabled": "yes"}, "scheduler.backfill.enabled: 'yes' is no bool"),
        ({PRIORITY: 5}, "scheduler.priority: 5 is no str"),
    ],
)
def test_what_cannot_be_set(server: YardServer, changes: dict[str, Any], message: str) -> None:
    reply = patch(server, changes)
    assert reply.status == 400
    assert reply.json["code"] == 3
    assert reply.json["message"].startswith(message)
    assert server.get(PATH)["revision"] == "0"


def test_a_bad_expression_is_pointed_at_and_the_last_good_one_stays(server: YardServer) -> None:
    changed(server, {PRIORITY: "group.priority - queue.age_hours"})
    reply = patch(server, {PRIORITY: "organization.priority + grup.priority"})
    assert reply.status == 400
    assert reply.json["message"] == (
        "scheduler.priority:1:25  grup.priority is not a variable; did you mean group.priority?\n"
        "    organization.priority + grup.priority\n"
        "                            ^^^^"
    )
    (detail,) = reply.json["details"]
    assert (detail["file"], detail["line"], detail["column"], detail["length"]) == (
        PRIORITY, 1, 25, 4,
    )  # fmt: skip
    assert values(server)[PRIORITY] == "group.priority - queue.age_hours"
    # Another setting changes, and the expression goes on to mean what it did.
    changed(server, {"workflow.lostRetries": 3})
    server.kill()
    server.start()
    assert values(server)[PRIORITY] == "group.priority - queue.age_hours"


def test_an_expression_without_a_finite_value_for_what_waits_is_refused(server: YardServer) -> None:
    server.submit(WAITS)
    server.submit(WAITS)
    reply = patch(server, {PRIORITY: "1 / user.priority"})
    assert reply.status == 400
    assert "no finite number" in reply.json["message"]


def test_changes_at_the_same_time_do_not_undo_each_other(server: YardServer) -> None:
    keys: dict[str, int] = {
        "workflow.killGrace": 1_000,
        "workflow.lostRetries": 2,
        "scheduler.backfill.depth": 3,
        "scheduler.lookahead": 4,
        "scheduler.placementsPerTick": 5,
    }
    with ThreadPoolExecutor(5) as pool:
        asked = [pool.submit(changed, server, {key: value}) for key, value in keys.items()]
        done = [one.result() for one in asked]
    assert sorted(one["revision"] for one in done) == ["1", "2", "3", "4", "5"]
    last = max(one["position"] for one in done)
    assert values(server, after=last) == DEFAULTS | keys


def test_an_expression_is_tried_on_what_waits(server: YardServer) -> None:
    server.submit(WAITS, name="holds")
    old = server.submit(WAITS, name="old")["id"]
    new = server.submit(WAITS, name="new", priority=-1)["id"]

    def tried(expression: str, **more: Any) -> Any:
        body = {"expression": expression} | more
        reply = server.ask("POST", "/v4/scheduler/priority:test", body)
        assert reply.status == 200, reply.body
        return reply.json

    told = tried("-workflow.priority")
    assert (told["waiting"], told["evaluated"], told["moved"], told["notFinite"]) == (2, 2, 2, 0)
    order = [
        (one["stageId"], one["placeBefore"], one["placeAfter"], one["priorityAfter"])
        for one in told["lines"]
    ]
    assert order == [(f"{new}/wait", 2, 1, 1.0), (f"{old}/wait", 1, 2, 0.0)]
    assert told["before"].startswith("organization.priority + ")
    assert len(tried("-workflow.priority", limit=1)["lines"]) == 1
    assert (told["rising"], told["moving"]) == (True, False)
    falling = tried("group.priority - queue.age_hours")
    assert (falling["rising"], falling["moving"]) == (False, False)
    odd = tried("1 / (workflow.priority + 1)")
    assert odd["notFinite"] == 1
    assert odd["lines"][-1]["priorityAfter"] is None
    assert tried("workflow.priority")["moved"] == 0
    assert server.get(PATH)["revision"] == "0", "nothing was set"
    bad = server.ask("POST", "/v4/scheduler/priority:test", {"expression": "1 +"})
    assert bad.status == 400
    assert bad.json["message"].endswith("\n    1 +\n       ^")


def test_settings_are_set_at_start(make_server: ServerMaker) -> None:
    expression = "max(group.priority, user.priority) + queue.age_hours"
    decisions = f"node.lostAfter=30s,{PRIORITY}={expression},scheduler.backfill.enabled=false"
    server = make_server(decisions=decisions).start()
    assert values(server) == DEFAULTS | {
        "node.lostAfter": 30_000,
        PRIORITY: expression,
        "scheduler.backfill.enabled": False,
    }
    assert server.get(PATH)["actor"] == "server"
    changed(server, {"workflow.lostRetries": 3, "node.lostAfter": "20s"})
    assert server.stop() == 0
    server.start()
    # What stands in the settings is set again, the rest stays as people set it.
    found = values(server)
    assert (found["workflow.lostRetries"], found["node.lostAfter"]) == (3, 30_000)
    assert server.stop() == 0


def test_a_server_does_not_start_with_a_bad_expression(make_server: ServerMaker) -> None:
    server = make_server(decisions=f"{PRIORITY}=grup.priority")
    with pytest.raises(NotStarted, match=r"grup\.priority is not a variable") as stopped:
        server.start()
    assert "\n    grup.priority\n    ^^^^" in str(stopped.value)
