"""Nodes come, are closed and opened, are lost and return."""

from logyard_domain.events import (
    NodeCordoned,
    NodeDrained,
    NodeDraining,
    NodeLost,
    NodeRegistered,
    NodeRemoved,
    NodeReturned,
    NodeUncordoned,
)
from logyard_engine.audit.findings import Ledger
from logyard_engine.audit.fleet import FOLLOWS, Node
from logyard_engine.audit.state import State

Change = NodeCordoned | NodeUncordoned | NodeDraining | NodeDrained | NodeLost | NodeReturned


class Nodes:
    """Events of nodes."""

    def __init__(self, state: State, ledger: Ledger) -> None:
        self._state = state
        self._ledger = ledger

    def registered(self, event: NodeRegistered) -> None:
        """It joins, or announces itself again."""
        self._ledger.checked["I3"] += 1
        fleet = self._state.fleet
        node = fleet.nodes.get(event.node)
        if node is None:
            node = fleet.add(event.node)
        elif node.incarnation != event.incarnation:
            self._doom(node)
        node.describe(event)
        self._changed(node)

    def changed(self, event: Change) -> None:
        """It goes into another state."""
        self._ledger.checked["I3"] += 1
        state = self._state
        node = state.fleet.nodes.get(event.node)
        tag = str(event.__struct_config__.tag)
        sources, target = FOLLOWS[tag]
        if node is None:
            self._ledger.breach("I3", event.node, f"{tag}: there is no such node")
            return
        if node.status not in sources:
            self._ledger.breach("I3", event.node, f"{tag}: it is {node.status}")
        if target == "drained" and not node.empty:
            self._ledger.breach(
                "I3",
                event.node,
                f"it is drained, though {len(node.holders) + node.queued} allocations are there",
            )
        if target == "lost":
            node.before = node.status
            self._doom(node)
        node.status = target
        self._changed(node)
        if target == "draining":
            state.turn.nodes[node.name] = None

    def removed(self, event: NodeRemoved) -> None:
        """It is gone for good."""
        self._ledger.checked["I3"] += 1
        node = self._state.fleet.nodes.pop(event.node, None)
        if node is None:
            self._ledger.breach("I3", event.node, "it was removed, and there is no such node")
            return
        if not node.empty:
            self._ledger.breach("I3", event.node, "it was removed, though something ran there")
        self._changed(node)

    def conclude(self) -> None:
        """What has to follow did follow."""
        turn = self._state.turn
        for attempt in turn.doomed:
            if self._state.attempts.get(attempt.id) is attempt:
                self._ledger.breach(
                    "I3", attempt.id, "its node was lost or started anew, and it did not end"
                )
        for name in turn.nodes:
            node = self._state.fleet.nodes.get(name)
            if node is not None and node.status == "draining" and node.empty:
                self._ledger.breach("I3", name, "it drains and is empty, and was not drained")

    def account(self) -> None:
        """At the end: what is free on each node is what its holders leave."""
        for node in self._state.fleet.nodes.values():
            self._ledger.checked["I11"] += 1
            free = (node.free_cores, node.free_memory, dict(node.free_devices), node.sole)
            node.recount()
            again = (node.free_cores, node.free_memory, node.free_devices, node.sole)
            if free[:2] != again[:2] or free[3] != again[3]:
                self._ledger.breach(
                    "I11", node.name, f"{free[0]} cores seem free, and {again[0]} are"
                )

    def _doom(self, node: Node) -> None:
        """What is there ends with it in this turn."""
        self._state.turn.doomed += [
            one
            for one in self._state.attempts.values()
            if any(where is node for where, _ in one.chunks)
        ]

    def _changed(self, node: Node) -> None:
        state = self._state
        state.fleet.version += 1
        state.fleet.changed_at = state.position
        state.dirty = True
        for promise in state.promises.values():
            promise.fresh = True
