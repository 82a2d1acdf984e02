"""What a log says was done to the cluster, apart from what the cluster decided: commands, and how
long each attempt held its room. Replayed under another policy, these stay the same.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from logyard_domain.commands import (
    AnyCommand,
    CordonNode,
    DeclareLost,
    DeleteGroup,
    DrainNode,
    PreemptAllocation,
    RegisterNode,
    RemoveNode,
    Report,
    SetConfig,
    StartServer,
    StopServer,
    StopWorkflow,
    SubmitWorkflow,
    UncordonNode,
    UpdateGroup,
    UpdateOrganization,
    UpdateUser,
)
from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationSeated,
    AllocationStarted,
    AllocationStopping,
    ConfigSet,
    GroupDeleted,
    GroupUpdated,
    NodeCordoned,
    NodeDraining,
    NodeLost,
    NodeRegistered,
    NodeRemoved,
    NodeReturned,
    NodeUncordoned,
    OrganizationUpdated,
    ServerStarted,
    ServerStopped,
    UserUpdated,
    VolumesRemoved,
    WorkflowStopping,
    WorkflowSubmitted,
)
from logyard_domain.identifiers import allocation_parts
from logyard_domain.records import Record

NATURAL = ("finished", "failed", "timeout")
"""How attempts end of themselves."""
ENGINE = ("engine", "scheduler")
"""Actors whose events follow from others."""

Moment = tuple[int, int, int]
"""Instant (ms), turn, position: what is sorted by it happens in the order in which it did."""


class Input(NamedTuple):
    """A command that was given, or that a turn was made (None) for what passing time led to."""

    moment: Moment
    command: AnyCommand | None
    actor: str
    cause: str
    workflow: str = ""
    """The one that a submission made."""


class Attempt(msgspec.Struct):
    """How an attempt went: instants and turns of its way, and what its node said of its end."""

    node: str = ""
    since: int = 0
    began: Moment | None = None
    stopped: int = 0
    over: Moment | None = None
    end: AllocationEnded | None = None

    @property
    def natural(self) -> bool:
        """Whether it ended of itself."""
        return self.end is not None and self.end.outcome in NATURAL


class Happened:
    """Everything of a log that a replay needs. Fold records into it with `take`."""

    def __init__(self) -> None:
        self.inputs: list[Input] = []
        self.attempts: dict[str, Attempt] = {}
        """By the allocation's name."""
        self.ranks: dict[tuple[str, str, int], list[Attempt]] = {}
        """By workflow, stage and rank: those that ended of themselves, in order."""
        self.cluster = ""
        self.turns: list[tuple[int, int]] = []
        """Instant and number of every turn."""
        self.kinds: dict[tuple[str, str], list[int]] = {}
        """By workflow and stage: how long (ms) those that ended of themselves held their room."""
        self._turn = 0
        self._at = -1
        self._follows = False
        self._preempts: dict[tuple[str, str], tuple[str, ...]] = {}
        self._facts: dict[str, NodeRegistered] = {}
        self._behind: dict[str, str] = {}

    @property
    def span_ms(self) -> int:
        """From the first turn to the last."""
        return self.turns[-1][0] - self.turns[0][0] if self.turns else 0

    def take(self, records: Iterable[Record]) -> None:
        """Fold in more records, in order."""
        for record in records:
            self.cluster = record.cluster
            self._count(record)
            self._record(record)

    def _count(self, record: Record) -> None:
        """A turn begins with what was asked for, and ends with what followed."""
        given = record.actor not in ENGINE
        if record.at != self._at or (given and self._follows):
            self._turn += 1
            self.turns.append((record.at, self._turn))
            if not given:
                moment = (record.at, self._turn, record.position)
                self.inputs.append(Input(moment, None, record.actor, record.cause))
        self._at, self._follows = record.at, not given

    def _record(self, record: Record) -> None:
        moment = (record.at, self._turn, record.position)
        event = record.event
        match event:
            case AllocationPlaced(allocation=name, node=node):
                attempt = self.attempts[name] = Attempt(node)
                if event.behind:
                    self._behind[event.behind] = name
                elif not event.after:
                    attempt.since = record.at
            case AllocationSeated(allocation=name):
                self.attempts[name].since = record.at
            case AllocationStarted(allocation=name):
                self.attempts[name].began = moment
            case AllocationStopping(allocation=name):
                self.attempts[name].stopped = record.at
                if event.reason == "preempted" and not event.by:
                    self._give(record, moment, PreemptAllocation(allocation=name))
                elif event.reason == "drained":
                    # A second drain, which evicts, leaves no other trace.
                    node = self.attempts[name].node
                    self._give(record, moment, DrainNode(node=node, evict=True))
            case AllocationEnded(allocation=name):
                self._ended(name, moment, event)
            case _:
                command = self._command(event)
                if command is not None:
                    workflow = event.workflow if isinstance(event, WorkflowSubmitted) else ""
                    self._give(record, moment, command, workflow)

    def _give(
        self, record: Record, moment: Moment, command: AnyCommand, workflow: str = ""
    ) -> None:
        self.inputs.append(Input(moment, command, record.actor, record.cause, workflow))

    def _ended(self, name: str, moment: Moment, event: AllocationEnded) -> None:
        attempt = self.attempts[name]
        attempt.over, attempt.end = moment, event
        follower = self._behind.pop(name, None)
        if follower is not None:
            self.attempts[follower].since = moment[0]
        if attempt.natural:
            workflow, stage, rank, _ = allocation_parts(name)
            self.ranks.setdefault((workflow, stage, rank), []).append(attempt)
            self.kinds.setdefault((workflow, stage), []).append(moment[0] - attempt.since)

    def _command(self, event: object) -> AnyCommand | None:
        match event:
            case ServerStarted():
                return StartServer(version=event.version)
            case ServerStopped():
                return StopServer()
            case ConfigSet():
                return SetConfig(values=event.values, formulas=event.formulas)
            case OrganizationUpdated():
                return UpdateOrganization(organization=event.organization, priority=event.priority)
            case GroupUpdated():
                return self._group(event)
            case GroupDeleted():
                return DeleteGroup(organization=event.organization, group=event.group)
            case UserUpdated():
                return UpdateUser(user=event.user, priority=event.priority)
            case WorkflowSubmitted():
                return _submission(event)
            case VolumesRemoved():
                return Report(node="", volumes_removed=(event.workflow,))
            case WorkflowStopping():
                return StopWorkflow(workflow=event.workflow, reason=event.reason)
            case _:
                return self._fleet(event)

    def _group(self, event: GroupUpdated) -> UpdateGroup:
        key = (event.organization, event.group)
        before = self._preempts.get(key, ())
        self._preempts[key] = event.preempts
        return UpdateGroup(
            organization=event.organization,
            group=event.group,
            priority=event.priority,
            preempt=tuple(one for one in event.preempts if one not in before),
            no_preempt=tuple(one for one in before if one not in event.preempts),
        )

    def _fleet(self, event: object) -> AnyCommand | None:
        match event:
            case NodeRegistered():
                self._facts[event.node] = event
                return RegisterNode(**msgspec.structs.asdict(event))
            case NodeReturned():
                return RegisterNode(**msgspec.structs.asdict(self._facts[event.node]))
            case NodeCordoned():
                return CordonNode(node=event.node, reason=event.reason)
            case NodeUncordoned():
                return UncordonNode(node=event.node)
            case NodeDraining():
                return DrainNode(node=event.node, reason=event.reason, evict=event.evict)
            case NodeLost():
                return DeclareLost(node=event.node, silent_ms=event.silent_ms)
            case NodeRemoved():
                return RemoveNode(node=event.node)
            case _:
                return None


def _submission(event: WorkflowSubmitted) -> SubmitWorkflow:
    return SubmitWorkflow(
        key=event.key,
        name=event.name,
        definition=event.definition,
        source=event.source,
        organization=event.organization,
        group=event.group,
        user=event.user,
        priority=event.priority,
        preemptible=event.preemptible,
    )
