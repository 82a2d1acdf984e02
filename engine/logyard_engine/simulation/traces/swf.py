"""The Standard Workload Format: one job a line, 18 numbers, and a header of ``; Key: value`` lines.

A job's processors are the larger of what it asked for and what it got, its estimate is the time
that it asked for, or its run time where it asked for none. Each processor is a chunk of one core.
Lines without a run time, processors or an instant of submission are no jobs, and are counted.
"""

from collections import Counter
from collections.abc import Iterable

from logyard_engine.simulation.traces.trace import BadTrace, Trace, TraceJob

FIELDS_LEAST = 11
"""Fields that are needed of the 18: the last of them tells how the job ended."""


def read_swf(lines: Iterable[str], where: str) -> Trace:
    """The trace in the lines of a file; `where` names it in errors. Raises BadTrace."""
    header: dict[str, str] = {}
    jobs: list[TraceJob] = []
    ids: set[str] = set()
    skipped: Counter[str] = Counter()
    for number, line in enumerate(lines, 1):
        if line.startswith(";"):
            key, _, value = line[1:].partition(":")
            header.setdefault(key.strip(), value.strip())
            continue
        fields = line.split()
        if not fields:
            continue
        job = _job(fields, f"{where}: line {number}")
        if isinstance(job, str):
            skipped[job] += 1
            continue
        if job.id in ids:
            raise BadTrace(f"{where}: line {number}: there is a job {job.id} already; number it anew")
        ids.add(job.id)
        jobs.append(job)
    # Sorting is stable: what came at the same second stays in the order of the file.
    jobs.sort(key=lambda job: job.submit_s)
    return Trace(
        format="swf",
        jobs=tuple(jobs),
        processors=_number(header, "MaxProcs", where) or _number(header, "MaxNodes", where),
        unix_s=_number(header, "UnixStartTime", where) or None,
        skipped=dict(skipped),
    )


def numbers(fields: list[str], count: int, place: str) -> list[int]:
    """The first `count` fields as whole numbers; fractions are cut off. Raises BadTrace."""
    if len(fields) < count:
        raise BadTrace(f"{place}: {len(fields)} fields; a job has at least {count}")
    found: list[int] = []
    for index, text in enumerate(fields[:count], 1):
        try:
            found.append(int(text) if text.lstrip("-").isdigit() else int(float(text)))
        except (ValueError, OverflowError):
            raise BadTrace(
                f"{place}: field {index} is {text!r}, which is no number; -1 means unknown"
            ) from None
    return found


def owner(letter: str, number: int, unknown: str) -> str:
    """The name of a user or group that is a number in the file."""
    return f"{letter}{number}" if number >= 0 else unknown


def _job(fields: list[str], place: str) -> TraceJob | str:
    """The job of a line, or why it is none."""
    values = numbers(fields, FIELDS_LEAST, place)
    number, submit_s, _, run_s, allocated, _, _, requested, estimate_s = values[:9]
    processors = max(allocated, requested)
    if run_s <= 0:
        return "it never ran"
    if processors <= 0:
        return "it has no processors"
    if submit_s < 0:
        return "it has no instant of submission"
    more = numbers(fields, min(len(fields), 13), place)[11:]
    return TraceJob(
        id=str(number),
        submit_s=submit_s,
        run_s=run_s,
        estimate_s=estimate_s if estimate_s > 0 else run_s,
        chunks=processors,
        user=owner("u", more[0] if more else -1, "unknown"),
        group=owner("g", more[1] if len(more) > 1 else -1, "default"),
    )


def _number(header: dict[str, str], key: str, where: str) -> int:
    text = header.get(key, "").split(" ")[0]
    if not text:
        return 0
    if not text.isdigit():
        raise BadTrace(f"{where}: {key} in the header is {text!r}; write a whole number")
    return int(text)
