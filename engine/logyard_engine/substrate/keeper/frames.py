"""What agent and keeper say to each other: lists of tuples, marshalled, each list behind its
length.

To the keeper: ``("start", ...)`` (see `start`), ``("stop", id, grace_ms, cause)``, ``("forget",
ids)`` and ``("quit", grace_ms)``. From the keeper: ``("hello", PROTOCOL, incarnation, known)``
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


PROTOCOL = 1

_LENGTH_BYTES = 4
_MARSHAL_VERSION = 4


def start(
    allocation: str,
    executable: str,
    argv: "tuple[str, ...]",
    env: "dict[str, str]",
    cwd: str,
    stdout: str,
    stderr: str,
    cpus: "tuple[int, ...]",
    limit_ms: int,
    grace_ms: int,
    note: "tuple[Any, ...]",
    behind: str = "",
) -> "tuple[Any, ...]":
    """The message that starts an allocation's process group. `limit_ms` 0 means no limit; no
    `cpus` means any; `note` is kept for the agent and told again in the next hello. With
    `behind` it starts as soon as that allocation has ended.
    """
    return (
        "start",
        allocation,
        executable,
        argv,
        env,
        cwd,
        stdout,
        stderr,
        cpus,
        limit_ms,
        grace_ms,
        note,
        behind,
    )


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
