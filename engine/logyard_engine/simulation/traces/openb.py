"""Alibaba's GPU cluster trace of 2023 (*openb*): a table of pods, and one of nodes.

A pod is a job of one chunk. Its cores are rounded up to whole ones. GPUs are counted in thousandths
(device `GPU`, 1000 a card), since pods share cards: what fits is right for the node as a whole, and
on which of its cards a share lies is not modelled. A pod that names kinds of GPU runs on nodes with
one of these: each such set is an annotation, which the nodes with any of its kinds have.

A pod ran from when it was scheduled to when it was deleted, and nobody estimated how long; pods
that were never scheduled are left out. Best-effort pods (``BE``) are preemptible. The class of
service is the group.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Mapping

from logyard_domain.resources import Capacity
from logyard_engine.simulation.traces.tags import tagged, wanted
from logyard_engine.simulation.traces.trace import BadTrace, Trace, TraceJob

GPU = "nvidia.com/gpu-thousandth"
PODS_BEGIN = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos"
NODES_BEGIN = "sn,cpu_milli,memory_mib,gpu,model"
_KIND = "gpu."
_MIB = 1 << 20


def read_openb(pods: Iterable[str], where: str, nodes: Iterable[str], nodes_where: str) -> Trace:
    """The trace in the lines of both tables, which are named so in errors. Raises BadTrace."""
    jobs: list[TraceJob] = []
    skipped: Counter[str] = Counter()
    for number, row in enumerate(csv.DictReader(pods), 2):
        job = _job(row, f"{where}: line {number}")
        if isinstance(job, str):
            skipped[job] += 1
        else:
            jobs.append(job)
    jobs.sort(key=lambda job: job.submit_s)
    kinds: dict[str, str] = {}
    capacities: dict[str, Capacity] = {}
    for number, row in enumerate(csv.DictReader(nodes), 2):
        place = f"{nodes_where}: line {number}"
        gpus = _whole(row, "gpu", place)
        name = row["sn"]
        kinds[name] = row.get("model") or ""
        capacities[name] = Capacity(
            cores=_whole(row, "cpu_milli", place) // 1000,
            memory=_whole(row, "memory_mib", place) * _MIB,
            devices={GPU: gpus * 1000} if gpus else {},
        )

    def holds(node: str, tag: str) -> bool:
        return kinds[node] in tag.removeprefix(_KIND).split("_")

    return Trace(
        format="openb",
        jobs=tuple(jobs),
        nodes=tagged(capacities, jobs, holds),
        processors=sum(capacity.cores for capacity in capacities.values()),
        skipped=dict(skipped),
    )


def _job(row: Mapping[str, str | None], place: str) -> TraceJob | str:
    if not row.get("scheduled_time"):
        return "it was never scheduled"
    submit_s = _whole(row, "creation_time", place)
    run_s = _whole(row, "deletion_time", place) - _whole(row, "scheduled_time", place)
    if run_s <= 0:
        return "it never ran"
    gpus, share = _whole(row, "num_gpu", place), _whole(row, "gpu_milli", place)
    kinds = [kind for kind in (row.get("gpu_spec") or "").split("|") if kind]
    service = row.get("qos") or ""
    return TraceJob(
        id=row.get("name") or "",
        submit_s=submit_s,
        run_s=run_s,
        estimate_s=run_s,
        cores=max(1, -(-_whole(row, "cpu_milli", place) // 1000)),
        memory=_whole(row, "memory_mib", place) * _MIB,
        devices=((GPU, gpus * share),) if gpus * share else (),
        annotations=wanted([_KIND + "_".join(sorted(kinds))] if kinds else []),
        group=service or "default",
        preemptible=service == "BE",
    )


def _whole(row: Mapping[str, str | None], column: str, place: str) -> int:
    text = row.get(column) or ""
    try:
        return int(float(text))
    except ValueError:
        raise BadTrace(f"{place}: {column} is {text!r}; write a whole number") from None
