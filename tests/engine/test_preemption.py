"""Preemption over the real decide, tick and log, in virtual time."""

import sys

import pytest

from logyard_domain.commands import (
    DeleteGroup,
    PreemptAllocation,
    Refused,
    SetConfig,
    StopWorkflow,
    UpdateGroup,
)
from logyard_domain.configuration import Value
from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationRequeued,
    AllocationSeated,
    AllocationStarted,
    AllocationStopping,
    Event,
)
from logyard_engine.audit.auditor import audit
from logyard_engine.log.opening import open_log
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import Yard, log_bytes
from logyard_workflows_dsl.expressions import parse
from tests.engine.work import flow, job

HOUR_MS = 3_600_000
MINUTE_MS = 60_000


def yard(settings: dict[str, Value] | None = None, stubborn: bool = False) -> Yard:
    """A yard in which group `vip` may preempt group `crowd`, ten points above it."""
    made = Yard(open_log("memory:", "test"), {}, lambda _: Run(ms=HOUR_MS, stubborn=stubborn))
    values: dict[str, Value] = {
        "workflow.killGrace": MINUTE_MS,
        "scheduler.lookahead": 0,
        "scheduler.preemption.enabled": True,
        "scheduler.preemption.minRuntime": 5 * MINUTE_MS,
    }
    made.ask(SetConfig(values=values | (settings or {})), "server")
    made.ask(UpdateGroup(group="crowd"))
    made.ask(UpdateGroup(group="vip", priority=10, preempt=("crowd",)))
    return made


def stopped(y: Yard) -> list[AllocationStopping]:
    """Evictions, in order."""
    return [
        r.event
        for r in y.records
        if isinstance(r.event, AllocationStopping) and r.event.reason == "preempted"
    ]


def of(y: Yard, kind: type[Event], stage: str) -> list[int]:
    """Positions of such events of a stage."""
    return [
        r.position
        for r in y.records
        if isinstance(r.event, kind) and f"/{stage}/" in getattr(r.event, "allocation", "")
    ]


def crowd(y: Yard, name: str, cores: int = 4, **fields: object) -> str:
    """Preemptible work of the crowd."""
    return y.submit(
        flow(**{name: job(cores, timeout_ms=4 * HOUR_MS)}),
        name,
        **({"group": "crowd", "preemptible": True} | fields),
    )


def vip(y: Yard, cores: int = 4) -> str:
    """Urgent work."""
    return y.submit(flow(urgent=job(cores, timeout_ms=HOUR_MS)), "urgent", group="vip")


def test_high_priority_evicts_and_the_victim_runs_again() -> None:
    y = yard()
    y.node("n1", 4)
    crowd(y, "low")
    y.advance(10 * MINUTE_MS)
    vip(y)
    [eviction] = stopped(y)
    assert eviction.ran_ms == 10 * MINUTE_MS
    assert eviction.by.split("/")[1] == "urgent"
    assert eviction.gap == pytest.approx(10 - 10 / 1440)
    [placed] = [r.event for r in y.records if isinstance(r.event, AllocationPlaced)][-1:]
    assert (placed.kind, placed.after) == ("preempting", (eviction.allocation,))
    y.run()
    ended = of(y, AllocationEnded, "low")[0]
    seated = of(y, AllocationSeated, "urgent")[0]
    assert ended < seated < of(y, AllocationStarted, "urgent")[0]
    [requeued] = [r.event for r in y.records if isinstance(r.event, AllocationRequeued)]
    assert (requeued.reason, requeued.allocation[-2:]) == ("preempted", "#2")
    assert len(of(y, AllocationPlaced, "low")) == 2
    y.check()


@pytest.mark.parametrize(
    ("settings", "wait_ms"),
    [
        ({"scheduler.preemption.enabled": False}, 10 * MINUTE_MS),
        ({}, 4 * MINUTE_MS),
        ({"scheduler.preemption.priorityGap": 10.1}, 10 * MINUTE_MS),
    ],
)
def test_rules_that_forbid_it(settings: dict[str, Value], wait_ms: int) -> None:
    y = yard(settings)
    y.node("n1", 4)
    crowd(y, "low")
    y.advance(wait_ms)
    vip(y)
    assert stopped(y) == []
    y.run()
    y.check()


def test_the_exact_gap_is_enough() -> None:
    y = yard({"scheduler.preemption.minRuntime": 0})
    y.node("n1", 4)
    crowd(y, "low")
    y.ask(SetConfig(values=dict(y.world.config) | {"scheduler.preemption.priorityGap": 10.0}))
    vip(y)
    assert [one.gap for one in stopped(y)] == [10.0]
    y.run()
    y.check()


def test_not_preemptible_work_stays() -> None:
    y = yard()
    y.node("n1", 4)
    crowd(y, "low", preemptible=False)
    y.advance(10 * MINUTE_MS)
    vip(y)
    assert stopped(y) == []
    y.run()
    y.check()


def test_a_deleted_group_leaves_the_lists() -> None:
    y = yard()
    y.ask(DeleteGroup(group="crowd"))
    assert y.world.groups["default", "vip"].preempts == ()
    y.node("n1", 4)
    crowd(y, "low")
    y.advance(10 * MINUTE_MS)
    vip(y)
    assert stopped(y) == []
    y.run()
    y.check()


