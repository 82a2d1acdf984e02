"""How a workflow, a stage, a rank and an attempt are called, and how their names are read.

An allocation's name says all four: ``wf-3f8mk2qa7c/render/17#2`` is the second attempt of rank 17
of stage ``render`` of that workflow. The attempt in the name is the fencing token: what is reported
of ``#1`` can never be taken for ``#2``.
"""

import hashlib
from base64 import b32encode
from typing import NewType

Millis = NewType("Millis", int)
"""An instant (since the epoch) or a length of time, in milliseconds."""

Position = NewType("Position", int)
"""Place of an event in a cluster's log; the first event has position 1."""

WorkflowId = NewType("WorkflowId", str)
AllocationId = NewType("AllocationId", str)
NodeName = NewType("NodeName", str)
ShapeId = NewType("ShapeId", int)

WORKFLOW_ID_CHARS = 10


def workflow_id(cluster: str, key: str, salt: int = 0) -> WorkflowId:
    """The id that a start request with this idempotency key gets: made of the request, no dice.

    `salt` is raised only when another key already has the id (2^-50 for a pair of keys).
    """
    seed = f"{cluster}\n{key}\n{salt}".encode()
    digest = b32encode(hashlib.sha256(seed).digest()).decode().lower()
    return WorkflowId("wf-" + digest[:WORKFLOW_ID_CHARS])


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
