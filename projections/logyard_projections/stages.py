"""Stages of workflows and the attempts of their ranks: the rows that most other views lean on."""

from functools import lru_cache
from typing import Literal

import msgspec

from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationReady,
    AllocationRequeued,
    AllocationSeated,
    AllocationStarted,
    AllocationStopping,
    StageCanceled,
    StageFailed,
    StageFinished,
    StageReady,
    StageStarted,
    WorkflowSubmitted,
)
from logyard_domain.identifiers import allocation_parts
from logyard_domain.plan import StageKind, StagePlan
from logyard_domain.records import Record
from logyard_projections.fold import Projection
from logyard_projections.plans import stages_of
from logyard_projections.rows import Rows
from logyard_projections.tables import Table

StageStatus = Literal["waiting", "ready", "started", "finished", "failed", "canceled"]
State = Literal["delayed", "waiting", "placed", "running", "stopping", "ended"]
LIVE: frozenset[str] = frozenset(("placed", "running", "stopping"))
OVER: frozenset[str] = frozenset(("finished", "failed", "canceled"))


class Stage(msgspec.Struct, array_like=True, kw_only=True, gc=False):
    """One stage. Of its `total` ranks some are `delayed` (back-off), `placed` (not running yet),
    `running`, `finished`, `failed` or `canceled`; the others wait (`waiting`).

    Instants are 0 while they have not come, positions likewise. `was` is the status before the last
    change of status; `dropped` and `dropped_delayed` count the ranks that waited when the stage was
    given up. `unplaced` is the lowest rank that was never placed.
    """

    workflow: str
    name: str
    index: int
    kind: StageKind
    title: str
    needs: tuple[str, ...]
    first: int
    last: int
    array: bool
    concurrency: int
    limit_ms: int
    preemptible: bool
    submitted_at: int
    submitted_position: int
    status: StageStatus = "waiting"
    was: StageStatus = "waiting"
    shape: int = 0
    unplaced: int = 0
    delayed: int = 0
    placed: int = 0
    running: int = 0
    ahead: int = 0
    finished: int = 0
    failed: int = 0
    canceled: int = 0
    attempts: int = 0
    dropped: int = 0
    dropped_delayed: int = 0
    ready_at: int = 0
    ready_position: int = 0
    started_at: int = 0
    ended_at: int = 0
    ended_position: int = 0
    error: str = ""

    @property
    def total(self) -> int:
        """How many ranks it has."""
        return self.last - self.first + 1

    @property
    def inflight(self) -> int:
        """How many ranks hold resources; those that queue ahead on a node do not yet."""
        return self.placed + self.running - self.ahead

    @property
    def waiting(self) -> int:
        """How many ranks could be placed if there were room; 0 before it is ready."""
        if self.status != "ready" and self.status != "started":
            return 0
        ended = self.finished + self.failed + self.canceled
        return self.last - self.first + 1 - self.delayed - self.placed - self.running - ended


