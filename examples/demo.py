"""`make demo`: a real workflow from file to answer, watched, explained and checked.

Starts a server on a fresh data folder and a free port, and speaks to it with nothing but the
command line, whose commands are shown. Ends with exit code 1 when anything is not as it should be,
and stops what it started.
"""

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "demo-out"
LOGYARD = (sys.executable, "-m", "logyard")
CORES = 2
START_S = 60.0
WAIT_S = 30.0
STOP_S = 15.0
WIDTH, HEIGHT = 720, 480


class NotAsItShouldBe(Exception):
    """Something of the demo went wrong; the message says what."""


def main() -> int:
    """Run the demo; its exit code."""
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="logyard-demo-"))
    # A server that somebody uses every day must not be asked, nor their configuration read.
    environment = {key: value for key, value in os.environ.items() if key[:8] != "LOGYARD_"}
    environment |= {"LOGYARD_DATA": str(folder), "XDG_CONFIG_HOME": str(folder / "config")}
    # Scripts of the examples ask for python3 by name: the one that runs this will do.
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    try:
        with serving(folder, environment):
            picture = tour(environment)
        title("the log of it all, checked record by record")
        show(environment, "log", "verify")
    except NotAsItShouldBe as trouble:
        print(f"\nnot as it should be: {trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    title(f"all of it was as it should be, in {time.monotonic() - began:.0f} s; the picture is")
    print(picture)
    return 0


def tour(environment: dict[str, str]) -> Path:
    """What the demo shows, from the first file to the last event. The picture that was made."""
    title("a workflow file, checked before anything runs")
    show(environment, "workflow", "validate", str(HERE / "mandelbrot.yaml"))
    title("it is started, and then a job that wants all cores at a lower priority")
    mandelbrot = started(environment, "mandelbrot.yaml")
    area = started(environment, "area.yaml", "--priority", "-1")
    title("while the first runs, the second waits: the queue, and why")
    reason = waiting(environment, f"{area}/area")
    show(environment, "queue", "show")
    show(environment, "workflow", "why", f"{area}/area")
    title("the first to its end, live")
    show(environment, "workflow", "status", "--watch", mandelbrot)
    title("its result")
    OUT.mkdir(exist_ok=True)
    show(environment, "workflow", "results", mandelbrot, "--to", str(OUT))
    picture = OUT / "mandelbrot.png"
    check_picture(picture)
    title("now the second had its turn")
    show(environment, "workflow", "status", "--watch", area)
    check_area(show(environment, "workflow", "log", f"{area}/area"))
    title("what happened last")
    show(environment, "events", "--tail", "12")
    check_order(environment, mandelbrot, area, reason)
    return picture


@contextmanager
def serving(folder: Path, environment: dict[str, str]) -> Generator[None]:
    """A server on `folder`, ready; stopped at the end, whatever happens."""
    command = (*LOGYARD, "serve", "--port", "0", "--node-cores", str(CORES))
    print(f"$ logyard {' '.join(command[3:])}", flush=True)
    said = folder.parent / f"{folder.name}.log"
    with said.open("wb") as log:
        # In a session of its own, so that Ctrl-C reaches this program, which ends things in order.
        server = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        until(
            lambda: (folder / "server.json").exists() or server.poll() is not None,
            START_S,
            "the server did not begin to listen",
        )
        if server.poll() is not None:
            raise NotAsItShouldBe(f"the server ended: {said.read_text()}")
        yield
        server.send_signal(signal.SIGTERM)
        if server.wait(WAIT_S) != 0:
            raise NotAsItShouldBe(
                f"the server ended with {server.returncode}: {said.read_text()[-2000:]}"
            )
    finally:
        if server.poll() is None:
            # A server leaves its jobs running when it ends: here nobody would come back for them.
            stop_all(environment)
            server.terminate()
            try:
                server.wait(WAIT_S)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        said.unlink(missing_ok=True)


def stop_all(environment: dict[str, str]) -> None:
    """Stop every workflow, and wait until nothing runs any more. Never raises NotAsItShouldBe."""
    try:
        told = asked(environment, "workflow", "list", "--status", "started", "--status", "pending")
        ids = [str(one["id"]) for one in told["workflows"]]
        if ids:
            asked(environment, "workflow", "stop", *ids)
        until(
            lambda: not asked(environment, "queue", "show")["allocations"],
            STOP_S,
            "not everything stopped",
        )
    except NotAsItShouldBe as trouble:
        print(trouble, file=sys.stderr)


def title(text: str) -> None:
    """What comes next."""
    print(f"\n-- {text}", flush=True)


def show(environment: dict[str, str], *arguments: str) -> str:
    """Run a command before everybody's eyes; what it printed. It must end well."""
    print(f"$ logyard {' '.join(arguments)}", flush=True)
    done = subprocess.run(
        (*LOGYARD, *arguments), env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    print(done.stdout, end="", flush=True)
    if done.returncode != 0:
        raise NotAsItShouldBe(f"`logyard {' '.join(arguments)}` ended with {done.returncode}")
    return done.stdout


def asked(environment: dict[str, str], *arguments: str) -> Any:
    """The JSON answer of a command, without showing it."""
    done = subprocess.run(
        (*LOGYARD, *arguments, "--json"),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotAsItShouldBe(
            f"`logyard {' '.join(arguments)}` ended with {done.returncode}: {done.stderr}"
        )
    return json.loads(done.stdout)


def started(environment: dict[str, str], file: str, *options: str) -> str:
    """Start a workflow of this folder; its id."""
    arguments = ("workflow", "start", str(HERE / file), *options)
    print(f"$ logyard {' '.join(arguments)}", flush=True)
    told = asked(environment, *arguments)
    print(f"{told['id']} started at position {told['position']}", flush=True)
    return str(told["id"])


def waiting(environment: dict[str, str], allocation: str) -> str:
    """Wait until the allocation waits for a recorded reason; that reason in words."""
    found: list[str] = []

    def held() -> bool:
        told = asked(environment, "workflow", "why", allocation)
        found.append(str(told["detail"]))
        if told["kind"] in {"running", "ended", "never", "until-someone-acts"}:
            raise NotAsItShouldBe(f"{allocation} should wait for others: {told['summary']}")
        return told["kind"] in {"capacity", "turn"}

    until(held, WAIT_S, f"{allocation} was not held for want of resources")
    return found[-1]


def check_picture(file: Path) -> None:
    """The picture is a PNG of the right size, black inside the set and not outside."""
    data = file.read_bytes()
    if data[:8] != b"\x89PNG\r\n\x1a\n" or data[12:16] != b"IHDR":
        raise NotAsItShouldBe(f"{file} is no PNG")
    if struct.unpack(">II", data[16:24]) != (WIDTH, HEIGHT):
        raise NotAsItShouldBe(f"{file} is not {WIDTH} x {HEIGHT}")
    at, packed = 8, b""
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        (crc,) = struct.unpack(">I", data[at + 8 + size : at + 12 + size])
        if crc != zlib.crc32(kind + body):
            raise NotAsItShouldBe(f"{file}: the checksum of {kind!r} is wrong")
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    pixels = zlib.decompress(packed)
    stride = 1 + WIDTH * 3
    if len(pixels) != stride * HEIGHT:
        raise NotAsItShouldBe(f"{file} has {len(pixels)} bytes of pixels")

    def pixel(real: float, imag: float) -> bytes:
        x, y = int((real + 2.15) * WIDTH / 3), int(HEIGHT / 2 - imag * WIDTH / 3)
        return pixels[stride * y + 1 + 3 * x : stride * y + 4 + 3 * x]

    inside, outside = (-0.1, 0.0), (0.6, 0.6)
    if pixel(*inside) != b"\0\0\0" or pixel(*outside) == b"\0\0\0":
        raise NotAsItShouldBe(f"{file} does not show the Mandelbrot set")


def check_area(text: str) -> None:
    """The counted area is near the true one, 1.5066."""
    word, _, number = text.strip().partition(" ")
    if word != "area" or not 1.45 < float(number) < 1.6:
        raise NotAsItShouldBe(f"the area job printed {text!r}")


def check_order(environment: dict[str, str], first: str, second: str, reason: str) -> None:
    """The second workflow ran after the last rank of the first, and the log says so."""
    done = subprocess.run(
        (*LOGYARD, "events", "--type", "allocation.", "--json"),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    ended, placed = 0, 0
    for line in done.stdout.splitlines():
        event = json.loads(line)
        allocation = event["data"]["allocation"]
        if event["type"] == "logyard.allocation.ended":
            if event["data"]["outcome"] != "finished":
                raise NotAsItShouldBe(f"{allocation} ended {event['data']['outcome']}")
            if allocation.startswith(f"{first}/render/"):
                ended = max(ended, event["logyardposition"])
        elif event["type"] == "logyard.allocation.placed" and allocation.startswith(second):
            placed = event["logyardposition"]
    if not 0 < ended < placed:
        raise NotAsItShouldBe(
            f"{second} waited ({reason}) but was placed at {placed}, before the end at {ended}"
        )


def until(true: Callable[[], bool], seconds: float, otherwise: str) -> None:
    """Ask again and again until it is true. Raises NotAsItShouldBe with `otherwise` in the end."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise NotAsItShouldBe(f"{otherwise} within {seconds:.0f} s")
        time.sleep(0.05)


def ended_by_signal(number: int, frame: object) -> None:
    """SIGTERM ends the demo as Ctrl-C does, so that the server is stopped too."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, ended_by_signal)
    sys.exit(main())
