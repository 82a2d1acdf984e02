"""The driver: what happens when, evictions, limits, and logs that are the same each time."""

from pathlib import Path

import pytest

from logyard_domain import snapshot
from logyard_domain.codec import tag_of
from logyard_domain.commands import Refused, SetConfig, UpdateGroup
from logyard_domain.configuration import Value
from logyard_domain.events import AllocationEnded, AllocationRequeued, AllocationStopping
from logyard_domain.records import Record
from logyard_domain.resources import Capacity
from logyard_engine.log.log import Log
from logyard_engine.log.opening import open_for_reading, open_log
from logyard_engine.log.verify import verify
from logyard_engine.recovery import recover
from logyard_engine.simulation.dictated import DictatedLog
from logyard_engine.simulation.drive import SETTINGS, Ran, Simulated, simulate
from logyard_engine.simulation.summary import rows, summarize
from logyard_engine.simulation.traces.trace import Trace, TraceJob, TraceNode
from logyard_engine.simulation.workload import uniform
from tests.engine.lives import follow_lives

PREEMPTION: dict[str, Value] = {
    "scheduler.preemption.enabled": True,
    "scheduler.preemption.minRuntime": 0,
    "scheduler.preemption.utilizationThreshold": 0.0,
}
RANKS = (
    UpdateGroup(group="low"),
    UpdateGroup(group="high", priority=9),
    UpdateGroup(group="high", preempt=("low",)),
)


def _trace(*jobs: TraceJob) -> Trace:
    return Trace(format="swf", jobs=jobs)


def _records(log: Log) -> list[Record]:
    return log.read(0, log.position)


def _memory() -> Log:
    return open_log("memory:", "simulated")


def test_easy_by_hand() -> None:
    """The wide job is blocked until 100; a short narrow one passes it, a long one must not."""
    work = _trace(
        TraceJob("first", 0, 100, 100, chunks=3),
        TraceJob("wide", 1, 50, 60, chunks=4),
        TraceJob("long", 2, 500, 500),
        TraceJob("short", 3, 90, 97),
        TraceJob("late", 93, 5, 5),
    )
    found = simulate(work, uniform(4, 1), _memory())
    assert [(ran.start_s, ran.end_s, ran.kind) for ran in found.ran if ran] == [
        (0, 100, "direct"),
        (100, 150, "direct"),
        (150, 650, "direct"),
        (3, 93, "backfilled"),
        (93, 98, "backfilled"),
    ]
    assert list(rows(work, found))[3] == ("short", 3, 3, 93, "n4", "backfilled")
    summary = summarize(work, uniform(4, 1), found)
    assert (summary.jobs, summary.ran, summary.backfilled, summary.preempted) == (5, 5, 2, 0)
    assert summary.mean_wait_s == (0 + 99 + 148 + 0 + 0) / 5
    assert summary.max_wait_s == 148
    assert summary.makespan_s == 650
    assert summary.utilization == (300 + 200 + 500 + 90 + 5) / (4 * 650)
    slowdowns = [1.0, 149 / 50, 648 / 500, 1.0, 1.0]
    assert summary.mean_bounded_slowdown == pytest.approx(sum(slowdowns) / 5)


def test_a_processor_that_is_given_back_is_given_on_at_the_same_second() -> None:
    work = _trace(TraceJob("a", 0, 10, 10), TraceJob("b", 10, 10, 10), TraceJob("c", 10, 1, 1))
    found = simulate(work, uniform(1, 1), _memory())
    assert [ran.start_s for ran in found.ran if ran] == [0, 10, 20]


def test_a_job_is_ended_at_its_limit() -> None:
    log = _memory()
    found = simulate(_trace(TraceJob("a", 5, 100, 30)), uniform(1, 1), log)
    assert found.ran == (Ran(5, 35, {"n1": 1}, "direct", 1),)
    ended = [r.event for r in _records(log) if isinstance(r.event, AllocationEnded)]
    assert [(one.outcome, one.run_ms) for one in ended] == [("timeout", 30_000)]
    assert "workflow.failed" in {tag_of(record.event) for record in _records(log)}
    assert summarize(_trace(TraceJob("a", 5, 100, 30)), uniform(1, 1), found).timed_out == 1


