"""Promises and backfill over the real decide, tick and log, in virtual time."""

from logyard_domain.commands import CordonNode, SetConfig, StopWorkflow, UncordonNode
from logyard_domain.configuration import Value
from logyard_domain.events import (
    AllocationPlaced,
    ReservationHeld,
    ReservationMoved,
    ReservationReleased,
)
from logyard_domain.holds import NodesBusy
from logyard_engine.log.opening import open_log
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import EPOCH_MS, Yard
from tests.engine.work import flow, job

HOUR_MS = 3_600_000
MINUTE_MS = 60_000


def yard(runs: dict[str, int] | None = None, settings: dict[str, Value] | None = None) -> Yard:
    """A yard whose jobs run for so long (ms) as their stage says; no grace for kills."""

    def script(allocation: str) -> Run:
        return Run(ms=(runs or {}).get(allocation.split("/")[1], HOUR_MS))

    made = Yard(open_log("memory:", "test"), {}, script)
    values: dict[str, Value] = {"workflow.killGrace": 0, "scheduler.lookahead": 0}
    made.ask(SetConfig(values=values | (settings or {})), "server")
    return made


def placed(y: Yard) -> dict[str, tuple[int, str, str]]:
    """Stage -> when (ms after the start), where and how it was placed last."""
    return {
        r.event.allocation.split("/")[1]: (r.at - EPOCH_MS, r.event.node, r.event.kind)
        for r in y.records
        if isinstance(r.event, AllocationPlaced)
    }


def promises(y: Yard) -> list[tuple[str, str, int]]:
    """What was promised, in order: stage, tag of the event, instant (ms after the start)."""
    return [
        (r.event.allocation.split("/")[1], type(r.event).__name__, r.event.at - EPOCH_MS)
        for r in y.records
        if isinstance(r.event, ReservationHeld | ReservationMoved)
    ]


def finish(y: Yard) -> None:
    """Let everything end, and see that the log tells it all."""
    y.run()
    assert not y.world.workflows and not y.world.reservations and not y.world.held
    y.check()


def test_what_ends_before_the_promise_goes_first() -> None:
    y = yard()
    y.node("n1", 4)
    y.submit(flow(first=job(3, timeout_ms=2 * HOUR_MS)))
    y.submit(flow(wide=job(4, timeout_ms=HOUR_MS)))
    y.submit(flow(long=job(1, timeout_ms=3 * HOUR_MS)))
    y.submit(flow(short=job(1, timeout_ms=2 * HOUR_MS)))
    assert promises(y) == [("wide", "ReservationHeld", 2 * HOUR_MS)]
    assert placed(y) == {"first": (0, "n1", "direct"), "short": (0, "n1", "backfilled")}
    assert {s.request.cores: s.hold for s in y.world.shapes.values()} == {
        1: NodesBusy(),
        3: None,
        4: NodesBusy(),
    }
    finish(y)
    assert placed(y)["wide"] == (HOUR_MS, "n1", "direct")


def test_what_is_left_beside_the_promise_may_be_used_for_long() -> None:
    y = yard()
    y.node("n1", 4)
    y.submit(flow(first=job(3, timeout_ms=2 * HOUR_MS)))
    y.submit(flow(wide=job(3, timeout_ms=HOUR_MS)))
    y.submit(flow(long=job(1, timeout_ms=30 * HOUR_MS)))
    assert placed(y)["long"] == (0, "n1", "backfilled")
    finish(y)


def test_the_promise_takes_nodes_that_get_free_last() -> None:
    y = yard()
    y.node("n1", 2)
    y.node("n2", 2)
    y.submit(flow(a=job(2, timeout_ms=HOUR_MS)))
    y.submit(flow(wide=job(2, timeout_ms=HOUR_MS)))
    y.submit(flow(blocked=job(2, timeout_ms=2 * HOUR_MS)))
    [held] = [r.event for r in y.records if isinstance(r.event, ReservationHeld)]
    assert (held.at - EPOCH_MS, held.chunks) == (HOUR_MS, {"n1": 1})
    finish(y)


def test_without_backfill_nobody_passes() -> None:
    y = yard(settings={"scheduler.backfill.enabled": False})
    y.node("n1", 4)
    y.submit(flow(first=job(3, timeout_ms=2 * HOUR_MS)))
    y.submit(flow(wide=job(4, timeout_ms=HOUR_MS)))
    y.submit(flow(short=job(1, timeout_ms=MINUTE_MS)))
    assert list(placed(y)) == ["first"]
    finish(y)
    assert placed(y)["short"][2] == "direct"


