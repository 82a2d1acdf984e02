"""What may be changed of a request, one thing at a time, and in which steps."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil, isfinite
from typing import Literal, NamedTuple, TypeVar

import msgspec

from logyard_domain.commands import AnyCommand, UpdateGroup, UpdateOrganization, UpdateUser
from logyard_domain.expressions import Scalar, priority, variables_of
from logyard_domain.resources import MULTINODE, Request, asks_nothing
from logyard_domain.rules.entities import MOST
from logyard_domain.rules.priorities import variables_for
from logyard_domain.world import Stage, World
from logyard_engine.scheduler.lanes import Lanes

T = TypeVar("T")
What = Literal[
    "nodes", "cores", "memory", "device", "annotation", "exclusive", "limit", "priority",
    "group", "user", "organization",
]  # fmt: skip
"""What is changed: the request, its limit, its priority; the last three are priorities of owners,
who alone may change them.
"""
OWNERS = ("group", "user", "organization")
MEBIBYTE = 1 << 20
STEPS_MEMORY = 64
"""Memory is lowered in steps of about this part of it."""
SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
ROUND_MS = (
    *(n * SECOND_MS for n in (1, 2, 5, 10, 15, 20, 30, 45)),
    *(n * MINUTE_MS for n in (1, 2, 3, 5, 10, 15, 20, 30, 45)),
    *(n * HOUR_MS for n in (1, 2, 3, 4, 6, 8, 12, 18)),
    *(n * DAY_MS for n in (1, 2, 3, 5, 7, 14, 30)),
)
"""Time limits as people set them."""


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing of a request is `value` instead. `name` says which device, annotation or owner;
    memory is in bytes, a limit in ms; an annotation or exclusive use is dropped.
    """

    what: What
    value: int = 0
    name: str = ""


class Scale(NamedTuple):
    """The changes of one thing: `values` from the least change to the greatest."""

    what: What
    before: int
    values: Sequence[int]
    name: str = ""

    def change(self, place: int) -> Change:
        """The change to the value at that place."""
        return Change(self.what, self.values[place], self.name)


def scales(world: World, stage: Stage, now: int) -> Iterator[Scale]:
    """Everything that may be changed of what waits of a stage, as the world is at `now` (ms)."""
    request = world.shapes[stage.shape].request
    yield from _sizes(request)
    if not asks_nothing(request):
        limits = sorted(_limits(world, stage, now), reverse=True)
        if limits:
            yield Scale("limit", stage.limit_ms, limits)
    own = stage.workflow.priority
    if own < 0 and "workflow.priority" in variables_of(world.priority):
        yield Scale("priority", own, range(own + 1, 1))
    yield from _owners(world, stage, now)


def _sizes(request: Request) -> Iterator[Scale]:
    if request.nodes > 1:
        yield Scale("nodes", request.nodes, range(request.nodes - 1, 0, -1))
    if request.cores > 1:
        yield Scale("cores", request.cores, range(request.cores - 1, 0, -1))
    step = memory_step(request.memory)
    if request.memory > step:
        first = (request.memory - 1) // step * step
        yield Scale("memory", request.memory, range(first, 0, -step))
    for name, count in request.devices:
        yield Scale("device", count, range(count - 1, -1, -1), name)
    for key, _ in request.annotations:
        yield Scale("annotation", 1, (0,), key)
    if request.exclusive != "none":
        yield Scale("exclusive", 1, (0,))


def memory_step(memory: int) -> int:
    """In which steps (bytes) so much memory is lowered: a power of two of MiB."""
    return max(MEBIBYTE, 1 << max(0, (memory // STEPS_MEMORY - 1).bit_length()))


def _limits(world: World, stage: Stage, now: int) -> set[int]:
    """Round time limits, and those that end just before something that was promised."""
    grace = int(world.config["workflow.killGrace"])
    found = set(ROUND_MS)
    for reservation in world.reservations.values():
        gap = reservation.at - now - grace
        unit = MINUTE_MS if gap >= 2 * MINUTE_MS else SECOND_MS
        found.add(gap // unit * unit)
    return {limit for limit in found if 0 < limit < stage.limit_ms}


def _owners(world: World, stage: Stage, now: int) -> Iterator[Scale]:
    """Priorities of who it belongs to, up to where it would be first."""
    workflow = stage.workflow
    group = world.groups.get((workflow.organization, workflow.group))
    known: dict[What, tuple[str, int]] = {
        "group": (workflow.group, group.priority if group else 0),
        "user": (workflow.user, world.users.get(workflow.user, 0)),
        "organization": (workflow.organization, world.organizations.get(workflow.organization, 0)),
    }
    variables = variables_for(world, stage, now)
    named = variables_of(world.priority)
    if not any(f"{what}.priority" in named for what in known):
        return
    own = priority(world.priority, variables)
    top = _top(world, now)
    for what, (name, before) in known.items():
        most = _most(world, variables, f"{what}.priority", before, top - own)
        if most > before:
            yield Scale(what, before, range(before + 1, most + 1), name)


def _most(world: World, variables: Mapping[str, Scalar], name: str, before: int, gap: float) -> int:
    """Up to which value raising the variable may change something."""
    if name not in variables_of(world.priority) or not isfinite(gap):
        return before
    now = priority(world.priority, variables)
    gain = priority(world.priority, {**variables, name: float(before + 1)}) - now
    if not gain > 0:
        return before
    return min(MOST, before + ceil(max(0.0, gap) / gain) + 1)


def _top(world: World, now: int) -> float:
    """The highest priority of what waits, and of what it takes to evict what runs."""
    waiting = [lane.heap[0][2] for lane in world.lanes.values()]
    top = max(Lanes().priorities_of(world, waiting, now), default=0.0)
    if world.config["scheduler.preemption.enabled"]:
        running = {one.stage: None for one in world.allocations.values()}
        known = Lanes().priorities_of(world, list(running), now)
        gap = float(world.config["scheduler.preemption.priorityGap"])
        top = max(top, max(known, default=0.0) + gap)
    return float(top)


def changed(request: Request, change: Change) -> Request:
    """The request with the change, where it is one of the request."""
    value = change.value
    match change.what:
        case "nodes":
            features = tuple(one for one in request.features if value > 1 or one != MULTINODE)
            return msgspec.structs.replace(request, nodes=value, features=features)
        case "cores":
            return msgspec.structs.replace(request, cores=value)
        case "memory":
            return msgspec.structs.replace(request, memory=value)
        case "device":
            devices = _without(request.devices, change.name)
            if value:
                devices = tuple(sorted((*devices, (change.name, value))))
            return msgspec.structs.replace(request, devices=devices)
        case "annotation":
            kept = _without(request.annotations, change.name)
            return msgspec.structs.replace(request, annotations=kept)
        case "exclusive":
            return msgspec.structs.replace(request, exclusive="none")
        case _:
            return request


def _without(pairs: Iterable[tuple[str, T]], name: str) -> tuple[tuple[str, T], ...]:
    return tuple(pair for pair in pairs if pair[0] != name)


def command_of(stage: Stage, change: Change) -> AnyCommand:
    """What an owner of the stage would have to ask for."""
    match change.what:
        case "group":
            organization = stage.workflow.organization
            return UpdateGroup(organization=organization, group=change.name, priority=change.value)
        case "user":
            return UpdateUser(user=change.name, priority=change.value)
        case _:
            return UpdateOrganization(organization=change.name, priority=change.value)
