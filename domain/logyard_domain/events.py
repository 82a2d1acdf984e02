"""Everything that can happen, in the past tense. The only things that are ever written down.

Tags are ``noun.verb`` and forever; new fields get defaults; what cannot be said so is a new event.
Instants are milliseconds since the epoch, lengths of time milliseconds, sizes bytes.
"""

from typing import Literal

import msgspec

from logyard_domain.definition import Workflow as Definition
from logyard_domain.expressions import Expression
from logyard_domain.holds import Hold
from logyard_domain.resources import Capacity, Request

Outcome = Literal["finished", "failed", "timeout", "canceled", "lost", "preempted"]
"""How an attempt ended. `lost` means the node was lost with it, `timeout` that its limit passed."""

StopReason = Literal["canceled", "timeout", "drained", "preempted"]
PlacementKind = Literal["direct", "backfilled", "preempting"]
SlipCause = Literal["earlier", "node", "overrun", "outranked", "policy"]
ReleaseCause = Literal["outranked", "withdrawn", "never"]


class Event(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", kw_only=True):
    """Base of all events; each has a fixed tag."""


# The cluster and its configuration


class ServerStarted(Event, frozen=True, kw_only=True, tag="server.started"):
    """A writer took the log. `term` counts writers from 1; `version` is the program's."""

    term: int
    version: str


class ServerStopped(Event, frozen=True, kw_only=True, tag="server.stopped"):
    """The writer ended in good order."""

    term: int


class ConfigSet(Event, frozen=True, kw_only=True, tag="config.set"):
    """Configuration that decisions use, whole, as revision `revision` (from 1).

    `formulas` has what each setting that is an expression, and not the default one, means: to
    replay a decision nobody has to read text again.
    """

    revision: int
    values: dict[str, int | float | bool | str]
    formulas: dict[str, Expression] = {}


# Organizations, groups and users


class OrganizationUpdated(Event, frozen=True, kw_only=True, tag="organization.updated"):
    """The organization is known, and this is its priority from now on."""

    organization: str
    priority: int = 0


class GroupUpdated(Event, frozen=True, kw_only=True, tag="group.updated"):
    """The group is known, with its priority and the groups (of the same organization) that it may
    preempt, sorted, from now on.
    """

    organization: str
    group: str
    priority: int = 0
    preempts: tuple[str, ...] = ()


class GroupDeleted(Event, frozen=True, kw_only=True, tag="group.deleted"):
    """The group is gone, also from the preempt lists of all others."""

    organization: str
    group: str


class UserUpdated(Event, frozen=True, kw_only=True, tag="user.updated"):
    """The user is known, and this is their priority from now on."""

    user: str
    priority: int = 0


# Nodes


class NodeRegistered(Event, frozen=True, kw_only=True, tag="node.registered"):
    """A substrate announced its node, or announced it again with changed facts.

    `incarnation` changes when the node cannot remember what it ran (reboot, its keeper died): what
    was placed on an older incarnation is lost. `storage` names where ephemeral volumes lie; nodes
    that share it share volumes. `features` are what the runtime can do (``mounts``); `limits`
    tells how
    limits are enforced (``cgroup-v1``, ``cgroup-v2``, ``rlimit``).
    """

    node: str
    capacity: Capacity
    incarnation: str
    annotations: dict[str, str] = {}
    storage: str = ""
    features: tuple[str, ...] = ()
    limits: str = ""
    host: str = ""
    version: str = ""


class NodeCordoned(Event, frozen=True, kw_only=True, tag="node.cordoned"):
    """Nothing new is placed there; what runs goes on."""

    node: str
    reason: str = ""


class NodeUncordoned(Event, frozen=True, kw_only=True, tag="node.uncordoned"):
    """Open for placements again; also ends a drain."""

    node: str


class NodeDraining(Event, frozen=True, kw_only=True, tag="node.draining"):
    """Cordoned, to be empty; `evict` requeues what runs instead of waiting for it."""

    node: str
    reason: str = ""
    evict: bool = False


class NodeDrained(Event, frozen=True, kw_only=True, tag="node.drained"):
    """A draining node has become empty."""

    node: str


class NodeLost(Event, frozen=True, kw_only=True, tag="node.lost"):
    """The node was silent for longer than `node.lostAfter`; `silent_ms` is how long."""

    node: str
    silent_ms: int


class NodeReturned(Event, frozen=True, kw_only=True, tag="node.returned"):
    """A lost node is heard again."""

    node: str


class NodeRemoved(Event, frozen=True, kw_only=True, tag="node.removed"):
    """The node left the cluster for good."""

    node: str


# Workflows and their stages


class WorkflowSubmitted(Event, frozen=True, kw_only=True, tag="workflow.submitted"):
    """A workflow was accepted. `definition` is version v4 as loaded; `source` the text as sent.

    `timeout_ms` is the execute timeout of jobs that set none, at that moment.
    """

    workflow: str
    name: str
    key: str
    organization: str
    group: str
    user: str
    definition: Definition
    source: str
    timeout_ms: int
    priority: int = 0
    preemptible: bool = False


class WorkflowStarted(Event, frozen=True, kw_only=True, tag="workflow.started"):
    """The first of its stages began."""

    workflow: str


class WorkflowStopping(Event, frozen=True, kw_only=True, tag="workflow.stopping"):
    """Somebody asked to stop it; what runs is being stopped."""

    workflow: str
    reason: str = ""


class WorkflowFinished(Event, frozen=True, kw_only=True, tag="workflow.finished"):
    """Every stage finished."""

    workflow: str


class WorkflowFailed(Event, frozen=True, kw_only=True, tag="workflow.failed"):
    """Some stage failed and nothing of it runs any more. `stage` failed first."""

    workflow: str
    stage: str
    error: str


class WorkflowCanceled(Event, frozen=True, kw_only=True, tag="workflow.canceled"):
    """It was stopped and nothing of it runs any more."""

    workflow: str


class VolumesRemoved(Event, frozen=True, kw_only=True, tag="volumes.removed"):
    """The ephemeral volumes of an ended workflow are gone."""

    workflow: str


class StageReady(Event, frozen=True, kw_only=True, tag="stage.ready"):
    """What it depends on is there; its ranks queue with this shape."""

    workflow: str
    stage: str
    shape: int


class StageStarted(Event, frozen=True, kw_only=True, tag="stage.started"):
    """The first of its ranks began to run."""

    workflow: str
    stage: str


class StageFinished(Event, frozen=True, kw_only=True, tag="stage.finished"):
    """Every rank finished."""

    workflow: str
    stage: str


class StageFailed(Event, frozen=True, kw_only=True, tag="stage.failed"):
    """A rank failed for good and no rank runs any more."""

    workflow: str
    stage: str
    error: str


class StageCanceled(Event, frozen=True, kw_only=True, tag="stage.canceled"):
    """It will not run (again): the workflow was stopped, or what it needs failed."""

    workflow: str
    stage: str
    reason: str = ""


# Scheduling


class ShapeDeclared(Event, frozen=True, kw_only=True, tag="shape.declared"):
    """A request was seen for the first time and got a number."""

    shape: int
    request: Request


class ShapeHeld(Event, frozen=True, kw_only=True, tag="shape.held"):
    """The reason why the shape waits changed."""

    shape: int
    hold: Hold


class ShapeReleased(Event, frozen=True, kw_only=True, tag="shape.released"):
    """The shape waits for nothing any more."""

    shape: int


class AllocationPlaced(Event, frozen=True, kw_only=True, tag="allocation.placed"):
    """A rank got the right to resources on a node, under the policy of `revision`.

    A request for several chunks has them on the nodes of `chunks` (node -> how many), of which
    `node` leads; empty means one chunk on `node`.

    With `behind`, the right begins when that allocation of the same stage ends: it takes over its
    room, and the node starts it without asking. With `after` (kind ``preempting``) it begins when
    all these victims have ended, which `allocation.seated` records; nobody else gets the room in
    between. ``backfilled`` means that it started before one of higher priority that waits for the
    same nodes, without delaying it.
    """

    allocation: str
    node: str
    chunks: dict[str, int] = {}
    behind: str = ""
    kind: PlacementKind = "direct"
    after: tuple[str, ...] = ()
    revision: int = 0


class AllocationSeated(Event, frozen=True, kw_only=True, tag="allocation.seated"):
    """Everything that it was placed after has ended; it may start."""

    allocation: str


class ReservationHeld(Event, frozen=True, kw_only=True, tag="reservation.held"):
    """The first that is blocked on its nodes has the promise to start by `at` on these `chunks`
    (node -> how many), made under the policy of `revision`. It ends when the allocation is placed.
    """

    allocation: str
    at: int
    chunks: dict[str, int]
    revision: int = 0


class ReservationMoved(Event, frozen=True, kw_only=True, tag="reservation.moved"):
    """The promise is another one from now on.

    `cause` says why: ``earlier`` (something ended before it had to), ``node`` (nodes were lost,
    closed, opened or changed), ``overrun`` (something runs longer than it may), ``outranked``
    (one of higher priority was placed), ``policy`` (the configuration or a priority changed).
    `because` is the position of the event that did it, 0 where time alone did.
    """

    allocation: str
    at: int
    chunks: dict[str, int]
    cause: SlipCause
    because: int = 0
    revision: int = 0


class ReservationReleased(Event, frozen=True, kw_only=True, tag="reservation.released"):
    """The promise is taken back: ``outranked`` (another one is first now), ``withdrawn`` (it
    waits no longer), ``never`` (it could not start even if all that runs ended).
    """

    allocation: str
    cause: ReleaseCause


class AllocationStarted(Event, frozen=True, kw_only=True, tag="allocation.started"):
    """Its first process runs. `started_at` is the node's clock."""

    allocation: str
    started_at: int = 0


class AllocationStopping(Event, frozen=True, kw_only=True, tag="allocation.stopping"):
    """It gets SIGTERM, and SIGKILL after the grace time.

    A victim of preemption makes room for allocation `by` (empty: an administrator), whose priority
    is `gap` higher (always finite); it had run for `ran_ms`.
    """

    allocation: str
    reason: StopReason
    by: str = ""
    gap: float = 0.0
    ran_ms: int = 0


class AllocationEnded(Event, frozen=True, kw_only=True, tag="allocation.ended"):
    """The attempt is over and its resources are free.

    `exit_code` is absent when it ended by `signal` or never started. `run_ms` is by the node's
    clock; `cpu_ms` user and system time; `peak_bytes` the most memory it held. `error` is one
    sentence for people.
    """

    allocation: str
    outcome: Outcome
    exit_code: int | None = None
    signal: int | None = None
    run_ms: int = 0
    cpu_ms: int = 0
    peak_bytes: int = 0
    error: str = ""


class AllocationRequeued(Event, frozen=True, kw_only=True, tag="allocation.requeued"):
    """`allocation` is the next attempt; it may be placed from `not_before` on."""

    allocation: str
    not_before: int
    reason: Literal["retry", "lost", "preempted", "drained"]


class AllocationReady(Event, frozen=True, kw_only=True, tag="allocation.ready"):
    """The back-off of a requeued attempt is over; it queues again."""

    allocation: str


AnyEvent = (
    ServerStarted
    | ServerStopped
    | ConfigSet
    | OrganizationUpdated
    | GroupUpdated
    | GroupDeleted
    | UserUpdated
    | NodeRegistered
    | NodeCordoned
    | NodeUncordoned
    | NodeDraining
    | NodeDrained
    | NodeLost
    | NodeReturned
    | NodeRemoved
    | WorkflowSubmitted
    | WorkflowStarted
    | WorkflowStopping
    | WorkflowFinished
    | WorkflowFailed
    | WorkflowCanceled
    | VolumesRemoved
    | StageReady
    | StageStarted
    | StageFinished
    | StageFailed
    | StageCanceled
    | ShapeDeclared
    | ShapeHeld
    | ShapeReleased
    | AllocationPlaced
    | AllocationSeated
    | ReservationHeld
    | ReservationMoved
    | ReservationReleased
    | AllocationStarted
    | AllocationStopping
    | AllocationEnded
    | AllocationRequeued
    | AllocationReady
)
