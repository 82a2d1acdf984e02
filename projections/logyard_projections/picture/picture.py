"""The picture: frozen data, ready to be drawn. Instants and lengths of time are milliseconds."""

import msgspec

from logyard_domain.resources import Request

REASONS = (
    "dependency",
    "data",
    "back-off",
    "limit",
    "capacity",
    "turn",
    "not-evaluated",
    "closed-nodes",
    "no-nodes",
    "never",
    "behind",
    "eviction",
)
"""What is waited for: those of `answers.waits`, and `behind` (it has a place behind one of its
stage, whose room it gets next). The first three are of what does not queue yet.
"""


class Owner(msgspec.Struct, frozen=True, gc=False):
    """A workflow and whose it is. `submitted` is an instant."""

    id: str
    name: str
    organization: str
    group: str
    user: str
    priority: int
    submitted: int
    position: int


class Promise(msgspec.Struct, frozen=True, gc=False):
    """The start that was promised while it was first in line: at first, and at last."""

    first: int
    first_position: int
    last: int
    last_position: int
    moves: int = 0


class Stop(msgspec.Struct, frozen=True, gc=False):
    """It was told to stop, for `reason`; a victim for allocation `by` (empty: an administrator),
    whose priority was `gap` higher.
    """

    reason: str
    at: int
    position: int
    by: str = ""
    gap: float = 0.0


class Piece(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Cores from `low` on, of a node by its index."""

    node: int
    low: int
    cores: int


class Bar(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An attempt that had room, from `begin` to `end`.

    `queued` is when it was submitted, or requeued (then `requeued` says why); `ready` when it could
    have been placed. `waits` are the parts of the time from `queued` to `begin`. `started` is 0
    where it never ran, `end_position` where it had not ended by the end of the picture.
    """

    owner: Owner
    stage: str
    stage_kind: str
    rank: int
    array: bool
    attempt: int
    shape: int
    pieces: tuple[Piece, ...]
    kind: str
    revision: int
    queued: int
    queued_position: int
    requeued: str
    ready: int
    ready_position: int
    placed: int
    placed_position: int
    begin: int
    begin_position: int
    started: int
    started_position: int
    end: int
    end_position: int
    outcome: str = ""
    exit_code: int | None = None
    signal: int | None = None
    peak_bytes: int = 0
    error: str = ""
    behind: str = ""
    after: tuple[str, ...] = ()
    stop: Stop | None = None
    promise: Promise | None = None
    waits: tuple[tuple[str, int], ...] = ()

    @property
    def cores(self) -> int:
        """On all nodes together."""
        return sum(piece.cores for piece in self.pieces)


class NodeRow(msgspec.Struct, frozen=True, gc=False):
    """A node. It had at most `cores`; `top` rows of cores are needed to draw what it ran."""

    name: str
    cores: int
    top: int


class NodeSpan(msgspec.Struct, frozen=True, gc=False):
    """A node (by its index) was in this state from `since` to `until`."""

    node: int
    state: str
    since: int
    until: int


class Revision(msgspec.Struct, frozen=True, gc=False):
    """A policy, in force from `at` on."""

    revision: int
    at: int
    position: int


class Load(msgspec.Struct, frozen=True, gc=False):
    """How much of a resource was used and offered, as means by step; `peak` is of what was used."""

    name: str
    used: tuple[float, ...]
    offered: tuple[float, ...]
    peak: float


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """How many waited for `reason`, as means by step; `total_ms` is the sum of their waits."""

    reason: str
    counts: tuple[float, ...]
    total_ms: int
    peak: int


class Sum(msgspec.Struct, gc=False):
    """Allocations of one group: how many had room in the span, and what came of it.

    `waited_ms` is from ready to placed, over all of them; `core_ms` is within the span.
    """

    allocations: int = 0
    backfilled: int = 0
    preempting: int = 0
    preempted: int = 0
    bad: int = 0
    core_ms: int = 0
    waited_ms: int = 0


class Picture(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A span of a log. `steps` of `width` ms are what courses and `shade` are in.

    `bars` are in the order of their placement. Where there were more than a picture holds, the
    shortest are not among them but in `shade`: for each node, the mean of their cores by step.
    """

    cluster: str
    since: int
    until: int
    first: int
    position: int
    unknown: int
    revisions: tuple[Revision, ...]
    nodes: tuple[NodeRow, ...]
    spans: tuple[NodeSpan, ...]
    shapes: dict[int, Request]
    bars: tuple[Bar, ...]
    shade: dict[int, tuple[float, ...]]
    shaded: int
    width: int
    steps: int
    loads: tuple[Load, ...]
    waits: tuple[Waiting, ...]
    running: tuple[float, ...]
    running_peak: int
    groups: dict[tuple[str, str], Sum]
    waiting: int
