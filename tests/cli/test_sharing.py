"""Organizations, groups, users, the configuration and priorities from the command line."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.cli.terminal import Done, Terminal, terminal
from tests.services.server import YardServer, until

__all__ = ["terminal"]

HOLDS = """version: v4
jobs:
  hold:
    script: sleep 600
    resource: {cpu: {cores: 2}}
"""


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YardServer]:
    """One server with a node of two cores, for all tests of this module."""
    server = YardServer(tmp_path_factory.mktemp("yard"), {"node-cores": 2, "node-memory": "1GiB"})
    server.start()
    yield server
    server.kill()


@pytest.fixture
def user(terminal: Terminal, yard: YardServer) -> Terminal:
    """A user who asks that server."""
    terminal.server = yard.url
    return terminal


def well(done: Done) -> str:
    """What a command that went well said."""
    assert done.code == 0, (done.out, done.err)
    return done.out


def cells(text: str) -> list[list[str]]:
    """The lines of a table by columns."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]


def test_groups_are_set_up_changed_and_deleted(user: Terminal) -> None:
    assert well(user.run("group", "update", "bio")) == (
        "group bio has priority 0 and may preempt nobody\n"
    )
    told = user.run("group", "update", "chem", "--priority", "-2", "--preempt", "bio")
    assert well(told) == "group chem has priority -2 and may preempt bio\n"
    rows = cells(well(user.run("group", "list", "--by-priority")))
    assert rows[0] == ["GROUP", "PRIO", "MAY PREEMPT", "WORKFLOWS", "USED"]
    assert ["chem", "-2", "bio", "0", "0"] in rows
    assert rows[-1][0].endswith("used is in core-hours, the longer ago the less")
    found = user.run("group", "list", "--json").json["accounts"]
    assert {one["id"]: one["preemptIds"] for one in found}["chem"] == ["bio"]
    more = user.run("group", "update", "chem", "--no-preempt", "bio", "--json")
    assert json.loads(well(more))["preemptIds"] == []
    assert "is deleted" in well(user.run("group", "delete", "bio"))
    gone = user.run("group", "delete", "bio")
    assert (gone.code, gone.out) == (1, "")
    assert "no group 'bio'" in gone.err
    unknown = user.run("group", "update", "chem", "--preempt", "nobody")
    assert unknown.code == 1 and "has no group 'nobody'" in unknown.err
    elsewhere = user.run("group", "update", "chem", "--priority", "3", "--organization", "lab")
    assert "priority 3" in well(elsewhere)
    assert "chem" in well(user.run("group", "list", "--organization", "lab"))


def test_organizations_and_users(user: Terminal) -> None:
    told = user.run("organization", "update", "uni", "--priority", "5")
    assert well(told) == "organization uni has priority 5\n"
    rows = cells(well(user.run("organization", "list", "--by-priority")))
    assert rows[1][:3] == ["uni", "5", "0"]
    assert well(user.run("user", "update", "eve", "--priority", "1")) == "user eve has priority 1\n"
    assert ["eve", "1", "0", "0", "-"] in cells(well(user.run("user", "list")))
    assert user.run("user", "list", "--json").json["users"][0]["id"] == "eve"
    assert user.run("user", "update", "a b", "--priority", "1").code == 1
    assert user.run("user", "update", "eve").code == 2


def test_the_configuration_is_set_in_parts(user: Terminal) -> None:
    done = user.run(
        "config", "set", "workflow.killGrace", "45s", "scheduler.preemption.enabled", "true"
    )
    revision = re.match(r"revision r(\d+) is in force\n", well(done))
    assert revision is not None
    assert cells(done.out)[1:] == [
        ["workflow.killGrace", "45s"],
        ["scheduler.preemption.enabled", "true"],
    ]
    same = user.run("config", "set", "workflow.killGrace", "45s")
    assert well(same) == f"nothing to change: revision r{revision[1]} stays in force\n"
    assert well(user.run("config", "show", "workflow.killGrace")) == "45s\n"
    table = cells(well(user.run("config", "show", "--changed")))
    assert [row[:2] for row in table[1:-1]] == [
        ["workflow.killGrace *", "45s"],
        ["scheduler.preemption.enabled *", "true"],
    ]
    assert re.match(rf"revision r{revision[1]}, set by \w+ at ", table[-1][0])
    back = user.run("config", "unset", "scheduler.preemption.enabled", "--json")
    assert json.loads(well(back))["changed"]
    history = cells(well(user.run("config", "history")))
    assert history[0] == ["REVISION", "SET AT", "BY", "SETTING", "CHANGE"]
    assert history[1][3:] == ["scheduler.preemption.enabled", "true -> false"]
    assert len(user.run("config", "history", "--json", "--limit", "1").json["revisions"]) == 1
    assert user.run("config", "show", "nonsense").code == 2
    assert user.run("config", "set", "workflow.killGrace").code == 2
    first = user.run("config", "show", "workflow.killGrace", "--revision", revision[1], "--json")
    assert json.loads(well(first))["value"] == 45_000


