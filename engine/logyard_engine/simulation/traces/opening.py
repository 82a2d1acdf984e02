"""Reading a trace by its file, whatever its format: the content tells."""

import gzip
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from logyard_engine.simulation.traces.metacentrum import FIELDS, read_metacentrum
from logyard_engine.simulation.traces.openb import NODES_BEGIN, PODS_BEGIN, read_openb
from logyard_engine.simulation.traces.swf import FIELDS_LEAST, read_swf
from logyard_engine.simulation.traces.trace import BadTrace, Trace

_GZIP = b"\x1f\x8b"
KNOWN = (
    "a file of the Standard Workload Format (.swf), the MetaCentrum trace, or the openb table of "
    "pods with its table of nodes beside it; each may be packed (.gz)"
)


def read_trace(path: Path, nodes: Path | None = None) -> Trace:
    """The trace in a file. `nodes` is the table of nodes of an openb trace; without it, the one
    that lies beside the pods.

    Raises BadTrace with the place, what is wrong, and what would be right.
    """
    kind = _kind(path)
    if kind == "nodes":
        raise BadTrace(
            f"{path}: this is the table of nodes; name the table of pods, and this one with --nodes"
        )
    if nodes is not None and kind != "openb":
        raise BadTrace(f"{path}: only an openb trace has a table of nodes; give a number of nodes")
    with _lines(path) as lines:
        if kind == "swf":
            trace = read_swf(lines, path.name)
        elif kind == "metacentrum":
            trace = read_metacentrum(lines, path.name)
        else:
            beside = nodes or _table_beside(path)
            with _lines(beside) as table:
                trace = read_openb(lines, path.name, table, beside.name)
    if not trace.jobs:
        raise BadTrace(f"{path}: no line of it is a job that ran")
    return trace


def _kind(path: Path) -> str:
    """The format that the first line of content has."""
    with _lines(path) as lines:
        for line in lines:
            text = line.strip()
            if not text or text.startswith(";"):
                continue
            if text.startswith(PODS_BEGIN):
                return "openb"
            if text.startswith(NODES_BEGIN):
                return "nodes"
            fields = text.split()
            if len(fields) == FIELDS and fields[18].startswith("{"):
                return "metacentrum"
            if len(fields) >= FIELDS_LEAST and fields[0].lstrip("-").isdigit():
                return "swf"
            raise BadTrace(f"{path}: this is no trace that can be read; it would be {KNOWN}")
    raise BadTrace(f"{path}: there is no job in it; a trace is {KNOWN}")


def _table_beside(pods: Path) -> Path:
    for path in sorted(pods.absolute().parent.glob("*node*.csv*")):
        if _kind_of_table(path):
            return path
    raise BadTrace(
        f"{pods}: its table of nodes is not beside it; name it: --nodes openb_node_list.csv"
    )


def _kind_of_table(path: Path) -> bool:
    with _lines(path) as lines:
        return next(lines, "").startswith(NODES_BEGIN)


@contextmanager
def _lines(path: Path) -> Generator[TextIO]:
    """The text of a file, unpacked where it is packed; what is no UTF-8 is replaced."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == _GZIP
        with (
            gzip.open(path, "rt", encoding="utf-8", errors="replace")
            if packed
            else path.open(encoding="utf-8", errors="replace") as text
        ):
            yield text
    except (OSError, EOFError) as trouble:
        why = getattr(trouble, "strerror", None) or str(trouble)
        raise BadTrace(f"{path}: it cannot be read: {why}") from trouble
