"""A node in a process of its own, at a small server that speaks the substrate's part of HTTP."""

import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
import pytest

from logyard_domain.commands import Refused, RegisterNode, Report
from logyard_domain.work import Order, Stop, Task
from logyard_engine.substrate.desk import Desk
from logyard_engine.substrate.door import Door

TOKEN = "let me in"
AGENT = """
import sys
from pathlib import Path
from logyard_engine.substrate.node import run_substrate
sys.exit(run_substrate(sys.argv[1], Path(sys.argv[2]), name="far", token="let me in", cores=4,
                       heartbeat_s=0.2, on_ready=lambda name: print(name, flush=True)))
"""


class Server:
    """The desk behind HTTP. `down` makes it break off every stream and refuse everything."""

    def __init__(self, results: Path) -> None:
        self.desk = Desk()
        self.desk.connect(self.deliver)
        self.results = results
        self.output: dict[tuple[str, str], bytes] = {}
        self.tokens: set[str] = set()
        self.down = False
        self._stream: queue.Queue[Sequence[Order] | None] = queue.Queue()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server.stream(self)

            def do_POST(self) -> None:
                server.take(self)

            do_PUT = do_POST

            def log_message(self, format: str, *args: object) -> None:
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def deliver(self, orders: Sequence[Order]) -> None:
        self._stream.put(orders)

    def stop(self) -> None:
        self._stream.put(None)
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def go_down(self) -> None:
        self.down = self.desk.away = True
        self._stream.put(None)

    def come_up(self) -> None:
        self.down = self.desk.away = False

    def stream(self, request: BaseHTTPRequestHandler) -> None:
        if self.down:
            self.answer(request, 503, b"{}")
            return
        request.send_response(200)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        self._stream = queue.Queue()
        orders: Sequence[Order] | None = [self.desk.sync()]
        while orders is not None:
            lines = b"".join(msgspec.json.encode(order) + b"\n" for order in orders) or b"\n"
            request.wfile.write(b"%x\r\n%s\r\n" % (len(lines), lines))
            request.wfile.flush()
            orders = self._stream.get()
        request.wfile.write(b"0\r\n\r\n")
        request.close_connection = True

    def take(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"] or 0))
        self.tokens.add(request.headers["Authorization"])
        if self.down:
            self.answer(request, 503, b'{"code": 14, "message": "not now"}')
            return
        parts = urlsplit(request.path)
        path, query = unquote(parts.path), parse_qs(parts.query)
        if path == "/v4/substrate/far:register":
            self.desk.offer(msgspec.json.decode(body, type=RegisterNode)).result()
        elif path == "/v4/substrate/far:report":
            self.desk.offer(msgspec.json.decode(body, type=Report)).result()
        elif path == "/v4/substrate/far:heartbeat":
            self.desk.beat("far")
        elif path.startswith("/v4/workflows/wf-1/results/"):
            file = self.results / path.removeprefix("/v4/workflows/wf-1/results/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)
        elif path == "/v4/workflows/wf-1/output":
            key = query["allocation"][0], query["stream"][0]
            held = self.output.get(key, b"")
            self.output[key] = held[: int(query["offset"][0])] + body
        else:
            self.answer(request, 404, b'{"code": 5, "message": "no such place"}')
            return
        self.answer(request, 200, b"{}")

    def answer(self, request: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    one = Server(tmp_path / "results")
    yield one
    one.stop()


Spawn = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def spawn(server: Server, tmp_path: Path) -> Iterator[Spawn]:
    """Starts the node's process; at last ends it and its jobs."""
    agents: list[subprocess.Popen[str]] = []

    def start() -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", AGENT, server.url, str(tmp_path / "node")]
        agent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        agents.append(agent)
        assert agent.stdout is not None
        assert agent.stdout.readline() == "far\n"
        return agent

    yield start
    server.come_up()
    if agents[-1].poll() is None:
        agents[-1].send_signal(signal.SIGINT)
        agents[-1].send_signal(signal.SIGINT)
    for agent in agents:
        with agent:
            agent.wait(30)


def job(script: str, stage: str = "s") -> Task:
    return Task(
        task=f"wf-1/{stage}",
        workflow="wf-1",
        stage=stage,
        kind="job",
        argv=("sh", "-c", script),
        limit_ms=60_000,
    )


def test_work_and_its_output_travel(server: Server, spawn: Spawn, tmp_path: Path) -> None:
    agent = spawn()
    desk = server.desk
    ends = desk.wait(desk.want(job("echo out $((6*7)); seq 200000 >&2; exit 3"), [0, 1]))
    assert {(one.outcome, one.exit_code) for one in ends} == {("failed", 3)}
    # By the time that an end is told, its output has arrived.
    assert server.output[("wf-1/s/1#1", "out")] == b"out 42\n"
    assert server.output[("wf-1/s/0#1", "err")].split() == [b"%d" % n for n in range(1, 200_001)]
    assert server.tokens == {f"Bearer {TOKEN}"}
    desk.wait_until(lambda: desk.beats > 1)
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(30) == 0
    assert not list((tmp_path / "node/output").rglob("*.out"))


def test_output_is_seen_while_the_job_runs(server: Server, spawn: Spawn) -> None:
    spawn()
    desk = server.desk
    [name] = desk.want(job("echo early; sleep 60"))
    desk.wait_until(lambda: server.output.get((name, "out")) == b"early\n")
    desk.stop(Stop(name, 1_000))
    assert desk.wait([name])[0].outcome == "canceled"


def test_results_travel(server: Server, spawn: Spawn, tmp_path: Path) -> None:
    spawn()
    desk = server.desk
    steps = [
        Task(task="wf-1/v", workflow="wf-1", stage="v", kind="volume", volume="d"),
        Task(
            task="wf-1/i",
            workflow="wf-1",
            stage="i",
            kind="ingress",
            volume="d",
            path="deep/a file.txt",
            content="some text",
        ),
        Task(
            task="wf-1/e",
            workflow="wf-1",
            stage="e",
            kind="egress",
            volume="d",
            path="deep",
            result="kept",
        ),
    ]
    for step in steps:
        assert desk.wait(desk.want(step))[0].error == ""
    assert (tmp_path / "results/kept/a file.txt").read_text() == "some text"


def test_server_that_goes_down_loses_nothing(server: Server, spawn: Spawn) -> None:
    spawn()
    desk = server.desk
    names = desk.want(job("sleep 0.2; echo over"), range(4))
    desk.wait_until(lambda: set(names) <= desk.began.keys())
    server.go_down()
    assert desk.ends == []
    server.come_up()
    assert {one.outcome for one in desk.wait(names)} == {"finished"}
    assert sorted(one.allocation for one in desk.ends) == names
    assert {server.output[(name, "out")] for name in names} == {b"over\n"}


def test_killed_agent_comes_back_to_its_jobs(server: Server, spawn: Spawn, tmp_path: Path) -> None:
    agent = spawn()
    desk = server.desk
    go = tmp_path / "go"
    [name] = desk.want(job(f"echo one; while [ ! -e {go} ]; do sleep 0.02; done; echo two"))
    desk.wait_until(lambda: name in desk.began)
    agent.kill()
    agent.wait()
    go.touch()
    spawn()
    assert desk.wait([name])[0].outcome == "finished"
    assert server.output[(name, "out")] == b"one\ntwo\n"
    assert len(desk.ends) == 1
    assert len({one.incarnation for one in desk.registrations}) == 1


def test_door_tells_wrong_from_away(server: Server) -> None:
    door = Door(server.url, TOKEN)
    with pytest.raises(Refused, match="404 Not Found: no such place") as refused:
        door.send("POST", "/v4/nothing", b"{}")
    assert refused.value.kind == "missing"
    server.go_down()
    with pytest.raises(ConnectionError, match="503 Service Unavailable: not now"):
        door.send("POST", "/v4/substrate/far:heartbeat", b"{}")
    door.close()
    with pytest.raises(ValueError, match=r"'ftp://x' is no server; one looks like http://"):
        Door("ftp://x")
