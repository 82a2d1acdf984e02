"""Advice in words: what to change, from what to what, and what comes of it then."""

from logyard_api.bodies import Reply
from logyard_engine.advice.advising import Advice, Piece, Tried
from logyard_engine.advice.changes import Change
from logyard_engine.advice.trials import Outcome
from logyard_projections.answers.stages import instant
from logyard_projections.answers.words import device, listed, number_of, size
from logyard_projections.instants import lasting


class Result(Reply, frozen=True):
    """What a tick makes of what waits.

    startsNow: whether something of it is placed at once
    ranks: how many of its ranks are
    nodes: where the first of them is (node: chunks), or what is promised to it
    kind: direct, backfilled (before others that are promised something), or preempting
    evicts: allocations that have to end first; then it is placed at once and starts after them
    promisedAt: when it starts at the latest; absent where nothing is promised to it
    """

    starts_now: bool
    ranks: int
    nodes: dict[str, int]
    kind: str
    evicts: tuple[str, ...]
    promised_at: str | None


class Helpful(Reply, frozen=True):
    """A change of the request that helps.

    what: cores, memory, limit, nodes, device, annotation, exclusive or priority; or group, user,
        organization: the priority of that one, which only its owner may change
    name: of the device, annotation or owner
    before: what is asked for now (bytes, ms)
    after: the least change that does
    where: where to say so: a field of the workflow's file, an option, a command
    least: whether one step less was seen not to do
    result: what comes of it
    text: all this in words
    """

    what: str
    name: str
    before: int
    after: int
    where: str
    least: bool
    result: Result
    text: str


class Attempted(Reply, frozen=True):
    """Something that was changed, alone.

    what: as of a change
    name: of the device, annotation or owner
    before: what is asked for now
    last: the furthest change that was tried
    """

    what: str
    name: str
    before: int
    last: int


class Advised(Reply, frozen=True):
    """What would help what waits with an allocation.

    allocationId: the allocation
    position: of the log, at which all this was verified
    at: the instant that counts as now
    summary: the answer in one sentence
    waiting: ranks of its stage that wait for room
    unchanged: what becomes of it as it is; absent where it does not wait for room
    changes: what helps, the best first: what starts it now, or else what starts it earliest
    tried: what was changed
    tries: how often the tick was run
    formula: the policy that it was run under
    revision: of the policy
    """

    allocation_id: str
    position: int
    at: str | None
    summary: str
    waiting: int
    unchanged: Result | None
    changes: tuple[Helpful, ...]
    tried: tuple[Attempted, ...]
    tries: int
    formula: str
    revision: int


def advised(advice: Advice, standing: str) -> Advised:
    """The advice in words. `standing` says how the allocation is, where it waits for no room."""
    changes = tuple(_helpful(advice, piece) for piece in advice.pieces)
    return Advised(
        allocation_id=advice.allocation,
        position=advice.position,
        at=instant(advice.now),
        summary=f"{advice.allocation} {_summary(advice, standing)}",
        waiting=advice.waiting,
        unchanged=_result(advice.unchanged) if advice.waiting else None,
        changes=changes,
        tried=tuple(
            Attempted(what=one.what, name=one.name, before=one.before, last=one.last)
            for one in advice.tried
        ),
        tries=advice.tries,
        formula=advice.formula,
        revision=advice.revision,
    )


def _summary(advice: Advice, standing: str) -> str:
    checked = f"(checked at position {advice.position:,})"
    if not advice.waiting:
        return f"waits for no room, so no change of its request helps: {standing}"
    if advice.unchanged.placed:
        return f"starts without any change: {_fate(advice.unchanged, None, 1)} {checked}"
    if not advice.pieces:
        return _helpless(advice, checked)
    first = advice.pieces[0]
    if first.outcome.placed:
        return f"would start now {_condition(first)} {checked}"
    known = advice.unchanged.promised_at
    if first.outcome.promised_at:
        instead = f" instead of {instant(known)}" if known else ""
        what = f"would start by {instant(first.outcome.promised_at)}{instead}"
    else:
        what = "could run"
    return f"{what} {_condition(first)}; no single change starts it now {checked}"


