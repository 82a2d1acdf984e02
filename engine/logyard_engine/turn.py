"""One round of the engine: decide what was asked, let follow what follows, schedule, append once.

The order inside a turn is fixed: commands as they came, their consequences, the tick. All events of
a turn bear one instant, and are one append. Only after it do results leave.
"""

from collections.abc import Iterable, Sequence

import msgspec

from logyard_domain.commands import AnyCommand, Refused, SubmitWorkflow
from logyard_domain.decide import decide
from logyard_domain.events import AnyEvent
from logyard_domain.evolve import evolve
from logyard_domain.identifiers import Millis
from logyard_domain.records import Entry, Record
from logyard_domain.rules.workflows import known_key
from logyard_domain.settle import settle
from logyard_domain.world import World
from logyard_engine.log.log import Log
from logyard_engine.scheduler.memory import Memory
from logyard_engine.scheduler.tick import tick

TICKS = "scheduler"


class Asked(msgspec.Struct, frozen=True):
    """A command, who gave it, and its key (see `Entry.cause`)."""

    command: AnyCommand
    actor: str
    cause: str


class Receipt(msgspec.Struct, frozen=True):
    """What a command led to. `position` is that of its last event, or the log's where it had none.

    `workflow` is set for a submission; `created` is False when it was known already.
    """

    position: int
    workflow: str = ""
    created: bool = True


class Turned(msgspec.Struct, frozen=True):
    """What a turn did: one answer for each command, in order, and the records that it appended."""

    answers: tuple[Receipt | Refused, ...]
    records: tuple[Record, ...]
    again: bool
    """Whether the tick stopped at its limit, so that another one should follow at once."""


class Engine:
    """The world and the log that it is a fold of. Owned by one thread."""

    def __init__(self, world: World, log: Log, memory: Memory | None = None) -> None:
        assert world.position == log.position, (world.position, log.position)
        self.world = world
        self.log = log
        self._memory = memory or Memory()

    def turn(self, asked: Sequence[Asked], at: Millis) -> Turned:
        """Take the commands and append what follows.

        Raises what `Log.append` raises; the world is then ahead of the log and must not be used
        again.
        """
        world = self.world
        # The log's instants never go back, whatever is done to the machine's clock.
        now = Millis(max(at, world.at))
        entries: list[Entry] = []
        answers: list[Receipt | Refused] = []
        for one in asked:
            try:
                events = decide(world, one.command, now)
            except Refused as refusal:
                answers.append(refusal)
                continue
            self._apply(events, one.actor, one.cause, now, entries)
            answers.append(self._receipt(one.command, bool(events)))
        basis = f"@{world.position}"
        self._apply(settle(world, now), "engine", basis, now, entries)
        before = len(entries)
        self._apply(tick(world, self._memory, now), TICKS, basis, now, entries)
        again = len(entries) - before >= int(world.config["scheduler.placementsPerTick"])
        records = self.log.append(entries) if entries else []
        return Turned(tuple(answers), tuple(records), again)

    def _apply(
        self,
        events: Iterable[AnyEvent],
        actor: str,
        cause: str,
        now: Millis,
        entries: list[Entry],
    ) -> None:
        world = self.world
        for event in events:
            evolve(world, event, now, world.position + 1)
            entries.append(Entry(event, now, actor, cause))

    def _receipt(self, command: AnyCommand, created: bool) -> Receipt:
        if isinstance(command, SubmitWorkflow):
            workflow = self.world.keys[known_key(command)][0]
            return Receipt(self.world.position, workflow, created)
        return Receipt(self.world.position, "", created)
