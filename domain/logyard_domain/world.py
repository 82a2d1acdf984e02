"""The state that decisions are made from: what is alive now, and nothing that has ended.

Only `logyard_domain.evolve` changes it. Plain mutable objects, owned by one thread. Fields under
*derived* are caches of the others: they are rebuilt, never saved, and decide nothing by themselves.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Literal, NamedTuple

from logyard_domain.configuration import DEFAULTS, Value
from logyard_domain.definition import Workflow as Definition
from logyard_domain.expressions import DEFAULT_PRIORITY, Expression, Scalar
from logyard_domain.holds import Hold
from logyard_domain.plan import StagePlan
from logyard_domain.resources import Capacity, Request
from logyard_domain.usage import Usage

WorkflowStatus = Literal["pending", "started", "stopping"]
StageStatus = Literal["waiting", "ready", "started", "finished", "failed", "canceled"]
AllocationStatus = Literal["placed", "started", "stopping"]
NodeStatus = Literal["up", "cordoned", "draining", "drained", "lost"]

DAY_MS = 86_400_000
EVERYTHING = ""
"""In `World.turnover`: so much changed that anything may have."""


class Node:
    """A machine, what it has, and what is free of it."""

    __slots__ = (
        "annotations", "before", "busy", "capacity", "features", "free_cores", "free_devices",
        "free_memory", "host", "incarnation", "limits", "name", "number", "running", "sole",
        "status", "storage", "version",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.capacity = Capacity(cores=0, memory=0)
        self.incarnation = ""
        self.annotations: dict[str, str] = {}
        self.storage = ""
        self.features: tuple[str, ...] = ()
        self.limits = ""
        self.host = ""
        self.version = ""
        self.status: NodeStatus = "up"
        self.before: NodeStatus = "up"
        """What it was before it was lost."""
        self.running: dict[str, None] = {}
        # derived. What is free may be negative while victims still hold what was given away.
        self.number = 0
        """Its place among the nodes."""
        self.free_cores = 0
        self.free_memory = 0
        self.free_devices: dict[str, int] = {}
        self.busy = 0
        """How many allocations hold something of it."""
        self.sole = 0
        """How many allocations on it want it for themselves."""


class Stage:
    """One node of a workflow's graph, and which of its ranks wait, run and have ended."""

    __slots__ = (
        "again", "delayed", "dependants", "error", "failed", "failures", "finished", "holding",
        "lane", "lined", "losses", "next", "pace", "plan", "queued", "shape", "started", "status",
        "unmet", "workflow",
    )  # fmt: skip

    def __init__(self, workflow: "Workflow", plan: StagePlan) -> None:
        self.workflow = workflow
        self.plan = plan
        self.status: StageStatus = "waiting"
        self.shape = 0
        self.next = plan.first
        """The lowest rank that was never placed; above `plan.last` when all were."""
        self.again: list[tuple[int, int]] = []
        """Heap of (rank, attempt) that were requeued and may be placed."""
        self.delayed: dict[int, tuple[int, int]] = {}
        """Rank -> (attempt, not_before) of those that back off."""
        self.failures: dict[int, int] = {}
        self.losses: dict[int, int] = {}
        """Rank -> how often it failed, or was lost, and was requeued."""
        self.started = False
        self.finished = 0
        self.failed = 0
        self.error = ""
        # derived
        self.unmet = len(plan.needs)
        self.dependants: list[Stage] = []
        self.queued = False
        self.lane: Lane | None = None
        self.holding: dict[str, None] = {}
        """Allocations of it that hold room: those in flight."""
        self.lined: dict[str, None] = {}
        """Allocations of it that queue behind others, and hold none yet."""
        self.pace = Pace()
        """That of all equal stages."""

    @property
    def total(self) -> int:
        """How many ranks it has."""
        return self.plan.last - self.plan.first + 1

    @property
    def waiting(self) -> int:
        """How many ranks could be placed if there were room, concurrency left aside."""
        return self.plan.last + 1 - self.next + len(self.again)

    @property
    def open(self) -> bool:
        """Whether a rank of it may be placed now."""
        return (
            (self.next <= self.plan.last or bool(self.again))
            and self.status in ("ready", "started")
            and len(self.holding) < self.plan.concurrency
            and not self.failed
            and self.workflow.status != "stopping"
        )

    @property
    def limit_ms(self) -> int:
        """How long a rank of it may run."""
        return self.plan.limit_ms or self.workflow.timeout_ms

    def first_waiting(self) -> tuple[int, int]:
        """Rank and attempt that would be placed next."""
        return self.again[0] if self.again else (self.next, 1)


