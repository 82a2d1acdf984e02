"""A trace through the engine in virtual time: the very turns that a server makes, and no waiting.

At each instant at which something happens there is one turn, with everything that ends at it, then
everything that arrives at it (the *tick* convention of published simulators). No node takes part:
what is placed begins at once and ends when the trace says, or when its time limit is over.
"""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

import msgspec

from logyard_domain.commands import (
    AnyCommand,
    Ended,
    Refused,
    Report,
    SetConfig,
    StartServer,
    StopServer,
    SubmitWorkflow,
)
from logyard_domain.configuration import Value
from logyard_domain.events import (
    AllocationPlaced,
    AllocationSeated,
    AllocationStopping,
    Outcome,
    PlacementKind,
)
from logyard_domain.identifiers import Millis
from logyard_domain.records import Entry
from logyard_domain.settle import next_due
from logyard_domain.world import World
from logyard_engine.log.log import Log
from logyard_engine.simulation.buffered import BufferedLog
from logyard_engine.simulation.traces.trace import Trace, TraceJob, TraceNode
from logyard_engine.simulation.workload import Definitions, registration, submission
from logyard_engine.turn import Asked, Engine

EPOCH_MS = 1_800_000_000_000
"""Where a trace begins that does not say when it was."""
SETTINGS: dict[str, Value] = {"workflow.killGrace": 0, "scheduler.lookahead": 0}
"""Nodes that obey at once need no grace, and none that ask the scheduler when they are free."""
STANDARD = SetConfig(values=SETTINGS)
PROGRESS_EVERY = 256
"""Turns between two reports of progress."""


class Ran(msgspec.Struct, frozen=True, gc=False):
    """How a job of the trace went, in its seconds: its last attempt, and how many it took.

    `chunks` says on which nodes it ran, and how many of its chunks on each.
    """

    start_s: int
    end_s: int
    chunks: dict[str, int]
    kind: PlacementKind
    attempts: int


class Simulated(msgspec.Struct, frozen=True):
    """What came of a simulation; `ran` has None for each job of the trace that never ran."""

    ran: tuple[Ran | None, ...]
    evictions: int
    turns: int
    position: int


class _Attempt:
    """An attempt that was placed and has not ended."""

    __slots__ = ("begun_ms", "ends_ms", "event", "job")

    def __init__(self, event: AllocationPlaced, job: int) -> None:
        self.event = event
        self.job = job
        self.begun_ms = 0
        self.ends_ms = 0
        """When its end is reported; what was scheduled for another instant is stale."""


def simulate(
    trace: Trace,
    nodes: Sequence[TraceNode],
    log: Log,
    *,
    config: SetConfig = STANDARD,
    entities: Sequence[AnyCommand] = (),
    kill_after_s: int = 0,
    version: str = "simulated",
    progress: Callable[[int], None] | None = None,
) -> Simulated:
    """Run the jobs of `trace` on `nodes` under `config`, and write all that happens to `log`.

    `log` is empty at first. `entities` are commands that make groups and users known. An evicted
    job takes `kill_after_s` to go. `progress` hears how many jobs have ended. Raises Refused where
    the engine does not take a setting, an entity or a job.
    """
    run = _Drive(trace, log, kill_after_s, progress)
    run.begin(nodes, config, entities, version)
    run.play()
    return run.finish()


