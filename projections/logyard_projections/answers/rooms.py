"""Which of the things that a request asks for is scarce, from one look at the nodes."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from logyard_domain.resources import Request
from logyard_projections.answers.words import device, number_of, size, wants
from logyard_projections.nodes import SEATS, Node, misfit_of, seat_key
from logyard_projections.stages import ALLOCATIONS, Allocation
from logyard_projections.view import View


class Alike:
    """Nodes that are equal in what they have: one of them, and all of them with what is free."""

    __slots__ = ("nodes", "sample")

    def __init__(self, sample: Node) -> None:
        self.sample = sample
        self.nodes: list[tuple[Node, Free]] = []


class _Open:
    """What is free on the nodes of a kind that are up and not taken whole."""

    __slots__ = ("cores", "devices", "empty", "free", "memory")

    def __init__(self, nodes: Iterable[tuple[Node, "Free"]]) -> None:
        self.free = [free for node, free in nodes if node.state == "up" and not node.sole]
        self.free.sort(key=_cores, reverse=True)
        self.cores = self.free[0].cores if self.free else 0
        self.memory = max([one.memory for one in self.free], default=0)
        self.empty = any(not one.busy for one in self.free)
        self.devices: dict[str, int] = {}
        for one in self.free:
            for name, count in one.devices.items():
                if count > self.devices.get(name, 0):
                    self.devices[name] = count


class Free(NamedTuple):
    """What is free on a node; nothing below zero."""

    cores: int
    memory: int
    devices: dict[str, int]
    busy: int


class Rooms:
    """The nodes, by what they have in common. One look for any number of requests."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = 0
        """All nodes, whatever their state."""
        self.kinds: dict[bytes, Alike] = {}
        self._open: dict[bytes, _Open] = {}
        self._texts: dict[Request, str] = {}
        self._fits: dict[Request, int] = {}
        encode = msgspec.msgpack.encode
        for node in nodes:
            self.nodes += 1
            key = encode((node.capacity, node.annotations, node.features, node.storage))
            alike = self.kinds.get(key)
            if alike is None:
                alike = self.kinds[key] = Alike(node)
            alike.nodes.append((node, free_on(node)))

    def devices(self) -> dict[str, int]:
        """All devices, and on how many nodes that are up at least one of them is free."""
        found: dict[str, int] = {}
        for key, alike in self.kinds.items():
            for name in alike.sample.capacity.devices:
                free = [one.devices.get(name, 0) > 0 for one in self._opened(key).free]
                found[name] = found.get(name, 0) + sum(free)
        return found

    def used_share(self, request: Request) -> float:
        """The share in use of what the request asks for, over the nodes that are up: that of the
        resource which is used most.
        """
        asked = [name for name, _ in request.devices]
        total, left = dict.fromkeys(asked, 0), dict.fromkeys(asked, 0)
        cores = memory = free_cores = free_memory = 0
        for alike in self.kinds.values():
            for node, free in alike.nodes:
                if node.state == "up":
                    cores, free_cores = cores + node.capacity.cores, free_cores + free.cores
                    memory, free_memory = memory + node.capacity.memory, free_memory + free.memory
                    for name in asked:
                        total[name] += node.capacity.devices.get(name, 0)
                        left[name] += free.devices.get(name, 0)
        shares = [1 - left[name] / has for name, has in total.items() if has]
        if request.cores and cores:
            shares.append(1 - free_cores / cores)
        if request.memory and memory:
            shares.append(1 - free_memory / memory)
        return max(shares, default=0.0)

    def scarce(self, request: Request) -> str:
        """What there is too little of for the request: ``no gpu free``."""
        text = self._texts.get(request)
        if text is None:
            text = self._texts[request] = self._scarce(request)
        return text

    def free(self, request: Request) -> int:
        """How many chunks of the request fit now, in all; at most as many as are asked for."""
        count = self._fits.get(request)
        if count is None:
            count = self._fits[request] = self._free(request)
        return count

    def _free(self, request: Request) -> int:
        count = 0
        for one in self._eligible(request):
            for free in one.free:
                # Those with most cores come first.
                if free.cores < request.cores:
                    break
                count += chunks_in(free, request, request.nodes - count)
                if count >= request.nodes:
                    return request.nodes
        return count

    def _opened(self, key: bytes) -> _Open:
        found = self._open.get(key)
        if found is None:
            found = self._open[key] = _Open(self.kinds[key].nodes)
        return found

    def _eligible(self, request: Request) -> list[_Open]:
        return [
            self._opened(key)
            for key, alike in self.kinds.items()
            if not misfit_of(alike.sample, request)
        ]

    def _scarce(self, request: Request) -> str:
        if request.nodes > 1:
            chunk = wants(msgspec.structs.replace(request, nodes=1))
            fits = self.free(request)
            return f"room for {fits:,} of {number_of(request.nodes, 'chunk')} of {chunk}"
        found = self._eligible(request)
        if request.exclusive != "none" and not any(one.empty for one in found):
            return "no node is empty"
        lacking: list[str] = []
        for name, count in request.devices:
            most = max((one.devices.get(name, 0) for one in found), default=0)
            if most < count:
                lacking.append(device(name) if not most else f"{count} {device(name)}")
        cores = max((one.cores for one in found), default=0)
        if cores < request.cores:
            lacking.append(f"{request.cores} cpu" if cores else "cpu")
        memory = max((one.memory for one in found), default=0)
        if memory < request.memory:
            lacking.append(size(request.memory) if memory else "memory")
        if not lacking:
            return f"no node has {wants(request)} free at once"
        none = [one for one in lacking if not one[0].isdigit()]
        if none:
            return " and ".join(f"no {one}" for one in none[:2]) + " free"
        return f"no node has {' and '.join(lacking[:2])} free"


def _cores(free: Free) -> int:
    return free.cores


def on_node(view: View, node: str, most: int) -> Iterator[tuple[Allocation, int]]:
    """Allocations that hold room of a node, each with how many chunks there."""
    for one in view.scan(ALLOCATIONS, where={"on": node}, limit=most).rows:
        yield one, 1
    seats = view.scan(SEATS, prefix=seat_key(node, ""), limit=most).rows
    seated = view.get_many(ALLOCATIONS, (seat.allocation for seat in seats))
    for seat in seats:
        found = seated.get(seat.allocation)
        if found is not None and not found.behind:
            yield found, seat.chunks


def free_on(node: Node) -> Free:
    """What is free on a node; nothing below zero where room was given away that is still used."""
    capacity, used = node.capacity, node.devices_used
    devices = capacity.devices
    if devices and used:
        devices = {name: max(count - used.get(name, 0), 0) for name, count in devices.items()}
    cores, memory = capacity.cores - node.cores_used, capacity.memory - node.memory_used
    return Free(cores if cores > 0 else 0, memory if memory > 0 else 0, devices, node.busy)


def chunks_in(free: Free, request: Request, most: int) -> int:
    """How many chunks of a request fit into what is free on an eligible node, up to `most`."""
    if request.exclusive != "none" and free.busy:
        return 0
    if request.cores:
        most = min(most, free.cores // request.cores)
    if request.memory and most:
        most = min(most, free.memory // request.memory)
    for name, count in request.devices:
        most = min(most, free.devices.get(name, 0) // count)
    return most
