"""The one writer as a thread: acknowledgements, refusals, a failing log, a clean end."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from threading import Event, Semaphore

import pytest

from logyard_domain import snapshot
from logyard_domain.commands import Refused, StopWorkflow, SubmitWorkflow
from logyard_domain.events import ServerStarted, ServerStopped, WorkflowSubmitted
from logyard_domain.records import Entry, Record
from logyard_domain.world import World
from logyard_engine import loop as loops
from logyard_engine.clock import SystemClock
from logyard_engine.dispatch import Dispatch
from logyard_engine.log.log import AppendFailed, Log
from logyard_engine.log.opening import open_log
from logyard_engine.loop import InboxFull, Loop, Stopped
from logyard_engine.recovery import recover, save
from logyard_engine.snapshots import Snapshots
from logyard_engine.turn import Engine, Receipt
from tests.engine.work import flow, job


class Gated:
    """A log that appends when it may, and fails when it is told to."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.gate: Semaphore | None = None
        self.entered = Event()
        self.broken = False
        self.sizes: list[int] = []

    @property
    def cluster(self) -> str:
        return self.log.cluster

    @property
    def position(self) -> int:
        return self.log.position

    @property
    def chain(self) -> str:
        return self.log.chain

    def append(self, entries: Sequence[Entry]) -> list[Record]:
        self.entered.set()
        if self.gate is not None:
            self.gate.acquire()
        if self.broken:
            raise AppendFailed("no space left on device")
        self.sizes.append(len(entries))
        return self.log.append(entries)

    def take(self, states: Sequence[bytes]) -> None:
        self.log.take(states)

    def read(self, after: int, limit: int) -> list[Record]:
        return self.log.read(after, limit)

    def read_states(self, after: int = 0, upto: int | None = None) -> Iterator[tuple[int, bytes]]:
        return self.log.read_states(after, upto)

    def close(self) -> None:
        self.log.close()


def started(log: Log) -> Loop:
    clock = SystemClock()
    dispatch = Dispatch(clock)
    loop = Loop(Engine(recover(log), log), clock, dispatch, "test")
    dispatch.call = loop.call
    loop.start()
    return loop


def submit(loop: Loop, key: str) -> Future[Receipt]:
    command = SubmitWorkflow(key=key, name=key, user="ana", definition=flow(a=job()))
    return loop.offer(command, "user:ana", key)


def test_what_is_acknowledged_is_on_the_log() -> None:
    log = open_log("memory:", "test")
    loop = started(log)
    seen: list[Record] = []
    loop.subscribe(seen.extend)
    receipts = [submit(loop, f"k{n}").result(10) for n in range(20)]
    again = submit(loop, "k3").result(10)
    assert again.workflow == receipts[3].workflow and not again.created
    loop.stop()
    events = [record.event for record in log.read(0, 1_000)]
    assert [e.key for e in events if isinstance(e, WorkflowSubmitted)] == [
        f"k{n}" for n in range(20)
    ]
    assert isinstance(events[0], ServerStarted) and isinstance(events[-1], ServerStopped)
    assert [record.position for record in seen] == list(range(2, len(events) + 1))


def test_a_refusal_reaches_who_asked_and_changes_nothing() -> None:
    log = open_log("memory:", "test")
    loop = started(log)
    before = log.position
    with pytest.raises(Refused, match="no workflow"):
        loop.offer(StopWorkflow(workflow="wf-none"), "user:ana", "c").result(10)
    assert log.position == before
    loop.stop()


def test_what_gathers_during_an_append_is_one_append() -> None:
    log = Gated(open_log("memory:", "test"))
    loop = started(log)
    log.gate = Semaphore(0)
    log.entered.clear()
    first = submit(loop, "first")
    assert log.entered.wait(10)
    rest = [submit(loop, f"k{n}") for n in range(50)]
    log.sizes.clear()
    log.gate.release(1_000)
    wait([first, *rest], 10)
    assert len(log.sizes) == 2
    loop.stop()


def test_a_full_inbox_refuses_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "INBOX_MAX", 5)
    log = Gated(open_log("memory:", "test"))
    loop = started(log)
    log.gate = Semaphore(0)
    log.entered.clear()
    submit(loop, "first")
    assert log.entered.wait(10)
    for n in range(5):
        submit(loop, f"k{n}")
    with pytest.raises(InboxFull, match="try again"):
        submit(loop, "more")
    log.gate.release(1_000)
    loop.stop()


def test_a_failed_append_stops_the_writer_and_says_so() -> None:
    log = Gated(open_log("memory:", "test"))
    loop = started(log)
    failed = Event()
    loop.on_failure = lambda _: failed.set()
    position = log.position
    log.broken = True
    with pytest.raises(Stopped, match="no space left"):
        submit(loop, "lost").result(10)
    assert failed.wait(10)
    log.broken = False
    with pytest.raises(Stopped, match="no space left"):
        submit(loop, "after")
    assert log.position == position
    loop.stop()
    assert isinstance(loop.failure, AppendFailed)


def test_a_restart_continues_where_the_log_ends_with_and_without_snapshots(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    log = open_log(path, "test")
    loop = started(log)
    for n in range(30):
        submit(loop, f"k{n}").result(10)
    worlds: list[World] = []
    loop.call(worlds.append)
    loop.stop()
    snapshots = Snapshots(tmp_path / "snapshots")
    save(worlds[0], log, snapshots)
    live = snapshot.dump(worlds[0])
    log.close()

    reopened = open_log(path, "test")
    assert snapshot.dump(recover(reopened, snapshots)) == live
    snapshots.clear()
    assert snapshot.dump(recover(reopened, snapshots)) == live
    loop = started(reopened)
    assert not submit(loop, "k7").result(10).created
    loop.stop()
    assert worlds[0].term == 1 and recover(reopened).term == 2
    reopened.close()


def test_a_snapshot_of_another_log_is_left_aside(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path / "snapshots")
    for name in ("one", "two"):
        log = open_log(tmp_path / f"{name}.sqlite", "test")
        loop = started(log)
        submit(loop, name).result(10)
        loop.stop()
        if name == "one":
            save(recover(log), log, snapshots)
        else:
            assert snapshot.dump(recover(log, snapshots)) == snapshot.dump(recover(log))
            assert "ana/two" in recover(log, snapshots).keys
        log.close()
