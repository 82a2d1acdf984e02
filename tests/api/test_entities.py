"""Organizations, groups and users over HTTP."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.services.server import Reply, YardServer

ONE = "version: v4\njobs:\n  only:\n    command: [true]\n"
LONG = "version: v4\njobs:\n  only:\n    command: [sleep, '600']\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YardServer]:
    """One server for all tests of this module; each uses names of its own."""
    server = YardServer(tmp_path_factory.mktemp("entities"), {"node-cores": 2}).start()
    yield server
    assert server.stop() == 0
    assert "Traceback" not in server.errors.read_text()


def group(server: YardServer, name: str, body: dict[str, Any] | None = None) -> Any:
    """Change a group; the answer."""
    reply = server.ask("PATCH", f"/v4/accounts/{name}", body or {})
    assert reply.status == 200, reply.body
    return reply.json


def start(server: YardServer, text: str, **headers: str) -> dict[str, Any]:
    """Start a workflow acting as the headers say."""
    sent = {f"Logyard-{key}": value for key, value in headers.items()}
    reply = server.ask("POST", "/v4/workflows", {"rawSpecification": text}, sent)
    assert reply.status == 200, reply.body
    told: dict[str, Any] = reply.json
    return told


def refused(reply: Reply, status: int, words: str) -> None:
    """The request was refused, and said so."""
    assert reply.status == status, reply.body
    assert words in reply.json["message"], reply.json


def test_organizations_are_set_up_and_get_priorities(server: YardServer) -> None:
    reply = server.ask("PATCH", "/v4/admin/organizations/uni/priority", {"priority": 5})
    assert reply.status == 200
    assert (reply.json["id"], reply.json["priority"], reply.json["declared"]) == ("uni", 5, True)
    assert reply.json["createTime"] == reply.json["updateTime"]
    listed = server.get("/v4/admin/organizations", orderBy="priority desc")["organizations"]
    assert [one["id"] for one in listed][:1] == ["uni"]
    assert {one["id"] for one in listed} >= {"uni", "default"}
    assert server.get("/v4/admin/organizations/uni") == reply.json
    assert server.get("/v4/organization")["id"] == "default"
    refused(server.ask("GET", "/v4/admin/organizations/none"), 404, "no organization 'none'")
    bad = server.ask("PATCH", "/v4/admin/organizations/a%20b/priority", {"priority": 5})
    refused(bad, 400, "'a b' is no name for an organization")
    far = server.ask("PATCH", "/v4/admin/organizations/uni/priority", {"priority": 10**7})
    refused(far, 400, "priority")


def test_groups_change_by_what_is_flagged(server: YardServer) -> None:
    assert group(server, "g1", {"priority": 9})["priority"] == 0
    told = group(server, "g1", {"priority": 9, "updatePriority": True})
    assert (told["priority"], told["preemptIds"], told["posixGid"]) == (9, [], 0)
    group(server, "g2")
    told = group(server, "g1", {"addPreemptIds": ["g2", "default"]})
    assert (told["priority"], told["preemptIds"]) == (9, ["default", "g2"])
    told = group(server, "g1", {"removePreemptIds": ["g2"]})
    assert told["preemptIds"] == ["default"]
    assert server.get("/v4/accounts/g1") == told
    same = server.ask("PATCH", "/v4/accounts/g1", {"removePreemptIds": ["g2"]})
    assert same.json == told, "nothing changes, also not the position"


def test_what_a_group_cannot_be(server: YardServer) -> None:
    group(server, "h1")
    unknown = server.ask("PATCH", "/v4/accounts/h1", {"addPreemptIds": ["nobody"]})
    refused(unknown, 404, "has no group 'nobody'; there are: ")
    itself = server.ask("PATCH", "/v4/accounts/h1", {"addPreemptIds": ["h1"]})
    refused(itself, 400, "may not preempt itself")
    both = {"addPreemptIds": ["default"], "removePreemptIds": ["default"]}
    refused(server.ask("PATCH", "/v4/accounts/h1", both), 400, "name it once")
    renamed = server.ask("PATCH", "/v4/accounts/h1", {"name": "x", "updateName": True})
    refused(renamed, 400, "keeps its name")
    empty = server.ask("PATCH", "/v4/accounts/h1", {"updatePriority": True})
    refused(empty, 400, "no priority is given")
    refused(server.ask("GET", "/v4/accounts/h9"), 404, "no group 'h9' in organization 'default'")


def test_groups_are_created_once_and_deleted(server: YardServer) -> None:
    made = server.ask("POST", "/v4/accounts", {"name": "k1"})
    assert (made.status, made.json["id"]) == (200, "k1")
    refused(server.ask("POST", "/v4/accounts", {"name": "k1"}), 409, "already")
    group(server, "k2", {"addPreemptIds": ["k1"]})
    gone = server.ask("DELETE", "/v4/accounts/k1")
    assert (gone.status, gone.json["id"]) == (200, "k1")
    after = gone.json["position"]
    assert server.get("/v4/accounts/k2", after=after)["preemptIds"] == []
    assert server.ask("GET", "/v4/accounts/k1", after=after).status == 404
    refused(server.ask("DELETE", "/v4/accounts/k1"), 404, "no group 'k1'")


def test_groups_of_other_organizations_are_apart(server: YardServer) -> None:
    body = {"priority": 3, "updatePriority": True}
    reply = server.ask("PATCH", "/v4/accounts/p1", body, organization="lab")
    assert reply.json["organizationId"] == "lab"
    assert server.ask("GET", "/v4/accounts/p1").status == 404
    found = server.get("/v4/accounts", organization="lab")["accounts"]
    assert [(one["id"], one["priority"]) for one in found] == [("p1", 3)]


def test_who_a_workflow_names_is_known(server: YardServer) -> None:
    told = start(server, ONE, User="eve@uni", Group="optics", Organization="uni")
    assert server.outcome(told["id"]) == "STAGE_STATUS_FINISHED"
    user = server.get("/v4/organization/users/eve%40uni")
    assert (user["workflows"], user["declared"], user["priority"]) == (1, False, 0)
    assert user["usageCoreHours"] > 0 and user["lastActiveTime"]
    optics = server.get("/v4/accounts/optics", organization="uni")
    assert optics["usageCoreHours"] == pytest.approx(user["usageCoreHours"], rel=1e-3)
    record = server.get("/v4/log", after=told["position"] - 1, limit=1)["records"][0]
    assert record["actor"] == "user:eve@uni"
    # It ran long ago and nobody set it up, yet it can be named like any other.
    body = {"addPreemptIds": ["optics"]}
    reply = server.ask("PATCH", "/v4/accounts/q1", body, organization="uni")
    assert reply.json["preemptIds"] == ["optics"]
    listed = server.get("/v4/organization/members", relationship="ORGANIZATION_MEMBER")["users"]
    assert "eve@uni" in {one["id"] for one in listed}
    owners = server.get("/v4/organization/members", relationship="ORGANIZATION_OWNER")
    assert owners["users"] == []


def test_a_group_with_live_work_stays(server: YardServer) -> None:
    told = start(server, LONG, User="r", Group="r1")
    refused(server.ask("DELETE", "/v4/accounts/r1"), 400, "never set up")
    group(server, "r1", {"priority": 1, "updatePriority": True})
    refused(server.ask("DELETE", "/v4/accounts/r1"), 400, "alive")
    server.ask("PATCH", f"/v4/workflows/{told['id']}:stop", {})
    server.outcome(told["id"])
    assert server.ask("DELETE", "/v4/accounts/r1").status == 200


def test_users_get_priorities(server: YardServer) -> None:
    reply = server.ask("PUT", "/v4/organization/users/ana/priority", priority=-4)
    assert (reply.status, reply.json["id"], reply.json["priority"]) == (200, "ana", -4)
    assert server.get("/v4/organization/users/ana")["declared"]
    refused(server.ask("GET", "/v4/organization/users/none"), 404, "no user 'none'")
    assert server.ask("PUT", "/v4/organization/users/ana/priority").status == 400


def test_names_in_headers_are_checked(server: YardServer) -> None:
    body = {"rawSpecification": ONE}
    reply = server.ask("POST", "/v4/workflows", body, {"Logyard-Group": "a/b"})
    refused(reply, 400, "Logyard-Group: 'a/b' is no name")


def test_lists_are_paged(server: YardServer) -> None:
    for number in range(3):
        group(server, f"z{number}")
    names: list[str] = []
    token = ""
    while True:
        page = server.get("/v4/accounts", pageSize=2, pageToken=token)
        names += [one["id"] for one in page["accounts"]]
        token = page["pageToken"]
        if not token:
            break
    assert names == sorted(names)
    assert {"z0", "z1", "z2", "default"} <= set(names)
    refused(server.ask("GET", "/v4/accounts", orderBy="size"), 400, "'size' is not known")


def test_what_a_workflow_hears_of_its_owners(server: YardServer) -> None:
    told = start(server, LONG, User="w", Group="w1")
    group(server, "w1", {"priority": 6, "updatePriority": True})
    group(server, "w2", {"priority": 1, "updatePriority": True})
    server.ask("PATCH", f"/v4/workflows/{told['id']}:stop", {})
    server.outcome(told["id"])
    group(server, "w1", {"priority": 8, "updatePriority": True})
    wanted = "priority set (workflow: 0, organization: 0, group: 6, user: 0)"
    events = server.get(f"/v4/workflows/{told['id']}:activity", pageSize=100)["events"]
    updates = [one for one in events if one["eventType"].endswith("PRIORITY_UPDATED")]
    assert [one["message"] for one in updates] == [wanted]
    assert events[0]["eventType"].endswith("PRIORITY_SET")
    assert "priority set (workflow: 0, organization: 0, group: 0, user: 0)" in events[0]["message"]
    streamed = server.get("/v4/events:poll", workflow=told["id"], sentences=True, limit=1000)
    lines = [one["logyardmessage"] for one in streamed["events"] if "group" in one["subject"]]
    assert lines == [wanted]
    plain = server.get("/v4/events:poll", workflow=told["id"], limit=1000)["events"]
    assert [one["id"] for one in plain] == [one["id"] for one in streamed["events"]]
    assert not any("logyardmessage" in one for one in plain)
