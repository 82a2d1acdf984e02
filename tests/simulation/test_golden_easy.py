"""On one-core nodes the scheduler is EASY backfilling, job by job, as published and as refsim."""

from typing import NamedTuple

import pytest

from logyard_domain.configuration import Value
from logyard_engine.simulation.traces.trace import clairvoyant
from logyard_engine.simulation.workload import uniform
from tests.simulation.gates import (
    first_difference,
    golden,
    mean_slowdown,
    reference,
    simulated,
    starts,
    trace,
)

KTH, CTC = ("KTH-SP2-sc15", 100), ("CTC-SP2-sc15", 338)


@pytest.mark.parametrize(
    ("name", "processors", "jobs", "slowdown"),
    [
        pytest.param(*KTH, 1_000, None, id="kth-1000"),
        pytest.param(*CTC, 400, None, id="ctc-400"),
        pytest.param(*KTH, None, 71.722385, marks=pytest.mark.golden, id="kth"),
        pytest.param(*CTC, None, 37.165401, marks=pytest.mark.golden, id="ctc"),
    ],
)
def test_clairvoyant_easy_is_the_published_schedule(
    name: str, processors: int, jobs: int | None, slowdown: float | None
) -> None:
    work = clairvoyant(trace(name, jobs))
    published = golden(name, "wait_easy_clair")
    found = simulated(work, uniform(processors, 1))
    ours = starts(found)
    theirs: list[int | None] = [job.submit_s + published[job.id] for job in work.jobs]
    if jobs:
        # Jobs that were cut off could change nothing before the first of them arrived.
        last = work.jobs[-1].submit_s
        early = [start is not None and start < last for start in theirs]
        assert sum(early) > jobs * 0.8
        ours = [start if kept else None for start, kept in zip(ours, early, strict=True)]
        theirs = [start if kept else None for start, kept in zip(theirs, early, strict=True)]
    assert first_difference(work, ours, theirs) is None
    if slowdown is not None:
        assert round(mean_slowdown(work, found), 6) == slowdown


class Case(NamedTuple):
    """A trace under a policy of the reference simulator, and the settings that say the same here.

    `few` is how many jobs are enough for a quick look; `slowdown` what is known of the whole.
    """

    name: str
    processors: int
    few: int
    policy: str
    settings: dict[str, Value]
    slowdown: float | None = None


_AGE_BY_LIMIT = "(queue.age_seconds / request.limit_seconds)"
CASES = {
    "kth-easy": Case(*KTH, 1_000, "easy", {}, 92.687654),
    "ctc-easy": Case(*CTC, 400, "easy", {}, 48.836986),
    "lublin-easy": Case("lublin_256_new2", 256, 200, "easy", {}),
    "hpc2n-easy": Case("HPC2N", 240, 500, "easy", {}),
    "kth-fcfs": Case(*KTH, 600, "fcfs", {"scheduler.backfill.enabled": False}),
    "kth-sjf": Case(*KTH, 600, "easy-sjf", {"scheduler.priority": "-request.limit_seconds"}),
    "kth-saf": Case(
        *KTH,
        600,
        "easy-saf",
        {"scheduler.priority": "-request.limit_seconds * request.nodes"},
    ),
    "kth-wfp3": Case(
        *KTH,
        600,
        "easy-wfp3",
        {"scheduler.priority": " * ".join([_AGE_BY_LIMIT] * 3 + ["request.nodes"])},
    ),
}


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.golden)])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_schedule_is_that_of_the_reference(case: Case, whole: bool) -> None:
    work = trace(case.name, None if whole else case.few)
    theirs = reference(work, case.processors, case.policy)
    found = simulated(work, uniform(case.processors, 1), case.settings)
    assert first_difference(work, starts(found), theirs) is None
    if whole and case.slowdown is not None:
        assert round(mean_slowdown(work, found), 6) == case.slowdown
