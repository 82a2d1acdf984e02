"""Nodes in virtual time: they take the same orders as real ones and report the same way."""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Literal

import msgspec

from logyard_domain.commands import Began, Ended, RegisterNode, Report
from logyard_domain.resources import MULTINODE, Capacity
from logyard_domain.work import DropVolumes, Order, Start, Stop, Sync, Task


class Run(msgspec.Struct, frozen=True):
    """How an attempt goes: it lasts `ms` and ends with `exit_code`; `stubborn` ignores SIGTERM."""

    ms: int = 1_000
    exit_code: int = 0
    stubborn: bool = False


Script = Callable[[str], Run]
"""From an allocation's name to how it goes."""


class SimulatedNode:
    """One node. It survives crashes of the server, as the real keeper does."""

    def __init__(self, facts: RegisterNode, script: Script) -> None:
        self.facts = facts
        self.script = script
        self.runs: dict[str, int] = {}
        """How often each allocation was started here; more than once is a fault of the engine."""
        self._tasks: dict[str, Task] = {}
        self._ends: list[tuple[int, str]] = []
        self._running: dict[str, tuple[int, Run]] = {}
        self._began: dict[str, Began] = {}
        self._ended: dict[str, Ended] = {}
        self._dropped: dict[str, None] = {}
        self._known: set[str] = set()
        self._limited: dict[str, None] = {}
        """What runs and is going to be ended at its time limit."""
        self._queued: dict[str, tuple[str, Start]] = {}
        """What waits on this node -> the one that it waits behind, and its order."""

    def take(self, orders: Sequence[Order], now: int) -> None:
        """Obey."""
        for order in orders:
            match order:
                case Task():
                    self._tasks[order.task] = order
                case Start():
                    self._start(order, now)
                case Stop():
                    self._stop(order, now)
                case DropVolumes():
                    self._dropped[order.workflow] = None
                case Sync():
                    self._sync(order, now)

    def advance(self, now: int) -> None:
        """Let pass what ends until `now`."""
        while self._ends and self._ends[0][0] <= now:
            at, name = heappop(self._ends)
            found = self._running.get(name)
            if found is not None:
                self._end(name, at, self._outcome(name, found[1]))

    def next_end(self) -> int | None:
        """When the next attempt ends, if any runs."""
        return self._ends[0][0] if self._ends else None

    def report(self) -> Report | None:
        """What the server has not confirmed yet."""
        if not (self._began or self._ended or self._dropped):
            return None
        return Report(
            node=self.facts.node,
            began=tuple(self._began.values()),
            ended=tuple(self._ended.values()),
            volumes_removed=tuple(self._dropped),
        )

    def confirmed(self, report: Report) -> None:
        """The server has the report on disk."""
        for began in report.began:
            self._began.pop(began.allocation, None)
        for ended in report.ended:
            self._ended.pop(ended.allocation, None)
        for workflow in report.volumes_removed:
            self._dropped.pop(workflow, None)

    def restart(self, incarnation: str) -> None:
        """The machine was reset: nothing runs and nothing is remembered."""
        self.facts = msgspec.structs.replace(self.facts, incarnation=incarnation)
        self._ends, self._running, self._known, self._queued = [], {}, set(), {}
        self._began, self._ended, self._dropped = {}, {}, {}

    def _start(self, order: Start, now: int) -> None:
        if order.allocation in self._known:
            return
        assert order.task in self._tasks, f"{order.task} was never sent"
        self._known.add(order.allocation)
        if order.behind in self._running or order.behind in self._queued:
            self._queued[order.allocation] = (order.behind, order)
        else:
            self._begin(order, now)

    def _begin(self, order: Start, now: int) -> None:
        self.runs[order.allocation] = self.runs.get(order.allocation, 0) + 1
        run = self.script(order.allocation)
        task = self._tasks[order.task]
        lasts = run.ms
        if 0 < task.limit_ms < lasts:
            lasts = min(lasts, task.limit_ms + (task.grace_ms if run.stubborn else 0))
            self._limited[order.allocation] = None
        self._running[order.allocation] = (now, run)
        self._began[order.allocation] = Began(order.allocation, now)
        heappush(self._ends, (now + lasts, order.allocation))

    def _stop(self, order: Stop, now: int) -> None:
        found = self._running.get(order.allocation)
        if order.allocation in self._queued:
            before, _ = self._queued.pop(order.allocation)
            for name, (behind, start) in self._queued.items():
                if behind == order.allocation:
                    self._queued[name] = (before, start)
            self._ended[order.allocation] = Ended(order.allocation, outcome=order.outcome)
        elif found is None:
            if order.allocation not in self._known:
                self._known.add(order.allocation)
                self._ended[order.allocation] = Ended(order.allocation, outcome=order.outcome)
        elif not found[1].stubborn:
            self._end(order.allocation, now, Ended(order.allocation, order.outcome, signal=15))

    def _sync(self, order: Sync, now: int) -> None:
        for task in order.tasks:
            self._tasks[task.task] = task
        wanted = {start.allocation for start in order.starts}
        for name in list(self._running):
            if name not in wanted:
                del self._running[name]
        for name, (behind, start) in list(self._queued.items()):
            if name not in wanted:
                del self._queued[name]
            elif behind not in wanted and behind not in self._ended:
                del self._queued[name]
                self._begin(start, now)
        for kept in (self._began, self._ended):
            for name in [name for name in kept if name not in wanted]:
                del kept[name]
        stopped = {stop.allocation for stop in order.stops}
        for start in order.starts:
            if start.allocation not in stopped:
                self._start(start, now)
        self.take([*order.stops, *order.drops], now)

    def _outcome(self, name: str, run: Run) -> Ended:
        if name in self._limited:
            del self._limited[name]
            return Ended(name, "timeout", signal=15)
        outcome: Literal["finished", "failed"] = "failed" if run.exit_code else "finished"
        return Ended(name, outcome, exit_code=run.exit_code)

    def _end(self, name: str, at: int, ended: Ended) -> None:
        began, _ = self._running.pop(name)
        self._ended[name] = msgspec.structs.replace(ended, run_ms=at - began, started_at=began)
        for following, (behind, start) in list(self._queued.items()):
            if behind == name:
                del self._queued[following]
                self._begin(start, at)


def simulated_node(
    name: str,
    cores: int,
    script: Script,
    *,
    memory: int = 64 << 30,
    devices: dict[str, int] | None = None,
    annotations: dict[str, str] | None = None,
    storage: str = "shared",
) -> SimulatedNode:
    """A node that can do everything."""
    facts = RegisterNode(
        node=name,
        capacity=Capacity(cores=cores, memory=memory, devices=devices or {}),
        incarnation=f"{name}.1",
        annotations=annotations or {},
        storage=storage,
        features=("mounts", MULTINODE),
        limits="simulated",
    )
    return SimulatedNode(facts, script)
