"""What agent and keeper say to each other: lists of tuples, marshalled, each list behind its
length.

To the keeper: ``("task", ...)`` and ``("start", ...)`` (see `task` and `start`), ``("drop",
keys)`` of tasks that need not be kept for later starts, ``("stop", id, grace_ms, cause)``,
``("forget", ids)``, ``("retire", stem)`` of a binder that is quiet, and ``("quit", grace_ms)``. A
new agent tells its tasks anew. From the keeper: ``("hello", PROTOCOL, incarnation, known)``
first, where `known` is a list of ``(id, note, started_at_ms, end or None)``; then ``("began",
[(id, started_at_ms), ...])`` and ``("ended", [(id, end), ...])``. An end is
``(exit code, signal or 0, cause, started_at_ms, run_ms, cpu_ms, peak_bytes, error)``.

Both ends are the same program on the same machine, and the socket is open to its owner alone;
marshal is the cheapest codec that the interpreter carries.
"""

import marshal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


PROTOCOL = 3

_LENGTH_BYTES = 4
_MARSHAL_VERSION = 4


def task(
    key: str,
    stem: str,
    carried: bool,
    executable: str,
    argv: "tuple[str, ...]",
    env: "dict[bytes, bytes]",
    cwd: str,
    limit_ms: int,
    grace_ms: int,
) -> "tuple[Any, ...]":
    """The message that says what the starts of a task share. They print into the binder `stem`
    (see `sheets`), whose folder the keeper makes. `limit_ms` 0 means no limit.
    """
    return ("task", key, stem, carried, executable, argv, env, cwd, limit_ms, grace_ms)


def start(
    allocation: str,
    key: str,
    env: "dict[bytes, bytes]",
    cpus: "tuple[int, ...]",
    note: "tuple[Any, ...]",
    behind: str = "",
    command: "tuple[str, tuple[str, ...], str] | None" = None,
) -> "tuple[Any, ...]":
    """The message that starts an allocation's process group: a task's, with `env` besides the
    task's, and with its own `command` (executable, arguments, folder) if the task has none.

    No `cpus` means any; `note` is kept for the agent and told again in the next hello. With
    `behind` it starts as soon as that allocation has ended.
    """
    return ("start", allocation, key, env, cpus, note, behind, command)


def packed(messages: "list[tuple[Any, ...]]") -> bytes:
    """One frame."""
    body = marshal.dumps(messages, _MARSHAL_VERSION)
    return len(body).to_bytes(_LENGTH_BYTES, "little") + body


class Frames:
    """Cuts a stream of bytes into the messages in it."""

    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> "list[tuple[Any, ...]]":
        """Every message that is complete with these bytes."""
        pending = self._pending
        pending += data
        at = 0
        found: list[tuple[Any, ...]] = []
        while len(pending) >= at + _LENGTH_BYTES:
            end = at + _LENGTH_BYTES + int.from_bytes(pending[at : at + _LENGTH_BYTES], "little")
            if len(pending) < end:
                break
            found += marshal.loads(memoryview(pending)[at + _LENGTH_BYTES : end])
            at = end
        if at:
            del pending[:at]
        return found
