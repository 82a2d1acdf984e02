"""Nodes: what they have, what is in use, and in which state they are since when and why.

What is used may be more than there is while victims still run on room that was given away.
"""

from typing import Literal

import msgspec

from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    NodeCordoned,
    NodeDrained,
    NodeDraining,
    NodeLost,
    NodeRegistered,
    NodeRemoved,
    NodeReturned,
    NodeUncordoned,
)
from logyard_domain.records import Record
from logyard_domain.resources import Capacity, Request, asks_nothing
from logyard_projections.fold import Projection
from logyard_projections.rows import Rows
from logyard_projections.shapes import SHAPES, shape_key
from logyard_projections.stages import ALLOCATIONS, Allocation, Place, place_of
from logyard_projections.tables import Table

NodeState = Literal["up", "cordoned", "draining", "drained", "lost"]


class Node(msgspec.Struct, array_like=True, kw_only=True, gc=False):
    """One node. `running` counts the allocations that are there by right, `busy` those of them that
    hold any of its resources, `sole` the exclusive ones.

    `state` holds since the instant `since`; `reason` is what was said when it was set.
    `position` is the last one that changed its state or its facts.
    """

    name: str
    capacity: Capacity
    registered: int
    registered_position: int
    since: int
    position: int
    incarnation: str = ""
    annotations: dict[str, str] = {}
    storage: str = ""
    features: tuple[str, ...] = ()
    limits: str = ""
    host: str = ""
    version: str = ""
    state: NodeState = "up"
    reason: str = ""
    evict: bool = False
    cores_used: int = 0
    memory_used: int = 0
    devices_used: dict[str, int] = {}
    running: int = 0
    busy: int = 0
    sole: int = 0
    placed_position: int = 0


