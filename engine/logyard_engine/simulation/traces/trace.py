"""What a trace is, whatever file it came from: jobs, and nodes where the trace has them."""

import msgspec

from logyard_domain.resources import Capacity


class BadTrace(Exception):
    """A trace cannot be read. The text says where, what is wrong, and what would be right."""


class TraceNode(msgspec.Struct, frozen=True):
    """A machine of the cluster that the trace was taken of."""

    name: str
    capacity: Capacity
    annotations: dict[str, str] = {}


class TraceJob(msgspec.Struct, frozen=True, gc=False):
    """One job. Instants and lengths are whole seconds of the trace.

    It asks for `chunks` times `cores`, `memory` (bytes) and `devices` (sorted pairs of name and
    count), anywhere on nodes with `annotations` (sorted pairs); several chunks may lie on one node,
    and `exclusive` wants their nodes for itself. `run_s` is how long it ran, `estimate_s` how long
    it said that it might.
    """

    id: str
    submit_s: int
    run_s: int
    estimate_s: int
    chunks: int = 1
    cores: int = 1
    memory: int = 0
    devices: tuple[tuple[str, int], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    user: str = "unknown"
    group: str = "default"
    preemptible: bool = False
    exclusive: bool = False


class Trace(msgspec.Struct, frozen=True):
    """Jobs in the order of their submission, and `nodes`, none where the file names none.

    `processors` is how many the machine had by the file's own word, 0 where it does not say.
    `unix_s` is the trace's second 0 since the epoch, None where the file does not say. `skipped`
    counts the lines that are no usable jobs, by the reason.
    """

    format: str
    jobs: tuple[TraceJob, ...]
    nodes: tuple[TraceNode, ...] = ()
    processors: int = 0
    unix_s: int | None = None
    skipped: dict[str, int] = {}


def shortened(trace: Trace, jobs: int) -> Trace:
    """The same trace with its first `jobs` only."""
    return msgspec.structs.replace(trace, jobs=trace.jobs[:jobs])


def clairvoyant(trace: Trace) -> Trace:
    """The same trace, in which everybody knew how long their job would run."""
    return msgspec.structs.replace(
        trace,
        jobs=tuple(
            msgspec.structs.replace(job, run_s=run_s, estimate_s=run_s)
            for job in trace.jobs
            for run_s in [min(job.run_s, job.estimate_s)]
        ),
    )


def compressed(trace: Trace, factor: float) -> Trace:
    """The same trace with arrivals so many times as fast, in whole seconds from its first job."""
    first = trace.jobs[0].submit_s if trace.jobs else 0
    return msgspec.structs.replace(
        trace,
        jobs=tuple(
            msgspec.structs.replace(job, submit_s=first + int((job.submit_s - first) / factor))
            for job in trace.jobs
        ),
    )
