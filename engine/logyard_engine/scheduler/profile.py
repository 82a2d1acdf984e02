"""What will be free when: what runs on a node gives its room back at known instants at the latest.

`Profile` keeps this from tick to tick, and forgets only the nodes on which something changed.
"""

from typing import NamedTuple

from logyard_domain.resources import Request
from logyard_domain.world import Node, World
from logyard_engine.scheduler.estimates import until
from logyard_engine.scheduler.fit import Room

Gains = list[tuple[int, int]]
"""Instants at which the number of chunks that fit on a node rises, and how many fit from then."""


class Release(NamedTuple):
    """At `at`, an allocation with this request gives `chunks` of it back."""

    at: int
    request: Request
    chunks: int


class Profile:
    """Releases and gains of nodes, remembered. Always disposable."""

    def __init__(self) -> None:
        self._releases: dict[str, list[Release]] = {}
        self._gains: dict[str, tuple[Request, Gains]] = {}

    def forget(self, node: str) -> None:
        """Something began, ended or is being stopped there."""
        self._releases.pop(node, None)
        self._gains.pop(node, None)

    def clear(self) -> None:
        """Anything may have changed."""
        self._releases.clear()
        self._gains.clear()

    def releases(self, world: World, node: Node, now: int) -> list[Release]:
        """What gives room back on the node, in order."""
        found = self._releases.get(node.name)
        # What is overdue by now is estimated anew.
        if found is None or (found and found[0].at <= now):
            self._gains.pop(node.name, None)
            found, steady = _releases(world, node, now)
            if steady:
                self._releases[node.name] = found
            else:
                self._releases.pop(node.name, None)
        return found

    def gains(self, world: World, request: Request, node: Node, now: int) -> Gains:
        """When how many chunks of the request fit on an eligible node, from now on."""
        releases = self.releases(world, node, now)
        known = self._gains.get(node.name)
        if known is not None and known[0] is request:
            return known[1]
        room = Room(node)
        count = room.chunks(request)
        found = [(0, count)] if count else []
        for one in releases:
            room.add(one.request, one.chunks)
            more = room.chunks(request)
            if more > count:
                count = more
                if found and found[-1][0] == one.at:
                    found.pop()
                found.append((one.at, count))
        if node.name in self._releases:
            self._gains[node.name] = (request, found)
        return found

    def room_at(self, world: World, node: Node, at: int, now: int) -> Room:
        """What is free on the node at an instant, if nothing more begins."""
        room = Room(node)
        for one in self.releases(world, node, now):
            if one.at > at:
                break
            room.add(one.request, one.chunks)
        return room


def _releases(world: World, node: Node, now: int) -> tuple[list[Release], bool]:
    """In order, and whether they are the same at a later instant (nothing is overdue)."""
    found: list[Release] = []
    steady = True
    for name in node.running:
        allocation = world.allocations[name]
        if allocation.behind is not None:
            continue
        at = until(world, allocation, now)
        # Victims of a preemptor may be late elsewhere, which nothing tells here.
        steady = steady and not allocation.after and at == until(world, allocation, 0)
        request = world.shapes[allocation.stage.shape].request
        chunks = sum(count for where, count in allocation.chunks if where is node)
        found.append(Release(at, request, chunks))
    found.sort(key=lambda one: one.at)
    return found, steady
