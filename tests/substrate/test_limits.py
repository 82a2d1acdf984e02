"""Memory and CPU limits, by what this machine has."""

import os
from pathlib import Path

import pytest

from logyard_domain.work import Task
from logyard_engine.substrate import cgroup
from logyard_engine.substrate.desk import Desk
from logyard_engine.substrate.node import EmbeddedNode
from logyard_engine.substrate.results import FolderResults
from logyard_engine.substrate.runtime import Runtime
from logyard_engine.substrate.seats import Seat, Seats
from logyard_engine.substrate.volumes import Volumes
from tests.substrate.outputs import printed

HUNGRY = "b = bytearray(200 << 20); print(len(b))"
MEMORY = 64 << 20


def job(*argv: str, memory: int = MEMORY, cores: int = 1) -> Task:
    return Task(
        task="wf-1/s",
        workflow="wf-1",
        stage="s",
        kind="job",
        argv=argv,
        memory=memory,
        cores=cores,
        limit_ms=60_000,
    )


@pytest.fixture
def grouped(node: EmbeddedNode, desk: Desk) -> EmbeddedNode:
    desk.wait_until(lambda: bool(desk.registrations))
    if desk.registrations[0].limits == "rlimit":
        pytest.skip("this process may make no control groups")
    return node


@pytest.mark.usefixtures("grouped")
def test_out_of_memory_is_told(desk: Desk) -> None:
    ended = desk.wait(desk.want(job("python3", "-c", HUNGRY)))[0]
    assert (ended.outcome, ended.exit_code, ended.signal) == ("failed", 137, 9)
    assert ended.error == "out of memory: the limit is 64MiB"
    assert 32 << 20 < ended.peak_bytes <= MEMORY


@pytest.mark.usefixtures("grouped")
def test_what_stays_within_the_limit_is_left_alone(desk: Desk, tmp_path: Path) -> None:
    ended = desk.wait(desk.want(job("python3", "-c", HUNGRY, memory=512 << 20)))[0]
    assert (ended.outcome, ended.error) == ("finished", "")
    assert ended.peak_bytes > 150 << 20
    assert printed(tmp_path, "wf-1/s/0#1") == f"{200 << 20}\n"


@pytest.mark.usefixtures("grouped")
def test_job_is_inside_from_its_first_instruction_and_the_group_goes(
    desk: Desk, grouped: EmbeddedNode, tmp_path: Path
) -> None:
    desk.wait(desk.want(job("cat", "/proc/self/cgroup")))
    text = printed(tmp_path, "wf-1/s/0#1")
    inside = [line.split(":", 2)[2] for line in text.splitlines() if "wf-1.s.0.1" in line]
    assert inside
    assert grouped.stop("leave", 20)
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/memory"):
        assert not Path(root + inside[0]).exists()


@pytest.mark.usefixtures("grouped")
def test_what_left_the_group_of_processes_goes_with_the_control_group(
    desk: Desk, grouped: EmbeddedNode, tmp_path: Path
) -> None:
    script = "setsid sh -c 'echo $$; exec sleep 60' & sleep 0.3"
    desk.wait(desk.want(job("sh", "-c", script)))
    pid = printed(tmp_path, "wf-1/s/0#1").strip()
    assert grouped.stop("leave", 20)
    assert not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_text()


def test_without_control_groups_the_data_segment_is_limited(tmp_path: Path) -> None:
    volumes = Volumes(tmp_path / "volumes", FolderResults(tmp_path / "results"))
    runtime = Runtime("n1", tmp_path / "node", tmp_path / "logs", volumes, None)
    assert runtime.limits == "rlimit"
    desk = Desk()
    start = desk.sync().starts
    assert start == ()
    task = job("python3", "-c", HUNGRY)
    [allocation] = desk.want(task)
    [shared, message], _ = runtime.prepare(task, desk.sync().starts[0], Seat())
    assert (shared[0], message[1]) == ("task", allocation)
    executable, argv, cwd = message[7]
    env = shared[6] | message[3]
    out = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    pid = os.posix_spawn(
        executable,
        argv,
        env,
        file_actions=[(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, out, 2)],
    )
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    os.close(out)
    assert "MemoryError" in (tmp_path / "out").read_text()
    assert Path(cwd).is_dir()


def test_driver_of_version_2_reads_what_the_kernel_writes(tmp_path: Path) -> None:
    driver = cgroup.V2(tmp_path)
    (tmp_path / "job").mkdir()
    for name, text in {
        "memory.peak": "67108864\n",
        "cpu.stat": "usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\n",
        "memory.events": "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 1\n",
    }.items():
        (tmp_path / "job" / name).write_text(text)
    usage = driver.usage((str(tmp_path / "job"),))
    assert usage == cgroup.Usage(67108864, 1234, 1)


def test_seats_are_whole_and_near_each_other() -> None:
    seats = Seats(((0, 1), (2, 3, 4, 5)), {"gpu": 2})
    first = seats.take(2, {"gpu": 1})
    assert first == Seat((0, 1), {"gpu": (0,)})
    second = seats.take(3, {})
    assert second.cpus == (2, 3, 4)
    # There are too few left: unbound, not shared.
    assert seats.take(2, {}).cpus == ()
    seats.give_back(first)
    assert seats.take(1, {"gpu": 2}) == Seat((5,), {"gpu": (0, 1)})
    assert seats.take(2, {}).cpus == (0, 1)


def test_claimed_seats_are_not_handed_out() -> None:
    seats = Seats(((0, 1, 2),), {"gpu": 2})
    seats.claim(Seat((1,), {"gpu": (0,)}))
    assert seats.take(2, {"gpu": 1}) == Seat((0, 2), {"gpu": (1,)})


def test_bound_to_as_many_cpus_as_cores_from_its_first_instruction(
    tmp_path: Path, desk: Desk
) -> None:
    node = EmbeddedNode(
        "n2",
        tmp_path / "node",
        logs=tmp_path / "logs",
        results=tmp_path / "results",
        volumes=tmp_path / "volumes",
        offer=desk.offer,
        beat=desk.beat,
    )
    desk.connect(node.deliver)
    node.start()
    # One that started before it was bound would see the CPUs of the keeper.
    for rank in range(20):
        [allocation] = desk.want(job("nproc", memory=0), [rank])
        desk.wait([allocation])
        assert printed(tmp_path, allocation, node="n2") == "1\n"
    assert node.stop("leave", 20)