class Seat(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Chunks that an allocation over several nodes has on one of them; `allocation` is its key."""

    node: str
    allocation: str
    chunks: int


class Pool(msgspec.Struct, array_like=True, gc=False):
    """All nodes that are not lost together: what they have, and what is in use.

    Cores, MiB of memory (``memory``), and devices by name.
    """

    capacity: dict[str, int]
    used: dict[str, int]


NODES = Table("nodes", Node, columns={"state": str}, indexes=[("state",)])
SEATS = Table("seats", Seat)
POOL = Table("pool", Pool)
POOL_KEY = "pool"


def seat_key(node: str, allocation: str) -> str:
    """Names of nodes hold no `/`: the seats on a node begin with its name and one."""
    return f"{node}/{allocation}"


def misfit_of(node: Node, request: Request) -> str:
    """The first thing that keeps the node from ever holding a chunk of the request; nothing when it
    could.
    """
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


def _registered(rows: Rows, record: Record, event: NodeRegistered) -> None:
    node = rows.edit(NODES, event.node)
    if node is None:
        node = Node(
            name=event.node,
            capacity=event.capacity,
            registered=record.at,
            registered_position=record.position,
            since=record.at,
            position=record.position,
        )
        rows.put(NODES, event.node, node)
    elif node.state != "lost":
        _offer(rows, node, -1)
    node.capacity = event.capacity
    if node.state != "lost":
        _offer(rows, node, 1)
    node.incarnation = event.incarnation
    node.annotations = event.annotations
    node.storage = event.storage
    node.features = event.features
    node.limits = event.limits
    node.host = event.host
    node.version = event.version
    node.position = record.position


def _cordoned(rows: Rows, record: Record, event: NodeCordoned) -> None:
    _turn(rows, record, event.node, "cordoned", event.reason)


def _uncordoned(rows: Rows, record: Record, event: NodeUncordoned) -> None:
    _turn(rows, record, event.node, "up", "")


def _draining(rows: Rows, record: Record, event: NodeDraining) -> None:
    node = _turn(rows, record, event.node, "draining", event.reason)
    if node is not None:
        node.evict = event.evict


def _drained(rows: Rows, record: Record, event: NodeDrained) -> None:
    node = rows.get(NODES, event.node)
    _turn(rows, record, event.node, "drained", node.reason if node is not None else "")


def _lost(rows: Rows, record: Record, event: NodeLost) -> None:
    _turn(rows, record, event.node, "lost", f"silent for {event.silent_ms / 1000:g} s")


def _returned(rows: Rows, record: Record, event: NodeReturned) -> None:
    _turn(rows, record, event.node, "up", "")


def _removed(rows: Rows, record: Record, event: NodeRemoved) -> None:
    node = rows.get(NODES, event.node)
    if node is not None and node.state != "lost":
        _offer(rows, node, -1)
    rows.delete(NODES, event.node)


def _placed(rows: Rows, record: Record, event: AllocationPlaced) -> None:
    _use(rows, record, place_of(event.allocation), 1)


def _ended(rows: Rows, record: Record, event: AllocationEnded) -> None:
    _use(rows, record, place_of(event.allocation), -1)


def _use(rows: Rows, record: Record, place: Place, change: int) -> None:
    allocation = rows.get(ALLOCATIONS, place.key)
    if allocation is None:
        return
    shape = rows.get(SHAPES, shape_key(allocation.shape))
    if shape is None:
        return
    # It queued and held nothing, or the one behind it takes over what it held.
    keeps = bool(allocation.behind) or (change < 0 and bool(allocation.follower))
    for name, chunks in allocation.seats.items():
        node = rows.edit(NODES, name)
        if node is None:
            continue
        node.placed_position = record.position
        if not keeps:
            _occupy(rows, node, shape.request, change, chunks)
    if allocation.chunks:
        _seat(rows, allocation, place.key, change)


def _occupy(rows: Rows, node: Node, request: Request, change: int, chunks: int) -> None:
    node.running += change
    node.busy += 0 if asks_nothing(request) else change
    node.cores_used += change * chunks * request.cores
    node.memory_used += change * chunks * request.memory
    if request.devices:
        used = dict(node.devices_used)
        for device, count in request.devices:
            used[device] = used.get(device, 0) + change * chunks * count
        node.devices_used = used
    if request.exclusive != "none":
        node.sole += change
    pool = _pool(rows)
    pool.used = grown(pool.used, amounts_of(request), change * chunks)


def _seat(rows: Rows, allocation: Allocation, key: str, change: int) -> None:
    for name, chunks in allocation.chunks.items():
        if change > 0:
            rows.put(SEATS, seat_key(name, key), Seat(name, key, chunks))
        else:
            rows.delete(SEATS, seat_key(name, key))


def amounts_of(wanted: Request | Capacity) -> dict[str, int]:
    """Cores, MiB of memory, and devices by name."""
    amounts = {"cores": wanted.cores, "memory": wanted.memory >> 20}
    amounts.update(wanted.devices)
    return amounts


def _pool(rows: Rows) -> Pool:
    pool = rows.edit(POOL, POOL_KEY)
    if pool is None:
        pool = Pool({}, {})
        rows.put(POOL, POOL_KEY, pool)
    return pool


def grown(before: dict[str, int], amounts: dict[str, int], times: int) -> dict[str, int]:
    """The amounts with others added so many times."""
    found = dict(before)
    for name, amount in amounts.items():
        if amount:
            found[name] = found.get(name, 0) + times * amount
    return found


def _offer(rows: Rows, node: Node, times: int) -> None:
    """A node is there to be used from now on, or is not any more."""
    pool = _pool(rows)
    pool.capacity = grown(pool.capacity, amounts_of(node.capacity), times)


def _turn(rows: Rows, record: Record, name: str, state: NodeState, reason: str) -> Node | None:
    node = rows.edit(NODES, name)
    if node is not None:
        if (node.state == "lost") != (state == "lost"):
            _offer(rows, node, -1 if state == "lost" else 1)
        node.state = state
        node.reason = reason
        node.evict = False
        node.since = record.at
        node.position = record.position
    return node


PROJECTION = Projection(
    "nodes",
    2,
    (NODES, SEATS, POOL),
    {
        NodeRegistered: _registered,
        NodeCordoned: _cordoned,
        NodeUncordoned: _uncordoned,
        NodeDraining: _draining,
        NodeDrained: _drained,
        NodeLost: _lost,
        NodeReturned: _returned,
        NodeRemoved: _removed,
        AllocationPlaced: _placed,
        AllocationEnded: _ended,
    },
)
