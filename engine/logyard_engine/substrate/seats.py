"""Which CPUs and which devices an allocation may use on this node."""

from collections import Counter
from collections.abc import Mapping

import msgspec


class Seat(msgspec.Struct, frozen=True, array_like=True):
    """What one allocation holds: CPU numbers (none: it is not bound) and device indices by name."""

    cpus: tuple[int, ...] = ()
    devices: dict[str, tuple[int, ...]] = {}


class Seats:
    """The free CPUs and devices of a node.

    `groups` are the CPU numbers, those that share a socket and a memory in one group. Without
    groups nothing is bound, as on a node that announces more cores than it has.
    """

    def __init__(self, groups: tuple[tuple[int, ...], ...], devices: Mapping[str, int]) -> None:
        self._free = [sorted(group) for group in groups]
        self._home = {cpu: at for at, group in enumerate(groups) for cpu in group}
        self._devices = {name: list(range(count)) for name, count in devices.items()}
        self._users: Counter[tuple[object, ...]] = Counter()
        """How many hold each seat: more than one where they take turns."""

    def take(self, cores: int, devices: Mapping[str, int]) -> Seat:
        """Seats for so many whole cores and devices.

        The scheduler gives out no more than there is; should the cores not be free all the same,
        the work runs unbound, and on the devices that are left.
        """
        held: dict[str, tuple[int, ...]] = {}
        for name, count in devices.items():
            free = self._devices.get(name, [])
            held[name] = tuple(free[:count])
            del free[:count]
        return self.share(Seat(self._cpus(cores), held))

    def share(self, seat: Seat) -> Seat:
        """The same seat for one more, who takes turns with those that hold it."""
        self._users[_key(seat)] += 1
        return seat

    def claim(self, seat: Seat) -> None:
        """Take exactly these: they are held by work that already runs."""
        for cpu in seat.cpus:
            if cpu in self._home and cpu in self._free[self._home[cpu]]:
                self._free[self._home[cpu]].remove(cpu)
        for name, indices in seat.devices.items():
            free = self._devices.get(name, [])
            free[:] = [index for index in free if index not in indices]
        self.share(seat)

    def give_back(self, seat: Seat) -> None:
        """Free a seat again, unless others hold it too."""
        key = _key(seat)
        self._users[key] -= 1
        if self._users[key] > 0:
            return
        del self._users[key]
        for cpu in seat.cpus:
            if cpu in self._home:
                group = self._free[self._home[cpu]]
                group.append(cpu)
                group.sort()
        for name, indices in seat.devices.items():
            if name in self._devices:
                self._devices[name] = sorted({*self._devices[name], *indices})

    def _cpus(self, cores: int) -> tuple[int, ...]:
        if sum(map(len, self._free)) < cores:
            return ()
        # The smallest group that holds them all; otherwise the fullest groups first.
        fitting = [group for group in self._free if len(group) >= cores]
        order = [min(fitting, key=len)] if fitting else sorted(self._free, key=len, reverse=True)
        taken: list[int] = []
        for group in order:
            count = cores - len(taken)
            taken += group[:count]
            del group[:count]
        return tuple(sorted(taken))


def _key(seat: Seat) -> tuple[object, ...]:
    return (seat.cpus, *seat.devices.items()) if seat.devices else seat.cpus
