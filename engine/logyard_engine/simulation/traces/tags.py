"""What jobs of a trace say of nodes, as annotations, which a node has or has not.

A trace knows tags of which one is enough, tags that a node must not have, and names of nodes. A
request knows annotations that a node must have, and nothing else. So each thing that some job says
becomes an annotation of its own, ``yes`` on every node of which it is true.
"""

from collections.abc import Callable, Iterable, Mapping

from logyard_domain.resources import Capacity
from logyard_engine.simulation.traces.trace import TraceJob, TraceNode

YES = "yes"


def wanted(tags: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The annotations of a job that wants all of the tags."""
    return tuple((tag, YES) for tag in sorted(set(tags)))


def tagged(
    nodes: Mapping[str, Capacity],
    jobs: Iterable[TraceJob],
    holds: Callable[[str, str], bool],
) -> tuple[TraceNode, ...]:
    """The nodes with the tags that jobs want; `holds(node, tag)` tells which are true of a node."""
    tags = sorted({tag for job in jobs for tag, _ in job.annotations})
    return tuple(
        TraceNode(name, capacity, {tag: YES for tag in tags if holds(name, tag)})
        for name, capacity in nodes.items()
    )
