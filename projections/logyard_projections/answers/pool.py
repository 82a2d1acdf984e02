"""What the nodes mean for a request: which could hold it, which not, and who is in the way."""

from collections.abc import Iterator

import msgspec

from logyard_domain.resources import Request
from logyard_projections.answers.nodes import free_of
from logyard_projections.answers.stages import instant
from logyard_projections.answers.words import misfit
from logyard_projections.nodes import NODES, Node
from logyard_projections.queue import OWNERS
from logyard_projections.shapes import SHAPES, shape_key
from logyard_projections.stages import ALLOCATIONS, STAGES, Allocation, stage_key
from logyard_projections.view import View

NEAREST = 3
"""Nodes whose allocations are named as holders."""
HOLDERS = 10
FREE, BUSY, TAKEN = "free now", "busy", "taken whole"


class NodeCount(msgspec.Struct, frozen=True, rename="camel"):
    """How many nodes are out for one cause (or in). The counts of all causes sum to the pool."""

    cause: str
    nodes: int
    positions: tuple[int, ...]


class Quantity(msgspec.Struct, frozen=True, rename="camel"):
    """One dimension on the node that is nearest to having room: needed, free there, and short.

    `could_hold_free` is what is free on all nodes together that could hold the request.
    """

    dimension: str
    need: int
    free: int
    short: int
    could_hold_free: int


class Holder(msgspec.Struct, frozen=True, rename="camel"):
    """An allocation that holds what is waited for; `est_finish` is when its time limit ends it,
    `within_ms` how long that is from the instant of the view.
    """

    allocation_id: str
    workflow_id: str
    group: str
    user: str
    node_id: str
    cores: int
    memory: int
    devices: dict[str, int]
    est_finish: str | None
    within_ms: int | None
    positions: tuple[int, ...]


class Pool(msgspec.Struct, frozen=True):
    """All nodes as the request sees them."""

    nodes: int
    counts: tuple[NodeCount, ...]
    could_hold: int
    nearest: str
    quantities: tuple[Quantity, ...]
    held_by: int
    holders: tuple[Holder, ...]


class _Seen(msgspec.Struct, frozen=True, gc=False):
    """A node that could hold the request: what it lacks now as a sum of shares, and in full."""

    shortage: float
    name: str
    dimensions: tuple[tuple[str, int, int], ...]
    running: int


def survey(view: View, request: Request) -> Pool:
    """Look at every node once."""
    causes: dict[str, list[int]] = {}
    could: list[_Seen] = []
    for node in all_nodes(view):
        found = misfit_of(node, request)
        if found:
            cause = misfit(found, request)
        elif node.state != "up":
            cause = node.state
        else:
            seen = _look(node, request)
            could.append(seen)
            taken = node.sole and request.cores
            cause = TAKEN if taken else BUSY if seen.shortage else FREE
        causes.setdefault(cause, []).append(max(node.position, node.placed_position))
    could.sort(key=lambda seen: (seen.shortage, seen.name))
    holders = [one for seen in could[:NEAREST] for one in _holders(view, seen.name)]
    holders.sort(key=lambda one: (one.est_finish or "9", one.allocation_id))
    counts = tuple(
        NodeCount(cause, len(positions), tuple(sorted(set(positions))[-3:]))
        for cause, positions in sorted(causes.items(), key=lambda one: (-len(one[1]), one[0]))
    )
    return Pool(
        nodes=sum(one.nodes for one in counts),
        counts=counts,
        could_hold=len(could),
        nearest=could[0].name if could else "",
        quantities=_quantities(could),
        held_by=sum(seen.running for seen in could),
        holders=tuple(holders[:HOLDERS]),
    )


def misfit_of(node: Node, request: Request) -> str:
    """The first thing that keeps the node from ever holding the request; nothing when it could."""
    capacity = node.capacity
    for name, count in request.devices:
        has = capacity.devices.get(name, 0)
        if has < count:
            return f"devices {name}" if has else f"device {name}"
    for key, value in request.annotations:
        if node.annotations.get(key) != value:
            return f"annotation {key}={value}"
    for feature in request.features:
        if feature not in node.features:
            return f"feature {feature}"
    if request.storage and request.storage != node.storage:
        return "storage"
    if capacity.cores < request.cores:
        return "cores"
    return "memory" if capacity.memory < request.memory else ""


def all_nodes(view: View) -> Iterator[Node]:
    """Every node, by name."""
    token = ""
    while True:
        page = view.scan(NODES, after=token)
        yield from page.rows
        token = page.token
        if not token:
            return


def _look(node: Node, request: Request) -> _Seen:
    """Name, need and what is free, for each thing that is asked for."""
    cores, memory, devices = free_of(node)
    dimensions: list[tuple[str, int, int]] = []
    if request.cores:
        dimensions.append(("cores", request.cores, cores))
    if request.memory:
        dimensions.append(("memory", request.memory, memory))
    for name, count in request.devices:
        dimensions.append((name, count, devices.get(name, 0)))
    if request.exclusive != "none":
        dimensions.append(("whole node", 1, 0 if node.running else 1))
    shortage = 0.0
    for _, need, free in dimensions:
        if free < need:
            shortage += (need - free) / need
    return _Seen(shortage, node.name, tuple(dimensions), node.running)


def _quantities(could: list[_Seen]) -> tuple[Quantity, ...]:
    """Need and shortage on the nearest node, and what is free on all together."""
    if not could:
        return ()
    free_in_all = [0] * len(could[0].dimensions)
    for seen in could:
        for place, (_, _, free) in enumerate(seen.dimensions):
            free_in_all[place] += free
    return tuple(
        Quantity(name, need, free, max(need - free, 0), everywhere)
        for (name, need, free), everywhere in zip(could[0].dimensions, free_in_all, strict=True)
    )


def _holders(view: View, node: str) -> Iterator[Holder]:
    for one in view.scan(ALLOCATIONS, where={"on": node}, limit=50).rows:
        yield _holder(view, one)


def _holder(view: View, one: Allocation) -> Holder:
    owner = view.get(OWNERS, one.workflow)
    shape = view.get(SHAPES, shape_key(one.shape))
    request = shape.request if shape is not None else Request(cores=0)
    finish = finish_of(view, one)
    return Holder(
        allocation_id=one.id,
        workflow_id=one.workflow,
        group=owner.group if owner is not None else "",
        user=owner.user if owner is not None else "",
        node_id=one.node,
        cores=request.cores,
        memory=request.memory,
        devices=dict(request.devices),
        est_finish=instant(finish),
        within_ms=max(0, finish - view.mark.at) if finish else None,
        positions=(one.placed_position,),
    )


def finish_of(view: View, one: Allocation) -> int:
    """When its time limit ends it at the latest, seen from its start or placement."""
    stage = view.get(STAGES, stage_key(one.workflow, one.stage))
    limit = stage.limit_ms if stage is not None else 0
    return (one.started_at or one.placed_at) + limit if limit else 0
