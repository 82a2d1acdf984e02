"""The agent's side of the keeper: find it, or start it, and talk to it."""

import contextlib
import os
import select
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from logyard_engine.clock import Clock
from logyard_engine.substrate.keeper import frames
from logyard_engine.substrate.keeper.launch import EXIT_TAKEN, LOCK_NAME, SOCKET_NAME

Message = tuple[Any, ...]
"""One message of `keeper.frames`."""

IDLE_S = 60.0
"""A keeper without an agent, a job and an end to tell goes away after this many seconds."""

_START_S = 10.0
_RETRY_S = 0.01
_READ_BYTES = 1 << 18
_LOG_NAME = "keeper.log"

# The keeper takes its clocks as arguments, and no package but this one: it starts without `site`.
_BOOTSTRAP = """
import sys, time
sys.path.append(sys.argv[1])
from logyard_engine.substrate.keeper.launch import main
main(sys.argv[2], float(sys.argv[3]), time.time_ns, lambda:
time.clock_gettime_ns(time.CLOCK_BOOTTIME))
"""


class KeeperError(Exception):
    """There is no keeper, and none can be started. The message says why."""


class ChildEnd(msgspec.Struct, frozen=True, array_like=True):
    """How a process group ended: exit code (128 + signal when killed), and why if it was
    stopped.
    """

    exit_code: int
    signal: int
    cause: str
    started_at: int
    run_ms: int
    cpu_ms: int
    peak_bytes: int
    error: str


class Known(msgspec.Struct, frozen=True):
    """An allocation that the keeper was asked to start and not told to forget; `end` is None
    while it runs.
    """

    allocation: str
    note: tuple[Any, ...]
    started_at: int
    end: ChildEnd | None


class Heard(msgspec.Struct, frozen=True):
    """What arrived from the keeper in one read: starts (id, instant) and ends, in order of
    happening.
    """

    began: list[tuple[str, int]]
    ended: list[tuple[str, ChildEnd]]


class KeeperClient:
    """One connection to the keeper of `folder`, which is started if it is not there.

    A second client takes the first one's place.
    """

    def __init__(self, folder: Path, clock: Clock, idle_s: float = IDLE_S) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._frames = frames.Frames()
        self._early: list[Message] = []
        self._socket, hello = self._hello(clock, idle_s)
        if hello[1] != frames.PROTOCOL:
            self._socket.close()
            raise KeeperError(
                f"the keeper of {folder} speaks protocol {hello[1]}, this program "
                f"{frames.PROTOCOL}; let its jobs end, then end process {keeper_pid(folder)}"
            )
        self.incarnation: str = hello[2]
        # Nobody is woken by what came in one piece with the hello, so it counts as said in it.
        early = _heard(self._early)
        began, ended = dict(early.began), dict(early.ended)
        self.known = [
            Known(
                allocation,
                note,
                began.get(allocation) or started_at,
                ended.get(allocation) or (end and ChildEnd(*end)),
            )
            for allocation, note, started_at, end in hello[3]
        ]

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, messages: Sequence[Message]) -> None:
        """Hand over messages. Raises OSError when the keeper is gone."""
        if messages:
            self._socket.sendall(frames.packed(list(messages)))

    def receive(self) -> Heard | None:
        """What has arrived, at least something; None when the keeper is gone."""
        try:
            data = self._socket.recv(_READ_BYTES)
        except OSError:
            return None
        if not data:
            return None
        return _heard(self._frames.feed(data))

    def close(self) -> None:
        """Leave the keeper and its jobs alone."""
        self._socket.close()

    def _hello(self, clock: Clock, idle_s: float) -> tuple[socket.socket, Message]:
        deadline = clock.monotonic() + _START_S
        while clock.monotonic() < deadline:
            found = _connected(self._folder, clock, idle_s)
            found.settimeout(_START_S)
            try:
                while data := found.recv(_READ_BYTES):
                    self._early += self._frames.feed(data)
                    if self._early:
                        found.settimeout(None)
                        return found, self._early.pop(0)
            except OSError:
                pass
            # A keeper that is just dying takes a connection and never speaks; the next one will.
            found.close()
            self._frames = frames.Frames()
            select.select([], [], [], _RETRY_S)
        raise KeeperError(f"the keeper of {self._folder} does not answer; see {_LOG_NAME} there")


def _heard(messages: Sequence[Message]) -> Heard:
    heard = Heard([], [])
    for message in messages:
        if message[0] == "began":
            heard.began.extend(message[1])
        elif message[0] == "ended":
            heard.ended.extend((one, ChildEnd(*end)) for one, end in message[1])
    return heard


def keeper_pid(folder: Path) -> int | None:
    """Process id of the keeper that has this folder, or None."""
    with contextlib.suppress(OSError, ValueError):
        return int((folder / LOCK_NAME).read_text())
    return None


def _connected(folder: Path, clock: Clock, idle_s: float) -> socket.socket:
    deadline = clock.monotonic() + _START_S
    found = _connection(folder)
    while found is None:
        _start(folder, idle_s)
        found = _connection(folder)
        if found is None:
            if clock.monotonic() > deadline:
                raise KeeperError(f"no keeper answers in {folder}; see {_LOG_NAME} there")
            # Another keeper has the lock and is about to listen, or to leave.
            select.select([], [], [], _RETRY_S)
    return found


def _connection(folder: Path) -> socket.socket | None:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # By way of the handle, because a socket's address is too short for many folders' paths.
        client.connect(f"/proc/self/fd/{fd}/{SOCKET_NAME}")
    except (FileNotFoundError, ConnectionRefusedError):
        client.close()
        return None
    finally:
        os.close(fd)
    return client


def _start(folder: Path, idle_s: float) -> None:
    root = Path(__file__).parents[2]
    log = str(folder / _LOG_NAME)
    argv = [
        sys.executable,
        *("-I", "-S", "-c", _BOOTSTRAP),
        *(str(root), str(folder), str(idle_s)),
    ]
    pid = os.posix_spawn(
        sys.executable,
        argv,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsigmask=[],
    )
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code not in (0, EXIT_TAKEN):
        raise KeeperError(f"the keeper of {folder} did not start (exit {code}); see {log}")
