"""The tail: readers follow the end of a log without a gap, however far behind they are."""

import asyncio
from collections.abc import Sequence
from threading import Thread

import pytest

from logyard_api import tail as tails
from logyard_api.choice import Choice, Sieve
from logyard_api.tail import Tail
from logyard_domain.definition import Workflow
from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AnyEvent,
    NodeCordoned,
    WorkflowStarted,
    WorkflowSubmitted,
)
from logyard_domain.identifiers import Millis, Position
from logyard_domain.records import Record
from logyard_projections.catalog import PROJECTIONS
from logyard_projections.runners.memory import MemoryRunner


def record(position: int, event: AnyEvent | None = None) -> Record:
    return Record(
        Position(position),
        Millis(1_700_000_000_000 + position),
        "main",
        "user:ana",
        "k",
        event or WorkflowStarted(workflow=f"wf-{position}"),
        "c",
    )


class Disk:
    """A log that counts how often it is read."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.reads = 0

    def read(self, after: int, limit: int) -> Sequence[Record]:
        self.reads += 1
        return self.records[after : after + limit]

    def grow(self, count: int) -> list[Record]:
        new = [record(len(self.records) + n + 1) for n in range(count)]
        self.records += new
        return new


async def collect(tail: Tail, position: int, upto: int) -> list[int]:
    seen: list[int] = []
    while position < upto:
        for one in await tail.after(position, 7):
            seen.append(int(one.position))
            position = int(one.position)
        if position < upto:
            assert await tail.beyond(position, 10)
    return seen


def test_readers_see_every_record_once_while_a_thread_writes() -> None:
    async def scenario() -> None:
        disk = Disk()
        disk.grow(5)
        tail = Tail(disk.read, 5)
        tail.bind(asyncio.get_running_loop())

        def write() -> None:
            for size in (1, 3, 50, 2, 400):
                tail.feed(disk.grow(size))

        readers = [asyncio.create_task(collect(tail, start, 461)) for start in (0, 3, 5)]
        thread = Thread(target=write)
        thread.start()
        found = await asyncio.gather(*readers)
        thread.join()
        assert found == [list(range(start + 1, 462)) for start in (0, 3, 5)]

    asyncio.run(scenario())


def test_who_falls_behind_the_kept_records_reads_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "KEPT_MAX", 10)

    async def scenario() -> None:
        disk = Disk()
        tail = Tail(disk.read, 0)
        tail.bind(asyncio.get_running_loop())
        tail.feed(disk.grow(100))
        assert await tail.beyond(0, 10)
        assert [one.position for one in await tail.after(95, 3)] == [96, 97, 98]
        assert disk.reads == 0
        assert [one.position for one in await tail.after(10, 3)] == [11, 12, 13]
        assert disk.reads == 1
        assert await tail.after(100) == ()

    asyncio.run(scenario())


def test_closing_ends_waiting() -> None:
    async def scenario() -> None:
        tail = Tail(Disk().read, 0)
        tail.bind(asyncio.get_running_loop())
        waiting = asyncio.create_task(tail.beyond(0, 60))
        await asyncio.sleep(0)
        tail.close()
        assert await waiting is False
        assert await tail.beyond(0, 0.001) is False

    asyncio.run(scenario())


def test_a_choice_intersects_and_remembers() -> None:
    submitted = record(
        1,
        WorkflowSubmitted(
            workflow="wf-1",
            name="n",
            key="k",
            organization="default",
            group="chem",
            user="ana",
            definition=Workflow(),
            source="",
            timeout_ms=1,
        ),
    )
    placed = record(2, AllocationPlaced(allocation="wf-1/a/0#1", node="n1"))
    ended = record(3, AllocationEnded(allocation="wf-1/a/0#1", outcome="finished"))
    elsewhere = record(4, AllocationEnded(allocation="wf-2/a/0#1", outcome="finished"))
    cordoned = record(5, NodeCordoned(node="n1"))
    every = [submitted, placed, ended, elsewhere, cordoned]

    def positions(choice: Choice) -> list[int]:
        sieve = Sieve(choice)
        with MemoryRunner(PROJECTIONS).read() as view:
            return [int(one.position) for one in every if sieve.wants(one, view)]

    assert Choice().everything and positions(Choice()) == [1, 2, 3, 4, 5]
    assert positions(Choice(node="n1")) == [2, 3, 5]
    assert positions(Choice(group="chem")) == [1, 2, 3]
    assert positions(Choice(workflow="wf-2")) == [4]
    assert positions(Choice(types=("logyard.allocation.",))) == [2, 3, 4]
    assert positions(Choice(types=("allocation.ended", "node."), node="n1")) == [3, 5]
