"""The audit finds nothing wrong with logs of simulations: many kinds of nodes, with evictions."""

from collections.abc import Sequence

import msgspec
import pytest

from logyard_domain.commands import SetConfig, UpdateGroup
from logyard_domain.configuration import Value
from logyard_engine.audit.auditor import Auditor
from logyard_engine.audit.findings import Report
from logyard_engine.log.opening import open_log
from logyard_engine.simulation.drive import SETTINGS, simulate
from logyard_engine.simulation.traces.trace import Trace, TraceNode, compressed
from logyard_engine.simulation.workload import some, uniform
from tests.simulation.gates import WHOLE, trace

PREEMPTION: dict[str, Value] = {
    "scheduler.preemption.enabled": True,
    "scheduler.preemption.minRuntime": 60_000,
    "scheduler.preemption.utilizationThreshold": 0.5,
    "scheduler.preemption.multiVictim.enabled": True,
}
RANKS = (
    UpdateGroup(group="low"),
    UpdateGroup(group="high", priority=9),
    UpdateGroup(group="high", preempt=("low",)),
)


def _part(name: str, first: int, jobs: int | None) -> Trace:
    whole = trace(name)
    return msgspec.structs.replace(whole, jobs=whole.jobs[first : first + jobs]) if jobs else whole


def _ranked(work: Trace) -> Trace:
    """Every fourth job is of the high group; two of three are preemptible."""
    return msgspec.structs.replace(
        work,
        jobs=tuple(
            msgspec.structs.replace(
                job,
                preemptible=number % 3 != 0,
                group="high" if number % 4 == 0 else "low",
            )
            for number, job in enumerate(work.jobs)
        ),
    )


def _audited(work: Trace, nodes: Sequence[TraceNode], evicting: bool) -> Report:
    log = open_log("memory:", "simulated")
    config = SetConfig(values=SETTINGS | (PREEMPTION if evicting else {}))
    entities = RANKS if evicting else ()
    simulate(_ranked(work) if evicting else work, nodes, log, config=config, entities=entities)
    auditor = Auditor()
    after = 0
    while records := log.read(after, 5_000):
        for record in records:
            auditor.take(record)
        after = records[-1].position
    return auditor.report()


def _check(report: Report, evicting: bool) -> None:
    broken = {one.rule: one.violations[:3] for one in report.verdicts if one.found}
    assert not broken
    applied = {one.rule for one in report.verdicts if one.checked}
    assert {"I1", "I2", "I3", "I4", "I7", "I8", "I11", "I12"} <= applied
    assert ("I9" in applied) == evicting


@pytest.mark.parametrize("evicting", [False, True], ids=["", "evicting"])
@pytest.mark.parametrize("jobs", [400, WHOLE])
@pytest.mark.parametrize("cores", [1, 4])
def test_kth(cores: int, jobs: int | None, evicting: bool) -> None:
    _check(
        _audited(_part("KTH-SP2-sc15", 0, jobs), uniform(100 // cores, cores), evicting), evicting
    )


@pytest.mark.parametrize("evicting", [False, True], ids=["", "evicting"])
@pytest.mark.parametrize("jobs", [400, WHOLE])
def test_metacentrum(jobs: int | None, evicting: bool) -> None:
    work = _part("MetaCentrum-wagap-2013", 12_000, jobs)
    nodes = work.nodes if jobs is None else some(work.nodes, 12)
    _check(_audited(work, nodes, evicting), evicting)


@pytest.mark.parametrize("evicting", [False, True], ids=["", "evicting"])
@pytest.mark.parametrize("jobs", [400, WHOLE])
def test_openb_a_thousand_times_as_fast(jobs: int | None, evicting: bool) -> None:
    work = compressed(_part("openb_pod_list_default", 3_000, jobs), 1000)
    _check(_audited(work, some(work.nodes, 300 if jobs is None else 40), evicting), evicting)
