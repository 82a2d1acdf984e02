"""Starting one process group and seeing its end."""

import errno
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from logyard_engine.substrate.keeper.sheets import Sheet

    End = tuple[int, int, str, int, int, int, int, str]

NS_PER_MS = 1_000_000
EXIT_NOT_FOUND = 127
EXIT_NOT_EXECUTABLE = 126
EXIT_NOT_STARTED = 125

_DEFAULT_SIGNALS = (
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGIO,
)


class Child:
    """One allocation: first a running group, later an end that waits to be acknowledged."""

    __slots__ = (
        "allocation",
        "cause",
        "end",
        "grace_ms",
        "killed",
        "members",
        "note",
        "pid",
        "pidfd",
        "sheet",
        "started_at",
        "started_ns",
    )

    def __init__(self, allocation: str, note: "tuple[Any, ...]", grace_ms: int) -> None:
        self.allocation = allocation
        self.note = note
        self.grace_ms = grace_ms
        self.cause = ""
        self.killed = False
        self.members = 0
        self.pid = 0
        self.pidfd = -1
        self.sheet: Sheet | None = None
        self.started_at = 0
        self.started_ns = 0
        self.end: End | None = None

    def signal_group(self, number: int) -> None:
        """Send a signal to every process of the group. The leader is not reaped yet, so the
        group is ours.
        """
        try:
            os.killpg(self.pid, number)
        except OSError:
            # Everything in it runs as somebody else by now (set-uid), or is gone.
            return

    def reap(self, now_ns: int) -> None:
        """The leader is over, and the rest of its group: collect its exit, close its handle."""
        _, status, usage = os.wait4(self.pid, 0)
        os.close(self.pidfd)
        code = os.waitstatus_to_exitcode(status)
        self.end = (
            code if code >= 0 else 128 - code,
            max(0, -code),
            self.cause,
            self.started_at,
            (now_ns - self.started_ns) // NS_PER_MS,
            int((usage.ru_utime + usage.ru_stime) * 1000),
            usage.ru_maxrss * 1024,
            "",
        )

    def cancel(self, cause: str) -> None:
        """It was stopped before it began."""
        self.cause = cause
        self.end = (EXIT_NOT_STARTED, 0, cause, 0, 0, 0, 0, "")

    def fail(self, error: OSError, what: str, at_ms: int) -> None:
        """It never ran."""
        code = EXIT_NOT_STARTED
        if what and isinstance(error, FileNotFoundError):
            code = EXIT_NOT_FOUND
        elif what and error.errno in (errno.EACCES, errno.ENOEXEC):
            code = EXIT_NOT_EXECUTABLE
        text = f"cannot start {what}: {error.strerror}" if what else str(error)
        self.end = (code, 0, self.cause, at_ms, 0, 0, 0, text)


class Spawner:
    """Starts children. The folder and the CPUs that a child inherits are set in this process just
    before, which is safe with one thread.
    """

    __slots__ = ("_cpus", "_cwd", "_nothing")

    def __init__(self) -> None:
        self._cpus = os.sched_getaffinity(0)
        self._cwd = "/"
        self._nothing = os.open("/dev/null", os.O_RDONLY)
        os.chdir("/")

    def spawn(
        self,
        child: Child,
        executable: str,
        argv: "tuple[str, ...]",
        env: "dict[bytes, bytes]",
        cwd: str,
        handles: "tuple[int, int]",
        cpus: "tuple[int, ...]",
        at_ms: int,
    ) -> bool:
        """Start the child's group, printing to `handles`; False, with an end, when that cannot
        be.
        """
        what = ""
        try:
            if cwd != self._cwd:
                os.chdir(cwd)
                self._cwd = cwd
            # Binding the child after its start would let it look at its CPUs before.
            if cpus:
                os.sched_setaffinity(0, cpus)
            what = executable
            try:
                child.pid = os.posix_spawn(
                    executable,
                    argv,
                    env,
                    file_actions=(
                        (os.POSIX_SPAWN_DUP2, self._nothing, 0),
                        (os.POSIX_SPAWN_DUP2, handles[0], 1),
                        (os.POSIX_SPAWN_DUP2, handles[1], 2),
                    ),
                    setpgroup=0,
                    setsigmask=(),
                    setsigdef=_DEFAULT_SIGNALS,
                )
            finally:
                if cpus:
                    os.sched_setaffinity(0, self._cpus)
            what = ""
            child.pidfd = _watched(child.pid)
        except OSError as error:
            child.fail(error, what, at_ms)
            return False
        child.started_at = at_ms
        return True

    def rest(self) -> None:
        """When nothing runs: leave the last job's folder, which may be removed or unmounted."""
        if self._cwd != "/":
            os.chdir("/")
            self._cwd = "/"


def _watched(pid: int) -> int:
    """A handle of a process just started. Without one (too many open files) it must not go on."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
