"""Nodes: how they come, are closed and opened, are lost and return."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from logyard_domain.commands import (
    CordonNode,
    DeclareLost,
    DrainNode,
    Refused,
    RegisterNode,
    RemoveNode,
    UncordonNode,
)
from logyard_domain.events import (
    AllocationStopping,
    AnyEvent,
    NodeCordoned,
    NodeDrained,
    NodeDraining,
    NodeLost,
    NodeRegistered,
    NodeRemoved,
    NodeReturned,
    NodeUncordoned,
)
from logyard_domain.rules.attempts import lost
from logyard_domain.rules.room import recount
from logyard_domain.world import Node, NodeStatus, World


def register_node(world: World, command: RegisterNode, now: int) -> list[AnyEvent]:
    """Facts are recorded when they are new; what an older incarnation ran is lost."""
    if not command.node or any(c in command.node for c in "/# \t\n"):
        raise Refused(
            f"{command.node!r} is no name for a node; use letters, digits, dots and dashes",
            "invalid",
        )
    if command.capacity.cores < 0 or command.capacity.memory < 0:
        raise Refused(f"node {command.node}: a capacity cannot be negative", "invalid")
    registered = NodeRegistered(**msgspec.structs.asdict(command))
    node = world.nodes.get(command.node)
    if node is None:
        return [registered]
    events: list[AnyEvent] = []
    if node.status == "lost":
        events += _returning(node)
    if registered != registration(node):
        events.append(registered)
    if command.incarnation != node.incarnation:
        for allocation in list(node.running):
            why = f"node {node.name} started anew"
            events += lost(world, world.allocations[allocation], now, why)
    return events


def _returning(node: Node) -> list[AnyEvent]:
    """Back, and closed again where somebody had closed it before it was lost."""
    why = "as before it was lost"
    if node.before == "cordoned":
        return [NodeReturned(node=node.name), NodeCordoned(node=node.name, reason=why)]
    if node.before in ("draining", "drained"):
        return [NodeReturned(node=node.name), NodeDraining(node=node.name, reason=why)]
    return [NodeReturned(node=node.name)]


def cordon_node(world: World, command: CordonNode) -> list[AnyEvent]:
    """Close a node for new placements."""
    node = find(world, command.node)
    if node.status != "up":
        return []
    return [NodeCordoned(node=node.name, reason=command.reason)]


def uncordon_node(world: World, command: UncordonNode) -> list[AnyEvent]:
    """Open a node again."""
    node = find(world, command.node)
    if node.status == "lost":
        raise Refused(f"node {node.name} is lost; it opens by itself when it is heard again")
    return [] if node.status == "up" else [NodeUncordoned(node=node.name)]


def drain_node(world: World, command: DrainNode) -> list[AnyEvent]:
    """Close a node and empty it: by waiting, or by requeueing what runs there."""
    node = find(world, command.node)
    if node.status == "lost":
        raise Refused(f"node {node.name} is lost: nothing runs there that is known")
    events: list[AnyEvent] = []
    if node.status in ("up", "cordoned"):
        events.append(NodeDraining(node=node.name, reason=command.reason, evict=command.evict))
    if command.evict:
        events += [
            AllocationStopping(allocation=allocation, reason="drained")
            for allocation in node.running
            if world.allocations[allocation].status != "stopping"
        ]
    return events


def remove_node(world: World, command: RemoveNode) -> list[AnyEvent]:
    """Forget a node on which nothing runs."""
    node = find(world, command.node)
    if node.running:
        raise Refused(
            f"node {node.name} runs {len(node.running)} allocations; drain it first: "
            f"logyard node drain {node.name}"
        )
    return [NodeRemoved(node=node.name)]


def declare_lost(world: World, command: DeclareLost, now: int) -> list[AnyEvent]:
    """What ran on a node that was silent for too long is requeued."""
    node = world.nodes.get(command.node)
    if node is None or node.status == "lost":
        return []
    events: list[AnyEvent] = [NodeLost(node=node.name, silent_ms=command.silent_ms)]
    for allocation in list(node.running):
        events += lost(world, world.allocations[allocation], now, f"node {node.name} was lost")
    return events


def settle_node(world: World, name: str) -> Iterator[AnyEvent]:
    """What follows of itself for a node that something happened to."""
    node = world.nodes.get(name)
    if node is not None and node.status == "draining" and not node.running:
        yield NodeDrained(node=name)


def find(world: World, name: str) -> Node:
    """The node of that name, or a refusal that says which there are."""
    node = world.nodes.get(name)
    if node is None:
        known = ", ".join(list(world.nodes)[:10]) or "none yet"
        raise Refused(f"no node is called {name!r}; there are: {known}", "missing")
    return node


def registration(node: Node) -> NodeRegistered:
    """The announcement that a node stands for."""
    return NodeRegistered(
        node=node.name,
        capacity=node.capacity,
        incarnation=node.incarnation,
        annotations=node.annotations,
        storage=node.storage,
        features=node.features,
        limits=node.limits,
        host=node.host,
        version=node.version,
    )


def _registered(world: World, event: NodeRegistered) -> None:
    node = world.nodes.get(event.node)
    if node is None:
        node = world.nodes[event.node] = Node(event.node)
        world.node_count += 1
        node.number = world.node_count
    node.capacity = event.capacity
    node.incarnation = event.incarnation
    node.annotations = event.annotations
    node.storage = event.storage
    node.features = event.features
    node.limits = event.limits
    node.host = event.host
    node.version = event.version
    recount(world, node)
    _changed(world, node)


def _cordoned(world: World, event: NodeCordoned) -> None:
    _status(world, event.node, "cordoned")


def _uncordoned(world: World, event: NodeUncordoned) -> None:
    _status(world, event.node, "up")


def _draining(world: World, event: NodeDraining) -> None:
    _status(world, event.node, "draining")


def _drained(world: World, event: NodeDrained) -> None:
    _status(world, event.node, "drained")


def _lost(world: World, event: NodeLost) -> None:
    node = world.nodes[event.node]
    node.before = node.status
    _status(world, event.node, "lost")


def _returned(world: World, event: NodeReturned) -> None:
    _status(world, event.node, "up")


def _removed(world: World, event: NodeRemoved) -> None:
    del world.nodes[event.node]
    world.freed.pop(event.node, None)
    world.stirred.pop(event.node, None)
    world.fleet += 1
    world.fleet_at = world.position
    # What lay on its storage alone is gone with it.
    kept = {node.storage for node in world.nodes.values()}
    world.cleanups = {w: s for w, s in world.cleanups.items() if s in kept}


def _status(world: World, name: str, status: NodeStatus) -> None:
    node = world.nodes[name]
    node.status = status
    _changed(world, node)


def _changed(world: World, node: Node) -> None:
    world.fleet += 1
    world.fleet_at = world.position
    world.freed[node.name] = None
    world.stirred[node.name] = None
    world.touched_nodes[node.name] = None


APPLY: dict[type, Callable[[World, Any], None]] = {
    NodeRegistered: _registered,
    NodeCordoned: _cordoned,
    NodeUncordoned: _uncordoned,
    NodeDraining: _draining,
    NodeDrained: _drained,
    NodeLost: _lost,
    NodeReturned: _returned,
    NodeRemoved: _removed,
}
