"""Agents, servers and keepers come and go; jobs run once, and their ends are told."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from logyard_domain.work import Task
from logyard_engine.substrate.desk import Desk
from logyard_engine.substrate.keeping import keeper_pid
from logyard_engine.substrate.node import EmbeddedNode, NodeError
from tests.substrate.outputs import printed

AGENT = """
import sys, threading
from pathlib import Path
from logyard_domain.work import Task
from logyard_engine.substrate.desk import Desk
from logyard_engine.substrate.inventory import take_inventory
from logyard_engine.substrate.node import EmbeddedNode

base, desk = Path(sys.argv[1]), Desk()
node = EmbeddedNode(
    "n1", base / "node", logs=base / "logs", results=base / "results", volumes=base / "volumes",
    offer=desk.offer, beat=desk.beat, inventory=take_inventory(cores=4, memory=1 << 30),
)
desk.connect(node.deliver)
node.start()
script = "echo run >> ran.$FB_TASK_ID; sleep 0.0$FB_TASK_ID"
task = Task(task="wf-1/s", workflow="wf-1", stage="s", kind="job", array=True, cwd=str(base),
            argv=("sh", "-c", script), limit_ms=60000)
names = desk.want(task, range(10))
desk.wait_until(lambda: len(desk.began.keys() | {one.allocation for one in desk.ends}) == 10)
print(",".join(one.allocation for one in desk.ends), flush=True)
threading.Event().wait()
"""


def task(script: str) -> Task:
    return Task(
        task="wf-1/s",
        workflow="wf-1",
        stage="s",
        kind="job",
        argv=("sh", "-c", script),
        limit_ms=60_000,
        grace_ms=300,
    )


def test_killed_agent_loses_and_doubles_nothing(
    tmp_path: Path, desk: Desk, start_node: Callable[[], EmbeddedNode]
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", AGENT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdout is not None
        told = {name for name in agent.stdout.readline().strip().split(",") if name}
        agent.kill()
    # The server still wants those whose end was not told, and takes them as not started.
    same = Task(
        task="wf-1/s",
        workflow="wf-1",
        stage="s",
        kind="job",
        array=True,
        cwd=str(tmp_path),
        argv=("sh", "-c", "echo run >> ran.$FB_TASK_ID; sleep 0.0$FB_TASK_ID"),
        limit_ms=60_000,
    )
    left = [rank for rank in range(10) if f"wf-1/s/{rank}#1" not in told]
    names = desk.want(same, left)
    start_node()
    ends = desk.wait(names)
    assert {ended.outcome for ended in ends} == {"finished"}
    assert sorted(one.allocation for one in desk.ends) == sorted(names)
    for rank in range(10):
        assert (tmp_path / f"ran.{rank}").read_text() == "run\n"


def test_jobs_outlive_a_clean_restart(
    tmp_path: Path, desk: Desk, start_node: Callable[[], EmbeddedNode]
) -> None:
    node = start_node()
    go = tmp_path / "go"
    [name] = desk.want(task(f"while [ ! -e {go} ]; do sleep 0.02; done; echo done"))
    desk.wait_until(lambda: name in desk.began)
    assert node.stop("leave", 20)
    go.touch()
    start_node()
    [ended] = desk.wait([name])
    assert ended.outcome == "finished"
    assert desk.registrations[0].incarnation == desk.registrations[-1].incarnation
    assert printed(tmp_path, "wf-1/s/0#1") == "done\n"


def test_killed_keeper_is_a_new_incarnation(
    tmp_path: Path, desk: Desk, start_node: Callable[[], EmbeddedNode]
) -> None:
    start_node()
    [name] = desk.want(task("sleep 60"))
    desk.wait_until(lambda: name in desk.began)
    desk.unwant(name)
    pid = keeper_pid(tmp_path / "node")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    desk.wait_until(lambda: len(desk.registrations) == 2)
    first, second = desk.registrations
    assert first.incarnation != second.incarnation
    assert desk.wait(desk.want(task("true"), attempt=2))[0].outcome == "finished"
    assert [one.allocation for one in desk.ends] == ["wf-1/s/0#2"]


def test_reports_wait_for_a_server_that_is_away(
    desk: Desk, start_node: Callable[[], EmbeddedNode]
) -> None:
    start_node()
    names = desk.want(task("sleep 0.1"), range(3))
    desk.away = True
    # Real time passes, in which nothing may arrive.
    select.select([], [], [], 0.6)
    assert desk.ends == []
    desk.away = False
    assert {ended.outcome for ended in desk.wait(names)} == {"finished"}
    assert sorted(one.allocation for one in desk.ends) == names


def test_sync_stops_what_is_not_wanted_and_starts_what_is_missing(
    tmp_path: Path, desk: Desk, start_node: Callable[[], EmbeddedNode]
) -> None:
    node = start_node()
    keep, unwanted = desk.want(task("trap '' TERM; sleep 60 & echo $$; wait; wait"), [0, 1])
    desk.wait_until(lambda: {keep, unwanted} <= desk.began.keys())
    desk.wait_until(lambda: bool(printed(tmp_path, "wf-1/s/1#1")))
    desk.unwant(unwanted)
    desk.connect(None)
    [missing] = desk.want(task("true"), [2])
    desk.connect(node.deliver)
    started_at = desk.began.pop(keep)
    node.deliver([desk.sync()])
    assert desk.wait([missing])[0].outcome == "finished"
    # It is told again as it stands, and is not started again.
    desk.wait_until(lambda: desk.began.get(keep) == started_at)
    desk.wait_until(
        lambda: not Path(f"/proc/{printed(tmp_path, 'wf-1/s/1#1').strip()}").exists(), 20
    )
    assert [one.allocation for one in desk.ends] == [missing]


def test_start_of_an_unknown_task_asks_for_everything(
    desk: Desk, start_node: Callable[[], EmbeddedNode]
) -> None:
    node = start_node()
    desk.wait_until(lambda: len(desk.registrations) == 1)
    desk.connect(None)
    [name] = desk.want(task("true"))
    desk.connect(node.deliver)
    node.deliver(desk.sync().starts)
    assert desk.wait([name])[0].outcome == "finished"
    assert len(desk.registrations) == 2


def test_drain_lets_jobs_end(desk: Desk, start_node: Callable[[], EmbeddedNode]) -> None:
    node = start_node()
    [name] = desk.want(task("sleep 0.3"))
    desk.wait_until(lambda: name in desk.began)
    assert node.stop("drain", 20)
    assert [one.outcome for one in desk.ends] == ["finished"]


def test_kill_ends_jobs_and_keeper(
    tmp_path: Path, desk: Desk, start_node: Callable[[], EmbeddedNode]
) -> None:
    node = start_node()
    [name] = desk.want(task("sleep 60"))
    desk.wait_until(lambda: name in desk.began)
    assert node.stop("kill", 20)
    assert [one.outcome for one in desk.ends] == ["canceled"]
    assert not (tmp_path / "node/keeper.sock").exists()


def test_idle_node_leaves_no_keeper(
    tmp_path: Path, desk: Desk, start_node: Callable[[], EmbeddedNode]
) -> None:
    node = start_node()
    pid = keeper_pid(tmp_path / "node")
    assert pid is not None
    fd = os.pidfd_open(pid)
    assert node.stop("leave", 20)
    assert select.select([fd], [], [], 20)[0]
    os.close(fd)


def test_second_agent_is_refused(start_node: Callable[[], EmbeddedNode]) -> None:
    start_node()
    with pytest.raises(NodeError, match="another agent serves node n1"):
        start_node()
