"""Preemption: who may be evicted for whom, and the fewest that have to be.

A victim runs, is preemptible, has run for `minRuntime`, has a priority lower by `priorityGap`, and
belongs to a group that the preemptor's group may preempt; and nothing is evicted while the nodes
are used less than `utilizationThreshold`. The single victim of lowest priority that makes room,
then of the shortest run, is taken; else the smallest prefix in that order that makes room, from
which every one that is not needed is given back, if no more are left than a tick may evict.
"""

import sys
from collections.abc import Iterator
from typing import NamedTuple

from logyard_domain.resources import Request
from logyard_domain.rules.priorities import priority_of
from logyard_domain.world import Allocation, Shape, Stage, World
from logyard_engine.scheduler.leaving import Leaving
from logyard_engine.scheduler.memory import Memory
from logyard_engine.scheduler.seats import Seats


def gap(priority: float, victim: float) -> float:
    """How much higher a priority is. Endless ones, as over a victim without a finite priority, are
    recorded as the largest number there is: JSON has no other.
    """
    return min(priority - victim, sys.float_info.max)


class Eviction(NamedTuple):
    """Who leaves, with how much lower a priority each, and where the preemptor then fits."""

    victims: list[tuple[Allocation, float]]
    seats: Seats


class Evictions:
    """What one tick may evict."""

    def __init__(self, world: World, memory: Memory, now: int) -> None:
        self._world = world
        self._memory = memory
        self._now = now
        config = world.config
        self._enabled = bool(config["scheduler.preemption.enabled"])
        self._min_run = int(config["scheduler.preemption.minRuntime"])
        self._gap = float(config["scheduler.preemption.priorityGap"])
        self._threshold = float(config["scheduler.preemption.utilizationThreshold"])
        self._several = bool(config["scheduler.preemption.multiVictim.enabled"])
        self._left = int(config["scheduler.preemption.maxEvictionsPerTick"])
        if not self._several:
            self._left = min(self._left, 1) if self._enabled else 0
        self._ranks: list[tuple[float, int, str, Allocation]] | None = None

    def plan(self, stage: Stage, shape: Shape) -> Eviction | None:
        """Whom to evict for the next rank of a stage that does not fit; None for nobody."""
        if not self._enabled:
            return None
        if self._left <= 0:
            self._miss("limit")
            return None
        if self._used(shape.request) < self._threshold:
            self._miss("utilization")
            return None
        priority = priority_of(self._world, self._world.priority, stage, self._now)
        candidates = list(self._candidates(stage, priority))
        if not candidates:
            return None
        leaving = Leaving(self._world, self._memory, shape)
        victims = self._chosen(leaving, candidates)
        if victims is None:
            self._miss("room")
            return None
        self._left -= len(victims)
        seats = leaving.seats(victims)
        values = {a.id: value for value, _, _, a in self._running()}
        return Eviction([(one, gap(priority, values[one.id])) for one in victims], seats)

    def _candidates(self, stage: Stage, priority: float) -> Iterator[Allocation]:
        """Running work that the rules allow to be evicted, the first to go first."""
        workflow = stage.workflow
        group = self._world.groups.get((workflow.organization, workflow.group))
        allowed = group.preempts if group is not None else ()
        missed = "preemptible"
        found = False
        for value, ran, _, allocation in self._running():
            owner = allocation.stage.workflow
            # Equal priority never evicts; between two that have no finite one there is no gap.
            if not (value < priority and priority - value >= self._gap):
                missed = "gap"
                break
            if owner.organization != workflow.organization or owner.group not in allowed:
                missed = "permission"
            elif ran < self._min_run:
                missed = "minRuntime"
            elif allocation.status != "stopping":
                found = True
                yield allocation
        if not found:
            self._miss(missed)

    def _running(self) -> list[tuple[float, int, str, Allocation]]:
        """Preemptible work that holds room: priority, run time, id; lowest priority first."""
        if self._ranks is None:
            world = self._world
            held = [
                one
                for one in world.allocations.values()
                if one.since
                and one.follower is None
                and world.shapes[one.stage.shape].request.preemptible
            ]
            stages = list(dict.fromkeys(one.stage for one in held))
            values = self._memory.lanes.priorities_of(world, stages, self._now)
            by_stage = dict(zip(stages, values.tolist(), strict=True))
            self._ranks = sorted(
                (by_stage[one.stage], self._now - one.since, one.id, one) for one in held
            )
        return self._ranks

    def _chosen(self, leaving: Leaving, candidates: list[Allocation]) -> list[Allocation] | None:
        """Victims that make enough room, and are those that leave then; None where none do."""
        for one in candidates:
            leaving.add(one)
            if leaving.enough:
                return [one]
            leaving.take_back(one)
        if not self._several:
            return None
        prefix: list[Allocation] = []
        for one in candidates:
            prefix.append(one)
            leaving.add(one)
            if leaving.enough:
                break
        else:
            return None
        needed: list[Allocation] = []
        # Those of highest priority are given back first.
        for one in reversed(prefix):
            leaving.take_back(one)
            if not leaving.enough:
                leaving.add(one)
                needed.append(one)
        return needed[::-1] if len(needed) <= self._left else None

    def _used(self, request: Request) -> float:
        """The share in use of what the request asks for, over the nodes that are up: that of the
        resource which is used most.
        """
        cores = memory = 0
        free_cores = free_memory = 0
        devices = dict.fromkeys((name for name, _ in request.devices), 0)
        free_devices = dict(devices)
        for node in self._world.nodes.values():
            if node.status == "up":
                cores += node.capacity.cores
                free_cores += max(0, node.free_cores)
                memory += node.capacity.memory
                free_memory += max(0, node.free_memory)
                for name in devices:
                    devices[name] += node.capacity.devices.get(name, 0)
                    free_devices[name] += max(0, node.free_devices.get(name, 0))
        shares = [0.0]
        if request.cores and cores:
            shares.append(1 - free_cores / cores)
        if request.memory and memory:
            shares.append(1 - free_memory / memory)
        shares += [1 - free_devices[name] / has for name, has in devices.items() if has]
        return max(shares)

    def _miss(self, rule: str) -> None:
        self._memory.misses[rule] += 1
