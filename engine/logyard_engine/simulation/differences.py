"""What another policy would have changed: two logs of the same arrivals, owner by owner."""

from collections.abc import Iterable, Mapping
from math import ceil

import msgspec

from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationSeated,
    AllocationStopping,
    NodeRegistered,
    NodeRemoved,
    ShapeDeclared,
    StageReady,
    WorkflowSubmitted,
)
from logyard_domain.identifiers import allocation_parts
from logyard_domain.records import Record
from logyard_domain.resources import Request

Waits = dict[tuple[str, str, int], int]
"""Workflow, stage and rank -> how long (ms) it waited from ready to its last placement."""


class Outcome(msgspec.Struct):
    """One log in numbers, and the wait of every rank that was placed."""

    waits: Waits = {}
    owners: dict[str, tuple[str, str, str]] = {}
    """Workflow -> organization, group, user."""
    evicted: dict[str, int] = {}
    """Workflow -> how often it was evicted for somebody."""
    backfilled: int = 0
    evictions: int = 0
    core_ms: int = 0
    capacity_ms: int = 0
    first: int = 0
    last: int = 0

    @property
    def utilization(self) -> float:
        """Share of the cores that nodes had which allocations held."""
        return self.core_ms / self.capacity_ms if self.capacity_ms else 0.0


class Row(msgspec.Struct, frozen=True):
    """Waits (s) of one owner before and after, and how often it was evicted."""

    owner: str
    ranks: int
    mean_before_s: float
    mean_after_s: float
    p90_before_s: float
    p90_after_s: float
    evicted_before: int
    evicted_after: int
    gained: int
    """Ranks that wait less; `lost` are those that wait more."""
    lost: int


class Differences(msgspec.Struct, frozen=True):
    """Everything that `logyard replay` tells. Lists are sorted, most affected first."""

    total: Row
    organizations: tuple[Row, ...]
    groups: tuple[Row, ...]
    users: tuple[Row, ...]
    utilization: tuple[float, float]
    backfilled: tuple[int, int]
    evictions: tuple[int, int]
    span_s: tuple[float, float]
    changed: int
    """Ranks that wait another time."""


def outcome(records: Iterable[Record]) -> Outcome:
    """What a log comes to."""
    fold = _Fold()
    for record in records:
        fold.take(record)
    return fold.ended()


class _Fold:
    def __init__(self) -> None:
        self.found = Outcome(waits={}, owners={}, evicted={})
        self._requests: dict[int, Request] = {}
        self._shapes: dict[tuple[str, str], int] = {}
        self._ready: dict[tuple[str, str], int] = {}
        self._held: dict[str, tuple[int, int]] = {}
        self._cores: dict[str, int] = {}
        self._at = 0

    def take(self, record: Record) -> None:
        """Fold in one record."""
        found, event, at = self.found, record.event, record.at
        found.first = found.first or at
        found.capacity_ms += sum(self._cores.values()) * (at - (self._at or at))
        self._at = found.last = at
        match event:
            case NodeRegistered():
                self._cores[event.node] = event.capacity.cores
            case NodeRemoved():
                self._cores.pop(event.node, None)
            case WorkflowSubmitted():
                found.owners[event.workflow] = (event.organization, event.group, event.user)
            case ShapeDeclared():
                self._requests[event.shape] = event.request
            case StageReady():
                self._shapes[event.workflow, event.stage] = event.shape
                self._ready[event.workflow, event.stage] = at
            case AllocationPlaced():
                self._placed(event, at)
            case AllocationSeated(allocation=name):
                self._held[name] = (at, self._held[name][1])
            case AllocationStopping(reason="preempted"):
                found.evictions += 1
                workflow = event.allocation.partition("/")[0]
                found.evicted[workflow] = found.evicted.get(workflow, 0) + 1
            case AllocationEnded(allocation=name):
                since, cores = self._held.pop(name)
                found.core_ms += cores * (at - since)
            case _:
                pass

    def ended(self) -> Outcome:
        """The outcome, with what still runs."""
        for since, cores in self._held.values():
            self.found.core_ms += cores * (self._at - since)
        return self.found

    def _placed(self, event: AllocationPlaced, at: int) -> None:
        workflow, stage, rank, _ = allocation_parts(event.allocation)
        request = self._requests[self._shapes[workflow, stage]]
        chunks = sum(event.chunks.values()) or 1
        # What queues behind another one holds nothing until that ends; counted as one.
        self._held[event.allocation] = (at, 0 if event.behind else request.cores * chunks)
        self.found.backfilled += event.kind == "backfilled"
        if request.cores:
            wait = at - self._ready[workflow, stage]
            self.found.waits[workflow, stage, rank] = wait


def differences(before: Outcome, after: Outcome, workflows: Mapping[str, str]) -> Differences:
    """What changed; `workflows` maps those of `before` to the same ones of `after`."""
    pairs: list[tuple[tuple[str, str, str], str, int, int]] = []
    for (workflow, stage, rank), wait in before.waits.items():
        other = after.waits.get((workflows.get(workflow, ""), stage, rank))
        if other is not None:
            pairs.append((before.owners[workflow], workflow, wait, other))

    def rows(part: int) -> tuple[Row, ...]:
        names = dict.fromkeys(_owner(owner, part) for owner, *_ in pairs)
        made = [
            _row(name, [p for p in pairs if _owner(p[0], part) == name], before, after, workflows)
            for name in names
        ]
        return tuple(sorted(made, key=lambda row: -abs(row.mean_after_s - row.mean_before_s)))

    return Differences(
        total=_row("all", pairs, before, after, workflows),
        organizations=rows(0),
        groups=rows(1),
        users=rows(2),
        utilization=(before.utilization, after.utilization),
        backfilled=(before.backfilled, after.backfilled),
        evictions=(before.evictions, after.evictions),
        span_s=((before.last - before.first) / 1000, (after.last - after.first) / 1000),
        changed=sum(old != new for _, _, old, new in pairs),
    )


def _owner(owner: tuple[str, str, str], part: int) -> str:
    return "/".join(owner[:2]) if part == 1 else owner[part]


def _row(
    name: str,
    pairs: list[tuple[tuple[str, str, str], str, int, int]],
    before: Outcome,
    after: Outcome,
    workflows: Mapping[str, str],
) -> Row:
    old = sorted(pair[2] for pair in pairs)
    new = sorted(pair[3] for pair in pairs)
    mine = dict.fromkeys(pair[1] for pair in pairs)
    return Row(
        owner=name,
        ranks=len(pairs),
        mean_before_s=_mean_s(old),
        mean_after_s=_mean_s(new),
        p90_before_s=_p90_s(old),
        p90_after_s=_p90_s(new),
        evicted_before=sum(before.evicted.get(one, 0) for one in mine),
        evicted_after=sum(after.evicted.get(workflows[one], 0) for one in mine),
        gained=sum(pair[3] < pair[2] for pair in pairs),
        lost=sum(pair[3] > pair[2] for pair in pairs),
    )


def _mean_s(values: list[int]) -> float:
    return sum(values) / len(values) / 1000 if values else 0.0


def _p90_s(values: list[int]) -> float:
    return values[ceil(len(values) * 0.9) - 1] / 1000 if values else 0.0
