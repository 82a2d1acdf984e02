"""Small yards in which an audit once found a fault of the scheduler."""

from collections.abc import Callable

from logyard_domain.commands import SetConfig
from logyard_engine.audit.auditor import audit
from logyard_engine.log.opening import open_log
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import Yard
from tests.engine.work import flow, job, staged

SECOND = 1_000
LASTS_S = {"a": 5, "b": 50, "h": 10, "s": 100, "q": 10}


def lasting(allocation: str) -> Run:
    """By the name of the stage."""
    return Run(ms=LASTS_S.get(allocation.split("/")[1], 5) * SECOND)


def yard(script: Callable[[str], Run], **nodes: int) -> Yard:
    """Kills take no time."""
    found = Yard(open_log("memory:", "test"), nodes, script)
    found.ask(SetConfig(values={"workflow.killGrace": 0}), "server")
    return found


def clean(one: Yard) -> None:
    """No rule is broken, and if one is, it is shown."""
    report = audit(one.records)
    found = [(v.rule, x) for v in report.verdicts for x in v.violations]
    assert not found
    assert report.verdict("I7").checked


def test_looking_ahead_does_not_pass_the_next_stage_of_the_lane() -> None:
    y = yard(lambda name: Run(ms=10 if "/s/" in name else 5_000), n1=2)
    y.submit(flow(s=job(2, array=(1, 4))))
    y.submit(flow(z=job(2)))
    y.submit(flow(w=job(1), x=job(2)), priority=-1)
    y.advance(15)
    clean(y)


def test_what_delays_a_promise_may_still_fit_with_a_shorter_limit() -> None:
    y = yard(lasting, n1=1, n2=4)
    y.submit(flow(a=job(1, timeout_ms=5 * SECOND)))
    y.submit(flow(b=job(2, timeout_ms=100 * SECOND)))
    y.submit(flow(h=job(4, timeout_ms=100 * SECOND)))
    y.submit(flow(s=job(1, array=(1, 3), timeout_ms=200 * SECOND)))
    y.advance(5 * SECOND)
    y.submit(flow(q=job(1, timeout_ms=20 * SECOND)))
    clean(y)


def test_staging_does_not_delay_who_wants_the_node_for_itself() -> None:
    y = yard(lasting, n1=2)
    y.submit(flow(b=job(1, timeout_ms=100 * SECOND)))
    y.submit(flow(h=job(1, exclusive=True, timeout_ms=100 * SECOND)))
    y.submit(staged())
    clean(y)
