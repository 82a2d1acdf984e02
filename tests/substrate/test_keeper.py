"""The keeper alone: one for a folder, starts once, keeps ends, and what a dead one leaves is
ended.
"""

import os
import select
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logyard_engine.clock import SystemClock
from logyard_engine.substrate.keeper import frames
from logyard_engine.substrate.keeper.processes import living, stat_fields
from logyard_engine.substrate.keeping import ChildEnd, KeeperClient, Message, keeper_pid

CLOCK = SystemClock()


Connect = Callable[[], KeeperClient]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    # Longer than a socket's address can be.
    return tmp_path / ("deep" * 30)


@pytest.fixture
def connect(folder: Path) -> Iterator[Connect]:
    """Connects to the folder's keeper, and ends it at last."""
    clients: list[KeeperClient] = []

    def client() -> KeeperClient:
        clients.append(KeeperClient(folder, CLOCK))
        return clients[-1]

    yield client
    last = client()
    last.send([("quit", 0)])
    while last.receive() is not None:
        pass
    for one in clients:
        one.close()


def shared(tmp_path: Path, limit_ms: int = 0, carried: bool = False) -> Message:
    """What the keeper has to know of the task before the first start."""
    path = {b"PATH": b"/usr/bin:/bin"}
    stem = str(tmp_path / "wf.n1")
    return frames.task("wf/s", stem, carried, "", (), path, "", limit_ms, 100)


def started(tmp_path: Path, allocation: str, script: str, cwd: str = "") -> Message:
    return frames.start(
        allocation,
        "wf/s",
        {b"LOGYARD_ALLOCATION": allocation.encode()},
        (),
        ("note", 1),
        command=("/bin/sh", ("sh", "-c", script), cwd or str(tmp_path)),
    )


def ends(client: KeeperClient, count: int) -> dict[str, ChildEnd]:
    found: dict[str, ChildEnd] = {}
    while len(found) < count:
        heard = client.receive()
        assert heard is not None, "the keeper is gone"
        found.update(heard.ended)
    return found


def begun(client: KeeperClient, allocation: str) -> None:
    while (heard := client.receive()) is not None:
        if allocation in dict(heard.began):
            return
    pytest.fail("the keeper is gone")


def written(path: Path) -> None:
    """Wait for the first output of a job."""
    deadline = CLOCK.monotonic() + 20
    while not path.exists() or not path.read_text():
        assert CLOCK.monotonic() < deadline
        select.select([], [], [], 0.01)


def gone(pid: int) -> None:
    """Wait for a process that is not our child to be gone."""
    fields = stat_fields(pid)
    if fields and fields[0] != "Z":
        fd = os.pidfd_open(pid)
        select.select([fd], [], [], 20)
        os.close(fd)


def test_same_start_twice_is_one_run(connect: Connect, folder: Path, tmp_path: Path) -> None:
    client = connect()
    message = started(tmp_path, "a#1", "echo run; sleep 0.2")
    client.send([shared(tmp_path), message, message])
    client.send([message])
    assert ends(client, 1)["a#1"].exit_code == 0
    client.send([message])
    assert ends(client, 1)["a#1"].exit_code == 0
    assert (tmp_path / "wf.n1.0.out").read_text() == "run\n"
    client.close()


def test_ends_are_kept_until_forgotten(connect: Connect, folder: Path, tmp_path: Path) -> None:
    first = connect()
    assert first.known == []
    starts = started(tmp_path, "a#1", "exit 4"), started(tmp_path, "b#1", "sleep 30")
    first.send([shared(tmp_path), *starts])
    ends(first, 1)
    first.close()
    second = connect()
    assert second.incarnation == first.incarnation
    known = {one.allocation: one for one in second.known}
    assert known["a#1"].note == ("note", 1)
    end = known["a#1"].end
    assert end is not None and end.exit_code == 4
    assert known["b#1"].end is None
    second.send([("forget", ["a#1", "b#1"])])
    second.close()
    # What runs is not forgotten.
    assert [one.allocation for one in connect().known] == ["b#1"]


def test_two_agents_get_one_keeper(connect: Connect) -> None:
    first, second = connect(), connect()
    assert first.incarnation == second.incarnation
    assert first.receive() is None, "the second one takes the place of the first"


def test_time_limit_holds_without_an_agent(connect: Connect, folder: Path, tmp_path: Path) -> None:
    client = connect()
    client.send([shared(tmp_path, 200), started(tmp_path, "a#1", "echo $$; sleep 60")])
    begun(client, "a#1")
    client.close()
    gone(group_of(folder))
    second = connect()
    [known] = second.known
    end = known.end or ends(second, 1)["a#1"]
    assert (end.cause, end.exit_code) == ("timeout", 143)


def group_of(folder: Path) -> int:
    """Process group of the first allocation that began, from the keeper's journal."""
    text = (folder / "keeper.journal").read_bytes().partition(b"\0")[0].decode()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("+"))


