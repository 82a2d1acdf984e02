"""What the audit knows of workflows, stages, shapes, attempts and promises while they live."""

from typing import TYPE_CHECKING, Literal

from logyard_domain.plan import StagePlan
from logyard_domain.resources import Request, asks_nothing

if TYPE_CHECKING:
    from logyard_engine.audit.boards import AnyBoard
    from logyard_engine.audit.fleet import Node

WorkflowStatus = Literal["pending", "started", "stopping", "over"]
StageStatus = Literal["waiting", "ready", "started", "finished", "failed", "canceled"]
Key = tuple[float, int, int]
"""What the queue is sorted by: minus the priority, submit position, number of the stage."""
FIRST: Key = (float("-inf"), 0, 0)


class Workflow:
    """A workflow that has not ended."""

    __slots__ = (
        "failed_stage", "group", "id", "open_stages", "organization", "position", "priority",
        "stages", "status", "storage", "submitted_at", "timeout_ms", "user",
    )  # fmt: skip

    def __init__(self, id: str, organization: str, group: str, user: str) -> None:
        self.id = id
        self.organization = organization
        self.group = group
        self.user = user
        self.priority = 0
        self.timeout_ms = 0
        self.submitted_at = 0
        self.position = 0
        self.status: WorkflowStatus = "pending"
        self.failed_stage = ""
        self.storage = ""
        self.stages: dict[str, Stage] = {}
        self.open_stages = 0


class Stage:
    """A stage and where each of its ranks is."""

    __slots__ = (
        "again", "concurrency", "delayed", "dependants", "failed", "failures", "finished",
        "holding", "index", "key", "last", "limit_ms", "lined", "losses", "name", "next", "plan",
        "queued", "shape", "started", "status", "unmet", "workflow",
    )  # fmt: skip

    def __init__(self, workflow: Workflow, plan: StagePlan) -> None:
        self.workflow = workflow
        self.plan = plan
        self.name = plan.name
        self.index = plan.index
        self.limit_ms = plan.limit_ms or workflow.timeout_ms
        self.concurrency = plan.concurrency
        self.shape: Shape | None = None
        self.status: StageStatus = "waiting"
        self.next = plan.first
        """The lowest rank that was never placed."""
        self.last = plan.last
        self.again: list[tuple[int, int]] = []
        """(rank, attempt) of those that may be placed again, sorted."""
        self.delayed: dict[int, tuple[int, int]] | None = None
        """Rank -> (attempt, not_before) of those that back off."""
        self.failures: dict[int, int] | None = None
        self.losses: dict[int, int] | None = None
        self.holding = 0
        """Attempts that hold room."""
        self.lined = 0
        """Attempts that queue behind others."""
        self.finished = 0
        self.failed = 0
        self.started = False
        self.unmet = len(plan.needs)
        self.dependants: list[Stage] = []
        self.queued = False
        self.key = FIRST

    @property
    def path(self) -> str:
        """What it is called: ``WORKFLOW/STAGE``."""
        return f"{self.workflow.id}/{self.name}"

    @property
    def total(self) -> int:
        """How many ranks it has."""
        return self.last - self.plan.first + 1

    @property
    def open(self) -> bool:
        """Whether a rank of it waits that may be placed."""
        return (
            (self.next <= self.last or bool(self.again))
            and (self.status == "ready" or self.status == "started")
            and self.holding < self.concurrency
            and not self.failed
            and self.workflow.status != "stopping"
        )

    def next_waiting(self) -> str:
        """Name of the allocation that would be placed next."""
        rank, attempt = self.again[0] if self.again else (self.next, 1)
        return f"{self.workflow.id}/{self.name}/{rank}#{attempt}"


class Shape:
    """Equal requests, what waits with them, and which kinds of nodes could run them."""

    __slots__ = (
        "asks", "board", "held", "id", "kinds", "limits", "placeable", "queue", "request",
        "version",
    )  # fmt: skip

    def __init__(self, id: int, request: Request) -> None:
        self.id = id
        self.request = request
        self.asks = not asks_nothing(request)
        """False for staging, which fits wherever it may run."""
        self.queue: list[tuple[Key, Stage]] = []
        """Stages that wait, the first in order first."""
        self.limits: list[int] = []
        """Their time limits, sorted."""
        self.held = ""
        """The kind of hold that the log has for it."""
        self.version = -1
        self.kinds: frozenset[int] = frozenset()
        self.placeable = False
        """Whether it would fit if nothing ran."""
        self.board: AnyBoard | None = None


class Attempt:
    """An attempt that holds room, or will."""

    __slots__ = (
        "after", "began", "behind", "chunks", "claimant", "due", "follower", "grace_ms", "id",
        "kind", "number", "placed_at", "position", "rank", "request", "sequence", "since", "size",
        "stage", "stopped_at", "stopping",
    )  # fmt: skip

    def __init__(self, id: str, stage: Stage, rank: int, number: int, request: Request) -> None:
        self.id = id
        self.stage = stage
        self.rank = rank
        self.number = number
        self.request = request
        self.chunks: list[tuple[Node, int]] = []
        self.size = 0
        """Chunks in all."""
        self.kind = "direct"
        self.position = 0
        self.sequence = 0
        self.placed_at = 0
        self.since = 0
        """When it got its room; 0 while it waits for it."""
        self.grace_ms = 0
        """How long after its limit it could go on when it was placed."""
        self.due = 0
        """By when it should have ended, as it stands in the list of ends."""
        self.began = False
        self.stopping = ""
        self.stopped_at = 0
        self.after: set[Attempt] = set()
        """Victims that hold the room which it was given."""
        self.claimant: Attempt | None = None
        """The attempt that gets its room."""
        self.behind: Attempt | None = None
        self.follower: Attempt | None = None


class Promise:
    """What the first in line was told."""

    __slots__ = ("allocation", "at", "chunks", "fresh", "idle", "position", "shape", "stage")

    def __init__(self, allocation: str, stage: Stage, shape: Shape) -> None:
        self.allocation = allocation
        self.stage = stage
        self.shape = shape
        self.at = 0
        self.chunks: dict[Node, int] = {}
        self.position = 0
        self.fresh = True
        """Whether its nodes were not looked at since it was made or moved."""
        self.idle = 0
        """How many of its nodes are idle; kept for nodes of one core only."""