class Allocation(msgspec.Struct, array_like=True, kw_only=True, gc=False):
    """One attempt of a rank, from its requeue or placement on.

    `state` is where it is now and `was` where it was before. It was queued at `queued_at`, and
    could have been placed from `eligible_at` on (0: it backs off still). It has had its room since
    `since` (0: not yet). `started_at` is by the node's clock where the node told it. `run_ms`,
    `cpu_ms`, `peak_bytes`, `exit_code`, `signal` and `outcome` are known at the end.

    A request for several chunks has them on the nodes of `chunks` (node -> how many); for a single
    one that is empty and `node` says all. `behind` and `follower` are keys: of the one whose room
    it takes over, while that holds it, and of the one that takes over its own. `after` are its
    victims; until `seated_at` some of them still run on the room that it was given. `stopping` is
    why it is being stopped, from `stopping_at` on: for `by` (empty: an administrator), whose
    priority was `gap` higher, after it had run for `ran_ms`.
    """

    id: str
    workflow: str
    stage: str
    rank: int
    attempt: int
    shape: int = 0
    node: str = ""
    chunks: dict[str, int] = {}
    behind: str = ""
    follower: str = ""
    state: State = "waiting"
    was: State = "waiting"
    kind: str = ""
    revision: int = 0
    requeued: str = ""
    queued_at: int = 0
    queued_position: int = 0
    not_before: int = 0
    eligible_at: int = 0
    eligible_position: int = 0
    placed_at: int = 0
    placed_position: int = 0
    after: tuple[str, ...] = ()
    seated_at: int = 0
    seated_position: int = 0
    since: int = 0
    started_at: int = 0
    started_position: int = 0
    stopping: str = ""
    stopping_at: int = 0
    stopping_position: int = 0
    by: str = ""
    gap: float = 0.0
    ran_ms: int = 0
    ended_at: int = 0
    ended_position: int = 0
    outcome: str = ""
    exit_code: int | None = None
    signal: int | None = None
    run_ms: int = 0
    cpu_ms: int = 0
    peak_bytes: int = 0
    error: str = ""

    @property
    def on(self) -> str | None:
        """The node whose resources it holds now, where it is one alone (see `nodes.SEATS`)."""
        held = self.state in LIVE and not self.behind and not self.chunks
        return self.node if held else None

    @property
    def live(self) -> str | None:
        """Its stage while it is placed and has not ended."""
        return stage_key(self.workflow, self.stage) if self.state in LIVE else None

    @property
    def seats(self) -> dict[str, int]:
        """How many chunks of its request it has, on which nodes; empty before it is placed."""
        return self.chunks or ({self.node: 1} if self.node else {})

    @property
    def evicts(self) -> bool:
        """Whether victims still run on the room that it was given."""
        return bool(self.after) and not self.seated_at and self.state in LIVE

    @property
    def again(self) -> str | None:
        """Its stage while it waits as a later attempt."""
        waits = self.state == "waiting" or self.state == "delayed"
        return stage_key(self.workflow, self.stage) if waits else None


STAGES = Table(
    "stages",
    Stage,
    columns={"workflow": str, "index": int, "status": str},
    indexes=[("workflow", "index")],
)
ALLOCATIONS = Table(
    "allocations",
    Allocation,
    columns={"on": str, "live": str, "again": str},
    indexes=[("on",), ("live",), ("again",)],
)


class Place(msgspec.Struct, frozen=True, gc=False):
    """What an allocation's name says, and the keys of its rows. Keys sort by rank and attempt."""

    key: str
    stage_key: str
    workflow: str
    stage: str
    rank: int
    attempt: int


def stage_key(workflow: str, stage: str) -> str:
    return f"{workflow}/{stage}"


def allocation_key(workflow: str, stage: str, rank: int, attempt: int) -> str:
    return f"{workflow}/{stage}/{rank:010d}#{attempt:06d}"


@lru_cache(maxsize=4096)
def place_of(allocation: str) -> Place:
    """Raises ValueError where the text is no allocation's name."""
    workflow, stage, rank, attempt = allocation_parts(allocation)
    key = allocation_key(workflow, stage, rank, attempt)
    return Place(key, stage_key(workflow, stage), workflow, stage, rank, attempt)


def _submitted(rows: Rows, record: Record, event: WorkflowSubmitted) -> None:
    for plan in stages_of(event):
        stage = _planned(event, record, plan)
        rows.put(STAGES, stage_key(event.workflow, plan.name), stage)


def _planned(event: WorkflowSubmitted, record: Record, plan: StagePlan) -> Stage:
    return Stage(
        workflow=event.workflow,
        name=plan.name,
        index=plan.index,
        kind=plan.kind,
        title=plan.title,
        needs=plan.needs,
        first=plan.first,
        last=plan.last,
        array=plan.array,
        concurrency=plan.concurrency,
        limit_ms=plan.limit_ms or event.timeout_ms,
        preemptible=plan.request.preemptible,
        submitted_at=record.at,
        submitted_position=record.position,
        unplaced=plan.first,
    )


