"""A log once more under another policy: the same arrivals, run times and node events, the same
code, other decisions.

What was asked comes when it came. An attempt holds its room for as long as the attempt of the same
rank did that ended of itself, and ends the same way; one that never ended of itself takes as long
as others of its stage, or as long as it was seen to hold. Without changes the decisions are the
same as those on the log (tests hold it, position by position).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush

import msgspec

from logyard_domain.commands import (
    AnyCommand,
    Began,
    Ended,
    PreemptAllocation,
    Report,
    SetConfig,
    StopWorkflow,
)
from logyard_domain.configuration import Value
from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationSeated,
    AllocationStopping,
    Outcome,
)
from logyard_domain.expressions import Expression
from logyard_domain.identifiers import Millis, allocation_id, allocation_parts
from logyard_domain.records import Entry
from logyard_domain.settle import next_due
from logyard_domain.world import World
from logyard_engine.log.log import Log
from logyard_engine.simulation.buffered import BufferedLog
from logyard_engine.simulation.happened import NATURAL, Attempt, Happened, Input
from logyard_engine.turn import Asked, Engine, Receipt

PATIENCE_MS = 500
"""What is due by the passing of time waits so long for the turn in which it came on the log."""

When = tuple[int, int, int]


class _Running(msgspec.Struct, eq=False):
    """An attempt in the replay."""

    name: str
    node: str
    rank: tuple[str, str, int]
    """Workflow (on the log), stage and rank."""
    same: Attempt | None
    """The attempt of that number on the log."""
    like: Attempt | None
    """One that ended of itself, which it is taken to go like."""
    held_ms: int
    """How long it holds its room."""
    since: int = 0
    ends: int = 0
    stopping: str = ""
    told: bool = False
    """Whether its start is going to be reported."""
    begun: bool = False
    """Whether it was."""


What = Input | _Running | Began


class Replay:
    """One replay: `run` it once."""

    def __init__(
        self,
        happened: Happened,
        log: Log,
        settings: Mapping[str, Value] | None = None,
        formulas: Mapping[str, Expression] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._happened = happened
        self._settings = dict(settings or {})
        self._formulas = dict(formulas or {})
        self._progress = progress
        self._log = BufferedLog(log)
        self._engine = Engine(World(log.cluster), self._log)
        self._heap: list[tuple[When, int, What]] = []
        self._count = 0
        self.workflows: dict[str, str] = {}
        """Workflow on the log -> the same one in the replay."""
        self._sources: dict[str, str] = {}
        self._running: dict[str, _Running] = {}
        self._behind: dict[str, str] = {}
        """Allocation -> the one that queues behind it; `_before` is the other way."""
        self._before: dict[str, str] = {}
        self._natural: Counter[tuple[str, str, int]] = Counter()
        self._instants = [at for at, _ in happened.turns]

    def run(self) -> int:
        """Let everything happen; the last position of the new log."""
        for one in self._happened.inputs:
            self._put(one.moment, one)
        turns = 0
        while (moment := self._next()) is not None:
            self._turn(moment)
            turns += 1
            if self._progress is not None and turns % 256 == 0:
                self._progress(moment[0] - self._instants[0])
        self._log.flush()
        return self._log.position

    def _put(self, moment: When, what: What) -> None:
        self._count += 1
        heappush(self._heap, (moment, self._count, what))

    def _next(self) -> tuple[int, int] | None:
        """Instant and turn of what happens next."""
        while self._heap and self._stale(*self._heap[0]):
            heappop(self._heap)
        queued = self._heap[0][0][:2] if self._heap else None
        due = next_due(self._engine.world)
        if due is None:
            return queued
        due = max(due, self._engine.world.at + 1)
        # On the log it came in the first turn after it was due.
        index = bisect_left(self._instants, due)
        if index < len(self._instants) and self._instants[index] <= due + PATIENCE_MS:
            due = self._instants[index]
        return queued if queued is not None and queued[0] <= due else (due, 0)

    def _stale(self, moment: When, _: int, what: What) -> bool:
        if isinstance(what, _Running):
            return self._running.get(what.name) is not what or what.ends != moment[0]
        return isinstance(what, Began) and what.allocation not in self._running

    def _turn(self, moment: tuple[int, int]) -> None:
        asked: list[Asked] = []
        submitted: dict[int, str] = {}
        while self._heap and self._heap[0][0][:2] == moment:
            entry = heappop(self._heap)
            if not self._stale(*entry):
                self._ask(entry[2], moment[0], asked, submitted)
        again = True
        while again:
            before = self._log.position
            turned = self._engine.turn(asked, Millis(moment[0]))
            for number, source in submitted.items():
                # What is not so under the other policy (a stop of what has ended) is passed over.
                answer = turned.answers[number]
                if isinstance(answer, Receipt):
                    self.workflows[source] = answer.workflow
                    self._sources[answer.workflow] = source
            if self._log.position > before:
                self._follow(self._log.last)
            asked, submitted, again = [], {}, turned.again

    def _ask(self, what: What, at: int, asked: list[Asked], submitted: dict[int, str]) -> None:
        if isinstance(what, Input):
            command = self._command(what.command)
            if command is not None:
                if what.workflow:
                    submitted[len(asked)] = what.workflow
                asked.append(Asked(command, what.actor, what.cause))
            return
        # What a node has to say comes in one report while nothing else comes between. In a report
        # ends come before starts, so an end after a start was another report.
        name = what.name if isinstance(what, _Running) else what.allocation
        node = self._running[name].node
        last = asked[-1].command if asked else None
        report = Report(node=node)
        if isinstance(last, Report) and last.node == node and not last.volumes_removed:
            if not (isinstance(what, _Running) and last.began):
                report = last
                asked.pop()
        if isinstance(what, _Running):
            began = list(report.began)
            ended = list(report.ended)
            self._over(what, at, began, ended)
            report = Report(node=node, began=tuple(began), ended=tuple(ended))
        else:
            self._running[name].begun = True
            report = msgspec.structs.replace(report, began=(*report.began, what))
        asked.append(Asked(report, f"node:{node}", "replay"))

    def _over(self, running: _Running, at: int, began: list[Began], ended: list[Ended]) -> None:
        """It ends; on the node, what queued behind it began at once, and may be over as well."""
        del self._running[running.name]
        end = _end(running, at)
        like = running.same or running.like
        if not running.begun and like is not None and like.began is not None:
            end = msgspec.structs.replace(end, started_at=running.since or at)
        self._natural[running.rank] += end.outcome in NATURAL
        ended.append(end)
        following = self._running.get(self._behind.get(running.name, ""))
        like = (following.same or following.like) if following is not None else None
        if following is None or like is None or like.began is None or following.stopping:
            return
        if like.began[0] == like.since:
            following.told = following.begun = True
            began.append(Began(following.name, at))
            if not following.held_ms and like.over is not None and like.over[1] == like.began[1]:
                following.since = at
                self._over(following, at, began, ended)

    def _command(self, command: AnyCommand | None) -> AnyCommand | None:
        """The command with the names of the replay, and the other policy."""
        match command:
            case SetConfig():
                return SetConfig(
                    values=dict(command.values) | self._settings,
                    formulas=dict(command.formulas) | self._formulas,
                )
            case StopWorkflow():
                return msgspec.structs.replace(command, workflow=self.workflows[command.workflow])
            case Report():
                gone = tuple(self.workflows[one] for one in command.volumes_removed)
                return msgspec.structs.replace(command, volumes_removed=gone)
            case PreemptAllocation():
                workflow, stage, rank, attempt = allocation_parts(command.allocation)
                return PreemptAllocation(
                    allocation=allocation_id(self.workflows[workflow], stage, rank, attempt)
                )
            case _:
                return command

    def _follow(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            match entry.event:
                case AllocationPlaced() as event:
                    self._placed(event)
                    if not event.behind and not event.after:
                        self._begins(event.allocation, entry.at)
                case AllocationSeated(allocation=name):
                    self._begins(name, entry.at)
                case AllocationStopping() as event:
                    self._stopping(event, entry.at)
                case AllocationEnded(allocation=name):
                    self._running.pop(name, None)
                    self._hand_on(name, entry.at)
                case _:
                    pass

    def _placed(self, event: AllocationPlaced) -> None:
        workflow, stage, rank, attempt = allocation_parts(event.allocation)
        source = self._sources[workflow]
        happened = self._happened
        same = happened.attempts.get(allocation_id(source, stage, rank, attempt))
        natural = happened.ranks.get((source, stage, rank), [])
        like = same
        if same is None or not same.natural:
            # It goes like the next attempt that went its way to the end.
            turn = self._natural[source, stage, rank]
            like = natural[min(turn, len(natural) - 1)] if natural else None
        seen_ms = _held(same) + 1 if same is not None and not same.natural else 0
        if like is not None:
            held_ms = max(_held(like), seen_ms)
        else:
            others = happened.kinds.get((source, stage), [])
            held_ms = max(sum(others) // len(others) if others else 1, seen_ms)
        if event.behind:
            self._behind[event.behind] = event.allocation
            self._before[event.allocation] = event.behind
        self._running[event.allocation] = _Running(
            event.allocation,
            event.node,
            (source, stage, rank),
            same,
            like,
            held_ms,
        )

    def _begins(self, name: str, at: int) -> None:
        running = self._running.get(name)
        if running is None or running.since:
            return
        running.since = at
        like = running.same or running.like
        if like is not None and like.began is not None and not running.told:
            running.told = True
            began = (at + like.began[0] - like.since, *like.began[1:])
            self._put(self._moment(began, like.began), Began(name, began[0]))
        if not running.stopping:
            self._ends(running, at + running.held_ms)

    def _stopping(self, event: AllocationStopping, at: int) -> None:
        running = self._running.get(event.allocation)
        if running is None:
            return
        running.stopping = event.reason
        like = running.same
        latency = 0
        if like is not None and like.stopped and like.over is not None:
            latency = like.over[0] - like.stopped
        ends = at + latency
        if not running.ends or ends < running.ends:
            self._ends(running, ends)

    def _hand_on(self, name: str, at: int) -> None:
        """The room of one that has ended goes to the one behind it, if it had room itself."""
        before = self._before.pop(name, "")
        following = self._behind.pop(name, "")
        if before:
            self._behind.pop(before, None)
        if before and following:
            self._behind[before], self._before[following] = following, before
        elif following:
            self._before.pop(following, None)
            self._begins(following, at)

    def _ends(self, running: _Running, at: int) -> None:
        running.ends = at
        like = running.same if running.stopping else running.like
        over = like.over if like is not None else None
        self._put(self._moment((at, 0, 0), over), running)

    def _moment(self, wanted: When, then: When | None) -> When:
        """The instant; in the turn of the log, where it came at that very instant."""
        if then is not None and then[0] == wanted[0]:
            return then
        return (wanted[0], 0, 0)


def _held(attempt: Attempt) -> int:
    """How long an attempt held its room (ms)."""
    return attempt.over[0] - attempt.since if attempt.over is not None and attempt.since else 0


def _end(running: _Running, at: int) -> Ended:
    """What its node says at the end."""
    same, like = running.same, running.like
    if not running.stopping:
        if like is None or like.end is None:
            return Ended(running.name, "finished", exit_code=0, run_ms=at - running.since)
        return _told(like.end, running.name)
    if same is not None and same.stopped and same.end is not None:
        return _told(same.end, running.name)
    outcome: Outcome = "preempted" if running.stopping == "preempted" else "canceled"
    return Ended(running.name, outcome, signal=15, run_ms=max(0, at - running.since))


def _told(end: AllocationEnded, name: str) -> Ended:
    return Ended(
        name,
        end.outcome,
        exit_code=end.exit_code,
        signal=end.signal,
        run_ms=end.run_ms,
        cpu_ms=end.cpu_ms,
        peak_bytes=end.peak_bytes,
        error=end.error,
    )
