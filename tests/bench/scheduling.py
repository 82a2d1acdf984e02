"""preempt and simulate: the scheduler as a whole, on real processes and on a published trace."""

import json
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from sys import executable, stderr
from time import perf_counter
from typing import Any

from logyard_engine.audit.auditor import audit
from logyard_engine.log.opening import open_for_reading
from tests.bench.figures import Bench, Figure, figure
from tests.bench.server import ONE, Watch, server
from tests.services.server import YardServer

CORES = 4
ROUNDS = 40
SETTINGS = {
    "scheduler.preemption.enabled": True,
    "scheduler.preemption.minRuntime": 1,
    "scheduler.preemption.utilizationThreshold": 0.5,
}
LONG = "version: v4\njobs:\n  a:\n    command: [sleep, '3600']\n"
TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
TRACE = "KTH-SP2-sc15.swf.gz"
JOBS = 3_000


def preempt() -> Iterator[Figure]:
    """Submit of a job of high priority until it runs, where all cores are taken by `sleep`."""
    with server(node_cores=CORES) as one:
        _settle(one)
        watch = Watch(one, "allocation", one.ask("GET", "/v4/nodes").position)
        events = iter(watch)
        for number in range(CORES):
            _start(one, "crowd", LONG, f"long{number}")
        for _ in range(CORES):
            _started(events)
        times: list[float] = []
        for number in range(ROUNDS + 3):
            began = perf_counter()
            workflow = _start(one, "vip", ONE, f"urgent{number}")
            assert _started(events).startswith(f"{workflow}/")
            times.append((perf_counter() - began) * 1_000)
            # The victim comes back to its core, which is free again at once.
            _started(events)
        watch.close()
    times = sorted(times[3:])
    p90 = times[int(len(times) * 0.9)]
    median = statistics.median(times)
    note = f"p90 {p90:.1f} ms of {ROUNDS}; the victim exits on SIGTERM"
    yield figure("preempt", "ms", [median], target="< 150", note=note)


def _settle(one: YardServer) -> None:
    """Preemption is on, and group vip may preempt group crowd."""
    assert one.ask("PATCH", "/v4/admin/centralconfig", {"values": SETTINGS}).status == 200
    for group in ("crowd", "vip"):
        assert one.ask("POST", "/v4/accounts", {"name": group}).status == 200
    vip = {"priority": 5, "updatePriority": True, "addPreemptIds": ["crowd"]}
    assert one.ask("PATCH", "/v4/accounts/vip", vip).status == 200


def _start(one: YardServer, group: str, text: str, name: str) -> str:
    body = {"name": name, "rawSpecification": text, "preemptible": group == "crowd"}
    answer = one.ask("POST", "/v4/workflows", body, {"Logyard-Group": group})
    assert answer.status == 200, answer.body
    workflow: str = answer.json["id"]
    return workflow


def _started(events: Iterator[dict[str, Any]]) -> str:
    """Wait for the next allocation that starts; its name."""
    for event in events:
        if event["type"] == "logyard.allocation.started":
            allocation: str = event["data"]["allocation"]
            return allocation
    raise AssertionError("the stream ended")


def simulate() -> Iterator[Figure]:
    """The first jobs of the KTH trace by the command, to a log on disk; then its audit."""
    trace = TRACES / TRACE
    if not trace.is_file():
        print(f"simulate: skipped, shared/traces/{TRACE} is not beside this checkout", file=stderr)
        return
    runs: list[float] = []
    audited: list[float] = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            words = ["simulate", str(trace), "--limit", str(JOBS), "--out", str(out), "--json"]
            done = subprocess.run(
                [executable, "-m", "logyard", *words], stdout=subprocess.PIPE, check=True
            )
            found = json.loads(done.stdout)
            assert found["ran"] == JOBS, found
            audited.append(_audit_s(out / "log.sqlite"))
            runs.append(JOBS / (found["seconds"] + audited[-1]))
    part = sum(audited) / sum(JOBS / run for run in runs)
    note = f"first {JOBS:,} jobs of KTH; log on disk; {part:.0%} of the time is its audit"
    yield figure("simulate", "jobs/s", runs, target=">= 10000", note=note)


def _audit_s(path: Path) -> float:
    """Seconds that it takes to read a log and to audit it."""
    began = perf_counter()
    log = open_for_reading(path)
    report = audit(log.read(0, log.position))
    log.close()
    took = perf_counter() - began
    assert report.clean
    return took


BENCHES: dict[str, Bench] = {"preempt": preempt, "simulate": simulate}
