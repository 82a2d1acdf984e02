"""How a workflow, a stage, a rank and an attempt are called, and how their names are read.

An allocation's name says all four: ``wf-3f8mk2qa7c/render/17#2`` is the second attempt of rank 17
of stage ``render`` of that workflow. The attempt in the name is the fencing token: what is reported
of ``#1`` can never be taken for ``#2``.
"""

import hashlib
from typing import NewType

Millis = NewType("Millis", int)
"""An instant (since the epoch) or a length of time, in milliseconds."""

Position = NewType("Position", int)
"""Place of an event in a cluster's log; the first event has position 1."""

WorkflowId = NewType("WorkflowId", str)
AllocationId = NewType("AllocationId", str)
NodeName = NewType("NodeName", str)
ShapeId = NewType("ShapeId", int)

_ID_BITS = 50
_ID_STEP = 0x2545F4914F6CD
"""Odd, so that multiplying by it maps the numbers below 2^50 one to one."""
_ID_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


def workflow_id(cluster: str, position: int) -> WorkflowId:
    """The id of the workflow that is submitted at this position of the cluster's log.

    No dice: it follows from the log, differs for all positions of a cluster, and looks unlike its
    neighbours, so that a mistyped one is not somebody else's.
    """
    start = int.from_bytes(hashlib.sha256(cluster.encode()).digest()[:7])
    number = (position * _ID_STEP + start) % (1 << _ID_BITS)
    return WorkflowId(
        "wf-" + "".join(_ID_LETTERS[number >> shift & 31] for shift in range(0, _ID_BITS, 5))
    )


def allocation_id(workflow: str, stage: str, rank: int, attempt: int) -> AllocationId:
    """Name of one attempt of one rank of a stage."""
    return AllocationId(f"{workflow}/{stage}/{rank}#{attempt}")


def allocation_parts(allocation: str) -> tuple[WorkflowId, str, int, int]:
    """Workflow, stage, rank and attempt of an allocation's name.

    Raises ValueError when the text is no allocation's name.
    """
    workflow, _, rest = allocation.partition("/")
    stage, _, tail = rest.rpartition("/")
    rank, _, attempt = tail.partition("#")
    if not stage or not workflow:
        raise ValueError(
            f"{allocation!r} names no allocation; one looks like wf-3f8mk2qa7c/render/17#1"
        )
    return WorkflowId(workflow), stage, int(rank), int(attempt)
