"""The smallest change of a request that starts it now, or else the earliest.

Each thing is changed alone. First as far as it can be: where that does not help, no less of it is
taken to. Where it does, bisection finds the smallest step that still does; that one, and that one
step less does not, were both tried by the real tick.
"""

from collections.abc import Callable, Sequence

import msgspec

from logyard_domain.expressions import printed
from logyard_domain.world import World
from logyard_engine.advice.changes import OWNERS, Change, Scale, What, scales
from logyard_engine.advice.copies import Copies, Look, Restored
from logyard_engine.advice.trials import (
    NEVER,
    Outcome,
    attempt,
    followed,
    outcome,
    waiting_stage,
)
from logyard_engine.scheduler.memory import Memory

TRIES_MAX = 120


class Piece(msgspec.Struct, frozen=True):
    """A change that helps: `before` is what is asked for now, `outcome` what comes of the change.

    `least` tells that a step less was seen not to do as well.
    """

    change: Change
    before: int
    outcome: Outcome
    least: bool


class Tried(msgspec.Struct, frozen=True):
    """Something was changed from `before` in so many `steps`, up to `last`."""

    what: What
    name: str
    before: int
    last: int
    steps: int


class Advice(msgspec.Struct, frozen=True, omit_defaults=True):
    """What would help what waits with an allocation, as of a position.

    `waiting` ranks of its stage wait for room; none where it does not wait for any. `unchanged` is
    what the tick at `now` (ms) makes of them as they are. `pieces` are the changes that do better,
    the best first; `tried` tells what was changed, by so many `tries` of the tick under the policy
    `formula` of `revision`.
    """

    allocation: str
    position: int
    now: int
    revision: int
    formula: str
    waiting: int = 0
    unchanged: Outcome = Outcome()
    pieces: tuple[Piece, ...] = ()
    tried: tuple[Tried, ...] = ()
    tries: int = 0


def advise(
    world: World,
    allocation: str,
    now: int,
    copies: Callable[[World, Memory], Copies] = Restored,
) -> Advice:
    """Advice for an allocation, from the turn that follows on the one at `now` (ms).

    The world is used up. Raises ValueError for what is no allocation's name.
    """
    now, position, memory = max(now, world.at), world.position, Memory()
    told = Advice(allocation, position, now, world.revision, printed(world.priority))
    stage = waiting_stage(world, allocation)
    if stage is None:
        return told
    waiting = stage.waiting
    unchanged = outcome(world, stage, followed(world, memory, now))
    told = msgspec.structs.replace(told, waiting=waiting, unchanged=unchanged)
    if unchanged.placed or not stage.open:
        return told
    found = list(scales(world, stage, now))
    search = _Search(copies(world, memory), stage.workflow.id, stage.plan.name, now)
    pieces = search.pieces(found, unchanged.at)
    tried = tuple(
        Tried(one.what, one.name, one.before, one.values[-1], len(one.values)) for one in found
    )
    return msgspec.structs.replace(told, pieces=tuple(pieces), tried=tried, tries=search.tries)


class _Search:
    """Tries changes of one stage."""

    def __init__(self, copies: Copies, workflow: str, stage: str, now: int) -> None:
        self._copies = copies
        self._workflow = workflow
        self._stage = stage
        self._now = now
        self.tries = 0

    def pieces(self, found: Sequence[Scale], unchanged: int) -> list[Piece]:
        """The best that each thing can do, of those that do best of all."""
        far = self._try([(scale, len(scale.values) - 1) for scale in found])
        best = min((one.at for one in far), default=NEVER)
        if best >= unchanged:
            return []
        searches = [
            _Bisection(scale, one) for scale, one in zip(found, far, strict=True) if one.at == best
        ]
        while (open_ := [one for one in searches if not one.done]) and self.tries < TRIES_MAX:
            outcomes = self._try([(one.scale, one.middle) for one in open_])
            for search, one in zip(open_, outcomes, strict=True):
                search.take(one)
        return sorted((one.piece() for one in searches), key=_share)

    def _try(self, tries: Sequence[tuple[Scale, int]]) -> list[Outcome]:
        """What comes of each of these steps."""
        self.tries += len(tries)
        changes = [scale.change(place) for scale, place in tries]
        found = self._copies.looks([self._look(change) for change in changes])
        return [msgspec.json.decode(one, type=Outcome) for one in found]

    def _look(self, change: Change) -> Look:
        def look(world: World, memory: Memory) -> bytes:
            return msgspec.json.encode(
                attempt(world, memory, self._workflow, self._stage, change, self._now)
            )

        return look


class _Bisection:
    """Looks for the smallest step of a scale that does as well as its last one."""

    def __init__(self, scale: Scale, last: Outcome) -> None:
        self.scale = scale
        self._wanted = last.at
        self._outcome = last
        # What is before the first step is the request as it is, which does not do as well.
        self._fails, self._does = -1, len(scale.values) - 1

    @property
    def done(self) -> bool:
        """Whether a step less was seen not to do."""
        return self._does - self._fails == 1

    @property
    def middle(self) -> int:
        """The step to be tried next."""
        return (self._fails + self._does) // 2

    def take(self, found: Outcome) -> None:
        """What came of it."""
        if found.at <= self._wanted:
            self._does, self._outcome = self.middle, found
        else:
            self._fails = self.middle

    def piece(self) -> Piece:
        """What was found."""
        change = self.scale.change(self._does)
        return Piece(change, self.scale.before, self._outcome, self.done)


def _share(piece: Piece) -> tuple[int, float]:
    """What the submitter can do comes first, then the change that is the smallest part."""
    change = piece.change
    if change.what in OWNERS:
        return 1, float(change.value - piece.before)
    return 0, abs(change.value - piece.before) / max(1, abs(piece.before))
