"""The state that decisions are made from: what is alive now, and nothing that has ended.

Only `logyard_domain.evolve` changes it. Plain mutable objects, owned by one thread. Fields under
*derived* are caches of the others: they are rebuilt, never saved, and decide nothing by themselves.
"""

from collections import deque
from heapq import heapify, heappop, heappush
from typing import Literal

from logyard_domain.configuration import DEFAULTS, Value
from logyard_domain.definition import Workflow as Definition
from logyard_domain.holds import Hold
from logyard_domain.plan import StagePlan
from logyard_domain.resources import Capacity, Request

WorkflowStatus = Literal["pending", "started", "stopping"]
StageStatus = Literal["waiting", "ready", "started", "finished", "failed", "canceled"]
AllocationStatus = Literal["placed", "started", "stopping"]
NodeStatus = Literal["up", "cordoned", "draining", "drained", "lost"]

DAY_MS = 86_400_000
Order = tuple[int, int, int]
"""Sorts what waits: submit instant minus priority (a day each), submit position, stage number."""


class Node:
    """A machine, what it has, and what is free of it."""

    __slots__ = (
        "annotations", "before", "capacity", "features", "free_cores", "free_devices",
        "free_memory", "host", "incarnation", "limits", "name", "running", "sole", "status",
        "storage", "version",
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
        # derived
        self.free_cores = 0
        self.free_memory = 0
        self.free_devices: dict[str, int] = {}
        self.sole = False


class Stage:
    """One node of a workflow's graph, and which of its ranks wait, run and have ended."""

    __slots__ = (
        "again", "delayed", "dependants", "error", "failed", "failures", "finished", "holding",
        "losses", "next", "plan", "queued", "run_ms", "shape", "started", "status", "unfilled",
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
        self.run_ms = 0
        """How long those that finished ran, in all."""
        self.failed = 0
        self.error = ""
        # derived
        self.unmet = len(plan.needs)
        self.dependants: list[Stage] = []
        self.queued = False
        self.holding: dict[str, None] = {}
        """Allocations of it that hold room: those in flight."""
        self.unfilled: dict[str, None] = {}
        """Those of them that may have less queued behind them than they could."""

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
            self.waiting > 0
            and self.status in ("ready", "started")
            and len(self.holding) < self.plan.concurrency
            and not self.failed
            and self.workflow.status != "stopping"
        )

    @property
    def order(self) -> Order:
        """Its place in the queue; equal for all its ranks, which go by their number."""
        return (*self.workflow.order, self.plan.index)

    def first_waiting(self) -> tuple[int, int]:
        """Rank and attempt that would be placed next."""
        return self.again[0] if self.again else (self.next, 1)


class Known:
    """A definition that live workflows have in common, in full, and the stages it runs as."""

    __slots__ = ("definition", "identity", "stages", "users")

    def __init__(
        self, identity: bytes, definition: Definition, stages: tuple[StagePlan, ...]
    ) -> None:
        self.identity = identity
        self.definition = definition
        self.stages = stages
        self.users = 0


class Workflow:
    """A workflow that has not ended."""

    __slots__ = (
        "failed_stage", "group", "id", "key", "known", "name", "open_stages", "order",
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
        self.order: tuple[int, int] = (0, 0)


class Allocation:
    """One attempt that holds resources of a node, or will when the one that it is `behind` ends."""

    __slots__ = (
        "attempt", "began", "behind", "follower", "id", "node", "rank", "stage", "status",
        "stopping",
    )  # fmt: skip

    def __init__(self, id: str, stage: Stage, rank: int, attempt: int, node: Node) -> None:
        self.id = id
        self.stage = stage
        self.rank = rank
        self.attempt = attempt
        self.node = node
        self.status: AllocationStatus = "placed"
        self.began = False
        """Whether its start was reported."""
        self.stopping = ""
        """Why it is being stopped."""
        self.behind: Allocation | None = None
        self.follower: Allocation | None = None


class Shape:
    """Equal requests, what waits with them in order, and why."""

    __slots__ = ("heap", "hold", "id", "request")

    def __init__(self, id: int, request: Request) -> None:
        self.id = id
        self.request = request
        self.hold: Hold | None = None
        # derived: every open stage of this shape has one entry; entries that are no longer open are
        # dropped when they come to the top.
        self.heap: list[tuple[Order, str, Stage]] = []

    def push(self, stage: Stage) -> None:
        """Queue the stage, unless it is queued or has nothing to place."""
        if not stage.queued and stage.open:
            stage.queued = True
            heappush(self.heap, (stage.order, stage.workflow.id, stage))

    def head(self) -> Stage | None:
        """The stage whose next rank comes first, if any waits."""
        while self.heap:
            stage = self.heap[0][2]
            if stage.open:
                return stage
            heappop(self.heap)
            stage.queued = False
        return None

    def rebuild(self, stages: list[Stage]) -> None:
        """Queue just these stages."""
        self.heap = [(stage.order, stage.workflow.id, stage) for stage in stages if stage.open]
        for _, _, stage in self.heap:
            stage.queued = True
        heapify(self.heap)


class World:
    """Everything that is alive on one cluster."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.position = 0
        self.at = 0
        self.term = 0
        self.revision = 0
        self.config: dict[str, Value] = dict(DEFAULTS)
        self.nodes: dict[str, Node] = {}
        self.workflows: dict[str, Workflow] = {}
        self.allocations: dict[str, Allocation] = {}
        self.shapes: dict[int, Shape] = {}
        self.keys: dict[str, tuple[str, int]] = {}
        """Idempotency key (with its user) -> workflow id, and when it was used."""
        self.cleanups: dict[str, str] = {}
        """Ended workflow -> storage that still holds its ephemeral volumes."""
        # derived
        self.key_order: deque[str] = deque()
        """Keys, the one used longest ago first."""
        self.shape_ids: dict[Request, int] = {}
        self.definitions: dict[bytes, Known] = {}
        """Definitions of live workflows by their bytes."""
        self.timers: list[tuple[int, str, str, int]] = []
        """Heap of (not_before, workflow, stage, rank) that back off; may hold stale entries."""
        self.touched: dict[Stage, None] = {}
        """Stages that something happened to since the last `settle`."""
        self.touched_nodes: dict[str, None] = {}
        self.freed: dict[str, None] = {}
        """Nodes on which room appeared since the last tick."""
        self.fleet = 0
        """Changes with the set of nodes, their facts and states."""