def test_a_bad_setting_is_refused_in_so_many_words(user: Terminal) -> None:
    revision = user.run("config", "show", "--json").json["revision"]
    stays = f"unchanged: revision r{revision} stays in force\n"
    bad = user.run("config", "set", "scheduler.priority", "organization.priority + grup.priority")
    assert (bad.code, bad.out) == (1, "")
    assert bad.err == (
        "scheduler.priority:1:25  grup.priority is not a variable; did you mean group.priority?\n"
        "    organization.priority + grup.priority\n"
        "                            ^^^^\n"
        f"{stays}"
    )
    for pair, words in (
        (("scheduler.backfill.depth", "-1"), "-1 is too small; the least is 0"),
        (("workflow.killGrace", "45"), "`45` has no unit; write for instance 45s"),
        (("workflow.kilGrace", "45s"), "no such setting; did you mean workflow.killGrace?"),
    ):
        done = user.run("config", "set", *pair)
        assert (done.code, done.err) == (1, f"{pair[0]}: {words}\n{stays}")


def test_an_expression_is_tried_before_it_is_set(user: Terminal, yard: YardServer) -> None:
    flows: list[str] = []
    for group, priority in (("first", "0"), ("second", "-1"), ("third", "-2")):
        acting = ("--user", f"u-{group}", "--group", group)
        options = ("--name", group, "--json", "--priority", priority)
        done = user.run("workflow", "start", "-", *options, *acting, typed=HOLDS)
        flows.append(str(json.loads(well(done))["id"]))
    done = user.run("priority", "test", "-workflow.priority")
    rows = cells(well(done))
    assert rows[0][0].startswith("2 of 2 stages that wait would move, as of position ")
    assert rows[2] == [
        "PLACE", "WAS", "PRIO", "WAS PRIO", "WORKFLOW", "STAGE", "GROUP", "USER", "RANKS",
    ]  # fmt: skip
    assert [row[0:2] + row[4:5] + row[6:] for row in rows[3:]] == [
        ["1", "2", f"{flows[2]} third", "third", "u-third", "1"],
        ["2", "1", f"{flows[1]} second", "second", "u-second", "1"],
    ]
    assert "logyard config set scheduler.priority '-workflow.priority'" in done.err
    assert user.run("priority", "test", "1", "--json").json["moved"] == 0
    bad = user.run("priority", "test", "queue.age_hour")
    assert bad.code == 1
    assert bad.err.endswith("    queue.age_hour\n          ^^^^^^^^\n")
    # What holds the node is evicted by name, and comes back to its place.
    one = f"{flows[0]}/hold/0#1"
    until(lambda: "runs" in user.run("workflow", "events", flows[0]).out or None)
    told = user.run("allocation", "preempt", one)
    assert well(told) == f"{one} is being evicted; it is queued again with its old place\n"
    assert user.run("allocation", "preempt", "nonsense").code == 1
    until(lambda: "attempt 2  placed" in user.run("workflow", "events", flows[0]).out or None)
    lines = user.run("workflow", "events", flows[0]).out
    assert "preempted by an administrator (ran " in lines
    assert "priority set (workflow: 0, organization: 0, group: 0, user: 0)" in lines
    assert yard.process is not None


def test_the_verbs_are_completed_and_explained(user: Terminal) -> None:
    def completed(line: str) -> list[str]:
        words = line.split(" ")
        more = {
            "_LOGYARD_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
        }
        out = user.run(more=more).out
        return [one.partition(",")[2] for one in out.splitlines()]

    assert completed("logyard gr") == ["group"]
    assert completed("logyard config ") == ["history", "set", "show", "unset"]
    assert "--no-preempt" in completed("logyard group update x --no")
    for verb in ("organization", "group", "user", "config", "priority", "allocation"):
        assert well(user.run(verb, "--help"))
    assert user.run("group", "list", "--server", "http://127.0.0.1:1").code == 3