def test_nobody_is_evicted_where_nodes_are_idle_enough() -> None:
    y = yard()
    for name in ("n1", "n2"):
        y.node(name, 4)
    crowd(y, "low", 3)
    y.advance(10 * MINUTE_MS)
    crowd(y, "other", 3, preemptible=False)
    vip(y)
    assert stopped(y) == []
    y.run()
    y.check()


def test_the_lowest_that_makes_room_goes_and_nobody_else() -> None:
    y = yard({"scheduler.preemption.multiVictim.enabled": True})
    for name in ("n1", "n2"):
        y.node(name, 4)
    crowd(y, "small", 1, priority=-5)
    crowd(y, "big", 3, priority=-1)
    crowd(y, "whole", 4)
    y.advance(10 * MINUTE_MS)
    vip(y)
    # `small` is the lowest, but leaves no room for 4; `whole` does alone.
    assert [one.allocation.split("/")[1] for one in stopped(y)] == ["whole"]
    y.run()
    y.check()


def test_several_go_only_where_that_is_allowed_and_only_those_needed() -> None:
    for several in (False, True):
        y = yard({"scheduler.preemption.multiVictim.enabled": several})
        for name in ("n1", "n2"):
            y.node(name, 4)
        for number in range(4):
            crowd(y, f"half{number}", 2, priority=-number)
        y.advance(10 * MINUTE_MS)
        vip(y)
        names = [one.allocation.split("/")[1] for one in stopped(y)]
        assert names == (["half3", "half2"] if several else [])
        y.run()
        y.check()


def test_what_was_freed_is_held_for_the_preemptor() -> None:
    y = yard({"scheduler.preemption.multiVictim.enabled": True}, stubborn=False)
    y.node("n1", 4)
    crowd(y, "a", 2)
    crowd(y, "b", 2)
    y.advance(10 * MINUTE_MS)
    urgent = vip(y)
    assert len(stopped(y)) == 2
    y.submit(flow(sneaky=job(1, timeout_ms=MINUTE_MS)), group="vip")
    y.turn()
    y.run()
    # It began after the one that the room was held for.
    assert of(y, AllocationPlaced, "sneaky")[0] > of(y, AllocationStarted, "urgent")[0]
    assert urgent not in y.world.workflows
    y.check()


def test_a_preemptor_that_is_withdrawn_gives_the_room_back() -> None:
    y = yard(stubborn=True)
    y.node("n1", 4)
    crowd(y, "low")
    y.advance(10 * MINUTE_MS)
    urgent = vip(y)
    y.ask(StopWorkflow(workflow=urgent))
    y.run()
    assert of(y, AllocationStarted, "urgent") == []
    assert y.world.nodes["n1"].free_cores == 4
    y.check()


def test_a_victim_does_not_evict_its_preemptor() -> None:
    y = yard({"scheduler.preemption.minRuntime": 0})
    y.ask(UpdateGroup(group="crowd", preempt=("vip",)))
    y.node("n1", 4)
    crowd(y, "low")
    y.advance(10 * MINUTE_MS)
    vip(y)
    y.run()
    assert len(stopped(y)) == 1
    y.check()


def test_an_administrator_evicts_by_name() -> None:
    y = yard({"scheduler.preemption.enabled": False})
    y.node("n1", 4)
    crowd(y, "low", preemptible=False)
    name = next(iter(y.world.allocations))
    y.advance(MINUTE_MS)
    y.ask(PreemptAllocation(allocation=name))
    [eviction] = stopped(y)
    assert (eviction.by, eviction.ran_ms) == ("", MINUTE_MS)
    with pytest.raises(Refused, match=r"no allocation 'wf-x/a/0#1' runs"):
        y.ask(PreemptAllocation(allocation="wf-x/a/0#1"))
    y.run()
    assert len(of(y, AllocationPlaced, "low")) == 2
    y.check()


def test_equal_priority_never_evicts() -> None:
    y = yard({"scheduler.preemption.priorityGap": 0.0, "scheduler.preemption.minRuntime": 0})
    y.ask(UpdateGroup(group="vip", priority=0))
    y.node("n1", 4)
    crowd(y, "low")
    vip(y)
    y.run()
    assert stopped(y) == []
    y.check()


def test_a_victim_without_a_finite_priority_can_be_written_down_and_read_again() -> None:
    y = yard({"scheduler.preemption.minRuntime": 0})
    text = "group.priority > 0 ? group.priority : log(0)"
    values = dict(y.world.config) | {"scheduler.priority": text}
    y.ask(SetConfig(values=values, formulas={"scheduler.priority": parse(text)}))
    y.node("n1", 4)
    crowd(y, "low")
    vip(y)
    [eviction] = stopped(y)
    assert eviction.gap == sys.float_info.max
    assert audit(y.records).clean
    y.run()
    y.check()
    assert log_bytes(y.engine.log.read(0, y.engine.log.position)) == log_bytes(y.records)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_setting_that_json_cannot_hold_is_refused(value: float) -> None:
    y = yard()
    with pytest.raises(
        Refused, match=r"scheduler\.preemption\.priorityGap: (nan|inf) is no number"
    ):
        y.ask(SetConfig(values={"scheduler.preemption.priorityGap": value}))