class Pace:
    """What ranks of one stage take, over all live workflows of equal definitions, since the first
    of them: so many that `finished` ran for `run_ms` in all.
    """

    __slots__ = ("finished", "holding", "run_ms")

    def __init__(self) -> None:
        self.finished = 0
        self.run_ms = 0
        self.holding: dict[str, None] = {}
        """Allocations that hold room."""


class Known:
    """A definition that live workflows have in common, in full, and the stages it runs as."""

    __slots__ = ("definition", "identity", "paces", "stages", "users")

    def __init__(
        self, identity: bytes, definition: Definition, stages: tuple[StagePlan, ...]
    ) -> None:
        self.identity = identity
        self.definition = definition
        self.stages = stages
        self.paces = {stage.name: Pace() for stage in stages}
        self.users = 0


class Workflow:
    """A workflow that has not ended."""

    __slots__ = (
        "failed_stage", "group", "id", "key", "known", "name", "open_stages",
        "organization", "position", "preemptible", "priority", "stages", "status", "storage",
        "submitted_at", "timeout_ms", "user", "volumes",
    )  # fmt: skip

    known: Known

    def __init__(self, id: str) -> None:
        self.id = id
        self.name = ""
        self.key = ""
        self.organization = ""
        self.group = ""
        self.user = ""
        self.priority = 0
        self.preemptible = False
        self.timeout_ms = 0
        self.submitted_at = 0
        self.position = 0
        self.status: WorkflowStatus = "pending"
        self.failed_stage = ""
        self.storage = ""
        self.volumes = False
        """Whether ephemeral volumes of it may exist on `storage`."""
        self.stages: dict[str, Stage] = {}
        # derived
        self.open_stages = 0


class Allocation:
    """One attempt that holds resources of nodes, or will when the one that it is `behind` ends, or
    when all that it comes `after` have.
    """

    __slots__ = (
        "after", "attempt", "began", "behind", "chunks", "follower", "id", "line", "node", "rank",
        "since", "stage", "status", "stopped_at", "stopping",
    )  # fmt: skip

    def __init__(
        self,
        id: str,
        stage: Stage,
        rank: int,
        attempt: int,
        node: Node,
        chunks: tuple[tuple[Node, int], ...],
    ) -> None:
        self.id = id
        self.stage = stage
        self.rank = rank
        self.attempt = attempt
        self.node = node
        """The node that starts it."""
        self.chunks = chunks
        """How many chunks of the request it has, on which nodes."""
        self.since = 0
        """When it got its room; 0 while it waits for it."""
        self.status: AllocationStatus = "placed"
        self.began = False
        """Whether its start was reported."""
        self.stopping = ""
        """Why it is being stopped."""
        self.stopped_at = 0
        self.after: dict[str, None] = {}
        """Victims that still hold the room that it was promised."""
        self.behind: Allocation | None = None
        self.follower: Allocation | None = None
        self.line = 0
        """How many queue behind it, while it holds room; derived."""

    def first(self) -> "Allocation":
        """The one that holds the room: itself, or the first of the line that it queues in."""
        found = self
        while found.behind is not None:
            found = found.behind
        return found


class Shape:
    """Equal requests, and why what waits with them does."""

    __slots__ = ("hold", "id", "lanes", "request")

    def __init__(self, id: int, request: Request) -> None:
        self.id = id
        self.request = request
        self.hold: Hold | None = None
        self.lanes = 0
        """In how many lanes something of it waits; derived."""


class LaneKey(NamedTuple):
    """What can make a difference to the priority of what waits, except when it was submitted.

    `apart` is 0; under an expression by which age can lower a priority it is the submit position,
    so that each workflow is judged by itself.
    """

    shape: int
    organization: str
    group: str
    user: str
    priority: int
    limit_ms: int
    apart: int


class Lane:
    """Stages that wait and differ in nothing but their age, the oldest first."""

    __slots__ = ("heap", "key", "listed")

    def __init__(self, key: LaneKey) -> None:
        self.key = key
        self.listed = False
        """Whether it is one of the world's: something waits in it."""
        self.heap: list[tuple[int, int, Stage]] = []
        """Submit position, number of the stage. Stages that are not open any more are dropped when
        they come to the top.
        """

    def push(self, stage: Stage) -> None:
        """Queue the stage, unless it is queued or has nothing to place."""
        if not stage.queued and stage.open:
            stage.queued = True
            heappush(self.heap, (stage.workflow.position, stage.plan.index, stage))

    def head(self) -> Stage | None:
        """The stage whose next rank comes first, if any waits."""
        while self.heap:
            stage = self.heap[0][2]
            if stage.open:
                return stage
            heappop(self.heap)
            stage.queued = False
        return None


