"""The published traces beside this checkout, their golden schedules, and a reference simulator.

All of it lies in a folder named `shared` beside the checkout; tests that need it are skipped,
visibly, where it is not.
"""

import csv
import gzip
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from logyard_domain.commands import SetConfig
from logyard_domain.configuration import Value
from logyard_engine.log.opening import open_log
from logyard_engine.simulation.drive import SETTINGS, Ran, Simulated, simulate
from logyard_engine.simulation.traces.opening import read_trace
from logyard_engine.simulation.traces.trace import Trace, TraceJob, TraceNode, shortened
from logyard_workflows_dsl.expressions import parse

SHARED = Path(__file__).resolve().parents[3] / "shared"
WHOLE = pytest.param(None, marks=pytest.mark.golden, id="whole")
"""All jobs of a trace, which takes minutes: `make golden`."""


def trace(name: str, jobs: int | None = None) -> Trace:
    """A trace by the beginning of its file's name; its first jobs where `jobs` says how many."""
    found = sorted((SHARED / "traces").glob(f"{name}*.gz"))
    if not found:
        pytest.skip(f"trace {name} is not beside this checkout (shared/traces)")
    whole = read_trace(found[0])
    return shortened(whole, jobs) if jobs else whole


def golden(name: str, column: str) -> dict[str, int]:
    """The published wait (s) of each job, by its id."""
    path = SHARED / "traces" / f"golden-{name}.csv.gz"
    if not path.is_file():
        pytest.skip(f"the golden schedule of {name} is not beside this checkout (shared/traces)")
    with gzip.open(path, "rt", encoding="ascii") as file:
        return {row["id"]: int(row[column]) for row in csv.DictReader(file)}


def simulated(
    work: Trace, nodes: Sequence[TraceNode], settings: Mapping[str, Value] | None = None
) -> Simulated:
    """The work through the engine, under these settings; a priority is an expression's text."""
    values = SETTINGS | dict(settings or {})
    formulas = {key: parse(str(values[key])) for key in ("scheduler.priority",) if key in values}
    config = SetConfig(values=values, formulas=formulas)
    return simulate(work, nodes, open_log("memory:", "simulated"), config=config)


def reference(work: Trace, processors: int, policy: str) -> list[int]:
    """The start (s) of each job by the reference simulator, in its tick convention."""
    refsim = _refsim()
    jobs = [
        refsim.Job(job.id, job.submit_s, min(job.run_s, job.estimate_s), job.chunks * job.cores,
                   job.estimate_s, -1, number)
        for number, job in enumerate(work.jobs)
    ]  # fmt: skip
    refsim.Sim(jobs, processors, policy, "batch", True).run()
    return [job.start for job in jobs]


def starts(found: Simulated) -> list[int | None]:
    """When each job started (s)."""
    return [ran.start_s if ran else None for ran in found.ran]


def first_difference(
    work: Trace, ours: Sequence[int | None], theirs: Sequence[int | None]
) -> str | None:
    """The first job whose start is not the expected one, in words."""
    wrong = [n for n, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b]
    if not wrong:
        return None
    first = min(wrong, key=lambda n: min(one for one in (ours[n], theirs[n]) if one is not None))
    return (
        f"{len(wrong)} of {len(ours)} differ; the first in time is {work.jobs[first]}: "
        f"it starts at {ours[first]}, not at {theirs[first]}"
    )


def mean_slowdown(work: Trace, found: Simulated) -> float:
    """Mean bounded slowdown with tau = 10 s."""
    values = [
        max(1.0, (ran.end_s - job.submit_s) / max(ran.end_s - ran.start_s, 10))
        for job, ran in zip(work.jobs, found.ran, strict=True)
        if ran is not None
    ]
    return sum(values) / len(values)


def check_room(work: Trace, nodes: Sequence[TraceNode], found: Simulated) -> None:
    """No node ever holds more than it has, and everybody runs where and as long as they should.

    Only what was simulated is looked at, with no code of the scheduler.
    """
    by_name = {node.name: node for node in nodes}
    changes: list[tuple[int, int, str, TraceJob, int]] = []
    for job, ran in zip(work.jobs, found.ran, strict=True):
        if ran is not None:
            _check_job(job, ran, by_name)
            for name, chunks in ran.chunks.items():
                changes.append((ran.start_s, 1, name, job, chunks))
                changes.append((ran.end_s, -1, name, job, chunks))
    changes.sort(key=lambda one: one[:2])
    used: dict[str, dict[str, int]] = {name: {} for name in by_name}
    for at, sign, name, job, chunks in changes:
        room = used[name]
        for what, amount in (("cores", job.cores), ("memory", job.memory), *job.devices):
            room[what] = room.get(what, 0) + sign * chunks * amount
        room["jobs"] = room.get("jobs", 0) + sign
        room["alone"] = room.get("alone", 0) + sign * job.exclusive
        capacity = by_name[name].capacity
        has = {"cores": capacity.cores, "memory": capacity.memory, **capacity.devices}
        short = {what for what, n in has.items() if room.get(what, 0) > n}
        assert not short, (at, name, short, room)
        assert not room["alone"] or room["jobs"] == 1, (at, name, room)


def _check_job(job: TraceJob, ran: Ran, nodes: Mapping[str, TraceNode]) -> None:
    assert ran.start_s >= job.submit_s, (job, ran)
    assert ran.end_s - ran.start_s == min(job.run_s, job.estimate_s), (job, ran)
    assert sum(ran.chunks.values()) == job.chunks, (job, ran)
    for name in ran.chunks:
        assert dict(job.annotations).items() <= nodes[name].annotations.items(), (job, name)


@cache
def _refsim() -> Any:
    path = SHARED / "tools" / "refsim.py"
    if not path.is_file():
        pytest.skip("the reference simulator is not beside this checkout (shared/tools)")
    spec = importlib.util.spec_from_file_location("refsim", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["refsim"] = module
    spec.loader.exec_module(module)
    return module
