"""Entries to append."""

from collections.abc import Iterable

from logyard_domain import codec
from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationStarted,
    NodeCordoned,
    ServerStarted,
)
from logyard_domain.identifiers import Millis
from logyard_domain.records import Entry, Record

AT = Millis(1_700_000_000_000)
CLUSTER = "main"


def some(count: int, seed: int = 0) -> list[Entry]:
    """`count` entries of several kinds; another `seed`, other entries."""
    return [_entry(seed * 1_000_000 + number) for number in range(count)]


def _entry(number: int) -> Entry:
    allocation = f"wf-3f8mk2qa7c/render/{number // 3}#1"
    at = Millis(AT + number)
    if number % 3 == 0:
        placed = AllocationPlaced(allocation=allocation, node="n1", revision=1)
        return Entry(placed, at, "scheduler", f"@{number}")
    if number % 3 == 1:
        return Entry(AllocationStarted(allocation=allocation, started_at=at), at, "node:n1", "")
    ended = AllocationEnded(allocation=allocation, outcome="finished", exit_code=0, run_ms=12)
    return Entry(ended, at, "node:n1", f"key-{number}")


def started(term: int) -> Entry:
    return Entry(ServerStarted(term=term, version="0.1.0"), AT, "server", "")


def cordoned(node: str, reason: str = "") -> Entry:
    return Entry(NodeCordoned(node=node, reason=reason), AT, "user:ana", "")


def entries_of(records: Iterable[Record]) -> list[Entry]:
    """What was appended to get these."""
    return [Entry(record.event, record.at, record.actor, record.cause) for record in records]


def encoded(count: int, seed: int = 0) -> list[tuple[int, bytes]]:
    """A whole sound log, as positions and bytes."""
    states, _ = codec.encode(some(count, seed), CLUSTER, 0, codec.GENESIS)
    return list(enumerate(states, 1))