class Group:
    """A group's priority, and which groups of its organization it may preempt."""

    __slots__ = ("preempts", "priority")

    def __init__(self, priority: int, preempts: tuple[str, ...]) -> None:
        self.priority = priority
        self.preempts = preempts


class Reservation:
    """A promise to an allocation: when it starts at the latest, and on which nodes."""

    __slots__ = ("at", "chunks", "position", "stage")

    def __init__(self, at: int, chunks: dict[str, int], position: int, stage: Stage) -> None:
        self.at = at
        self.chunks = chunks
        self.position = position
        """Where on the log it was last made or moved."""
        self.stage = stage


class World:
    """Everything that is alive on one cluster."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.position = 0
        self.at = 0
        self.term = 0
        self.revision = 0
        self.config: dict[str, Value] = dict(DEFAULTS)
        self.formulas: dict[str, Expression] = {}
        """What the settings that are expressions mean."""
        self.nodes: dict[str, Node] = {}
        self.workflows: dict[str, Workflow] = {}
        self.allocations: dict[str, Allocation] = {}
        self.shapes: dict[int, Shape] = {}
        self.organizations: dict[str, int] = {}
        """Organization -> priority. Who is not in these three has priority 0."""
        self.groups: dict[tuple[str, str], Group] = {}
        """(organization, group) -> what is known of it."""
        self.users: dict[str, int] = {}
        self.usage: dict[str, Usage] = {}
        """``group:ORGANIZATION/GROUP`` and ``user:USER`` -> what they used."""
        self.reservations: dict[str, Reservation] = {}
        """Allocation that waits -> what it was promised."""
        self.fleet_at = 0
        """Position of the last event that changed the nodes."""
        self.ranked_at = 0
        """Position of the last event that changed the configuration or a priority."""
        self.keys: dict[str, tuple[str, int]] = {}
        """Idempotency key (with its user) -> workflow id, and when it was used."""
        self.cleanups: dict[str, str] = {}
        """Ended workflow -> storage that still holds its ephemeral volumes."""
        # derived
        self.key_order: deque[str] = deque()
        """Keys, the one used longest ago first."""
        self.shape_ids: dict[Request, int] = {}
        self.lanes: dict[LaneKey, Lane] = {}
        """Those in which something waits."""
        self.lane_set = 0
        """Changes where lanes were laid out anew, or more were forgotten than are kept in mind."""
        self.emptied: dict[Lane, None] = {}
        """Lanes that were forgotten since the last tick; some may be in use again."""
        self.dirty: dict[Lane, None] = {}
        """Lanes of which another stage may come first since the last tick."""
        self.priority = DEFAULT_PRIORITY
        """The expression in force."""
        self.ranking: tuple[Expression, Callable[[tuple[World, Stage, int]], Scalar]] | None = None
        """The last expression that was asked for, and what gives its value."""
        self.rising = True
        """Whether by it, of two that differ only in age the older always comes first."""
        self.moving = False
        """Whether by it the order of what waits may change by the mere passing of time."""
        self.clear: list[str] = []
        """Allocations whose victims have all ended since the last `settle`."""
        self.preemptors: dict[str, Allocation] = {}
        """Victim that has not ended yet -> the allocation that gets its room."""
        self.definitions: dict[bytes, Known] = {}
        """Definitions of live workflows by their bytes."""
        self.timers: list[tuple[int, str, str, int]] = []
        """Heap of (not_before, workflow, stage, rank) that back off; may hold stale entries."""
        self.touched: dict[Stage, None] = {}
        """Stages that something happened to since the last `settle`."""
        self.touched_nodes: dict[str, None] = {}
        self.freed: dict[str, None] = {}
        """Nodes on which room appeared since the last tick."""
        self.stirred: dict[str, None] = {}
        """Nodes on which something began, ended or is being stopped since the last tick."""
        self.turnover: dict[str, None] = {}
        """Allocations that began, ended, are being stopped or got one behind them since then."""
        self.held: dict[int, None] = {}
        """Shapes that have a hold."""
        self.node_count = 0
        """Nodes that there ever were, in this process."""
        self.fleet = 0
        """Changes with the set of nodes, their facts and states."""
