"""What a simulation comes to: a few numbers, as published simulators print them, and a row a job.

Wait is the time from submission to the end less the run time of the attempt that came through;
without preemption that is the start less the submission. Bounded slowdown is (wait + run) / run,
where runs shorter than `TAU_S` count as that long, and 1 at least. Utilization is the core-seconds
of those attempts by those that the nodes had from the first submission to the last end.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from logyard_engine.simulation.drive import Ran, Simulated
from logyard_engine.simulation.traces.trace import Trace, TraceJob, TraceNode

TAU_S = 10
HEAD = ("id", "submit", "start", "end", "nodes", "kind")


class Summary(msgspec.Struct, frozen=True):
    """The numbers. Lengths are seconds of the trace; `backfilled` counts jobs, `preempted`
    evictions, `waiting` jobs that never ran because nothing could hold them, `timed_out` those
    that were ended at their estimate.
    """

    jobs: int
    ran: int
    waiting: int
    timed_out: int
    mean_wait_s: float
    median_wait_s: float
    max_wait_s: int
    mean_bounded_slowdown: float
    utilization: float
    backfilled: int
    preempted: int
    makespan_s: int
    nodes: int
    cores: int
    turns: int
    events: int


def summarize(trace: Trace, nodes: Sequence[TraceNode], found: Simulated) -> Summary:
    """The numbers of a simulation of `trace` on `nodes`."""
    pairs = [(job, ran) for job, ran in zip(trace.jobs, found.ran, strict=True) if ran is not None]
    waits = sorted(_wait_s(job, ran) for job, ran in pairs)
    slowdowns = [_slowdown(job, ran) for job, ran in pairs]
    cores = sum(node.capacity.cores for node in nodes)
    first = min((job.submit_s for job in trace.jobs), default=0)
    makespan = max((ran.end_s for _, ran in pairs), default=first) - first
    used = sum((ran.end_s - ran.start_s) * job.chunks * job.cores for job, ran in pairs)
    return Summary(
        jobs=len(trace.jobs),
        ran=len(pairs),
        waiting=len(trace.jobs) - len(pairs),
        timed_out=sum(job.run_s > job.estimate_s for job, _ in pairs),
        mean_wait_s=_mean(waits),
        median_wait_s=float(waits[len(waits) // 2]) if waits else 0.0,
        max_wait_s=waits[-1] if waits else 0,
        mean_bounded_slowdown=_mean(slowdowns),
        utilization=used / (cores * makespan) if cores and makespan else 0.0,
        backfilled=sum(ran.kind == "backfilled" for _, ran in pairs),
        preempted=found.evictions,
        makespan_s=makespan,
        nodes=len(nodes),
        cores=cores,
        turns=found.turns,
        events=found.position,
    )


def rows(trace: Trace, found: Simulated) -> Iterator[tuple[str | int, ...]]:
    """A row a job, in the order of the trace, under `HEAD`. Instants are seconds of the trace;
    nodes are names with blanks between them. A job that never ran has neither.
    """
    for job, ran in zip(trace.jobs, found.ran, strict=True):
        if ran is None:
            yield (job.id, job.submit_s, "", "", "", "waiting")
        else:
            yield (job.id, job.submit_s, ran.start_s, ran.end_s, " ".join(ran.chunks), ran.kind)


def _wait_s(job: TraceJob, ran: Ran) -> int:
    return ran.start_s - job.submit_s


def _slowdown(job: TraceJob, ran: Ran) -> float:
    return max(1.0, (ran.end_s - job.submit_s) / max(ran.end_s - ran.start_s, TAU_S))


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known) if known else 0.0
