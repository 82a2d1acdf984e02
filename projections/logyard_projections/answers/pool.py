"""What the nodes mean for a request: which could hold it, which not, and who is in the way."""

from collections.abc import Callable, Iterable

import msgspec

from logyard_domain.resources import Request, asks_nothing
from logyard_projections.answers.rooms import Free, chunks_in, on_node
from logyard_projections.answers.situation import Situation
from logyard_projections.answers.stages import instant
from logyard_projections.answers.words import misfit
from logyard_projections.nodes import SEATS, Node, misfit_of
from logyard_projections.queue import Owner
from logyard_projections.shapes import SHAPES, shape_key
from logyard_projections.stages import ALLOCATIONS, STAGES, Allocation, place_of, stage_key
from logyard_projections.view import View
from logyard_projections.workflows import WORKFLOWS

NEAREST = 3
"""Nodes whose allocations are named as holders."""
HOLDERS = 10
LOOKED_AT = 200
"""Allocations on a node that are looked at."""
FREE, BUSY, TAKEN = "free now", "busy", "taken whole"
GRACE = "workflow.killGrace"
OVERDUE_MS = 1_000
Sees = Callable[[Owner], bool]
"""Whether who asks may see the name of work of this owner."""


class NodeCount(msgspec.Struct, frozen=True, rename="camel"):
    """How many nodes are out for one cause (or in). The counts of all causes sum to the pool."""

    cause: str
    nodes: int
    positions: tuple[int, ...]


class Quantity(msgspec.Struct, frozen=True, rename="camel"):
    """One dimension on the node that is nearest to having room: needed, free there, and short.

    `could_hold_free` is what is free on all nodes together that could hold the request.
    """

    dimension: str
    need: int
    free: int
    short: int
    could_hold_free: int


class Holder(msgspec.Struct, frozen=True, rename="camel"):
    """An allocation that holds what is waited for; `est_finish` is when its time limit ends it
    (with the grace of a kill), `within_ms` how long that is from the instant of the view. It has
    `chunks` of (`cores`, `memory`, `devices`) on the nodes that are waited for.
    """

    allocation_id: str
    workflow_id: str
    group: str
    user: str
    node_id: str
    chunks: int
    cores: int
    memory: int
    devices: dict[str, int]
    est_finish: str | None
    within_ms: int | None
    positions: tuple[int, ...]


class Others(msgspec.Struct, frozen=True, rename="camel"):
    """Holders whose names may not be seen, together: what they hold, when the last of them ends."""

    allocations: int
    cores: int
    memory: int
    devices: dict[str, int]
    est_finish: str | None


class Pool(msgspec.Struct, frozen=True):
    """All nodes as the request sees them. `free_now` chunks fit now, of those that are asked for;
    `looked_at` are the nodes whose holders are told.
    """

    nodes: int
    counts: tuple[NodeCount, ...]
    could_hold: int
    free_now: int
    nearest: str
    quantities: tuple[Quantity, ...]
    held_by: int
    looked_at: tuple[str, ...]


Seen = tuple[float, str, Node, Free]
"""How much is short on a node as a sum of shares, its name, the node, what is free there."""

Ending = tuple[int, Allocation, int]
"""By when an allocation ends, itself, and how many chunks it has on the nodes looked at."""


def survey(situation: Situation, request: Request, promised: Iterable[str] = ()) -> Pool:
    """Look at every node once. The holders to be told are those on the nodes `promised`, else on
    the nodes that are nearest to having room.
    """
    causes: dict[str, list[int]] = {}
    could: list[Seen] = []
    free_now = 0
    nothing = asks_nothing(request)
    for alike in situation.rooms.kinds.values():
        found = misfit_of(alike.sample, request)
        why = misfit(found, request) if found else ""
        for node, free in alike.nodes:
            cause = why
            if not found and node.state == "up":
                short = _shortage(free, request)
                taken = bool(node.sole) and not nothing
                could.append((short + taken, node.name, node, free))
                free_now += 0 if taken or short else chunks_in(free, request, request.nodes)
                cause = TAKEN if taken else BUSY if short else FREE
            elif not found:
                cause = node.state
            causes.setdefault(cause, []).append(max(node.position, node.placed_position))
    could.sort(key=_nearness)
    counts = tuple(
        NodeCount(cause, len(positions), tuple(sorted(set(positions))[-3:]))
        for cause, positions in sorted(causes.items(), key=lambda one: (-len(one[1]), one[0]))
    )
    nearest = [seen[1] for seen in could[: max(NEAREST, min(request.nodes, HOLDERS))]]
    return Pool(
        nodes=situation.rooms.nodes,
        counts=counts,
        could_hold=len(could),
        free_now=min(free_now, request.nodes),
        nearest=could[0][1] if could else "",
        quantities=_quantities(could, request),
        held_by=sum(seen[2].busy for seen in could) - _twice(situation.view, could),
        looked_at=tuple(sorted(promised)) or tuple(nearest),
    )


def _nearness(seen: Seen) -> tuple[float, str]:
    return seen[0], seen[1]


def _shortage(free: Free, request: Request) -> float:
    """What is short of a chunk on a node, as a sum of shares."""
    short = 0.0
    if free.cores < request.cores:
        short += (request.cores - free.cores) / request.cores
    if free.memory < request.memory:
        short += (request.memory - free.memory) / request.memory
    for name, count in request.devices:
        has = free.devices.get(name, 0)
        if has < count:
            short += (count - has) / count
    if request.exclusive != "none" and free.busy:
        short += 1
    return short