def _helpless(advice: Advice, checked: str) -> str:
    if not advice.tried:
        return f"asks for nothing that could be less, and no priority would help {checked}"
    tried = ", ".join(_furthest(one) for one in advice.tried)
    return f"starts no sooner by any single change; tried were {tried} {checked}"


def _furthest(one: Tried) -> str:
    """``cores down to 1``, ``priority of group chem up to 6``."""
    match one.what:
        case "memory":
            return f"memory down to {size(one.last)}"
        case "limit":
            return f"time limit down to {lasting(one.last)}"
        case "device":
            return f"{device(one.name)} down to {one.last}"
        case "annotation":
            return f"no annotation {one.name}"
        case "exclusive":
            return "nodes shared with others"
        case "priority":
            return f"priority up to {one.last}"
        case "nodes" | "cores":
            return f"{one.what} down to {one.last}"
        case "group" | "user" | "organization":
            return f"priority of {one.what} {one.name} up to {one.last}"


def _helpful(advice: Advice, piece: Piece) -> Helpful:
    fate = _fate(piece.outcome, advice.unchanged, advice.waiting)
    change = piece.change
    return Helpful(
        what=change.what,
        name=change.name,
        before=piece.before,
        after=change.value,
        where=_where(advice.allocation, change),
        least=piece.least,
        result=_result(piece.outcome),
        text=f"{_change(piece)}: {fate}",
    )


def _result(found: Outcome) -> Result:
    return Result(
        starts_now=bool(found.placed),
        ranks=found.placed,
        nodes=found.nodes if found.placed else found.promised,
        kind=found.kind if found.placed else "",
        evicts=found.victims,
        promised_at=instant(found.promised_at),
    )


def _condition(piece: Piece) -> str:
    """``with 6 cpu instead of 8``."""
    if piece.change.what == "annotation":
        return _change(piece)
    return f"with {_change(piece)}"


def _change(piece: Piece) -> str:
    change, before = piece.change, piece.before
    after, name = change.value, change.name
    match change.what:
        case "nodes":
            return f"{number_of(after, 'node')} instead of {before}"
        case "cores":
            return f"{after} cpu instead of {before}"
        case "memory":
            return f"{size(after)} of memory instead of {size(before)}"
        case "device":
            return f"{after or 'no'} {device(name)} instead of {before}"
        case "annotation":
            return f"without the annotation {name}"
        case "exclusive":
            return "nodes shared with others"
        case "limit":
            return f"a time limit of {lasting(after)} instead of {lasting(before)}"
        case "priority":
            return f"priority {after} instead of {before}"
        case _:
            return f"priority {after} of {change.what} {name} instead of {before}"


def _fate(found: Outcome, unchanged: Outcome | None, waiting: int) -> str:
    """``starts now on n1``; ``promised by 14:40 on n1 instead of 14:52``."""
    if found.placed:
        where = listed(found.nodes)
        ranks = f", {found.placed} of {waiting} ranks" if waiting > 1 else ""
        if found.victims:
            return f"placed now on {where}{ranks}, starts when {listed(found.victims)} made room"
        how = ", backfilled" if found.kind == "backfilled" else ""
        return f"starts now on {where}{how}{ranks}"
    if not found.promised_at:
        return "could run, and waits for its turn"
    known = unchanged.promised_at if unchanged is not None else 0
    instead = f" instead of {instant(known)}" if known else ", where nothing is promised to it now"
    return f"starts by {instant(found.promised_at)} on {listed(found.promised)}{instead}"


def _where(allocation: str, change: Change) -> str:
    """Where the change is to be made."""
    stage = allocation.partition("/")[2].rpartition("/")[0]
    job, name = f"jobs.{stage}", change.name
    match change.what:
        case "nodes":
            return f"{job}.multinode.nodes"
        case "cores":
            return f"{job}.resource.cpu.cores"
        case "memory":
            return f"{job}.resource.memory.size"
        case "device":
            return f"{job}.resource.devices"
        case "annotation":
            return f"{job}.resource.annotations"
        case "exclusive":
            return f"{job}.resource.exclusive"
        case "limit":
            return f"{job}.policy.timeout.execute"
        case "priority":
            return f"logyard workflow start --priority {change.value}"
        case _:
            return f"logyard {change.what} update {name} --priority {change.value}"
