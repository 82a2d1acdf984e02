"""Clocks that are wrong, time that passes unseen, and what has decayed to nothing."""

from math import isfinite, nextafter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logyard_domain.commands import Began, Refused, Report
from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationRequeued,
    NodeLost,
    ServerStarted,
)
from logyard_domain.expressions import priority
from logyard_domain.rules.priorities import used
from logyard_domain.usage import LEAST, Usage, charged, decayed
from logyard_engine.log.log import Fenced
from logyard_engine.log.opening import open_log
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import EPOCH_MS, Yard, log_bytes
from logyard_workflows_dsl.expressions import parse
from tests.engine.work import flow, job
from tests.scenarios.yards import (
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    configured,
    events,
    finished,
    logs,
    walk,
    yard,
)

DAY_MS = 24 * HOUR_MS
YEAR_MS = 365 * DAY_MS


@pytest.mark.parametrize("skew_ms", [-YEAR_MS, -HOUR_MS, 0, HOUR_MS, YEAR_MS])
def test_s102_who_leads_is_settled_by_the_log_and_by_no_clock(tmp_path: Path, skew_ms: int) -> None:
    """Of two servers whose clocks disagree the one that took the log last goes on alone, however
    its clock is set; instants on the log never go back, and terms count up.
    """
    path = tmp_path / "log.sqlite"
    first = Yard(open_log(path, "test"), {"n1": 1}, lambda _: Run(ms=MINUTE_MS))
    first.submit(flow(it=job()))
    second = Yard(open_log(path, "test"))
    second.clock.ms += skew_ms
    second.submit(flow(more=job()))
    with pytest.raises(Fenced):
        first.submit(flow(late=job()))
    third = Yard(open_log(path, "test"))
    with pytest.raises(Fenced):
        second.submit(flow(late=job()))
    third.submit(flow(last=job()))
    assert [one.term for one in events(third, ServerStarted)] == [1, 2, 3]
    instants = [one.at for one in third.records]
    assert instants == sorted(instants)
    third.check()


@pytest.mark.parametrize("off_ms", [-30 * YEAR_MS, -HOUR_MS, HOUR_MS, 30 * YEAR_MS])
def test_s103_nobody_is_judged_by_a_clock_that_is_not_the_servers(off_ms: int) -> None:
    """A node whose clock is far off keeps its work: whether it is lost, and when its work is over,
    is told by the server's own time and the log's.
    """
    y = yard(lambda _: Run(ms=10 * MINUTE_MS), {"n1": 1}, node__lostAfter=30 * SECOND_MS)
    y.submit(flow(it=job(timeout_ms=HOUR_MS)))
    y.submit(flow(waits=job(timeout_ms=2 * HOUR_MS)))
    [promise] = [one.at for one in y.world.reservations.values()]
    [name] = y.world.allocations
    y.nodes["n1"].confirmed(y.nodes["n1"].report() or Report(node="n1"))
    y.ask(Report(node="n1", began=(Began(name, EPOCH_MS + off_ms),)), "node:n1")
    y.advance(5 * MINUTE_MS)
    assert not events(y, NodeLost)
    assert [one.at for one in y.world.reservations.values()] == [promise] == [EPOCH_MS + HOUR_MS]
    assert y.world.allocations[name].since == EPOCH_MS
    y.run()
    y.check()
    assert [one.outcome for one in events(y, AllocationEnded)] == ["finished", "finished"]


@given(
    st.floats(0, 1e12),
    st.integers(0, 10_000 * DAY_MS),
    st.integers(MINUTE_MS, 10_000 * DAY_MS),
)
def test_s105_use_decays_to_nothing_and_never_to_a_sliver(
    core_hours: float, age_ms: int, half_life_ms: int
) -> None:
    """Decayed use is 0 or not tiny, and falls with age; what is charged on it counts whole."""
    usage = Usage(core_hours, EPOCH_MS)
    left = decayed(usage, EPOCH_MS + age_ms, half_life_ms)
    assert left == 0.0 or LEAST <= left <= core_hours
    assert left >= decayed(usage, EPOCH_MS + age_ms + MINUTE_MS, half_life_ms)
    more = charged(usage, HOUR_MS, EPOCH_MS + age_ms, half_life_ms)
    assert more.core_hours == left + 1.0


