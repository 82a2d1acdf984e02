"""Stops and time limits reach the whole group, and leave it its grace."""

from pathlib import Path

import pytest

from logyard_domain.work import Stop, Task
from logyard_engine.substrate.desk import Desk
from logyard_engine.substrate.keeper.processes import living
from logyard_engine.substrate.node import EmbeddedNode
from tests.substrate.outputs import printed

pytestmark = pytest.mark.usefixtures("node")


def job(script: str, limit_ms: int = 60_000, grace_ms: int = 20_000) -> Task:
    return Task(
        task="wf-1/s",
        workflow="wf-1",
        stage="s",
        kind="job",
        argv=("sh", "-c", script),
        limit_ms=limit_ms,
        grace_ms=grace_ms,
    )


def begun(desk: Desk, task: Task) -> str:
    """Start it, and wait until its first line of output is there."""
    allocation = desk.want(task)[0]
    desk.wait_until(lambda: allocation in desk.began)
    return allocation


def alive(pid: str) -> bool:
    return int(pid) in {one for one, _ in living()}


def test_grandchildren_die_with_the_leader(desk: Desk, tmp_path: Path) -> None:
    # The grandchild ignores SIGTERM and SIGHUP, and outlives its parents by nothing.
    script = "(trap '' TERM HUP; sh -c 'echo $$; while :; do sleep 60; done') & sleep 0.2"
    desk.wait(desk.want(job(script)))
    pid = printed(tmp_path, "wf-1/s/0#1").strip()
    desk.wait_until(lambda: not alive(pid))


def test_time_limit(desk: Desk) -> None:
    ended = desk.wait(desk.want(job("sleep 60", limit_ms=150)))[0]
    assert (ended.outcome, ended.exit_code, ended.signal) == ("timeout", 143, 15)
    assert ended.run_ms >= 150


def test_time_limit_kills_what_ignores_sigterm(desk: Desk) -> None:
    task = job("trap '' TERM; while :; do sleep 0.05; done", limit_ms=150, grace_ms=100)
    ended = desk.wait(desk.want(task))[0]
    assert (ended.outcome, ended.exit_code, ended.signal) == ("timeout", 137, 9)


@pytest.mark.parametrize("outcome", ["canceled", "preempted"])
def test_stop_lets_a_job_end_in_its_way(desk: Desk, tmp_path: Path, outcome: str) -> None:
    script = "trap 'echo saved; exit 5' TERM; echo up; while :; do sleep 0.05; done"
    allocation = begun(desk, job(script))
    desk.wait_until(lambda: printed(tmp_path, "wf-1/s/0#1") == "up\n")
    desk.stop(Stop(allocation, 20_000, outcome))  # type: ignore[arg-type]
    ended = desk.wait([allocation])[0]
    assert (ended.outcome, ended.exit_code, ended.error) == (outcome, 5, "")
    assert printed(tmp_path, "wf-1/s/0#1") == "up\nsaved\n"


def test_members_keep_their_grace_when_the_leader_is_gone(desk: Desk, tmp_path: Path) -> None:
    # The shell dies of SIGTERM at once; its child needs a while to save its work.
    child = "trap 'sleep 0.3; echo saved; exit' TERM; echo up; while :; do sleep 0.05; done"
    allocation = begun(desk, job(f'sh -c "{child}"; true'))
    desk.wait_until(lambda: printed(tmp_path, "wf-1/s/0#1") == "up\n")
    desk.stop(Stop(allocation, 20_000))
    ended = desk.wait([allocation])[0]
    assert (ended.outcome, ended.signal) == ("canceled", 15)
    assert printed(tmp_path, "wf-1/s/0#1") == "up\nsaved\n"


def test_grace_ends_for_members_too(desk: Desk, tmp_path: Path) -> None:
    child = "trap '' TERM; echo $$; while :; do sleep 0.05; done"
    allocation = begun(desk, job(f"sh -c {child!r}; true".replace("'", '"').replace('""', "''")))
    desk.wait_until(lambda: bool(printed(tmp_path, "wf-1/s/0#1")))
    desk.stop(Stop(allocation, 100))
    desk.wait([allocation])
    desk.wait_until(lambda: not alive(printed(tmp_path, "wf-1/s/0#1").strip()))


def test_stop_in_the_same_batch_as_the_start(desk: Desk, node: EmbeddedNode) -> None:
    desk.connect(None)
    allocation = desk.want(job("sleep 60"))[0]
    desk.stop(Stop(allocation, 1_000))
    desk.connect(node.deliver)
    orders = desk.sync()
    node.deliver([*orders.tasks, *orders.starts, *orders.stops])
    assert desk.wait([allocation])[0].outcome == "canceled"


def test_stop_of_what_was_never_here_comes_to_an_end(desk: Desk, node: EmbeddedNode) -> None:
    desk.stop(Stop("wf-9/s/0#1", 1_000))
    node.deliver([desk.sync()])
    assert desk.wait(["wf-9/s/0#1"])[0].outcome == "canceled"
