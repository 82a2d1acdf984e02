"""The trace of MetaCentrum's server *wagap* (2013): the Standard Workload Format and three fields.

Field 10 is the memory that was asked for on each node (bytes), 19 the hosts that a job ran on, 20
its queue, and 21 what it wants of nodes, as PBS has it: ``NODES:ppn=CORES`` and tags, of which
``^TAG`` is one that a node must not have, ``TAG#excl`` wants the nodes alone, and a host's name is
that host. Parts with a ``+`` between them differ in their cores, and are rounded up to the largest.

The file does not list its machine, which is known: two clusters of equal nodes.
"""

import re
from collections import Counter
from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

from logyard_domain.resources import Capacity
from logyard_engine.simulation.traces.swf import measures, numbers, owner
from logyard_engine.simulation.traces.tags import tagged, wanted
from logyard_engine.simulation.traces.trace import BadTrace, Trace, TraceJob

FIELDS = 21
_NUMBERS = 18
_GIB = 1 << 30
_DOMAIN = ".cerit-sc.cz"
_COMMON = frozenset({"x86_64", "brno", "nfs4", "linux", "debian", "infiniband"})
NODES: dict[str, Capacity] = {
    **{f"zewura{n}": Capacity(cores=80, memory=512 * _GIB) for n in range(1, 21)},
    **{f"zegox{n}": Capacity(cores=12, memory=90 * _GIB) for n in range(1, 49)},
}
_MEMORY = re.compile(r"mem=(\d+)(gb|mb)")


class Wish(NamedTuple):
    """What field 21 says: so many chunks of so many cores, on nodes with these tags."""

    chunks: int
    cores: int
    tags: tuple[str, ...]
    exclusive: bool
    memory: int
    """Bytes, 0 where it does not say."""


def read_metacentrum(lines: Iterable[str], where: str) -> Trace:
    """The trace in the lines of a file; `where` names it in errors. Raises BadTrace."""
    jobs: list[TraceJob] = []
    skipped: Counter[str] = Counter()
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields or line.startswith(";"):
            continue
        job = _job(fields, f"{where}: line {number}")
        if isinstance(job, str):
            skipped[job] += 1
        else:
            jobs.append(job)
    jobs.sort(key=lambda job: job.submit_s)
    return Trace(
        format="metacentrum",
        jobs=tuple(jobs),
        nodes=tagged(NODES, jobs, _holds),
        processors=sum(capacity.cores for capacity in NODES.values()),
        unix_s=0,
        skipped=dict(skipped),
    )


def wish(text: str, place: str) -> Wish:
    """What the text of field 21 asks for. Raises BadTrace."""
    chunks, cores, memory = 0, 1, 0
    exclusive = False
    tags: list[str] = []
    for part in text.split("+"):
        head, *rest = part.split(":")
        if head.isdigit():
            chunks += int(head)
        else:
            chunks += 1
            rest = [head, *rest]
        for said in rest:
            tag, _, mode = said.partition("#")
            exclusive = exclusive or mode == "excl"
            if tag.startswith("ppn="):
                cores = max(cores, _cores(tag[4:], place))
            elif found := _MEMORY.fullmatch(tag):
                memory = int(found[1]) << (30 if found[2] == "gb" else 20)
            else:
                tags.append(_tag(tag))
    if not chunks:
        raise BadTrace(f"{place}: field 21 is {text!r}; write NODES:ppn=CORES, such as 2:ppn=8")
    return Wish(chunks, cores, tuple(tags), exclusive, memory)


def _cores(text: str, place: str) -> int:
    """Whole cores; parts of one are rounded up."""
    try:
        cores = ceil(float(text))
    except (ValueError, OverflowError):
        cores = 0
    if cores < 1:
        raise BadTrace(f"{place}: field 21 has ppn={text}; write a number of cores, such as ppn=8")
    return cores


def _tag(text: str) -> str:
    """A tag as an annotation's key; ``^`` begins one that a node must not have."""
    less, tag = ("not.", text[1:]) if text.startswith("^") else ("", text)
    return less + tag.removeprefix("host=").removesuffix(_DOMAIN)


def _holds(node: str, tag: str) -> bool:
    if tag.startswith("not."):
        return not _holds(node, tag.removeprefix("not."))
    cluster = node.rstrip("0123456789")
    own = {node, f"cl_{cluster}", f"nodecpus{NODES[node].cores}"}
    return tag in own or tag in _COMMON


def _job(fields: list[str], place: str) -> TraceJob | str:
    if len(fields) != FIELDS:
        raise BadTrace(
            f"{place}: {len(fields)} fields; this trace has {FIELDS}: the {_NUMBERS} of the "
            "Standard Workload Format, hosts, queue, and nodes"
        )
    values = numbers(fields, _NUMBERS, _NUMBERS, place)
    found = measures(values)
    if isinstance(found, str):
        return found
    submit_s, run_s, estimate_s, _ = found
    asks = wish(fields[20], place)
    return TraceJob(
        id=str(values[0]),
        submit_s=submit_s,
        run_s=run_s,
        estimate_s=estimate_s,
        chunks=asks.chunks,
        cores=asks.cores,
        memory=asks.memory or max(0, values[9]),
        annotations=wanted(asks.tags),
        user=owner("u", values[11], "unknown"),
        group=fields[19],
        exclusive=asks.exclusive,
    )
