"""Traces on nodes that hold several jobs, of several kinds and resources: nothing is overbooked."""

import msgspec
import pytest

from logyard_engine.simulation.traces.trace import compressed, shortened
from logyard_engine.simulation.workload import some, uniform
from tests.simulation.gates import WHOLE, check_room, mean_slowdown, reference, simulated, trace


@pytest.mark.parametrize("jobs", [1_000, WHOLE])
def test_kth_on_nodes_of_four_cores(jobs: int | None) -> None:
    work = trace("KTH-SP2-sc15", jobs)
    nodes = uniform(25, 4)
    found = simulated(work, nodes)
    assert all(found.ran)
    check_room(work, nodes, found)
    easy = reference(work, 100, "easy")
    wait_s = sum(start - job.submit_s for start, job in zip(easy, work.jobs, strict=True))
    ours_s = sum(
        ran.start_s - job.submit_s for ran, job in zip(found.ran, work.jobs, strict=True) if ran
    )
    assert ours_s < 1.1 * wait_s
    assert mean_slowdown(work, found) >= 1


@pytest.mark.parametrize("jobs", [800, WHOLE])
def test_metacentrum(jobs: int | None) -> None:
    work = trace("MetaCentrum-wagap-2013", jobs)
    assert len(work.nodes) == 68
    found = simulated(work, work.nodes)
    assert all(found.ran)
    check_room(work, work.nodes, found)


@pytest.mark.parametrize("jobs", [800, WHOLE])
def test_openb_a_thousand_times_as_fast(jobs: int | None) -> None:
    whole = trace("openb_pod_list_default")
    # Most pods come late and run for minutes: all nodes would never be full.
    work = compressed(whole, 1000)
    if jobs:
        work = msgspec.structs.replace(work, jobs=work.jobs[3_000 : 3_000 + jobs])
    nodes = some(work.nodes, 60 if jobs else 300)
    found = simulated(work, nodes)
    never = [job for job, ran in zip(work.jobs, found.ran, strict=True) if ran is None]
    assert len(never) < len(work.jobs) / 20
    check_room(work, nodes, found)
    waited = sum(
        ran.start_s > job.submit_s for job, ran in zip(work.jobs, found.ran, strict=True) if ran
    )
    assert waited > len(work.jobs) / 10


def test_a_job_that_nothing_can_hold_blocks_nobody() -> None:
    work = shortened(trace("KTH-SP2-sc15"), 60)
    nodes = uniform(60, 1)
    found = simulated(work, nodes)
    never = [job for job, ran in zip(work.jobs, found.ran, strict=True) if ran is None]
    assert never and all(job.chunks > 60 for job in never)
    check_room(work, nodes, found)
