"""throughput, latency, chain, submit, footprint: a real server with a real node."""

import atexit
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tests.bench.figures import Bench, Figure, figure
from tests.bench.floors import spawns_per_second
from tests.services.server import YardServer, until

RANKS = 5_000
SUBMITTERS = 8
# A client as lean as it can be: it shares the machine with what is measured.
_POST = b"POST /v4/workflows HTTP/1.1\r\nHost: %b\r\nContent-Length: %d\r\n\r\n%b"
ONE = "version: v4\njobs:\n  a:\n    command: ['true']\n"


@contextmanager
def server(**settings: Any) -> Generator[YardServer]:
    """A server on a fresh folder, stopped at the end.

    Folders are removed when all is measured: ext4 looks long for a new inode where many were
    deleted a moment ago, and the next run would pay for it.
    """
    folder = Path(tempfile.mkdtemp(prefix="logyard-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    flags = {name.replace("_", "-"): value for name, value in settings.items()}
    one = YardServer(folder, flags).start()
    try:
        yield one
    finally:
        one.stop()


class Watch:
    """The event stream, read as it comes."""

    def __init__(self, one: YardServer, types: str, after: int) -> None:
        self._connection, self._response = one.open(
            "GET", f"/v4/events?after={after}&type={types}", timeout=300
        )

    def __iter__(self) -> Iterator[dict[str, Any]]:
        pending = b""
        while piece := self._response.read1(1 << 16):
            *frames, pending = (pending + piece).split(b"\n\n")
            for frame in frames:
                _, told, data = frame.partition(b"\ndata:")
                if told:
                    yield msgspec.json.decode(data)

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def until(self, tag: str, count: int = 1) -> float:
        """Wait for the count-th event with this tag; the clock when it was read."""
        for event in self:
            if event["type"] == f"logyard.{tag}":
                count -= 1
                if not count:
                    return time.perf_counter()
        raise AssertionError(f"the stream ended before {tag}")


def _done(one: YardServer, text: str) -> float:
    """Seconds from the request to start a workflow until its end was heard."""
    began = time.perf_counter()
    answer = one.submit(text)
    watch = Watch(one, "workflow", answer["position"])
    ended = watch.until("workflow.finished")
    watch.close()
    return ended - began


def throughput() -> Iterator[Figure]:
    """One array of 5,000 `true` on one node with 2 cores."""
    text = ONE + f"    task-array: {{start: 1, end: {RANKS}}}\n"
    runs: list[float] = []
    floors: list[float] = []
    sizes: list[float] = []
    for _ in range(3):
        with server(node_cores=2) as one:
            _done(one, ONE)
            before = _log_bytes(one)
            floors.append(spawns_per_second())
            runs.append(RANKS / _done(one, text))
            sizes.append((_log_bytes(one) - before) / RANKS)
    yield figure("throughput", "jobs/s", runs, floors=floors, target=">= 0.5")
    yield figure("footprint log", "bytes per rank", sizes, note="of a 5,000-rank array")


def latency() -> Iterator[Figure]:
    """Submit to running on an idle yard."""
    times: list[float] = []
    with server(node_cores=2) as one:
        watch = Watch(one, "allocation.started", _position(one))
        stream = iter(watch)
        for number in range(210):
            began = time.perf_counter()
            one.submit(ONE, name=f"l{number}")
            next(stream)
            times.append((time.perf_counter() - began) * 1_000)
        watch.close()
    times = sorted(times[10:])
    median, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
    yield figure("latency", "ms", [median], target="< 10", note=f"p99 {p99:.1f} ms of 200")


def chain() -> Iterator[Figure]:
    """100 dependent steps."""
    jobs = [f"  j{n}:\n    command: ['true']\n" for n in range(100)]
    links = ["", *(f"    depends-on: [{{name: j{n}}}]\n" for n in range(99))]
    text = "version: v4\njobs:\n" + "".join(
        job + link for job, link in zip(jobs, links, strict=True)
    )
    runs: list[float] = []
    with server(node_cores=2) as one:
        for _ in range(5):
            runs.append(_done(one, text) * 10)
    yield figure("chain", "ms per step", runs, target="< 5")


def submit() -> Iterator[Figure]:
    """1,000 one-job workflows over the API, until all are done."""
    runs: list[float] = []
    for _ in range(3):
        with server(node_cores=2) as one:
            watch = Watch(one, "workflow.finished", _position(one))
            began = time.perf_counter()
            submitting = ThreadPoolExecutor(1).submit(_flood, one, 1_000)
            runs.append(1_000 / (watch.until("workflow.finished", 1_000) - began))
            submitting.result()
            watch.close()
    yield figure("submit", "workflows/s", runs, target=">= 300")


def footprint() -> Iterator[Figure]:
    """Memory: idle, and for each workflow that waits."""
    with server(node_cores=2) as one:
        assert one.process is not None
        pid = one.process.pid
        idle = _memory(pid)
        yield figure("footprint idle server", "MiB", [idle / 2**20])
        for child in _keepers(pid):
            yield figure("footprint idle keeper", "MiB", [_memory(child) / 2**20])
        [node] = until(lambda: one.get("/v4/nodes")["nodes"] or None)
        one.ask("POST", f"/v4/nodes/{node['id']}:cordon", {})
        _flood(one, 1_000)
        before = _memory(pid)
        _flood(one, 10_000, start=1_000)
        until(lambda: _waiting(one) >= 11_000)
        used = (_memory(pid) - before) / 10_000
        yield figure("footprint pending", "KiB per workflow", [used / 1024], target="< 8")
    with server(nodes=0) as one, tempfile.TemporaryDirectory() as folder:
        agent = subprocess.Popen(
            [sys.executable, "-m", "logyard", "substrate", "--server", one.url,
             "--folder", folder, "--name", "far"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            until(lambda: one.get("/v4/nodes")["nodes"] or None)
            yield figure("footprint idle substrate", "MiB", [_memory(agent.pid) / 2**20])
        finally:
            agent.terminate()
            agent.wait()


def _flood(one: YardServer, count: int, start: int = 0) -> None:
    def some(first: int) -> None:
        parts = urlsplit(one.url)
        with socket.create_connection((parts.hostname or "", parts.port or 0), 60) as connection:
            answers = connection.makefile("rb")
            for number in range(first, start + count, SUBMITTERS):
                body = msgspec.json.encode({"name": f"w{number}", "rawSpecification": ONE})
                connection.sendall(_POST % (parts.netloc.encode(), len(body), body))
                answer = _answer(answers)
                assert msgspec.json.decode(answer)["created"], answer
            answers.close()

    with ThreadPoolExecutor(SUBMITTERS) as pool:
        list(pool.map(some, range(start, start + SUBMITTERS)))


def _answer(answers: BufferedReader) -> bytes:
    """The body of the next answer on a connection, which must be a success."""
    status = answers.readline()
    size = 0
    while (line := answers.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            size = int(value)
    body = answers.read(size)
    assert status.startswith(b"HTTP/1.1 200 "), (status, body)
    return body


def _position(one: YardServer) -> int:
    return one.ask("GET", "/v4/nodes").position


def _waiting(one: YardServer) -> int:
    totals = one.get("/v4/queue/stats")["totals"]
    waiting: int = totals["ready"] + totals["parked"]
    return waiting


def _log_bytes(one: YardServer) -> int:
    return sum(p.stat().st_size for p in (one.folder / "data").glob("log.sqlite*"))


def _memory(pid: int) -> int:
    """Proportional set size in bytes."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"process {pid} tells no memory")


def _keepers(pid: int) -> list[int]:
    """Keepers of this bench's nodes: they detach from the server, so their command lines tell."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != pid:
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"keeper" in words and b"logyard-bench-" in words:
                found.append(int(entry.name))
    return found


BENCHES: dict[str, Bench] = {
    "throughput": throughput,
    "latency": latency,
    "chain": chain,
    "submit": submit,
    "footprint": footprint,
}
