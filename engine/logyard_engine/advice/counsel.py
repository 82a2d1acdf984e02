"""The process that holds the world of a position and answers questions about it.

``python -m logyard_engine.advice.counsel`` reads questions from stdin and answers on stdout, one at
a time, and ends with its input. It is told everything and opens nothing. Each question is answered
in a fork, so that the world that it holds stays as it is.
"""

import gc
import os
import sys
from typing import assert_never

import msgspec

from logyard_domain import snapshot
from logyard_domain.codec import decode_fact
from logyard_domain.evolve import evolve
from logyard_domain.world import World
from logyard_engine.advice.advising import advise
from logyard_engine.advice.copies import Forked, Look, LookFailed
from logyard_engine.advice.inquiry import (
    Advised,
    AskAdvice,
    AskProof,
    AskStanding,
    Begin,
    Failed,
    Proved,
    Replay,
    Stood,
    packed,
    pass_on,
    question,
)
from logyard_engine.advice.proof import prove, stand
from logyard_engine.advice.runners_up import Placement, placement_of
from logyard_engine.scheduler.memory import Memory

NICENESS = 5
"""Whoever runs jobs or writes the log comes first."""


class Counsel:
    """A world, and what can be asked of it."""

    def __init__(self) -> None:
        self.world = World("")
        self._still = False

    def take(self, asked: Begin | Replay) -> None:
        """Go to another world, or on in this one."""
        if self._still:
            gc.unfreeze()
            self._still = False
        if isinstance(asked, Replay):
            _replay(self.world, asked)
        elif asked.snapshot:
            self.world = snapshot.restore(asked.snapshot)
        else:
            self.world = World(asked.cluster)

    def answer(self, asked: AskAdvice | AskStanding | AskProof) -> bytes:
        """The answer, packed."""
        if not self._still:
            gc.collect()
            gc.freeze()
            self._still = True
        try:
            (found,) = Forked(self.world, Memory()).looks([_look(asked)])
            return found
        except LookFailed as trouble:
            return packed(Failed(str(trouble)))


def _replay(world: World, asked: Replay) -> None:
    if asked.after != world.position:
        raise ValueError(f"position {world.position} is held, {asked.after} is to be followed on")
    for position, state in enumerate(asked.states, asked.after + 1):
        event, at = decode_fact(position, state)
        evolve(world, event, at, position)
    # What settling left to do was done, and is in the log.
    world.touched.clear()
    world.touched_nodes.clear()


def _look(asked: AskAdvice | AskStanding | AskProof) -> Look:
    def look(world: World, _: Memory) -> bytes:
        match asked:
            case AskAdvice():
                return packed(Advised(advise(world, asked.allocation, asked.now, Forked)))
            case AskStanding():
                return packed(Stood(stand(world, asked.allocation, asked.now)))
            case AskProof():
                return packed(_proved(world, asked))
            case _:
                assert_never(asked)

    return look


def _proved(world: World, asked: AskProof) -> Proved:
    found: Placement | None = None
    if asked.placed >= 0:

        def look(copy: World, _: Memory) -> bytes:
            return msgspec.msgpack.encode(placement_of(copy, asked.events, asked.placed, asked.now))

        (data,) = Forked(world, Memory()).looks([look])
        found = msgspec.msgpack.decode(data, type=Placement)
    return Proved(prove(world, asked.now, asked.events), found)


def main() -> None:
    """Answer until there are no more questions."""
    os.nice(NICENESS)
    # A long-lived world is looked through for garbage only when it is asked about.
    gc.disable()
    counsel = Counsel()
    while (asked := question(sys.stdin.buffer)) is not None:
        if isinstance(asked, Begin | Replay):
            counsel.take(asked)
        else:
            pass_on(sys.stdout.buffer, counsel.answer(asked))


if __name__ == "__main__":
    main()