def _stage_ready(rows: Rows, record: Record, event: StageReady) -> None:
    stage = rows.edit(STAGES, stage_key(event.workflow, event.stage))
    if stage is not None:
        stage.was, stage.status = stage.status, "ready"
        stage.shape = event.shape
        stage.ready_at = record.at
        stage.ready_position = record.position


def _stage_started(rows: Rows, record: Record, event: StageStarted) -> None:
    stage = rows.edit(STAGES, stage_key(event.workflow, event.stage))
    if stage is not None:
        stage.was, stage.status = stage.status, "started"
        stage.started_at = record.at


def _stage_finished(rows: Rows, record: Record, event: StageFinished) -> None:
    _stage_over(rows, record, stage_key(event.workflow, event.stage), "finished", "")


def _stage_failed(rows: Rows, record: Record, event: StageFailed) -> None:
    _stage_over(rows, record, stage_key(event.workflow, event.stage), "failed", event.error)


def _stage_canceled(rows: Rows, record: Record, event: StageCanceled) -> None:
    _stage_over(rows, record, stage_key(event.workflow, event.stage), "canceled", event.reason)


def _stage_over(rows: Rows, record: Record, key: str, status: StageStatus, error: str) -> None:
    stage = rows.edit(STAGES, key)
    if stage is None:
        return
    stage.dropped = stage.total if stage.status == "waiting" else stage.waiting
    stage.dropped_delayed = stage.delayed
    stage.canceled += stage.dropped + stage.delayed
    stage.delayed = 0
    stage.was, stage.status = stage.status, status
    stage.error = error
    stage.ended_at = record.at
    stage.ended_position = record.position


def _placed(rows: Rows, record: Record, event: AllocationPlaced) -> None:
    place = place_of(event.allocation)
    stage = rows.edit(STAGES, place.stage_key)
    if stage is None:
        return
    allocation = rows.edit(ALLOCATIONS, place.key) if place.attempt > 1 else None
    if allocation is None:
        allocation = _attempt(place, event.allocation, stage)
        allocation.queued_at = allocation.eligible_at = stage.ready_at
        allocation.queued_position = allocation.eligible_position = stage.ready_position
        rows.put(ALLOCATIONS, place.key, allocation)
    if allocation.state == "delayed":
        stage.delayed -= 1
    stage.placed += 1
    stage.attempts += 1
    stage.unplaced = max(stage.unplaced, place.rank + 1)
    allocation.was, allocation.state = allocation.state, "placed"
    allocation.shape = stage.shape
    allocation.node = event.node
    allocation.chunks = event.chunks
    allocation.after = event.after
    allocation.kind = event.kind
    allocation.revision = event.revision
    allocation.placed_at = record.at
    allocation.placed_position = record.position
    if event.behind:
        allocation.behind = place_of(event.behind).key
        stage.ahead += 1
        _follow(rows, allocation.behind, place.key)
    elif not event.after:
        allocation.since = record.at


def _seated(rows: Rows, record: Record, event: AllocationSeated) -> None:
    allocation = rows.edit(ALLOCATIONS, place_of(event.allocation).key)
    if allocation is not None:
        allocation.since = allocation.seated_at = record.at
        allocation.seated_position = record.position


def _started(rows: Rows, record: Record, event: AllocationStarted) -> None:
    place = place_of(event.allocation)
    stage, allocation = rows.edit(STAGES, place.stage_key), rows.edit(ALLOCATIONS, place.key)
    if stage is None or allocation is None:
        return
    stage.placed -= 1
    stage.running += 1
    allocation.was = allocation.state
    if allocation.state == "placed":
        allocation.state = "running"
    allocation.started_at = event.started_at or record.at
    allocation.started_position = record.position


def _stopping(rows: Rows, record: Record, event: AllocationStopping) -> None:
    allocation = rows.edit(ALLOCATIONS, place_of(event.allocation).key)
    if allocation is not None:
        allocation.was, allocation.state = allocation.state, "stopping"
        allocation.stopping = event.reason
        allocation.stopping_at, allocation.stopping_position = record.at, record.position
        allocation.by, allocation.gap, allocation.ran_ms = event.by, event.gap, event.ran_ms