def _quantities(could: list[Seen], request: Request) -> tuple[Quantity, ...]:
    """Need and shortage on the nearest node, and what is free on all together."""
    if not could:
        return ()
    every, nearest = [seen[3] for seen in could], could[0][3]
    found: list[tuple[str, int, int, int]] = []
    if request.cores:
        free = sum([one.cores for one in every])
        found.append(("cores", request.cores, nearest.cores, free))
    if request.memory:
        free = sum([one.memory for one in every])
        found.append(("memory", request.memory, nearest.memory, free))
    for name, count in request.devices:
        free = sum([one.devices.get(name, 0) for one in every])
        found.append((name, count, nearest.devices.get(name, 0), free))
    if request.exclusive != "none":
        free = sum([not one.busy for one in every])
        found.append(("whole node", 1, int(not nearest.busy), free))
    return tuple(
        Quantity(name, need, here, max(need - here, 0), everywhere)
        for name, need, here, everywhere in found
    )


def _twice(view: View, could: list[Seen]) -> int:
    """How often allocations over several nodes are counted once too often."""
    names = {seen[1] for seen in could}
    found: dict[str, int] = {}
    token = ""
    while True:
        page = view.scan(SEATS, after=token)
        for seat in page.rows:
            if seat.node in names:
                found[seat.allocation] = found.get(seat.allocation, -1) + 1
        token = page.token
        if not token:
            return sum(found.values())


def holders(
    situation: Situation, pool: Pool, sees: Sees | None = None
) -> tuple[tuple[Holder, ...], Others | None]:
    """Who holds the nodes that are looked at, those that end first; and those that may not be
    named, in sum.
    """
    found: dict[str, tuple[Allocation, int]] = {}
    for node in pool.looked_at:
        for one, chunks in on_node(situation.view, node, LOOKED_AT):
            before = found.get(one.id)
            found[one.id] = (one, chunks + (before[1] if before is not None else 0))
    ranker, every = situation.ranker, [one for one, _ in found.values()]
    ranker.expect(STAGES, (stage_key(one.workflow, one.stage) for one in every))
    ending = [(ends_by(situation, one), one, chunks) for one, chunks in found.values()]
    ending.sort(key=_first_to_end)
    shown, hidden = ending, list[Ending]()
    if sees is not None:
        ranker.expect(WORKFLOWS, (one.workflow for one in every))
        owners = {one.workflow: ranker.owner_of(one.workflow) for one in every}
        named = {name for name, owner in owners.items() if owner is None or sees(owner)}
        shown = [one for one in ending if one[1].workflow in named]
        hidden = [one for one in ending if one[1].workflow not in named]
    told = shown[:HOLDERS]
    ranker.expect(WORKFLOWS, (one.workflow for _, one, _ in told))
    ranker.expect(SHAPES, (shape_key(one.shape) for _, one, _ in (*told, *hidden)))
    return tuple(_holder(situation, *one) for one in told), _others(situation, hidden)


def _first_to_end(ending: Ending) -> tuple[int, str]:
    return ending[0], ending[1].id


def ends_by(situation: Situation, one: Allocation) -> int:
    """By when it has given its room back, with all that queues behind it; what is overdue, soon.

    As the scheduler estimates it.
    """
    grace = int(situation.setting(GRACE))
    stage = situation.ranker.get(STAGES, stage_key(one.workflow, one.stage))
    limit = (stage.limit_ms if stage is not None else 0) + grace
    begins = one.since or one.placed_at
    for victim in one.after if one.evicts else ():
        row = situation.view.get(ALLOCATIONS, place_of(victim).key)
        if row is not None and row.state != "ended":
            begins = max(begins, ends_by(situation, row))
    end = begins + limit
    if one.state == "stopping" and one.since:
        end = min(end, one.stopping_at + grace)
    follower = one.follower
    while follower and (row := situation.view.get(ALLOCATIONS, follower)) is not None:
        end += limit
        follower = row.follower
    late = OVERDUE_MS
    if end <= situation.at:
        while end + late <= situation.at:
            late *= 2
        end += late
    return end


def _holder(situation: Situation, finish: int, one: Allocation, chunks: int) -> Holder:
    owner = situation.ranker.owner_of(one.workflow)
    request = _request(situation, one)
    return Holder(
        allocation_id=one.id,
        workflow_id=one.workflow,
        group=owner.group if owner is not None else "",
        user=owner.user if owner is not None else "",
        node_id=one.node,
        chunks=chunks,
        cores=request.cores,
        memory=request.memory,
        devices=dict(request.devices),
        est_finish=instant(finish),
        within_ms=max(0, finish - situation.at),
        positions=(one.placed_position,),
    )


def _request(situation: Situation, one: Allocation) -> Request:
    shape = situation.ranker.get(SHAPES, shape_key(one.shape))
    return shape.request if shape is not None else Request(cores=0)


def _others(situation: Situation, hidden: list[Ending]) -> Others | None:
    if not hidden:
        return None
    cores = memory = 0
    devices: dict[str, int] = {}
    for _, one, chunks in hidden:
        request = _request(situation, one)
        cores += request.cores * chunks
        memory += request.memory * chunks
        for name, count in request.devices:
            devices[name] = devices.get(name, 0) + count * chunks
    return Others(
        allocations=len(hidden),
        cores=cores,
        memory=memory,
        devices=devices,
        est_finish=instant(max(finish for finish, _, _ in hidden)),
    )
