"""The Standard Workload Format: one job a line, 18 numbers, and a header of ``; Key: value`` lines.

A job's processors are the larger of what it asked for and what it got, its estimate is the time
that it asked for, or its run time where it asked for none. Each processor is a chunk of one core.
Lines without a run time, processors or an instant of submission are no jobs, and are counted.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from logyard_engine.simulation.traces.trace import BadTrace, Trace, TraceJob

FIELDS_LEAST = 11
"""Fields that a line must have of the 18: the last of them tells how the job ended."""
FIELDS_READ = 13
"""Fields that are looked at: the last two are the user and the group."""


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
            raise BadTrace(
                f"{where}: line {number}: there is a job {job.id} already; number it anew"
            )
        ids.add(job.id)
        jobs.append(job)
    # Sorting is stable: what came at the same second stays in the order of the file.
    jobs.sort(key=lambda job: job.submit_s)
    return Trace(
        format="swf",
        jobs=tuple(jobs),
        processors=header_number(header, "MaxProcs", where)
        or header_number(header, "MaxNodes", where),
        unix_s=header_number(header, "UnixStartTime", where) or None,
        skipped=dict(skipped),
    )


def numbers(fields: list[str], least: int, most: int, place: str) -> list[int]:
    """The first fields, at most `most`, as whole numbers; fractions are cut off.

    Raises BadTrace, also where there are fewer than `least`.
    """
    if len(fields) < least:
        raise BadTrace(f"{place}: {len(fields)} fields; a job has at least {least}")
    kept = fields[:most]
    try:
        return list(map(int, kept))
    except ValueError:
        return [_number_of(text, index, place) for index, text in enumerate(kept, 1)]


def owner(letter: str, number: int, unknown: str) -> str:
    """The name of a user or group that is a number in the file."""
    return f"{letter}{number}" if number >= 0 else unknown


def measures(values: list[int]) -> tuple[int, int, int, int] | str:
    """Submission, run time, estimate (seconds) and processors of a line, or why it is no job."""
    _, submit_s, _, run_s, allocated, _, _, requested, estimate_s = values[:9]
    processors = max(allocated, requested)
    if run_s <= 0:
        return "it never ran"
    if processors <= 0:
        return "it has no processors"
    if submit_s < 0:
        return "it has no instant of submission"
    return submit_s, run_s, estimate_s if estimate_s > 0 else run_s, processors


def _job(fields: list[str], place: str) -> TraceJob | str:
    """The job of a line, or why it is none."""
    values = numbers(fields, FIELDS_LEAST, FIELDS_READ, place)
    found = measures(values)
    if isinstance(found, str):
        return found
    submit_s, run_s, estimate_s, processors = found
    return TraceJob(
        id=str(values[0]),
        submit_s=submit_s,
        run_s=run_s,
        estimate_s=estimate_s,
        chunks=processors,
        user=owner("u", values[11] if len(values) > 11 else -1, "unknown"),
        group=owner("g", values[12] if len(values) > 12 else -1, "default"),
    )


def _number_of(text: str, index: int, place: str) -> int:
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        raise BadTrace(
            f"{place}: field {index} is {text!r}, which is no number; -1 means unknown"
        ) from None


def header_number(header: Mapping[str, str], key: str, where: str) -> int:
    """A whole number of the header; 0 where it has none of that key. Raises BadTrace."""
    text = header.get(key, "").split(" ")[0]
    if not text:
        return 0
    if not text.isdigit():
        raise BadTrace(f"{where}: {key} in the header is {text!r}; write a whole number")
    return int(text)
