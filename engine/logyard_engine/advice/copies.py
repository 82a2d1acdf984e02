"""Many looks at one world, none of which leaves a trace in it."""

import gc
import os
from collections.abc import Callable, Sequence
from typing import Protocol

from logyard_domain import snapshot
from logyard_domain.world import World
from logyard_engine.scheduler.memory import Memory

Look = Callable[[World, Memory], bytes]
"""Takes a world, which it may change as it likes, and says what came of it."""
WIDE = max(1, min(4, os.cpu_count() or 1))
"""Forks at one time."""


class LookFailed(Exception):
    """A look came to no answer."""


class Copies(Protocol):
    """A world, and what ticks know of it, from which copies are made."""

    def looks(self, questions: Sequence[Look]) -> list[bytes]:
        """What each of the questions finds in a copy of its own."""
        ...


class Restored:
    """Copies by way of a snapshot: they need nothing but memory, and time for a large world."""

    def __init__(self, world: World, _: Memory) -> None:
        self._data = snapshot.dump(world)

    def looks(self, questions: Sequence[Look]) -> list[bytes]:
        return [question(snapshot.restore(self._data), Memory()) for question in questions]


class Forked:
    """Copies by fork: as good as free however large the world is, and ticks are fast in them,
    because what was learned of the world comes along. Only for processes of a single thread.
    """

    def __init__(self, world: World, memory: Memory) -> None:
        self._world = world
        self._memory = memory

    def looks(self, questions: Sequence[Look]) -> list[bytes]:
        """The same, several at a time. Raises LookFailed where a question raises, or its process
        is killed.
        """
        found: list[bytes] = []
        for start in range(0, len(questions), WIDE):
            begun = [self._begin(question) for question in questions[start : start + WIDE]]
            ended = [_end(process, out) for process, out in begun]
            for data, code in ended:
                if code:
                    raise LookFailed(data.decode(errors="replace") or f"it ended with code {code}")
                found.append(data)
        return found

    def _begin(self, question: Look) -> tuple[int, int]:
        """The process that answers, and where its answer is to be read."""
        out, into = os.pipe()
        process = os.fork()
        if not process:
            os.close(out)
            self._answer(question, into)
        os.close(into)
        return process, out

    def _answer(self, question: Look, into: int) -> None:
        """In the copy: answer and end, whatever happens."""
        # A collection would touch, and so copy, every page of the world.
        gc.disable()
        code = 1
        try:
            try:
                found, code = question(self._world, self._memory), 0
            except Exception as trouble:
                found = f"{type(trouble).__name__}: {trouble}".encode()
            with os.fdopen(into, "wb") as pipe:
                pipe.write(found)
        finally:
            os._exit(code)


def _end(process: int, out: int) -> tuple[bytes, int]:
    """What the process said, and its exit code."""
    with os.fdopen(out, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(process, 0)
    return data, os.waitstatus_to_exitcode(status)
