"""Nodes: what they have, what is in use, and in which state they are since when and why."""

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
from logyard_domain.resources import Capacity, Request
from logyard_projections.fold import Projection
from logyard_projections.rows import Rows
from logyard_projections.shapes import SHAPES, shape_key
from logyard_projections.stages import ALLOCATIONS, Place, place_of
from logyard_projections.tables import Table

NodeState = Literal["up", "cordoned", "draining", "drained", "lost"]


class Node(msgspec.Struct, array_like=True, kw_only=True, gc=False):
    """One node. `sole` counts the exclusive allocations on it, `running` all that hold room.

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
    sole: int = 0
    placed_position: int = 0


NODES = Table("nodes", Node, columns={"state": str}, indexes=[("state",)])


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
    node.capacity = event.capacity
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
    rows.delete(NODES, event.node)


def _placed(rows: Rows, record: Record, event: AllocationPlaced) -> None:
    _use(rows, record, place_of(event.allocation), 1)


def _ended(rows: Rows, record: Record, event: AllocationEnded) -> None:
    _use(rows, record, place_of(event.allocation), -1)


def _use(rows: Rows, record: Record, place: Place, change: int) -> None:
    allocation = rows.get(ALLOCATIONS, place.key)
    if allocation is None:
        return
    node, shape = rows.edit(NODES, allocation.node), rows.get(SHAPES, shape_key(allocation.shape))
    if node is None or shape is None:
        return
    node.placed_position = record.position
    if allocation.behind or (change < 0 and allocation.follower):
        # It queued and held nothing, or the one behind it has taken over what it held.
        return
    node.running += change
    request = shape.request
    node.cores_used += change * request.cores
    node.memory_used += change * request.memory
    if request.devices or request.exclusive != "none":
        _occupy(node, request, change)


def _occupy(node: Node, request: Request, change: int) -> None:
    if request.devices:
        used = dict(node.devices_used)
        for device, count in request.devices:
            used[device] = used.get(device, 0) + change * count
        node.devices_used = used
    if request.exclusive != "none":
        node.sole += change


def _turn(rows: Rows, record: Record, name: str, state: NodeState, reason: str) -> Node | None:
    node = rows.edit(NODES, name)
    if node is not None:
        node.state = state
        node.reason = reason
        node.evict = False
        node.since = record.at
        node.position = record.position
    return node


PROJECTION = Projection(
    "nodes",
    1,
    (NODES,),
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
