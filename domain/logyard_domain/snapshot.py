"""The world as bytes and back. A snapshot saves time and nothing else: the log alone is the truth.

The bytes are canonical: equal worlds give equal bytes, however they came about.
"""

import msgspec

from logyard_domain.configuration import Value
from logyard_domain.definition import Workflow as Definition
from logyard_domain.events import NodeRegistered
from logyard_domain.expressions import Expression
from logyard_domain.holds import Hold
from logyard_domain.identifiers import allocation_parts
from logyard_domain.resources import Request
from logyard_domain.rules.cluster import configure
from logyard_domain.rules.fleet import registration
from logyard_domain.rules.queueing import relane
from logyard_domain.rules.room import recount
from logyard_domain.rules.workflows import known_definition, unfold
from logyard_domain.usage import Usage
from logyard_domain.world import (
    Allocation,
    AllocationStatus,
    Group,
    Known,
    Node,
    NodeStatus,
    Reservation,
    Shape,
    Stage,
    StageStatus,
    Workflow,
    WorkflowStatus,
    World,
)

FORMAT = "world.3"
"""Changes whenever the world's fields or their meaning do; older snapshots are then left aside."""


class _Node(msgspec.Struct, frozen=True):
    facts: NodeRegistered
    status: NodeStatus
    before: NodeStatus
    running: tuple[str, ...]


class _Stage(msgspec.Struct, frozen=True, omit_defaults=True):
    status: StageStatus
    next: int
    shape: int = 0
    again: tuple[tuple[int, int], ...] = ()
    delayed: dict[int, tuple[int, int]] = {}
    failures: dict[int, int] = {}
    losses: dict[int, int] = {}
    started: bool = False
    finished: int = 0
    failed: int = 0
    error: str = ""


class _Known(msgspec.Struct, frozen=True):
    definition: Definition
    paces: tuple[tuple[int, int], ...]


class _Workflow(msgspec.Struct, frozen=True):
    id: str
    name: str
    key: str
    organization: str
    group: str
    user: str
    priority: int
    preemptible: bool
    timeout_ms: int
    submitted_at: int
    position: int
    status: WorkflowStatus
    failed_stage: str
    storage: str
    volumes: bool
    definition: int
    stages: tuple[_Stage, ...]