@pytest.mark.parametrize("kill_after_s", [0, 7])
def test_an_evicted_job_starts_anew(kill_after_s: int) -> None:
    work = _trace(
        TraceJob("low", 0, 100, 100, chunks=2, group="low", preemptible=True),
        TraceJob("high", 40, 10, 10, chunks=2, group="high"),
    )
    log = _memory()
    config = SetConfig(values=SETTINGS | PREEMPTION)
    found = simulate(
        work, uniform(2, 1), log, config=config, entities=RANKS, kill_after_s=kill_after_s
    )
    seated = 40 + kill_after_s
    assert [(one.start_s, one.end_s, one.kind, one.attempts) for one in found.ran if one] == [
        (seated + 10, seated + 110, "direct", 2),
        (seated, seated + 10, "preempting", 1),
    ]
    assert found.evictions == 1
    records = _records(log)
    follow_lives(records)
    stopping = [r.event for r in records if isinstance(r.event, AllocationStopping)]
    assert [(one.reason, one.ran_ms) for one in stopping] == [("preempted", 40_000)]
    assert [r.event.reason for r in records if isinstance(r.event, AllocationRequeued)] == [
        "preempted"
    ]


def test_a_victim_that_ends_before_it_is_killed_is_done() -> None:
    work = _trace(
        TraceJob("low", 0, 45, 100, group="low", preemptible=True),
        TraceJob("high", 40, 10, 10, group="high"),
    )
    config = SetConfig(values=SETTINGS | PREEMPTION)
    found = simulate(work, uniform(1, 1), _memory(), config=config, entities=RANKS, kill_after_s=7)
    assert [(one.start_s, one.end_s) for one in found.ran if one] == [(0, 45), (45, 55)]


def test_chunks_go_where_annotations_and_devices_are() -> None:
    gpu = (("gpu", 2),)
    nodes = (
        TraceNode("plain", Capacity(cores=64, memory=1 << 40)),
        TraceNode("a", Capacity(cores=8, memory=64, devices={"gpu": 4}), {"kind": "x"}),
        TraceNode("b", Capacity(cores=8, memory=64, devices={"gpu": 4}), {"kind": "y"}),
    )
    both = TraceJob("both", 0, 9, 9, chunks=3, cores=2, memory=10, devices=gpu)
    one = TraceJob("one", 1, 9, 9, devices=gpu, annotations=(("kind", "y"),))
    alone = TraceJob("alone", 2, 9, 9, annotations=(("kind", "y"),), exclusive=True)
    never = TraceJob("never", 3, 9, 9, annotations=(("kind", "z"),))
    found = simulate(_trace(both, one, alone, never), nodes, _memory())
    first, second, third, fourth = found.ran
    assert first and first.chunks == {"a": 2, "b": 1}
    assert second and (second.start_s, second.chunks) == (1, {"b": 1})
    assert third and (third.start_s, third.chunks) == (10, {"b": 1})
    assert fourth is None


def test_a_refusal_is_told() -> None:
    with pytest.raises(Refused, match=r"scheduler\.backfill\.depth: -1 is too small"):
        simulate(
            _trace(TraceJob("a", 0, 1, 1)),
            uniform(1, 1),
            _memory(),
            config=SetConfig(values={"scheduler.backfill.depth": -1}),
        )


def _mixed() -> Trace:
    """Two hundred jobs that crowd eight cores, some of them preemptible."""
    return _trace(
        *(
            TraceJob(
                str(number),
                number * 7,
                20 + number * 37 % 150,
                60 + number * 53 % 200,
                chunks=1 + number * 5 % 8,
                user=f"u{number % 3}",
                group=("low", "high")[number % 5 == 0],
                preemptible=number % 5 != 0,
            )
            for number in range(200)
        )
    )


def _mixed_into(log: Log) -> Simulated:
    config = SetConfig(values=SETTINGS | PREEMPTION)
    try:
        return simulate(_mixed(), uniform(4, 2), log, config=config, entities=RANKS)
    finally:
        # A log in memory lives on.
        log.close()


def test_the_same_simulation_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    places = [tmp_path / "one.sqlite", tmp_path / "two.sqlite"]
    memory = _memory()
    one = _mixed_into(memory)
    # Written by this process, and dictated to another one.
    assert _mixed_into(open_log(places[0], "simulated")) == one
    assert _mixed_into(DictatedLog(places[1], "simulated")) == one
    assert one.evictions > 0
    logs = [list(open_for_reading(place).read_states()) for place in places]
    assert logs[0] == logs[1] == list(memory.read_states())
    assert len(logs[0]) == one.position


def test_its_log_is_a_log_like_any_other(tmp_path: Path) -> None:
    place = tmp_path / "log.sqlite"
    found = _mixed_into(open_log(place, "simulated"))
    log = open_log(place, "simulated")
    assert verify(log.read_states()).position == found.position
    records = _records(log)
    follow_lives(records)
    assert all(found.ran)
    world = recover(log)
    assert not world.workflows and not world.allocations and not world.reservations
    assert snapshot.dump(snapshot.restore(snapshot.dump(world))) == snapshot.dump(world)
    log.close()


def test_progress_is_told() -> None:
    heard: list[int] = []
    simulate(_mixed(), uniform(4, 2), _memory(), progress=heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 200