@pytest.mark.parametrize(
    "text",
    ["1 / usage.group", "log(usage.user)", "usage.group / usage.user", "-1 / usage.group ^ 2"],
)
def test_s105_a_formula_over_what_has_decayed_orders_and_never_breaks(text: str) -> None:
    """Where such a formula gives no finite number, what has it comes last and is still placed; no
    priority is ever not a number.
    """
    tree = parse(text.replace("^ 2", "* usage.group"))
    for value in (0.0, 5e-324, 1e-40, nextafter(LEAST, 0), LEAST, 1.0, 1e300):
        found = priority(tree, {"usage.group": value, "usage.user": value})
        assert found == found and (isfinite(found) or found < 0)
    y = yard(lambda _: Run(ms=MINUTE_MS), {"n1": 1}, usage__halfLife=MINUTE_MS)
    y.submit(flow(first=job()), group="a", user="ana")
    y.run()
    y.ask(configured(y, scheduler__priority=text.replace("^ 2", "* usage.group")))
    y.advance(30 * DAY_MS)
    assert used(y.world, "group:default/a", y.clock.ms) == 0.0
    for group in ("a", "b", "a"):
        y.submit(flow(more=job(array=(1, 3))), group=group, user=f"u{group}")
    finished(y)
    assert len([one for one in events(y, AllocationEnded) if one.outcome == "finished"]) == 10


def test_s106_a_half_life_of_nothing_is_refused() -> None:
    """No half-life can be set that would turn fair share off unseen; the one in force stays."""
    y = yard()
    for value in (0, -1, 1, 59_999):
        with pytest.raises(Refused, match=r"usage\.halfLife: -?\d+ is too small"):
            y.ask(configured(y, usage__halfLife=value))
    assert y.world.config["usage.halfLife"] == 7 * DAY_MS


@pytest.mark.parametrize("seed", range(6))
def test_s106_decay_is_applied_once_however_often_it_is_looked_at(seed: int) -> None:
    """Use at an instant depends on the ends before it alone: looks, turns and restarts in between
    change neither it nor any decision.
    """
    found: list[tuple[float, bytes]] = []
    for looks in (0, 7):
        dice = Random(f"decay/{seed}")
        y = yard(
            lambda _: Run(ms=20 * MINUTE_MS),
            {"n1": 2},
            usage__halfLife=DAY_MS,
            scheduler__priority="0 - usage.group",
        )
        for _ in range(12):
            y.submit(flow(it=job(dice.choice([1, 2]))), group=dice.choice("ab"))
            step = dice.choice([1, 30, 90]) * MINUTE_MS
            if looks:
                for _ in range(looks):
                    y.advance(step // (looks + 1))
                    y.turn()
                    used(y.world, "group:default/a", y.clock.ms)
            y.advance(step - looks * (step // (looks + 1)))
        y.run()
        y.advance(EPOCH_MS + 3 * DAY_MS - y.clock.ms)
        found.append((used(y.world, "group:default/a", y.clock.ms), log_bytes(y.records)))
    assert found[0] == found[1]
    assert found[0][0] > 0


def test_s107_after_a_long_silence_a_retry_is_made_once() -> None:
    """Back-offs that were over while the server was away lead to one attempt each, and none is
    placed before its time.
    """
    y = yard(lambda name: Run(ms=SECOND_MS, exit_code=int(name.endswith("#1"))), {"n1": 8})
    y.submit(flow(it=job(array=(1, 8), retries=1)))
    y.advance(SECOND_MS)
    assert len(y.world.timers) == 8
    y.clock.ms += DAY_MS
    y.crash(y.engine.log)
    finished(y)
    assert len(events(y, AllocationRequeued)) == 8
    assert len(events(y, AllocationPlaced)) == 16
    for _, records in [("this", y.records), *logs()]:
        ready = {
            r.event.allocation: r.event.not_before
            for r in records
            if isinstance(r.event, AllocationRequeued)
        }
        for record, _world in walk(records):
            if isinstance(record.event, AllocationPlaced) and record.event.allocation in ready:
                assert record.at >= ready[record.event.allocation]