def _ended(rows: Rows, record: Record, event: AllocationEnded) -> None:
    place = place_of(event.allocation)
    stage, allocation = rows.edit(STAGES, place.stage_key), rows.edit(ALLOCATIONS, place.key)
    if stage is None or allocation is None:
        return
    if allocation.started_position:
        stage.running -= 1
    else:
        stage.placed -= 1
    _hand_on(rows, record, stage, allocation)
    _count(stage, event.outcome, 1)
    allocation.was, allocation.state = allocation.state, "ended"
    allocation.outcome = event.outcome
    allocation.exit_code = event.exit_code
    allocation.signal = event.signal
    allocation.run_ms = event.run_ms
    allocation.cpu_ms = event.cpu_ms
    allocation.peak_bytes = event.peak_bytes
    allocation.error = event.error
    allocation.ended_at = record.at
    allocation.ended_position = record.position


def _hand_on(rows: Rows, record: Record, stage: Stage, allocation: Allocation) -> None:
    """Its follower moves up; if it held room, the follower holds that now."""
    if allocation.follower:
        following = rows.edit(ALLOCATIONS, allocation.follower)
        if following is not None:
            following.behind = allocation.behind
            if not allocation.behind:
                following.since = record.at
                other = rows.edit(STAGES, stage_key(following.workflow, following.stage))
                if other is not None:
                    other.ahead -= 1
    if allocation.behind:
        _follow(rows, allocation.behind, allocation.follower)
        stage.ahead -= 1


def _follow(rows: Rows, key: str, follower: str) -> None:
    before = rows.edit(ALLOCATIONS, key)
    if before is not None:
        before.follower = follower


def _requeued(rows: Rows, record: Record, event: AllocationRequeued) -> None:
    place = place_of(event.allocation)
    stage = rows.edit(STAGES, place.stage_key)
    before = allocation_key(place.workflow, place.stage, place.rank, place.attempt - 1)
    previous = rows.get(ALLOCATIONS, before)
    if stage is None or previous is None:
        return
    _count(stage, previous.outcome, -1)
    allocation = _attempt(place, event.allocation, stage)
    allocation.requeued = event.reason
    allocation.queued_at = record.at
    allocation.queued_position = record.position
    allocation.not_before = event.not_before
    if event.not_before > record.at:
        allocation.state = "delayed"
        stage.delayed += 1
    else:
        allocation.eligible_at = record.at
        allocation.eligible_position = record.position
    rows.put(ALLOCATIONS, place.key, allocation)


def _ready(rows: Rows, record: Record, event: AllocationReady) -> None:
    place = place_of(event.allocation)
    stage, allocation = rows.edit(STAGES, place.stage_key), rows.edit(ALLOCATIONS, place.key)
    if stage is None or allocation is None:
        return
    if allocation.state == "delayed":
        stage.delayed -= 1
    allocation.was, allocation.state = allocation.state, "waiting"
    allocation.eligible_at = record.at
    allocation.eligible_position = record.position


def _attempt(place: Place, name: str, stage: Stage) -> Allocation:
    return Allocation(
        id=name,
        workflow=place.workflow,
        stage=place.stage,
        rank=place.rank,
        attempt=place.attempt,
    )


def _count(stage: Stage, outcome: str, change: int) -> None:
    if outcome == "finished":
        stage.finished += change
    elif outcome == "canceled":
        stage.canceled += change
    else:
        stage.failed += change


PROJECTION = Projection(
    "stages",
    2,
    (STAGES, ALLOCATIONS),
    {
        WorkflowSubmitted: _submitted,
        StageReady: _stage_ready,
        StageStarted: _stage_started,
        StageFinished: _stage_finished,
        StageFailed: _stage_failed,
        StageCanceled: _stage_canceled,
        AllocationPlaced: _placed,
        AllocationSeated: _seated,
        AllocationStarted: _started,
        AllocationStopping: _stopping,
        AllocationEnded: _ended,
        AllocationRequeued: _requeued,
        AllocationReady: _ready,
    },
)
