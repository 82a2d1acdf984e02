"""Answers about nodes."""

from typing import Any

import msgspec

from logyard_projections.answers.asking import conditions, page_size
from logyard_projections.answers.rooms import free_on, on_node
from logyard_projections.instants import rfc3339
from logyard_projections.nodes import NODES, Node
from logyard_projections.view import LIMIT_MAX, View

FILTER = {"state": "state"}
GIB = 1 << 30


class Amounts(msgspec.Struct, frozen=True, rename="camel"):
    """Resources: cores, bytes of memory (as text, being a 64-bit number), devices by name."""

    cores: int
    memory_bytes: str
    devices: dict[str, int]


class RunningJob(msgspec.Struct, frozen=True, rename="camel"):
    """An allocation that holds resources of the node."""

    id: str
    workflow_id: str
    job_name: str
    rank: int
    state: str
    since: str


class NodeAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """A node. `running_jobs` is a count in lists and the jobs themselves for one node.

    `capacity` is `allocated` plus `free` less `owed`: what victims of preemption still use of the
    room that was given away already. `state` is ``up``, ``cordoned``, ``draining``, ``drained`` or
    ``lost``, in force since `since` (position `state_position`) for `reason`.
    """

    id: str
    host_name: str
    cpu: str
    cores: int
    memory_gb: float
    devices: dict[str, int]
    running_jobs: int | tuple[RunningJob, ...]
    definition_id: str
    cluster_id: str
    resource: dict[str, Any]
    state: str
    reason: str
    since: str
    state_position: int
    capacity: Amounts
    allocated: Amounts
    free: Amounts
    owed: Amounts
    annotations: dict[str, str]
    features: tuple[str, ...]
    limits: str
    storage: str
    version: str
    incarnation: str
    registered: str


class NodeList(msgspec.Struct, frozen=True, rename="camel"):
    """A page of nodes by name."""

    nodes: tuple[NodeAnswer, ...]
    page_token: str


def list_nodes(
    view: View, *, cluster: str, size: int = 0, token: str = "", filter: str = ""
) -> NodeList:
    """A page of nodes. Raises ValueError (BadToken for a page token)."""
    where = conditions(filter, FILTER)
    page = view.scan(NODES, where=where, after=token, limit=page_size(size))
    return NodeList(tuple(_answer(node, cluster, node.running) for node in page.rows), page.token)


def get_node(view: View, name: str, *, cluster: str) -> NodeAnswer | None:
    """One node with what runs on it (the first thousand)."""
    node = view.get(NODES, name)
    if node is None:
        return None
    running = tuple(
        RunningJob(
            id=one.id,
            workflow_id=one.workflow,
            job_name=one.stage,
            rank=one.rank,
            state=one.state,
            since=rfc3339(one.started_at or one.placed_at),
        )
        for one, _ in on_node(view, name, LIMIT_MAX)
    )
    return _answer(node, cluster, running)


def _answer(node: Node, cluster: str, running: int | tuple[RunningJob, ...]) -> NodeAnswer:
    capacity = node.capacity
    unused = free_on(node)
    total = Amounts(capacity.cores, str(capacity.memory), capacity.devices)
    free = Amounts(unused.cores, str(unused.memory), unused.devices)
    used = {name: count for name, count in node.devices_used.items() if count}
    return NodeAnswer(
        id=node.name,
        host_name=node.host or node.name,
        cpu="",
        cores=capacity.cores,
        memory_gb=round(capacity.memory / GIB, 2),
        devices=capacity.devices,
        running_jobs=running,
        definition_id="",
        cluster_id=cluster,
        resource={"total": _resource(total), "free": _resource(free)},
        state=node.state,
        reason=node.reason,
        since=rfc3339(node.since),
        state_position=node.position,
        capacity=total,
        allocated=Amounts(node.cores_used, str(node.memory_used), used),
        free=free,
        owed=_owed(node),
        annotations=node.annotations,
        features=node.features,
        limits=node.limits,
        storage=node.storage,
        version=node.version,
        incarnation=node.incarnation,
        registered=rfc3339(node.registered),
    )


def _owed(node: Node) -> Amounts:
    capacity = node.capacity
    over = {
        name: count - capacity.devices.get(name, 0) for name, count in node.devices_used.items()
    }
    return Amounts(
        max(node.cores_used - capacity.cores, 0),
        str(max(node.memory_used - capacity.memory, 0)),
        {name: count for name, count in over.items() if count > 0},
    )


def _resource(amounts: Amounts) -> dict[str, Any]:
    return {
        "cpu": {"cores": amounts.cores},
        "mem": {"bytes": amounts.memory_bytes},
        "devices": amounts.devices,
    }
