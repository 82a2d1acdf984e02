"""One change of a request, tried by the real rules and the real tick in a world of its own."""

from collections.abc import Iterable, Sequence

import msgspec

from logyard_domain.decide import decide
from logyard_domain.definition import Job
from logyard_domain.definition import Workflow as Definition
from logyard_domain.events import AllocationPlaced, AnyEvent, PlacementKind, WorkflowSubmitted
from logyard_domain.evolve import evolve
from logyard_domain.holds import Hold, NeverFits, NodesClosed, NoNodes
from logyard_domain.identifiers import allocation_parts, workflow_id
from logyard_domain.rules.queueing import noticed
from logyard_domain.settle import settle
from logyard_domain.world import Stage, World
from logyard_engine.advice.changes import OWNERS, Change, changed, command_of
from logyard_engine.scheduler.memory import Memory
from logyard_engine.scheduler.tick import tick

TICKS_MAX = 100
"""Ticks that may follow on each other at once, each of which stops at its limit of placements."""
KEY = "advice"
UNKNOWN = 1 << 61
NEVER = 1 << 62
"""Sorted by these, instants of which nothing is known, and of what cannot start as things are."""


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of what waits of a stage in one turn.

    So many ranks were `placed`, the first on `nodes` (node -> chunks) as `kind`, and where that is
    ``preempting``, after `victims` have ended. Else it was promised `promised` nodes from
    `promised_at` (ms; 0: no promise) on, and waits for the reason `hold`.
    """

    placed: int = 0
    kind: PlacementKind = "direct"
    nodes: dict[str, int] = {}
    victims: tuple[str, ...] = ()
    promised_at: int = 0
    promised: dict[str, int] = {}
    hold: Hold | None = None

    @property
    def at(self) -> int:
        """Sorts outcomes by when it starts."""
        if self.placed:
            return 0
        return self.promised_at or (NEVER if self.parked else UNKNOWN)

    @property
    def parked(self) -> bool:
        """Whether it could not start even if all that runs ended."""
        return isinstance(self.hold, NeverFits | NodesClosed | NoNodes)


def waiting_stage(world: World, allocation: str) -> Stage | None:
    """The stage of an allocation, if this waits for room."""
    workflow, name, rank, number = allocation_parts(allocation)
    found = world.workflows.get(workflow)
    stage = found.stages.get(name) if found else None
    if stage is None or not stage.open:
        return None
    first = number == 1 and stage.next <= rank <= stage.plan.last
    return stage if first or (rank, number) in stage.again else None


def attempt(
    world: World, memory: Memory, workflow: str, stage_name: str, change: Change, now: int
) -> Outcome:
    """What comes of the change in the turn at `now` (ms). The world is used up."""
    stage = world.workflows[workflow].stages[stage_name]
    if change.what in OWNERS:
        apply(world, decide(world, command_of(stage, change), now), now)
    else:
        stage = _asked_again(world, stage, change, now)
    return outcome(world, stage, followed(world, memory, now))


def followed(world: World, memory: Memory, now: int) -> list[AnyEvent]:
    """Let follow what follows, and tick, as a server would at `now`; the events."""
    events: list[AnyEvent] = []
    most = int(world.config["scheduler.placementsPerTick"])
    for _ in range(TICKS_MAX):
        apply(world, settle(world, now), now)
        found = apply(world, tick(world, memory, now), now)
        events += found
        if len(found) < most:
            break
    return events


def apply(world: World, events: Iterable[AnyEvent], now: int) -> list[AnyEvent]:
    """Apply events one after the other, as they are made."""
    found: list[AnyEvent] = []
    for event in events:
        evolve(world, event, now, world.position + 1)
        found.append(event)
    return found


def outcome(world: World, stage: Stage, events: Sequence[AnyEvent]) -> Outcome:
    """What these events, which were just applied, made of the stage."""
    prefix = f"{stage.workflow.id}/{stage.plan.name}/"
    placed = [
        event
        for event in events
        if isinstance(event, AllocationPlaced) and event.allocation.startswith(prefix)
    ]
    if placed:
        first = placed[0]
        nodes = first.chunks or {first.node: 1}
        return Outcome(placed=len(placed), kind=first.kind, nodes=nodes, victims=first.after)
    hold = world.shapes[stage.shape].hold
    for reservation in world.reservations.values():
        if reservation.stage is stage:
            return Outcome(promised_at=reservation.at, promised=reservation.chunks, hold=hold)
    return Outcome(hold=hold)


def _asked_again(world: World, stage: Stage, change: Change, now: int) -> Stage:
    """Take back what waits of a stage, and ask for as much anew, with the change."""
    request = changed(world.shapes[stage.shape].request, change)
    plan, workflow, count = stage.plan, stage.workflow, stage.waiting
    plan = msgspec.structs.replace(
        plan,
        needs=(),
        volumes=False,
        first=plan.last + 1 - count,
        concurrency=plan.concurrency - len(stage.holding),
        request=request,
        limit_ms=change.value if change.what == "limit" else stage.limit_ms,
    )
    _take_back(world, stage)
    position = world.position + 1
    submitted = WorkflowSubmitted(
        workflow=workflow_id(world.cluster, position),
        name=workflow.name,
        key=f"{KEY}-{position}",
        organization=workflow.organization,
        group=workflow.group,
        user=workflow.user,
        definition=Definition(jobs={plan.name: Job(command=("true",))}),
        source="",
        timeout_ms=workflow.timeout_ms,
        priority=change.value if change.what == "priority" else workflow.priority,
    )
    apply(world, [submitted], now)
    again = world.workflows[submitted.workflow].stages[plan.name]
    again.plan, again.next, again.unmet = plan, plan.first, 0
    return again


def _take_back(world: World, stage: Stage) -> None:
    stage.next = stage.plan.last + 1
    stage.again.clear()
    noticed(world, stage)
