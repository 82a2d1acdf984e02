"""How much fits on one node: now, at a later instant, or without some of those who hold it."""

from collections.abc import Collection

from logyard_domain.resources import Request, asks_nothing
from logyard_engine.audit.ends import expected
from logyard_engine.audit.fleet import MANY, Node, Release
from logyard_engine.audit.work import Attempt

Steps = list[tuple[int, int]]
"""Instants at which more chunks fit than before, and how many."""


class Room:
    """What is free on a node at some instant."""

    __slots__ = ("busy", "cores", "devices", "memory", "sole")

    def __init__(self, node: Node, without: Collection[Attempt] = ()) -> None:
        self.cores = node.free_cores
        self.memory = node.free_memory
        self.devices = dict(node.free_devices)
        self.sole = node.sole
        self.busy = node.busy
        for attempt in without:
            chunks = node.holders.get(attempt)
            if chunks:
                self.give(attempt.request, chunks)

    def give(self, request: Request, chunks: int) -> None:
        """One who holds so many chunks leaves."""
        self.cores += chunks * request.cores
        self.memory += chunks * request.memory
        for device, count in request.devices:
            self.devices[device] = self.devices.get(device, 0) + chunks * count
        if request.exclusive != "none":
            self.sole -= 1
        self.busy -= not asks_nothing(request)

    def take(self, request: Request, chunks: int) -> None:
        """One comes who holds so many chunks."""
        self.cores -= chunks * request.cores
        self.memory -= chunks * request.memory
        for device, count in request.devices:
            self.devices[device] = self.devices.get(device, 0) - chunks * count
        if request.exclusive != "none":
            self.sole += 1
        self.busy += not asks_nothing(request)

    def chunks(self, request: Request) -> int:
        """How many chunks fit."""
        alone = request.exclusive != "none"
        if self.sole or (alone and self.busy):
            return 0
        count = MANY
        if request.cores:
            count = self.cores // request.cores
        if request.memory:
            count = min(count, self.memory // request.memory)
        for device, wanted in request.devices:
            count = min(count, self.devices.get(device, 0) // wanted)
        return max(0, count)


def chunks_now(node: Node, request: Request, asks: bool) -> int:
    """How many chunks fit on an eligible node at present; staging asks for nothing and fits."""
    if not asks:
        return MANY
    if node.sole or (request.exclusive != "none" and node.busy):
        return 0
    count = MANY
    if request.cores:
        count = node.free_cores // request.cores
    if request.memory:
        count = min(count, node.free_memory // request.memory)
    if request.devices:
        free = node.free_devices
        for device, wanted in request.devices:
            count = min(count, free.get(device, 0) // wanted)
    return max(0, count)


def chunks_empty(node: Node, request: Request, asks: bool) -> int:
    """How many chunks would fit if nothing ran there."""
    if not asks:
        return MANY
    count = MANY
    if request.cores:
        count = node.cores // request.cores
    if request.memory:
        count = min(count, node.memory // request.memory)
    for device, wanted in request.devices:
        count = min(count, node.devices.get(device, 0) // wanted)
    return count


def releases_of(
    node: Node, grace_ms: int, now: int, without: Collection[Attempt] = ()
) -> list[Release]:
    """What gives room back on the node, the earliest first."""
    if node.releases is not None and not without:
        return node.releases
    found = [
        (expected(one, grace_ms, now), one.request, chunks)
        for one, chunks in node.holders.items()
        if one not in without
    ]
    found.sort(key=lambda release: release[0])
    if not without:
        node.releases = found
    return found


def room_at(node: Node, at: int, grace_ms: int, now: int) -> Room:
    """What is free on the node at an instant if nothing more begins."""
    room = Room(node)
    for end, request, chunks in releases_of(node, grace_ms, now):
        if end > at:
            break
        room.give(request, chunks)
    return room


def steps_of(
    node: Node, request: Request, grace_ms: int, now: int, without: Collection[Attempt] = ()
) -> Steps:
    """When how many chunks fit there; instant 0 stands for now."""
    room = Room(node, without)
    count = room.chunks(request)
    found: Steps = [(0, count)] if count else []
    for end, released, chunks in releases_of(node, grace_ms, now, without):
        room.give(released, chunks)
        more = room.chunks(request)
        if more > count:
            count = more
            if found and found[-1][0] == end:
                found.pop()
            found.append((end, count))
    return found