class _Allocation(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    workflow: str
    stage: str
    rank: int
    attempt: int
    node: str
    status: AllocationStatus
    began: bool
    stopping: str
    behind: str
    since: int
    stopped_at: int = 0
    chunks: dict[str, int] = {}
    after: tuple[str, ...] = ()


class _Shape(msgspec.Struct, frozen=True):
    id: int
    request: Request
    hold: Hold | None


class _Group(msgspec.Struct, frozen=True):
    organization: str
    group: str
    priority: int
    preempts: tuple[str, ...]


class _Reservation(msgspec.Struct, frozen=True):
    allocation: str
    at: int
    chunks: dict[str, int]
    position: int


class _World(msgspec.Struct, frozen=True):
    cluster: str
    position: int
    at: int
    term: int
    revision: int
    config: dict[str, Value]
    formulas: dict[str, Expression]
    organizations: dict[str, int]
    groups: tuple[_Group, ...]
    users: dict[str, int]
    usage: dict[str, Usage]
    fleet_at: int
    ranked_at: int
    nodes: tuple[_Node, ...]
    shapes: tuple[_Shape, ...]
    definitions: tuple[_Known, ...]
    workflows: tuple[_Workflow, ...]
    allocations: tuple[_Allocation, ...]
    reservations: tuple[_Reservation, ...]
    keys: dict[str, tuple[str, int]]
    cleanups: dict[str, str]


_decoder = msgspec.json.Decoder(_World)


def dump(world: World) -> bytes:
    """The world as JSON."""
    knowns = {w.known.identity: w.known for w in world.workflows.values()}
    identities = {identity: number for number, identity in enumerate(knowns)}
    return msgspec.json.encode(
        _World(
            world.cluster,
            world.position,
            world.at,
            world.term,
            world.revision,
            world.config,
            world.formulas,
            dict(sorted(world.organizations.items())),
            tuple(
                _Group(*key, group.priority, group.preempts)
                for key, group in sorted(world.groups.items())
            ),
            dict(sorted(world.users.items())),
            dict(sorted(world.usage.items())),
            world.fleet_at,
            world.ranked_at,
            tuple(
                _Node(registration(n), n.status, n.before, tuple(n.running))
                for n in world.nodes.values()
            ),
            tuple(_Shape(s.id, s.request, s.hold) for s in world.shapes.values()),
            tuple(_known(known) for known in knowns.values()),
            tuple(_workflow(w, identities[w.known.identity]) for w in world.workflows.values()),
            tuple(_allocation(a) for a in world.allocations.values()),
            tuple(
                _Reservation(name, r.at, r.chunks, r.position)
                for name, r in world.reservations.items()
            ),
            world.keys,
            world.cleanups,
        )
    )


def restore(data: bytes) -> World:
    """The world in `data`. Raises msgspec.DecodeError when it is none."""
    saved = _decoder.decode(data)
    world = World(saved.cluster)
    world.position, world.at, world.term = saved.position, saved.at, saved.term
    configure(world, saved.revision, saved.config, saved.formulas)
    world.organizations, world.users, world.usage = saved.organizations, saved.users, saved.usage
    for group in saved.groups:
        world.groups[group.organization, group.group] = Group(group.priority, group.preempts)
    world.fleet_at, world.ranked_at = saved.fleet_at, saved.ranked_at
    world.keys, world.cleanups = saved.keys, saved.cleanups
    world.key_order.extend(saved.keys)
    for shape in saved.shapes:
        world.shapes[shape.id] = Shape(shape.id, shape.request)
        world.shapes[shape.id].hold = shape.hold
        if shape.hold is not None:
            world.held[shape.id] = None
        world.shape_ids[shape.request] = shape.id
    for node in saved.nodes:
        _restore_node(world, node)
    for workflow in saved.workflows:
        _restore_workflow(world, workflow, saved.definitions[workflow.definition])
    waits: dict[str, Allocation] = {}
    for allocation in saved.allocations:
        stage = world.workflows[allocation.workflow].stages[allocation.stage]
        node_ = world.nodes[allocation.node]
        chunks = tuple((world.nodes[name], n) for name, n in allocation.chunks.items())
        found = Allocation(
            allocation.id,
            stage,
            allocation.rank,
            allocation.attempt,
            node_,
            chunks or ((node_, 1),),
        )
        found.status, found.stopping = allocation.status, allocation.stopping
        found.began, found.since = allocation.began, allocation.since
        found.stopped_at = allocation.stopped_at
        found.after = dict.fromkeys(allocation.after)
        for victim in found.after:
            world.preemptors[victim] = found
        world.allocations[found.id] = found
        if allocation.behind:
            waits[allocation.behind] = found
            stage.lined[found.id] = None
        else:
            stage.holding[found.id] = stage.pace.holding[found.id] = None
    for held in saved.reservations:
        workflow_, name, _, _ = allocation_parts(held.allocation)
        world.reservations[held.allocation] = Reservation(
            held.at, held.chunks, held.position, world.workflows[workflow_].stages[name]
        )
    for name, follower in waits.items():
        follower.behind = world.allocations[name]
        follower.behind.follower = follower
    for follower in waits.values():
        follower.first().line += 1
    for node_ in world.nodes.values():
        recount(world, node_)
        world.freed[node_.name] = world.stirred[node_.name] = None
    _queue(world)
    return world


def _known(known: Known) -> _Known:
    paces = tuple((pace.finished, pace.run_ms) for pace in known.paces.values())
    return _Known(msgspec.json.decode(known.identity, type=Definition), paces)


def _workflow(workflow: Workflow, definition: int) -> _Workflow:
    return _Workflow(
        workflow.id,
        workflow.name,
        workflow.key,
        workflow.organization,
        workflow.group,
        workflow.user,
        workflow.priority,
        workflow.preemptible,
        workflow.timeout_ms,
        workflow.submitted_at,
        workflow.position,
        workflow.status,
        workflow.failed_stage,
        workflow.storage,
        workflow.volumes,
        definition,
        tuple(_stage(stage) for stage in workflow.stages.values()),
    )


def _stage(stage: Stage) -> _Stage:
    return _Stage(
        stage.status,
        stage.next,
        stage.shape,
        tuple(sorted(stage.again)),
        dict(sorted(stage.delayed.items())),
        dict(sorted(stage.failures.items())),
        dict(sorted(stage.losses.items())),
        stage.started,
        stage.finished,
        stage.failed,
        stage.error,
    )


def _allocation(allocation: Allocation) -> _Allocation:
    return _Allocation(
        allocation.id,
        allocation.stage.workflow.id,
        allocation.stage.plan.name,
        allocation.rank,
        allocation.attempt,
        allocation.node.name,
        allocation.status,
        allocation.began,
        allocation.stopping,
        allocation.behind.id if allocation.behind else "",
        allocation.since,
        allocation.stopped_at,
        _chunks(allocation),
        tuple(allocation.after),
    )


def _chunks(allocation: Allocation) -> dict[str, int]:
    if allocation.chunks == ((allocation.node, 1),):
        return {}
    return {node.name: count for node, count in allocation.chunks}


def _restore_node(world: World, saved: _Node) -> None:
    facts = saved.facts
    node = world.nodes[facts.node] = Node(facts.node)
    node.capacity, node.incarnation = facts.capacity, facts.incarnation
    node.annotations, node.storage = facts.annotations, facts.storage
    node.features, node.limits = facts.features, facts.limits
    node.host, node.version = facts.host, facts.version
    node.status, node.before = saved.status, saved.before
    node.running = dict.fromkeys(saved.running)
    world.node_count += 1
    node.number = world.node_count


def _restore_workflow(world: World, saved: _Workflow, known: _Known) -> None:
    workflow = Workflow(saved.id)
    for field in (
        "name", "key", "organization", "group", "user", "priority", "preemptible", "timeout_ms",
        "submitted_at", "position", "status", "failed_stage", "storage", "volumes",
    ):  # fmt: skip
        setattr(workflow, field, getattr(saved, field))
    found = known_definition(world, known.definition, False)
    for pace, (finished, run_ms) in zip(found.paces.values(), known.paces, strict=True):
        pace.finished, pace.run_ms = finished, run_ms
    unfold(world, workflow, found)
    for stage, old in zip(workflow.stages.values(), saved.stages, strict=True):
        stage.status, stage.next, stage.shape = old.status, old.next, old.shape
        stage.again = list(old.again)
        stage.delayed, stage.failures, stage.losses = old.delayed, old.failures, old.losses
        stage.started = old.started
        stage.finished, stage.failed, stage.error = old.finished, old.failed, old.error
    for stage in workflow.stages.values():
        stage.unmet = sum(workflow.stages[n].status != "finished" for n in stage.plan.needs)
        if stage.status in ("finished", "failed", "canceled"):
            workflow.open_stages -= 1


def _queue(world: World) -> None:
    relane(world)
    for workflow in world.workflows.values():
        for stage in workflow.stages.values():
            for rank, (_, not_before) in stage.delayed.items():
                world.timers.append((not_before, workflow.id, stage.plan.name, rank))
    world.timers.sort()
