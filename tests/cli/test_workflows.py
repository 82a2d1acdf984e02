"""Workflows from the command line, against a real server with a real node."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal, terminal
from tests.services.server import YardServer

__all__ = ["terminal"]

HELLO = "version: v4\njobs:\n  hello:\n    script: echo hello; echo oops >&2\n"
FAILS = """version: v4
jobs:
  build:
    script: |
      echo line one
      echo line two
      exit 3
  after:
    script: echo never
    depends-on: [{name: build}]
"""
WAITS = "version: v4\njobs:\n  long:\n    script: sleep 600\n"
KEEPS = """version: v4
volumes:
  kept:
    egress:
      - source: {uri: file://deep/answer.txt}
        destination: {uri: results://deep/answer.txt}
jobs:
  write:
    script: mkdir -p /kept/deep && echo 42 > /kept/deep/answer.txt
    mounts: {/kept: kept}
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


def started(user: Terminal, text: str, *options: str) -> str:
    """Start a workflow; its id."""
    done = user.run("workflow", "start", "-", "--json", *options, typed=text)
    assert done.code == 0, done.err
    return str(done.json["id"])


def test_watching_a_workflow_that_finishes(user: Terminal) -> None:
    done = user.run("workflow", "start", "-", "--name", "greet", "--watch", typed=HELLO)
    assert (done.code, done.out) == (0, "")
    assert re.search(r"^greet: wf-\w+ started at position [\d,]+$", done.err, re.MULTILINE)
    assert re.search(r"^  hello  done      \d", done.err, re.MULTILINE)
    assert re.search(r"^greet: wf-\w+ finished in ", done.err, re.MULTILINE)


def test_watching_a_workflow_that_fails(user: Terminal) -> None:
    done = user.run("workflow", "start", "-", "--name", "make", "--watch", typed=FAILS)
    assert done.code == 1
    assert re.search(
        r"^make failed: build exited with code 3 \(wf-\w+, after", done.err, re.MULTILINE
    )
    assert "  | line one\n  | line two\n" in done.err
    command = re.search(r"`(logyard workflow log \S+)` shows all", done.err)
    assert command is not None
    again = user.run(*command[1].split()[1:])
    assert (again.code, again.out) == (0, "line one\nline two\n")


def test_the_code_of_a_job_becomes_the_exit_code(user: Terminal) -> None:
    done = user.run("workflow", "start", "-", "--exit-code-of", "build", "--json", typed=FAILS)
    assert done.code == 3
    told = done.json
    assert (told["status"], told["failedStage"], told["exitCode"]) == ("failed", "build", 3)
    assert {stage["name"]: stage["state"] for stage in told["stages"]} == {
        "build": "failed",
        "after": "canceled",
    }
    wrong = user.run("workflow", "start", "-", "--exit-code-of", "bild", typed=HELLO)
    assert wrong.code == 1
    assert "it has no stage 'bild'; there are hello" in wrong.err


def test_the_same_key_starts_one_workflow(user: Terminal) -> None:
    first = user.run("workflow", "start", "-", "--key", "k1", "--json", typed=HELLO)
    again = user.run("workflow", "start", "-", "--key", "k1", "--json", typed=HELLO)
    assert first.json["created"] and not again.json["created"]
    assert first.json["id"] == again.json["id"]
    told = user.run("workflow", "start", "-", "--key", "k1", "--wait", typed=HELLO)
    assert told.code == 0
    assert "was started before, with the same key" in told.err


def test_a_file_with_problems_starts_nothing(user: Terminal) -> None:
    bad = user.home / "bad.yaml"
    bad.write_text("version: v4\njobs:\n  a: {comand: [x], script: y}\n")
    done = user.run("workflow", "start", bad)
    assert (done.code, done.out) == (1, "")
    assert f"{bad}:3:7  jobs.a.comand: unknown field; did you mean `command`?" in done.err
    assert done.err.endswith("1 problem; nothing was started\n")
    done = user.run("workflow", "start", "-", typed="version: v4\nservices:\n  s: {script: x}\n")
    assert done.code == 1
    assert "services are not run yet" in done.err
    assert user.run("workflow", "list", "--name", "bad").out == ""


def test_asking_about_a_workflow(user: Terminal) -> None:
    workflow = started(user, HELLO, "--name", "asked", "--priority", "-3")
    assert user.run("workflow", "status", workflow, "--watch").code == 0
    assert user.run("workflow", "status", workflow).out.startswith(f"asked: {workflow} finished")
    listed = user.run("workflow", "list", "--name", "asked")
    assert listed.out.splitlines()[0].split() == [
        "WORKFLOW", "NAME", "STATUS", "PRIO", "USER", "CREATED", "TOOK",
    ]  # fmt: skip
    assert listed.out.splitlines()[1].split()[:4] == [workflow, "asked", "finished", "-3"]
    told = user.run("workflow", "list", "--status", "finished", "--all", "--json").json
    assert workflow in [one["id"] for one in told["workflows"]]
    described = user.run("workflow", "describe", workflow).out
    assert described.startswith(f"asked: {workflow} finished after ")
    assert re.search(r"^hello +job +finished", described, re.MULTILINE)
    stage = user.run("workflow", "describe", f"{workflow}/hello").out
    assert re.search(rf"^{workflow}/hello/0#1 +finished +node1 .* 0 ", stage, re.MULTILINE)
    assert user.run("workflow", "get", workflow).out == HELLO
    assert user.run("workflow", "get", workflow, "--json").json["version"] == "v4"
    assert user.run("workflow", "log", workflow, "--stream", "out").out == "hello\n"
    assert user.run("workflow", "logs", f"{workflow}/hello/0#1", "--stream", "err").out == "oops\n"
    told_log = user.run("workflow", "log", workflow, "--json", "--stream", "out").lines
    assert list(told_log[0]["result"]) == ["output"]
    happened = user.run("workflow", "events", workflow).out.splitlines()
    assert re.search(
        r"workflow +asked started by .* \(group default\), "
        r"priority set \(workflow: -3, organization: 0, group: 0, user: 0\)$",
        happened[0],
    )
    assert any(re.search(r"workflow +finished$", line) for line in happened)
    cloud = user.run("workflow", "events", workflow, "--json", "--tail", "2").lines
    assert [one["specversion"] for one in cloud] == ["1.0", "1.0"]
    assert user.run("workflow", "why", f"{workflow}/hello").out.startswith(
        f"{workflow}/hello/0#1 finished\n"
    )


def test_what_is_not_there_is_said(user: Terminal) -> None:
    for arguments in (
        ["describe", "wf-none"],
        ["status", "wf-none"],
        ["get", "wf-none"],
        ["events", "wf-none"],
        ["log", "wf-none/x"],
        ["why", "wf-none/x"],
        ["results", "wf-none"],
        ["stop", "wf-none"],
    ):
        done = user.run("workflow", *arguments)
        assert (done.code, done.out) == (1, ""), arguments
        assert "wf-none" in done.err


def test_results_are_listed_and_fetched(user: Terminal, tmp_path: Path) -> None:
    done = user.run("workflow", "start", "-", "--wait", "--json", typed=KEEPS)
    assert done.code == 0, done.err
    workflow = done.json["id"]
    assert user.run("workflow", "results", workflow).out.splitlines()[1].split() == [
        "deep/answer.txt",
        "3B",
    ]
    fetched = user.run("workflow", "results", workflow, "--to", tmp_path / "out")
    file = tmp_path / "out" / "deep" / "answer.txt"
    assert (fetched.code, fetched.out) == (0, f"{file}\n")
    assert file.read_text() == "42\n"
    assert user.run("workflow", "results", workflow, "deep", "--json").json["results"]
    assert user.run("workflow", "results", workflow, "other").code == 1


def test_ctrl_c_leaves_the_workflow_running_and_stop_ends_it(user: Terminal) -> None:
    process = user.start("workflow", "start", "-", "--name", "endless", "--watch")
    assert process.stdin is not None and process.stderr is not None
    process.stdin.write(WAITS)
    process.stdin.close()
    for line in process.stderr:
        if "running" in line:
            break
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    assert process.wait(30) == 130
    process.stderr.close()
    if process.stdout is not None:
        process.stdout.close()
    found = re.search(r"(wf-\w+) runs on; `logyard workflow stop", rest)
    assert found is not None
    workflow = found[1]
    queued = user.run("queue", "show", "--workflow", workflow)
    assert re.search(rf"^running .*{workflow} endless +long ", queued.out, re.MULTILINE)
    stopped = user.run("workflow", "stop", workflow, "--reason", "enough")
    assert (stopped.code, stopped.out) == (0, f"{workflow} is being stopped\n")
    ended = user.run("workflow", "status", workflow, "--watch", "--json")
    assert ended.code == 1
    assert ended.json["workflowStatus"] == "STAGE_STATUS_CANCELED"


def test_on_a_terminal_progress_is_redrawn_and_ctrl_c_asks_whether_to_stop(
    user: Terminal,
) -> None:
    file = user.home / "endless.yaml"
    file.write_text(WAITS)
    screen, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "logyard", "workflow", "start", str(file), "--watch"],
        env=user.environment({"TERM": "xterm"}),
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(side)
    shown = _until(screen, b"running")
    os.write(screen, b"\x03")
    shown += _until(screen, b"too? [y/N]")
    os.write(screen, b"y\n")
    shown += _until(screen, b"is being stopped")
    assert process.wait(30) == 130
    os.close(screen)
    assert b"\x1b[" in shown
    found = re.search(rb"endless: (wf-\w+) started", shown)
    assert found is not None
    ended = user.run("workflow", "status", "--watch", "--json", found[1].decode())
    assert ended.json["workflowStatus"] == "STAGE_STATUS_CANCELED"


def _until(screen: int, wanted: bytes) -> bytes:
    """What a terminal shows up to the wanted words."""
    shown = b""
    deadline = time.monotonic() + 30
    while wanted not in shown:
        assert time.monotonic() < deadline, shown
        if select.select([screen], [], [], 1)[0]:
            shown += os.read(screen, 65536)
    return shown


def test_run_streams_output_and_exits_with_the_code_of_the_job(user: Terminal) -> None:
    done = user.run("run", "--name", "x", "--", "sh", "-c", "echo out; echo err >&2; exit 5")
    assert (done.code, done.out) == (5, "out\n")
    assert "err\n" in done.err
    assert re.search(r"^x failed: x exited with code 5 ", done.err, re.MULTILINE)
    well = user.run("run", "--env", "A=b c", "--", "sh", "-c", 'echo "$A"; kill -0 $$')
    assert (well.code, well.out) == (0, "b c\n")
    killed = user.run("run", "--", "sh", "-c", "kill -9 $$")
    assert killed.code == 137


def test_run_of_an_array_prints_each_task_when_it_ends(user: Terminal) -> None:
    done = user.run("run", "--array", "1-5", "--", "sh", "-c", "echo task $FB_TASK_ID; echo two")
    assert done.code == 0
    lines = done.out.splitlines()
    assert sorted(lines) == sorted(
        line for task in range(1, 6) for line in (f"{task}: task {task}", f"{task}: two")
    )
    for task in range(1, 6):
        first = lines.index(f"{task}: task {task}")
        assert lines[first + 1] == f"{task}: two"


def test_run_can_be_left_alone(user: Terminal) -> None:
    done = user.run("run", "--detach", "--", "true")
    assert re.fullmatch(r"wf-\w+\n", done.out)
    watched = user.run("run", "--watch", "--json", "--", "true")
    assert watched.json["status"] == "finished"


def test_a_waiting_job_is_explained(user: Terminal) -> None:
    first = started(user, WAITS.replace("sleep", "exec sleep"))
    large = WAITS.replace("script:", "resource: {cpu: {cores: 2}}\n    script:")
    second = started(user, large, "--name", "large")
    huge = started(user, WAITS.replace("script:", "resource: {cpu: {cores: 64}}\n    script:"))
    deadline = time.monotonic() + 30
    kinds: tuple[str, str] = ("", "")
    while kinds != ("capacity", "never") and time.monotonic() < deadline:
        kinds = (
            user.run("workflow", "why", f"{second}/long", "--json").json["kind"],
            user.run("workflow", "why", f"{huge}/long", "--json").json["kind"],
        )
    assert kinds == ("capacity", "never")
    why = user.run("workflow", "why", f"{second}/long").out
    assert why.startswith(
        f"{second}/long/0#1 waits for capacity: no node has 2 cpu free; it is the head, promised "
        "node1 by "
    )
    assert re.search(rf"^  held by +{first}/long \(ends by \d", why, re.MULTILINE)
    assert re.search(r"^  order +priority 0 = .*; the default policy", why, re.MULTILINE)
    assert not re.search(r"\dT\d\d:", why), "instants are in local time"
    history = user.run("workflow", "why", f"{second}/long", "--history").out
    assert re.search(r"^SINCE +FOR +WAITED FOR +POSITION$", history, re.MULTILINE)
    assert re.search(r" capacity +\d+$", history, re.MULTILINE)
    assert re.search(r"^as of position [\d,]+$", why, re.MULTILINE)
    shown = user.run("queue", "show").out
    assert re.search(rf"^ready .*{second} large +long +2 cpu ", shown, re.MULTILINE)
    assert re.search(rf"^parked .*{huge} .* never: no node has 64 cpu ", shown, re.MULTILINE)
    assert re.search(rf"^running .*{first} .* started by order ", shown, re.MULTILINE)
    assert re.search(rf"^ready .*{second} .* head: starts by ", shown, re.MULTILINE)
    by_age = user.run("queue", "show", "--sort", "age", "--min-priority", "-1", "--json").json
    assert [one["workflowId"] for one in by_age["allocations"]] == [first, second, huge]
    watched = user.start("queue", "show", "--watch")
    assert watched.stdout is not None
    assert watched.stdout.readline().startswith("QUEUE ")
    watched.send_signal(signal.SIGINT)
    watched.communicate(timeout=30)
    assert watched.returncode == 130
    assert "shown as" in shown.splitlines()[-1]
    stats = user.run("queue", "stats")
    assert "1 running, 1 ready, 1 parked, 0 pending" in stats.out.splitlines()[0]
    for title in ("ORGANIZATION", "GROUP", "USER", "SHAPE"):
        assert re.search(rf"^{title} +RUNNING +READY ", stats.out, re.MULTILINE)
    assert re.search(r"^  cpu in use 50% now", stats.out, re.MULTILINE)
    described = user.run("workflow", "describe", f"{second}/long").out
    assert re.search(r"^  priority  \S+ = organization 0 .*; the default policy$", described, re.M)
    for workflow in (first, second, huge):
        assert user.run("workflow", "stop", workflow).code == 0
        assert user.run("workflow", "status", "--watch", workflow).code == 1
    assert user.run("queue", "show").out.startswith("the queue is empty\n")


def test_nodes(user: Terminal) -> None:
    listed = user.run("node", "list")
    assert re.search(r"^node1 +up +2 of 2 +1GiB of 1GiB +0$", listed.out, re.MULTILINE)
    assert user.run("node", "cordon", "node1", "--reason", "new memory").code == 0
    described = user.run("node", "describe", "node1").out
    assert described.startswith("node1 is cordoned since ")
    assert described.splitlines()[0].endswith(": new memory")
    held = started(user, HELLO)
    happened = user.run("events", "--node", "node1", "--type", "node.", "--json").lines
    assert [one["type"] for one in happened][-1] == "logyard.node.cordoned"
    assert user.run("node", "uncordon", "node1").out == "node1 is open for work\n"
    assert user.run("workflow", "status", "--watch", held).code == 0
    drained = user.run("node", "drain", "node1", "--evict")
    assert drained.out == "node1 is draining: what runs there is evicted\n"
    assert user.run("node", "uncordon", "node1").code == 0
    assert user.run("node", "list", "--json").json["nodes"][0]["state"] == "up"
    refused = user.run("node", "cordon", "moon")
    assert (refused.code, refused.out) == (1, "")
    assert "moon" in refused.err


def test_events_are_followed(user: Terminal) -> None:
    process = user.start("events", "--follow", "--type", "workflow.", "--json", "--tail", "0")
    assert process.stdout is not None
    workflow = started(user, HELLO)
    seen: list[str] = []
    for line in process.stdout:
        event = json.loads(line)
        if event["data"].get("workflow") == workflow:
            seen.append(event["type"])
        if seen and seen[-1] == "logyard.workflow.finished":
            break
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    assert seen == [
        "logyard.workflow.submitted",
        "logyard.workflow.started",
        "logyard.workflow.finished",
    ]


def test_the_version_of_the_server_is_told(user: Terminal, yard: YardServer) -> None:
    assert f"at {yard.url} (LOGYARD_SERVER), cluster main" in user.run("version").out
    assert user.run("version", "--json").json["server"]["version"] == "v4.1.0"


def test_the_server_checks_files_too(user: Terminal, yard: YardServer) -> None:
    bad = "version: v4\njobs:\n  a: {comand: [x], script: y}\n"
    here = user.run("workflow", "validate", "-", typed=bad)
    there = user.run("workflow", "validate", "-", "--server", yard.url, typed=bad)
    assert (here.code, here.out) == (there.code, there.out)
    old = "version: v1\njobs:\n  a: {command: [ls]}\n"
    local = user.run("workflow", "upgrade", "-", typed=old)
    remote = user.run("workflow", "upgrade", "-", "--server", yard.url, typed=old)
    assert local.code == 0 and local.out == remote.out
    schema = user.run("workflow", "schema", "--server", yard.url).json
    assert schema == user.run("workflow", "schema").json
