"""A log once more: without changes it decides the same; with another policy, otherwise."""

from collections.abc import Sequence

import pytest

from logyard_domain.events import (
    AllocationPlaced,
    AllocationStopping,
    Event,
    ReservationHeld,
    ReservationMoved,
    ReservationReleased,
    WorkflowSubmitted,
)
from logyard_domain.records import Record
from logyard_engine.log.opening import open_log
from logyard_engine.simulation.happened import Happened
from logyard_engine.simulation.replay import Replay
from tests.engine.golden import everything
from tests.engine.test_backfill import HOUR_MS, yard
from tests.engine.test_seeded import play
from tests.engine.work import flow, job

DECISIONS = (
    AllocationPlaced,
    AllocationStopping,
    ReservationHeld,
    ReservationMoved,
    ReservationReleased,
)


def again(records: Sequence[Record], **settings: object) -> list[Record]:
    """The records of a replay."""
    happened = Happened()
    happened.take(records)
    log = open_log("memory:", records[0].cluster)
    Replay(happened, log, settings).run()  # type: ignore[arg-type]
    return log.read(0, log.position)


def decided(records: Sequence[Record]) -> list[tuple[object, ...]]:
    """Every decision with its instant; workflows are called by their place among the others."""
    names: dict[str, str] = {}
    found: list[tuple[object, ...]] = []
    for record in records:
        event = record.event
        if isinstance(event, WorkflowSubmitted):
            names[event.workflow] = str(len(names))
        elif isinstance(event, DECISIONS):
            found.append((record.at, type(event).__name__, *_facts(event, names)))
    return found


def _facts(event: Event, names: dict[str, str]) -> list[object]:
    facts: list[object] = []
    for field in event.__struct_fields__:
        value = getattr(event, field)
        if field == "because":
            # A position: what came between is not a decision.
            continue
        if isinstance(value, str) and value.partition("/")[0] in names:
            workflow, _, rest = value.partition("/")
            value = f"{names[workflow]}/{rest}"
        facts.append(str(value) if field != "after" else len(value))
    return facts


@pytest.mark.parametrize("seed", range(200, 216))
def test_without_changes_it_decides_the_same(seed: int) -> None:
    records = play(seed, False).records
    assert decided(again(records)) == decided(records)


def test_everything_that_can_happen_is_replayed() -> None:
    records = everything().records
    assert decided(again(records)) == decided(records)


def test_another_policy_decides_otherwise() -> None:
    y = yard()
    y.node("n1", 4)
    y.submit(flow(first=job(3, timeout_ms=2 * HOUR_MS)))
    y.submit(flow(wide=job(4, timeout_ms=HOUR_MS)))
    y.submit(flow(short=job(1, timeout_ms=HOUR_MS)))
    y.run()
    kinds = [e.event.kind for e in y.records if isinstance(e.event, AllocationPlaced)]
    assert kinds == ["direct", "backfilled", "direct"]
    other = again(y.records, **{"scheduler.backfill.enabled": False})
    kinds = [e.event.kind for e in other if isinstance(e.event, AllocationPlaced)]
    assert kinds == ["direct", "direct", "direct"]
    assert decided(again(y.records)) == decided(y.records)