class _Drive:
    """The state of one simulation."""

    def __init__(
        self,
        trace: Trace,
        log: Log,
        kill_after_s: int,
        progress: Callable[[int], None] | None,
    ) -> None:
        self.jobs: Sequence[TraceJob] = trace.jobs
        self.zero_ms = EPOCH_MS if trace.unix_s is None else trace.unix_s * 1000
        first_s = trace.jobs[0].submit_s if trace.jobs else 0
        self.now = self.zero_ms + first_s * 1000
        self.kill_after_ms = kill_after_s * 1000
        self.progress = progress
        self.log = log if isinstance(log, BufferedLog) else BufferedLog(log)
        self.engine = Engine(World(log.cluster), self.log)
        self.definitions = Definitions()
        self.arrived = 0
        self.alive: dict[str, int] = {}
        """Workflow -> its place in the trace."""
        self.attempts: dict[str, _Attempt] = {}
        self.ends: list[tuple[int, int, str, Outcome]] = []
        """Heap of instant, number, allocation, outcome; may hold stale ones."""
        self.count = 0
        self.ran: list[Ran | None] = [None] * len(self.jobs)
        self.ended = self.evictions = self.turns = 0

    def begin(
        self,
        nodes: Sequence[TraceNode],
        config: SetConfig,
        entities: Sequence[AnyCommand],
        version: str,
    ) -> None:
        """The writer starts, the settings are in force, everybody is known, all nodes join."""
        self._turn([Asked(StartServer(version=version), "server", "start")])
        settings: list[AnyCommand] = [config, *entities]
        self._turn([Asked(command, "user:simulation", "settings") for command in settings])
        self._turn(
            [Asked(registration(node), f"node:{node.name}", f"join:{node.name}") for node in nodes]
        )

    def play(self) -> None:
        """Everything that happens, instant by instant."""
        while (instant := self._next()) is not None:
            self.now = instant
            asked = self._endings()
            self._arrivals(asked)
            self._turn(asked)
            if self.progress is not None and self.turns % PROGRESS_EVERY == 0:
                self.progress(self.ended)

    def finish(self) -> Simulated:
        """The writer ends, and the log is written to its end."""
        self._turn([Asked(StopServer(), "server", "stop")])
        self.log.flush()
        if self.progress is not None:
            self.progress(self.ended)
        return Simulated(tuple(self.ran), self.evictions, self.turns, self.log.position)

    def _next(self) -> int | None:
        """The instant at which something happens next."""
        found: list[int] = []
        if self.ends:
            found.append(self.ends[0][0])
        if self.arrived < len(self.jobs):
            found.append(self.zero_ms + self.jobs[self.arrived].submit_s * 1000)
        due = next_due(self.engine.world)
        if due is not None:
            found.append(max(due, self.now + 1))
        return min(found, default=None)

    def _endings(self) -> list[Asked]:
        """A report of each node that leads something that ends now."""
        reports: dict[str, list[Ended]] = {}
        while self.ends and self.ends[0][0] <= self.now:
            at, _, name, outcome = heappop(self.ends)
            attempt = self.attempts.get(name)
            if attempt is None or attempt.ends_ms != at:
                continue
            del self.attempts[name]
            ended = Ended(
                name,
                outcome,
                exit_code=0 if outcome == "finished" else None,
                run_ms=at - attempt.begun_ms,
                started_at=attempt.begun_ms,
            )
            reports.setdefault(attempt.event.node, []).append(ended)
            if outcome != "preempted":
                self._over(attempt, at)
        return [
            Asked(
                Report(node=node, ended=tuple(ended)), f"node:{node}", f"end:{ended[0].allocation}"
            )
            for node, ended in reports.items()
        ]

    def _over(self, attempt: _Attempt, at: int) -> None:
        event = attempt.event
        workflow, _, rest = event.allocation.partition("/")
        del self.alive[workflow]
        self.ended += 1
        self.ran[attempt.job] = Ran(
            (attempt.begun_ms - self.zero_ms) // 1000,
            (at - self.zero_ms) // 1000,
            event.chunks or {event.node: 1},
            event.kind,
            int(rest.rpartition("#")[2]),
        )

    def _arrivals(self, asked: list[Asked]) -> None:
        jobs = self.jobs
        while self.arrived < len(jobs):
            job = jobs[self.arrived]
            if self.zero_ms + job.submit_s * 1000 > self.now:
                return
            command = submission(job, self.arrived, self.definitions)
            asked.append(Asked(command, f"user:{job.user}", command.key))
            self.arrived += 1

    def _turn(self, asked: list[Asked]) -> None:
        """One turn at the present instant, and more where the tick stopped at its limit."""
        again = True
        while again:
            self.turns += 1
            before = self.log.position
            turned = self.engine.turn(asked, Millis(self.now))
            for one, answer in zip(asked, turned.answers, strict=True):
                if isinstance(answer, Refused):
                    raise answer
                if isinstance(one.command, SubmitWorkflow):
                    self.alive[answer.workflow] = int(one.command.key)
            if self.log.position > before:
                self._follow(self.log.last)
            asked, again = [], turned.again

    def _follow(self, entries: Sequence[Entry]) -> None:
        """Let begin and end what the turn decided."""
        for entry in entries:
            event = entry.event
            if isinstance(event, AllocationPlaced):
                self._placed(event)
            elif isinstance(event, AllocationSeated):
                self._begins(self.attempts[event.allocation])
            elif isinstance(event, AllocationStopping):
                self._stopping(event)

    def _placed(self, event: AllocationPlaced) -> None:
        job = self.alive[event.allocation.partition("/")[0]]
        attempt = self.attempts[event.allocation] = _Attempt(event, job)
        if not event.after:
            self._begins(attempt)

    def _begins(self, attempt: _Attempt) -> None:
        job = self.jobs[attempt.job]
        attempt.begun_ms = self.now
        killed = job.run_s > job.estimate_s
        run_s = job.estimate_s if killed else job.run_s
        self._ends(attempt, self.now + run_s * 1000, "timeout" if killed else "finished")

    def _stopping(self, event: AllocationStopping) -> None:
        attempt = self.attempts[event.allocation]
        self.evictions += 1
        at = self.now + self.kill_after_ms
        # What would have ended by then all the same is not stopped in time.
        if at < attempt.ends_ms:
            self._ends(attempt, at, "preempted")

    def _ends(self, attempt: _Attempt, at: int, outcome: Outcome) -> None:
        attempt.ends_ms = at
        self.count += 1
        heappush(self.ends, (at, self.count, attempt.event.allocation, outcome))