def test_an_early_end_improves_the_promise() -> None:
    y = yard({"a": 10 * MINUTE_MS, "b": 30 * MINUTE_MS})
    y.node("n1", 2)
    y.submit(flow(a=job(1, timeout_ms=HOUR_MS)))
    y.submit(flow(b=job(1, timeout_ms=2 * HOUR_MS)))
    y.submit(flow(wide=job(1, timeout_ms=HOUR_MS), wider=job(2, timeout_ms=HOUR_MS)))
    y.run()
    assert promises(y)[0] == ("wide", "ReservationHeld", HOUR_MS)
    moves = [r.event for r in y.records if isinstance(r.event, ReservationMoved)]
    assert all(move.cause == "earlier" for move in moves)
    finish(y)


def test_a_lost_node_moves_the_promise_and_is_named() -> None:
    y = yard()
    y.node("n1", 4)
    y.node("n2", 4)
    y.submit(flow(a=job(4, timeout_ms=HOUR_MS)))
    y.submit(flow(b=job(4, timeout_ms=3 * HOUR_MS)))
    y.submit(flow(wide=job(4, timeout_ms=HOUR_MS)))
    y.submit(flow(other=job(1, timeout_ms=HOUR_MS)))
    y.advance(MINUTE_MS)
    y.ask(CordonNode(node="n1", reason="disk"))
    moved = y.records[-1].event
    cordoned = next(r for r in reversed(y.records) if r.event.__class__.__name__ == "NodeCordoned")
    assert isinstance(moved, ReservationMoved)
    assert (moved.cause, moved.because) == ("node", cordoned.position)
    assert moved.at - EPOCH_MS == 3 * HOUR_MS
    y.ask(UncordonNode(node="n1"))
    again = y.records[-1].event
    assert isinstance(again, ReservationMoved)
    assert (again.cause, again.at - EPOCH_MS) == ("earlier", HOUR_MS)
    finish(y)


def test_a_withdrawn_head_gives_its_promise_back() -> None:
    y = yard()
    y.node("n1", 4)
    y.submit(flow(a=job(3, timeout_ms=2 * HOUR_MS)))
    head = y.submit(flow(wide=job(4, timeout_ms=HOUR_MS)))
    y.submit(flow(long=job(1, timeout_ms=30 * HOUR_MS)))
    assert "long" not in placed(y)
    y.ask(StopWorkflow(workflow=head))
    released = [r.event for r in y.records if isinstance(r.event, ReservationReleased)]
    assert [one.cause for one in released] == ["withdrawn"]
    assert placed(y)["long"][2] == "direct"
    finish(y)


def test_each_kind_of_node_has_its_own_first_in_line() -> None:
    y = yard()
    y.node("cpu", 4)
    y.node("gpu", 4, devices={"gpu": 1})
    y.submit(flow(train=job(1, devices={"gpu": 1}, timeout_ms=5 * HOUR_MS)))
    y.submit(flow(next=job(1, devices={"gpu": 1}, timeout_ms=HOUR_MS)))
    y.submit(flow(a=job(3, timeout_ms=2 * HOUR_MS, annotations={})))
    y.submit(flow(fill=job(3, timeout_ms=2 * HOUR_MS)))
    y.submit(flow(wide=job(4, timeout_ms=HOUR_MS)))
    assert ("next", "ReservationHeld", 5 * HOUR_MS) in promises(y)
    finish(y)


def test_several_chunks_start_together_or_not_at_all() -> None:
    y = yard()
    for name in ("n1", "n2", "n3"):
        y.node(name, 2)
    y.submit(flow(a=job(2, timeout_ms=2 * HOUR_MS)))
    y.submit(flow(both=job(2, nodes=3, timeout_ms=HOUR_MS)))
    y.submit(flow(short=job(2, timeout_ms=HOUR_MS), long=job(2, timeout_ms=3 * HOUR_MS)))
    held = next(r.event for r in y.records if isinstance(r.event, ReservationHeld))
    assert held.chunks == {"n1": 1, "n2": 1, "n3": 1}
    assert placed(y)["short"][2] == "backfilled" and "long" not in placed(y)
    finish(y)
    [together] = [
        r.event
        for r in y.records
        if isinstance(r.event, AllocationPlaced) and "/both/" in r.event.allocation
    ]
    assert together.chunks == {"n1": 1, "n2": 1, "n3": 1}
