"""Scenarios over the real decide, settle, tick and log, in virtual time."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from logyard_domain.commands import (
    Began,
    CordonNode,
    DrainNode,
    Ended,
    Refused,
    Report,
    StopWorkflow,
    UncordonNode,
)
from logyard_domain.decide import decide
from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationRequeued,
    AllocationStarted,
    NodeDrained,
    NodeLost,
    ShapeHeld,
    StageCanceled,
    StageFailed,
    StageFinished,
    WorkflowCanceled,
    WorkflowFailed,
    WorkflowFinished,
)
from logyard_domain.holds import Hold, NeverFits, NodesBusy, NodesClosed, NoNodes
from logyard_engine.log.opening import open_log
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import Yard
from tests.engine.work import flow, job, staged

DAY_MS = 86_400_000


def yard(script: Callable[[str], Run] = lambda _: Run(), **nodes: int) -> Yard:
    return Yard(open_log("memory:", "test"), nodes, script)


def running(y: Yard) -> list[str]:
    return [a.stage.plan.name for a in y.world.allocations.values()]


E = TypeVar("E")


def events(y: Yard, kind: type[E]) -> list[E]:
    return [r.event for r in y.records if isinstance(r.event, kind)]


def hold_of(y: Yard, name: str) -> Hold | None:
    stage = next(w.stages[name] for w in y.world.workflows.values() if name in w.stages)
    return y.world.shapes[stage.shape].hold


def test_a_job_runs_and_its_workflow_finishes() -> None:
    y = yard(n1=2)
    y.submit(flow(a=job()))
    y.run()
    assert len(events(y, WorkflowFinished)) == 1
    assert not y.world.workflows and not y.world.allocations and not y.world.definitions
    assert y.world.nodes["n1"].free_cores == 2
    y.check()


def test_who_does_not_fit_waits_and_says_why() -> None:
    y = yard(n1=4)
    y.submit(flow(a=job(3)))
    y.submit(flow(b=job(2)))
    assert running(y) == ["a"]
    assert hold_of(y, "b") == NodesBusy()
    y.run()
    assert len(events(y, WorkflowFinished)) == 2
    y.check()


def test_nobody_overtakes_the_first_that_waits() -> None:
    y = yard(n1=4)
    y.submit(flow(a=job(3)))
    y.submit(flow(big=job(4)))
    y.submit(flow(small=job(1, timeout_ms=2 * DAY_MS)))
    assert running(y) == ["a"]
    assert hold_of(y, "small") == NodesBusy()
    y.advance(1_000)
    assert running(y) == ["big"]
    y.run()
    y.check()


def test_a_wait_for_one_kind_of_node_leaves_the_others_open() -> None:
    y = yard(cpu=4)
    y.node("gpu", 4, devices={"nvidia.com/gpu": 1})
    y.submit(flow(train=job(devices={"nvidia.com/gpu": 1})))
    y.submit(flow(next=job(devices={"nvidia.com/gpu": 1})))
    y.submit(flow(plain=job(4)))
    assert sorted(running(y)) == ["plain", "train"]
    placed = {e.allocation.split("/")[1]: e.node for e in events(y, AllocationPlaced)}
    assert placed == {"train": "gpu", "plain": "cpu"}
    y.run()
    y.check()


def test_priority_goes_before_age() -> None:
    y = yard(n1=1)
    y.submit(flow(first=job()))
    y.submit(flow(low=job()), priority=-5)
    y.submit(flow(high=job()))
    y.advance(1_000)
    assert running(y) == ["high"]
    y.run()
    y.check()


def test_age_overtakes_priority_at_a_day_a_point() -> None:
    y = yard(lambda _: Run(ms=200_000_000), n1=1)
    y.submit(flow(first=job(timeout_ms=3 * DAY_MS)))
    y.submit(flow(old=job(timeout_ms=3 * DAY_MS)), priority=-1)
    y.advance(90_000_000)
    y.submit(flow(new=job(timeout_ms=3 * DAY_MS)))
    y.advance(115_000_000)
    assert running(y) == ["old"]
    y.check()


def test_what_fits_no_node_is_parked_and_blocks_nobody() -> None:
    y = yard(n1=4)
    y.submit(flow(huge=job(64)))
    y.submit(flow(odd=job(annotations={"arch": "arm"}, devices={"fpga": 1})))
    y.submit(flow(a=job()))
    assert running(y) == ["a"]
    assert hold_of(y, "huge") == NeverFits(misfits=("cores",))
    assert hold_of(y, "odd") == NeverFits(misfits=("annotation arch=arm", "device fpga"))
    y.node("n2", 64)
    assert "huge" in running(y)
    y.run()
    y.check()


def test_without_nodes_everything_waits_for_one() -> None:
    y = yard()
    y.submit(flow(a=job()))
    assert hold_of(y, "a") == NoNodes()
    y.node("n1", 1)
    y.run()
    assert len(events(y, WorkflowFinished)) == 1
    y.check()


def test_an_exclusive_job_has_its_node_alone() -> None:
    y = yard(n1=4)
    y.submit(flow(a=job()))
    y.submit(flow(alone=job(exclusive=True)))
    y.submit(flow(b=job(timeout_ms=2 * DAY_MS)))
    assert running(y) == ["a"]
    y.advance(1_000)
    assert running(y) == ["alone"]
    y.advance(1_000)
    assert running(y) == ["b"]
    y.run()
    y.check()


def test_an_array_keeps_to_its_concurrency() -> None:
    y = yard(n1=16)
    y.submit(flow(a=job(array=(1, 10), concurrency=3)))
    assert [x.rank for x in y.world.allocations.values()] == [1, 2, 3]
    y.run()
    assert len(events(y, AllocationEnded)) == 10
    assert len(events(y, StageFinished)) == 1
    y.check()


def test_stages_run_as_they_depend_on_each_other() -> None:
    y = yard(n1=8)
    y.submit(flow(c=job(after=("a", "b")), a=job(), b=job(array=(1, 3))))
    assert sorted(set(running(y))) == ["a", "b"]
    y.advance(1_000)
    assert running(y) == ["c"]
    y.run()
    assert [e.stage for e in events(y, StageFinished)][-1] == "c"
    y.check()


def test_a_failed_stage_fails_what_depends_on_it_and_lets_others_finish() -> None:
    y = yard(lambda a: Run(ms=500, exit_code=3) if "/bad/" in a else Run(), n1=8)
    y.submit(flow(bad=job(), after=job(after=("bad",)), last=job(after=("after",)), other=job()))
    y.run()
    assert [e.stage for e in events(y, StageFailed)] == ["bad"]
    assert {e.stage: e.reason for e in events(y, StageCanceled)} == {
        "after": "bad failed",
        "last": "after did not run",
    }
    assert [e.stage for e in events(y, StageFinished)] == ["other"]
    assert events(y, WorkflowFailed) == [
        WorkflowFailed(
            workflow=events(y, StageFailed)[0].workflow,
            stage="bad",
            error="bad exited with code 3",
        )
    ]
    y.check()


def test_a_failed_rank_stops_the_rest_of_its_array() -> None:
    y = yard(lambda a: Run(exit_code=1) if a.endswith("/2#1") else Run(ms=2_000), n1=2)
    y.submit(flow(a=job(array=(1, 100))))
    y.run()
    assert len(events(y, AllocationPlaced)) == 2
    assert events(y, StageFailed)[0].error == "a[2] exited with code 1"
    y.check()


def test_a_retry_waits_its_back_off_and_is_the_next_attempt() -> None:
    y = yard(lambda a: Run(exit_code=0 if a.endswith("#3") else 1), n1=2)
    y.submit(flow(a=job(retries=2)))
    y.run()
    requeued = events(y, AllocationRequeued)
    assert [e.allocation[-2:] for e in requeued] == ["#2", "#3"]
    ends = [r.at for r in y.records if isinstance(r.event, AllocationEnded)]
    assert [e.not_before - at for e, at in zip(requeued, ends, strict=False)] == [1_000, 2_000]
    assert len(events(y, WorkflowFinished)) == 1
    y.check()


def test_retries_come_to_an_end() -> None:
    y = yard(lambda _: Run(exit_code=1), n1=2)
    y.submit(flow(a=job(retries=2)))
    y.run()
    assert len(events(y, AllocationEnded)) == 3
    assert len(events(y, WorkflowFailed)) == 1
    y.check()


def test_stopping_a_workflow_ends_what_runs_and_starts_nothing() -> None:
    y = yard(n1=1)
    id = y.submit(flow(a=job(array=(1, 5)), b=job(after=("a",))))
    y.ask(StopWorkflow(workflow=id, reason="enough"))
    y.ask(StopWorkflow(workflow=id))
    y.run()
    assert len(events(y, AllocationPlaced)) == 1
    assert events(y, AllocationEnded)[0].outcome == "canceled"
    assert {e.stage for e in events(y, StageCanceled)} == {"a", "b"}
    assert len(events(y, WorkflowCanceled)) == 1
    with pytest.raises(Refused, match="no workflow"):
        y.ask(StopWorkflow(workflow=id))
    y.check()


def test_the_same_start_twice_is_one_workflow() -> None:
    y = yard(n1=1)
    first = y.submit(flow(a=job()), key="same")
    assert y.submit(flow(a=job()), key="same") == first
    y.run()
    assert y.submit(flow(a=job()), key="same") == first
    assert y.submit(flow(a=job()), key="same", user="bob") != first
    y.run()
    assert len(events(y, WorkflowFinished)) == 2
    y.check()


def test_a_priority_above_zero_is_refused_and_changes_nothing() -> None:
    y = yard(n1=1)
    before = len(y.records)
    with pytest.raises(Refused, match="0 or lower"):
        y.submit(flow(a=job()), priority=1)
    assert len(y.records) == before
    y.check()


def test_work_of_a_lost_node_is_requeued_and_runs_elsewhere() -> None:
    y = yard(lambda _: Run(ms=100_000), n1=1, n2=1)
    y.submit(flow(a=job(array=(1, 2))))
    y.leave("n1")
    y.advance(70_000)
    assert [e.node for e in events(y, NodeLost)] == ["n1"]
    ended = events(y, AllocationEnded)
    assert [e.outcome for e in ended] == ["lost"]
    y.run()
    placed = [e.allocation for e in events(y, AllocationPlaced)]
    assert len(placed) == len(set(placed)) == 3
    assert len(events(y, WorkflowFinished)) == 1
    y.check()


def test_a_lost_node_that_returns_stops_what_is_no_longer_its_own() -> None:
    y = yard(lambda _: Run(ms=200_000), n1=1)
    y.submit(flow(a=job()))
    node = y.nodes["n1"]
    y.leave("n1")
    y.advance(70_000)
    assert not y.world.allocations
    y.add(node)
    assert [a.id[-2:] for a in y.world.allocations.values()] == ["#2"]
    y.run()
    assert [e.outcome for e in events(y, AllocationEnded)] == ["lost", "finished"]
    assert node.runs == {name: 1 for name in node.runs}
    y.check()


def test_a_restarted_node_has_lost_what_it_ran() -> None:
    y = yard(lambda _: Run(ms=50_000), n1=1)
    y.submit(flow(a=job()))
    y.nodes["n1"].restart("n1.2")
    y.join(y.nodes["n1"])
    y.run()
    assert [e.outcome for e in events(y, AllocationEnded)] == ["lost", "finished"]
    y.check()


def test_nothing_new_comes_to_a_cordoned_node() -> None:
    y = yard(n1=2)
    y.ask(CordonNode(node="n1", reason="disk"))
    y.submit(flow(a=job()))
    assert hold_of(y, "a") == NodesClosed()
    y.ask(UncordonNode(node="n1"))
    assert running(y) == ["a"]
    y.run()
    y.check()


def test_a_drain_waits_for_what_runs_or_moves_it() -> None:
    y = yard(n1=1, n2=1)
    y.submit(flow(a=job(array=(1, 2))))
    y.ask(DrainNode(node="n1"))
    y.ask(DrainNode(node="n2", evict=True))
    assert not events(y, NodeDrained)
    y.reports()
    assert [e.node for e in events(y, NodeDrained)] == ["n2"]
    y.run()
    assert [e.node for e in events(y, NodeDrained)] == ["n2", "n1"]
    assert [e.reason for e in events(y, AllocationRequeued)] == ["drained"]
    y.ask(UncordonNode(node="n1"))
    y.run()
    assert len(events(y, WorkflowFinished)) == 1
    y.check()


def test_volumes_files_and_jobs_share_one_storage_and_are_cleared_away() -> None:
    y = yard()
    y.node("n1", 1, storage="s1")
    y.node("n2", 4, storage="s2")
    y.submit(staged())
    y.run()
    placed = events(y, AllocationPlaced)
    assert [e.allocation.split("/")[1] for e in placed] == [
        "volume:data",
        "volume:more",
        "ingress:data:0",
        "work",
        "egress:data:0",
    ]
    assert len({e.node for e in placed}) == 1
    assert len(events(y, WorkflowFinished)) == 1
    assert not y.world.cleanups
    y.check()


def test_holds_are_recorded_once_while_they_stay_the_same() -> None:
    y = yard(n1=1)
    y.submit(flow(a=job(array=(1, 20))))
    y.run()
    assert len(events(y, ShapeHeld)) == 1
    y.check()


def test_short_ranks_queue_on_the_node_behind_each_other() -> None:
    y = yard(lambda _: Run(ms=10), n1=2)
    y.submit(flow(a=job(array=(1, 30)), b=job(after=("a",))))
    assert all(not e.behind for e in events(y, AllocationPlaced))
    y.advance(10)
    placed = events(y, AllocationPlaced)
    queued = [e for e in placed if e.behind]
    # 100 ms of work at 10 ms each, behind each of the two that run.
    assert len(queued) == 20
    assert y.world.nodes["n1"].free_cores == 0
    assert sum(a.behind is None for a in y.world.allocations.values()) == 2
    y.run()
    assert len(events(y, WorkflowFinished)) == 1
    assert len(events(y, AllocationEnded)) == 31
    y.check()


def test_a_start_in_room_that_is_not_known_to_be_free_is_not_believed() -> None:
    y = yard(lambda _: Run(ms=10), n1=1)
    y.submit(flow(a=job(array=(1, 9))))
    y.advance(10)
    follower = next(one for one in y.world.allocations.values() if one.behind is not None)
    assert follower.behind is not None
    began = (Began(follower.id, y.world.at),)
    assert not decide(y.world, Report(node="n1", began=began), y.world.at)
    ended = (Ended(follower.behind.id, "finished", started_at=y.world.at),)
    found = decide(y.world, Report(node="n1", began=began, ended=ended), y.world.at)
    assert AllocationStarted(allocation=follower.id, started_at=y.world.at) in found
    y.run()
    y.check()


def test_long_ranks_are_never_queued_ahead() -> None:
    y = yard(lambda _: Run(ms=101), n1=2)
    y.submit(flow(a=job(array=(1, 30))))
    y.run()
    assert not any(e.behind for e in events(y, AllocationPlaced))
    y.check()


def test_only_the_first_that_waits_is_queued_ahead() -> None:
    y = yard(lambda _: Run(ms=5), n1=1)
    y.submit(flow(a=job(array=(1, 50))))
    y.advance(5)
    y.submit(flow(big=job(array=(1, 3))), priority=-1)
    y.submit(flow(other=job(2)))
    y.run()
    behind = {e.allocation.split("/")[1] for e in events(y, AllocationPlaced) if e.behind}
    assert behind == {"a", "big"}
    y.check()


def test_what_is_queued_ahead_is_withdrawn_when_a_rank_fails() -> None:
    y = yard(lambda a: Run(ms=5, exit_code=1 if "/4#" in a else 0), n1=1)
    y.submit(flow(a=job(array=(1, 50))))
    y.run()
    outcomes = [e.outcome for e in events(y, AllocationEnded)]
    assert outcomes.count("failed") == 1 and "canceled" in outcomes
    assert len(events(y, StageFailed)) == 1
    assert y.world.nodes["n1"].free_cores == 1
    y.check()


def test_what_is_queued_ahead_is_lost_with_its_node_and_runs_again() -> None:
    y = yard(lambda _: Run(ms=5), n1=1)
    y.submit(flow(a=job(array=(1, 50))))
    y.advance(5)
    y.nodes["n1"].restart("n1.again")
    y.join(y.nodes["n1"])
    lost = [e for e in events(y, AllocationEnded) if e.outcome == "lost"]
    assert len(lost) > 2
    y.run()
    assert len(events(y, WorkflowFinished)) == 1
    y.check()