def test_killed_keeper_leaves_nothing_running(
    connect: Connect, folder: Path, tmp_path: Path
) -> None:
    client = connect()
    pid = keeper_pid(folder)
    assert pid is not None
    # One leader without a mark in its environment, one process that left its group.
    client.send(
        [
            shared(tmp_path),
            started(tmp_path, "a#1", "exec env -i /bin/sleep 60"),
            started(tmp_path, "b#1", "setsid sleep 60 & echo $!; sleep 60"),
        ]
    )
    begun(client, "b#1")
    leader = group_of(folder)
    written(tmp_path / "wf.n1.1.out")
    escaped = int((tmp_path / "wf.n1.1.out").read_text())
    assert {leader, escaped} <= {one for one, _ in living()}
    os.kill(pid, signal.SIGKILL)
    assert client.receive() is None
    second = connect()
    assert second.incarnation != client.incarnation
    assert second.known == []
    assert not {leader, escaped} & {one for one, _ in living()}


def test_terminated_keeper_stops_its_jobs_first(
    connect: Connect, folder: Path, tmp_path: Path
) -> None:
    client = connect()
    client.send(
        [
            shared(tmp_path),
            started(tmp_path, "a#1", "trap 'echo bye; exit 1' TERM; echo hi; sleep 60 & wait"),
        ]
    )
    begun(client, "a#1")
    written(tmp_path / "wf.n1.0.out")
    pid = keeper_pid(folder)
    assert pid is not None
    os.kill(pid, signal.SIGTERM)
    end = ends(client, 1)["a#1"]
    assert (end.cause, end.exit_code) == ("canceled", 1)
    assert client.receive() is None
    assert (tmp_path / "wf.n1.0.out").read_text() == "hi\nbye\n"


def test_idle_keeper_goes_by_itself(folder: Path) -> None:
    client = KeeperClient(folder, CLOCK, idle_s=0.1)
    pid = keeper_pid(folder)
    assert pid is not None
    client.close()
    gone(pid)
    assert not (folder / "keeper.sock").exists()


def test_folder_that_is_not_there_is_a_clear_end(
    connect: Connect, folder: Path, tmp_path: Path
) -> None:
    client = connect()
    client.send([shared(tmp_path), started(tmp_path, "a#1", "true", cwd="/no/such/folder")])
    end = ends(client, 1)["a#1"]
    assert (end.exit_code, end.started_at > 0) == (125, True)
    assert "/no/such/folder" in end.error


def test_keeper_is_small(connect: Connect, folder: Path) -> None:
    connect()
    status = Path(f"/proc/{keeper_pid(folder)}/status").read_text()
    resident_kib = int(status.partition("VmRSS:")[2].split()[0])
    assert resident_kib < 16 * 1024


def test_frames_are_cut_anywhere() -> None:
    data = frames.packed([("stop", "a", 1, "x")]) + frames.packed([("forget", ["b" * 300])])
    whole = frames.Frames()
    assert list(whole.feed(data)) == [("stop", "a", 1, "x"), ("forget", ["b" * 300])]
    torn = frames.Frames()
    found = [message for byte in data for message in torn.feed(bytes([byte]))]
    assert found == [("stop", "a", 1, "x"), ("forget", ["b" * 300])]


def test_hello_may_be_larger_than_a_socket_holds(connect: Connect, tmp_path: Path) -> None:
    first = connect()
    first.send([shared(tmp_path)])
    for n in range(500):
        # Starts that fail cost no process.
        first.send([started(tmp_path, f"{'a' * 2_000}{n}#1", "true", cwd="/no/such/folder")])
    ends(first, 500)
    assert len(connect().known) == 500


def test_keeper_of_a_removed_folder_ends_with_its_jobs(tmp_path: Path) -> None:
    folder = tmp_path / "node"
    client = KeeperClient(folder, CLOCK, idle_s=0.1)
    client.send([shared(tmp_path), started(tmp_path, "a#1", "sleep 60")])
    begun(client, "a#1")
    keeper, job = keeper_pid(folder), group_of(folder)
    assert keeper is not None
    shutil.rmtree(folder)
    client.close()
    gone(keeper)
    gone(job)


def test_what_comes_along_with_the_hello_is_heard(tmp_path: Path) -> None:
    known = [("a#1", ("note", 1), 0, None), ("b#1", ("note", 2), 5, None)]
    end = (4, 0, "", 7, 1, 1, 1, "")
    hello = frames.packed([("hello", frames.PROTOCOL, "keeper", known)])
    news = frames.packed([("began", [("a#1", 7)]), ("ended", [("a#1", end)])])
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / "keeper.sock"))
        listener.listen()

        def speak() -> None:
            with listener.accept()[0] as agent:
                agent.sendall(hello + news)

        keeper = threading.Thread(target=speak)
        keeper.start()
        client = KeeperClient(tmp_path, CLOCK)
        keeper.join()
    client.close()
    first, second = client.known
    assert (first.started_at, first.end) == (7, ChildEnd(*end))
    assert (second.started_at, second.end) == (5, None)
