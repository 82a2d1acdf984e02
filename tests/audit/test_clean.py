"""What the scheduler writes keeps every rule, and the audit looked at it."""

from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from logyard_domain.codec import decode
from logyard_domain.commands import SetConfig
from logyard_domain.configuration import Value
from logyard_domain.expressions import Binary, Variable
from logyard_engine.audit.auditor import audit
from logyard_engine.audit.findings import Report
from logyard_engine.audit.rules import RULE_IDS
from logyard_engine.log.opening import open_log
from logyard_engine.log.source import opened
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import Yard
from tests.audit.yards import play
from tests.engine import golden, test_seeded
from tests.engine.work import flow, job

SEEDS = range(4)
STEPS = 90
GOLDEN = Path(__file__).parents[1] / "golden" / "release-0.1.jsonl"


def clean(report: Report) -> None:
    """No rule is broken, and if one is, it is shown."""
    assert [(v.rule, x) for v in report.verdicts for x in v.violations] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_yard(seed: int) -> None:
    clean(audit(play(seed, steps=STEPS).records))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_yard_that_crashes(seed: int) -> None:
    clean(audit(play(10 + seed, steps=STEPS, crashes=True).records))


@pytest.mark.parametrize("preemption", ["single", "multi"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_yard_that_evicts(seed: int, preemption: str) -> None:
    clean(audit(play(20 + seed, steps=STEPS, preemption=preemption, crashes=seed == 0).records))


@pytest.mark.parametrize("preemption", ["", "multi"])
@pytest.mark.parametrize("seed", range(3))
def test_nodes_of_one_core_are_counted(seed: int, preemption: str) -> None:
    clean(audit(play(30 + seed, steps=STEPS, preemption=preemption, one_core=True).records))


@pytest.mark.parametrize(
    "values",
    [
        {"scheduler.backfill.enabled": False},
        {"scheduler.backfill.depth": 1},
        {"scheduler.placementsPerTick": 2},
        {"scheduler.preemption.priorityGap": 0.5},
    ],
    ids=lambda values: next(iter(values)),
)
def test_other_settings(values: dict[str, Value]) -> None:
    clean(audit(play(40, steps=STEPS, preemption="multi", values=values).records))


@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_yards_of_the_engine(seed: int, crashes: bool) -> None:
    clean(audit(test_seeded.play(seed, crashes).records))


def test_priorities_that_move_with_use() -> None:
    y = Yard(open_log("memory:", "test"), {"n1": 2, "n2": 2}, lambda _: Run(ms=600_000))
    formula = Binary("-", Variable("queue.age_hours"), Variable("usage.user"))
    text = "queue.age_hours - usage.user"
    y.ask(SetConfig(values={"scheduler.priority": text}, formulas={"scheduler.priority": formula}))
    for number in range(12):
        cores = number % 2 + 1
        limit = 600_000 * (number % 3 + 1)
        for user in ("ana", "bob")[: 1 + number % 2]:
            y.submit(flow(a=job(cores, timeout_ms=limit)), f"{user}{number}", user=user)
        y.advance(60_000)
    y.run()
    report = audit(y.records)
    clean(report)
    assert report.verdict("I10").checked >= 12


def test_the_log_on_which_everything_has_happened() -> None:
    clean(audit(golden.everything().records))


def test_the_golden_log_as_a_file() -> None:
    with closing(opened(GOLDEN)) as source:
        report = audit(decode(at, state) for at, state in source.states())
    clean(report)
    assert report.records == GOLDEN.read_bytes().count(b"\n")


def test_every_rule_applied() -> None:
    applied: Counter[str] = Counter()
    for seed, preemption in ((3, ""), (4, ""), (22, "multi")):
        report = audit(play(seed, steps=STEPS, preemption=preemption).records)
        clean(report)
        applied.update({verdict.rule: verdict.checked for verdict in report.verdicts})
    assert all(applied[rule] for rule in RULE_IDS), applied
