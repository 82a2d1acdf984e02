"""The keeper's loop: starts, stops, time limits and ends of process groups, for one agent at a
time.

A child's start is asked by name and happens once, however often it is asked. An end is kept
until the agent has told to forget it. Limits and graces are timed here, so that they hold while
there is no agent.
"""

import gc
import heapq
import os
import select
import signal
import socket

from logyard_engine.substrate.keeper import frames, processes
from logyard_engine.substrate.keeper.binders import Binders
from logyard_engine.substrate.keeper.children import NS_PER_MS, Child, Spawner
from logyard_engine.substrate.keeper.journal import Journal
from logyard_engine.substrate.keeper.lines import Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_READ_BYTES = 1 << 18
_TIMERS_SLACK = 1_000
_QUIT_GRACE_MS = 10_000

# When work begins faster than this, beginnings wait for each other or for an end: most short work
# is then told in one message, and a lone start is told at once.
_BEGAN_GAP_NS = 2 * NS_PER_MS

_BRISK_MS = 5

# While more waits in line here, ends gather: nobody has to answer for the next start.
_ENDED_GAP_NS = 5 * NS_PER_MS


class Keeper:
    """Serves agents on `listener` until it is told to quit, has had nothing to do for `idle_s`,
    or the folder behind `folder_fd` is removed.

    `boot_ns` and `wall_ns` are the clocks: nanoseconds since boot and since the epoch.
    """

    def __init__(
        self,
        folder_fd: int,
        listener: socket.socket,
        journal: Journal,
        wall_ns: "Callable[[], int]",
        boot_ns: "Callable[[], int]",
        idle_s: float,
    ) -> None:
        self._folder_fd = folder_fd
        self._listener = listener
        self._journal = journal
        self._wall_ns = wall_ns
        self._boot_ns = boot_ns
        self._idle_ns = int(idle_s * 1_000_000_000)
        self._ns_per_tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        self.incarnation = (
            f"{processes.boot_id()}:{os.getpid()}:{processes.start_ticks(os.getpid())}"
        )
        self._spawner = Spawner()
        self._binders = Binders()
        self._tasks: dict[str, tuple[Any, ...]] = {}
        self._children: dict[str, Child] = {}
        self._lines = Lines()
        self._running = 0
        self._leaders: dict[int, Child] = {}
        self._members: dict[int, Child] = {}
        self._timers: list[tuple[int, str, str]] = []
        self._agent: socket.socket | None = None
        self._incoming = frames.Frames()
        self._outgoing = bytearray()
        self._began: list[tuple[str, int]] = []
        self._ended: list[Child] = []
        self._quitting = False
        self._idle_since = boot_ns()
        self._due_ns = 0
        self._told_ns = 0
        self._untold_ns = 0
        self._started_ns = 0
        self._brisk = False
        self._blocked = False
        self._epoll = select.epoll()
        self._epoll.register(listener.fileno(), select.EPOLLIN)
        # A terminating signal is turned into one byte, so that it is handled between two rounds.
        self._signal_fd, wakeup = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._epoll.register(self._signal_fd, select.EPOLLIN)
        signal.set_wakeup_fd(wakeup)

    def run(self) -> None:
        """Serve until there is no more reason to."""
        signal.signal(signal.SIGTERM, _woken)
        signal.signal(signal.SIGINT, _woken)
        # Somebody opens a file of which a binder just sees whether anybody has it open.
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        # Nothing here makes cycles, and a collector's pass at every few starts would cost.
        gc.disable()
        while self._running or not self._over():
            leaders: list[Child] = []
            for fd, mask in self._epoll.poll(self._timeout_s()):
                if fd in self._leaders:
                    leaders.append(self._leaders[fd])
                elif fd in self._members:
                    self._on_member_exit(fd)
                else:
                    self._on_input(fd, mask)
            if leaders:
                self._on_leader_exits(leaders)
            if self._agent is None and not self._quitting and self._folder_gone():
                self._quit(_QUIT_GRACE_MS)
            now_ns = self._boot_ns()
            if self._timers and self._timers[0][0] <= now_ns:
                self._on_time(now_ns)
            if self._ended or self._began:
                self._tell(now_ns)

    def _over(self) -> bool:
        self._spawner.rest()
        if self._quitting:
            return True
        if self._agent is not None or self._children:
            self._idle_since = 0
            return False
        self._idle_since = self._idle_since or self._boot_ns()
        return self._boot_ns() - self._idle_since >= self._idle_ns

    def _folder_gone(self) -> bool:
        """Nobody can find this keeper again, so nobody can want its jobs."""
        return os.fstat(self._folder_fd).st_nlink == 0

    def _timeout_s(self) -> float:
        due_ns = self._timers[0][0] if self._timers else 0
        if self._agent is None:
            look_ns = self._boot_ns() + self._idle_ns
            due_ns = min(due_ns or look_ns, look_ns)
        if self._began or self._ended:
            due_ns = min(due_ns or self._due_ns, self._due_ns)
        elif self._idle_since and not self._running:
            due_ns = min(due_ns, self._idle_since + self._idle_ns)
        # epoll rounds up to milliseconds, so this never wakes a little too early in a circle.
        return max(0.0, (due_ns - self._boot_ns()) / 1e9) if due_ns else -1

    def _on_input(self, fd: int, mask: int) -> None:
        if fd == self._listener.fileno():
            self._accept()
        elif fd == self._signal_fd:
            os.read(fd, 64)
            self._quit(_QUIT_GRACE_MS)
        elif self._agent is not None and fd == self._agent.fileno():
            if mask & select.EPOLLOUT:
                self._flush()
            if mask & ~select.EPOLLOUT:
                self._read(self._agent)

    def _accept(self) -> None:
        agent, _ = self._listener.accept()
        if self._agent is not None:
            # What the one before has said last still counts.
            self._read(self._agent)
        self._leave_agent()
        agent.setblocking(False)
        self._agent = agent
        self._incoming = frames.Frames()
        self._epoll.register(agent.fileno(), select.EPOLLIN)
        self._tasks.clear()
        if not self._children:
            self._binders.close()
        # What is told in the hello need not be told again.
        self._began.clear()
        self._ended.clear()
        known = [
            (child.allocation, child.note, child.started_at, child.end)
            for child in self._children.values()
        ]
        self._send([("hello", frames.PROTOCOL, self.incarnation, known)])

    def _read(self, agent: socket.socket) -> None:
        try:
            data = agent.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._leave_agent()
            return
        starts: list[tuple[Any, ...]] = []
        for message in self._incoming.feed(data):
            verb = message[0]
            if verb == "start":
                # It keeps what was said of its task last.
                starts.append((*message, self._tasks.get(message[2])))
                continue
            if verb == "task":
                self._tasks[message[1]] = message
                continue
            # The order of messages counts: a stop may follow its start in one batch.
            self._start(starts)
            starts = []
            if verb == "stop":
                self._stop(message[1], message[2], message[3])
            elif verb == "forget":
                self._forget(message[1])
            elif verb == "drop":
                for key in message[1]:
                    self._tasks.pop(key, None)
            elif verb == "retire":
                self._binders.retire(message[1])
            elif verb == "quit":
                self._quit(message[1])
        self._start(starts)

    def _leave_agent(self) -> None:
        if self._agent is not None:
            self._epoll.unregister(self._agent.fileno())
            self._agent.close()
            self._agent = None
            self._outgoing.clear()
            self._blocked = False

    def _start(self, messages: "list[tuple[Any, ...]]") -> None:
        fresh: list[tuple[Any, ...]] = []
        for message in messages:
            known = self._children.get(message[1])
            if known is None:
                task = message[8]
                self._children[message[1]] = Child(message[1], message[5], task[9] if task else 0)
                if self._must_wait(message[6]):
                    self._lines.join(message, message[6])
                else:
                    fresh.append(message)
            elif known.end is not None:
                self._ended.append(known)
            elif known.pid:
                self._began.append((known.allocation, known.started_at))
        if not fresh:
            return
        for message in fresh:
            self._start_line(message)

    def _must_wait(self, behind: str) -> bool:
        before = self._children.get(behind)
        return before is not None and before.end is None

    def _start_line(self, first: "tuple[Any, ...] | None") -> None:
        """Start it; where that cannot be, the next in its line."""
        message = first
        while message is not None:
            child = self._children[message[1]]
            self._start_one(child, message)
            message = self._lines.following(message[1]) if child.end is not None else None

    def _start_one(self, child: Child, message: "tuple[Any, ...]") -> None:
        _, allocation, key, own, cpus, _, _, command, task = message
        child.started_ns = self._boot_ns()
        at_ms = self._wall_ns() // NS_PER_MS
        self._journal.announce(allocation)
        try:
            if task is None:
                raise OSError(f"the keeper was not told of task {key}")
            _, _, stem, carried, executable, argv, env, cwd, limit_ms, _ = task
            name = allocation.partition("/")[2].encode()
            child.sheet = self._binders.take(stem, name, carried)
        except OSError as error:
            child.fail(error, "", at_ms)
            self._not_started(child)
            return
        executable, argv, cwd = command or (executable, argv, cwd)
        env = {**env, **own}
        handles = child.sheet.handles
        if not self._spawner.spawn(child, executable, argv, env, cwd, handles, cpus, at_ms):
            self._not_started(child)
            return
        self._journal.began(allocation, child.pid, child.started_ns // self._ns_per_tick)
        self._running += 1
        self._leaders[child.pidfd] = child
        self._epoll.register(child.pidfd, select.EPOLLIN)
        self._started_ns = self._boot_ns()
        self._began.append((allocation, at_ms))
        if limit_ms:
            self._at(child.started_ns + limit_ms * NS_PER_MS, allocation, "limit")
        if self._quitting:
            self._stop(allocation, 0, "canceled")

    def _not_started(self, child: Child) -> None:
        if child.sheet is not None:
            self._binders.give_back(child.sheet)
        self._journal.ended(child.allocation)
        self._ended.append(child)

    def _stop(self, allocation: str, grace_ms: int, cause: str) -> None:
        child = self._children.get(allocation)
        if child is None or child.end is not None:
            return
        if allocation in self._lines:
            self._lines.leave(allocation)
            child.cancel(cause)
            self._ended.append(child)
            return
        if not child.cause:
            child.cause = cause
            child.signal_group(signal.SIGTERM)
            # A stopped process takes no SIGTERM before it goes on.
            child.signal_group(signal.SIGCONT)
        self._at(self._boot_ns() + grace_ms * NS_PER_MS, allocation, "grace")

    def _at(self, due_ns: int, allocation: str, what: str) -> None:
        if len(self._timers) > 2 * len(self._children) + _TIMERS_SLACK:
            # Most timers are time limits of work that is long over.
            self._timers = [
                timer
                for timer in self._timers
                if (known := self._children.get(timer[1])) is not None and known.end is None
            ]
            heapq.heapify(self._timers)
        heapq.heappush(self._timers, (due_ns, allocation, what))

    def _on_time(self, now: int) -> None:
        while self._timers and self._timers[0][0] <= now:
            _, allocation, what = heapq.heappop(self._timers)
            child = self._children.get(allocation)
            if child is None or child.end is not None:
                continue
            if what == "limit":
                if not child.cause:
                    self._stop(allocation, child.grace_ms, "timeout")
                    now = self._boot_ns()
            else:
                child.killed = True
                child.signal_group(signal.SIGKILL)
                if child.members:
                    self._finish(child, now)

    def _quit(self, grace_ms: int) -> None:
        self._quitting = True
        for child in list(self._children.values()):
            self._stop(child.allocation, min(grace_ms, child.grace_ms), "canceled")

    def _on_leader_exits(self, leaders: list[Child]) -> None:
        stopping = [child for child in leaders if child.cause and not child.killed]
        groups = processes.living() if stopping else []
        now_ns = self._boot_ns()
        for child in leaders:
            # Not by closing alone: a child that is just being started still holds a copy of the
            # handle.
            self._epoll.unregister(child.pidfd)
            del self._leaders[child.pidfd]
            if child in stopping and self._await_members(child, groups):
                continue
            self._finish(child, now_ns)

    def _await_members(self, child: Child, living: "list[tuple[int, int]]") -> bool:
        """Whether others of a stopped group still use their grace. The leader stays a zombie
        till then, so that nobody else can get the group's number.
        """
        for pid, group in living:
            if group == child.pid and pid != child.pid:
                try:
                    fd = os.pidfd_open(pid)
                except OSError:
                    continue
                self._members[fd] = child
                self._epoll.register(fd, select.EPOLLIN)
                child.members += 1
        return child.members > 0

    def _on_member_exit(self, fd: int) -> None:
        child = self._drop_member(fd)
        if not child.members and not self._await_members(child, processes.living()):
            self._finish(child, self._boot_ns())

    def _drop_member(self, fd: int) -> Child:
        self._epoll.unregister(fd)
        os.close(fd)
        child = self._members.pop(fd)
        child.members -= 1
        return child

    def _finish(self, child: Child, now_ns: int) -> None:
        if child.members:
            for fd in [fd for fd, owner in self._members.items() if owner is child]:
                self._drop_member(fd)
        child.signal_group(signal.SIGKILL)
        if child.sheet is not None:
            self._binders.give_back(child.sheet)
        # What it held is free by now: the rest is done while the next one runs.
        self._start_line(self._lines.following(child.allocation))
        child.reap(now_ns)
        self._running -= 1
        self._ended.append(child)
        self._journal.ended(child.allocation)
        self._brisk = child.end is not None and child.end[4] <= _BRISK_MS

    def _forget(self, allocations: list[str]) -> None:
        for allocation in allocations:
            child = self._children.get(allocation)
            if child is not None and child.end is not None:
                del self._children[allocation]
                if child.sheet is not None:
                    self._binders.forget(child.sheet, allocation.partition("/")[2].encode())

    def _tell(self, now_ns: int) -> None:
        self._untold_ns = self._untold_ns or now_ns
        self._due_ns = self._patience_ns()
        if now_ns < self._due_ns:
            return
        messages: list[tuple[Any, ...]] = []
        if self._began:
            messages.append(("began", self._began))
            self._began = []
        if self._ended:
            messages.append(("ended", [(child.allocation, child.end) for child in self._ended]))
            self._ended = []
        self._told_ns = now_ns
        self._untold_ns = 0
        self._send(messages)

    def _patience_ns(self) -> int:
        """Until when more may gather."""
        if self._ended:
            # While more waits in line here nobody has to answer for the next start.
            return self._told_ns + _ENDED_GAP_NS if self._lines else 0
        due_ns = self._told_ns + _BEGAN_GAP_NS
        if self._brisk:
            # Work that is over in a moment is told at once as begun and ended.
            due_ns = max(due_ns, min(self._started_ns, self._untold_ns) + _BEGAN_GAP_NS)
        return due_ns

    def _send(self, messages: "list[tuple[Any, ...]]") -> None:
        if self._agent is not None:
            self._outgoing += frames.packed(messages)
            self._flush()

    def _flush(self) -> None:
        agent = self._agent
        if agent is None:
            return
        try:
            sent = agent.send(self._outgoing)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._leave_agent()
            return
        del self._outgoing[:sent]
        if bool(self._outgoing) != self._blocked:
            self._blocked = not self._blocked
            wanted = select.EPOLLIN | (select.EPOLLOUT if self._blocked else 0)
            self._epoll.modify(agent.fileno(), wanted)


def _woken(number: int, frame: object) -> None:
    """The byte on the wake-up pipe says it all."""
