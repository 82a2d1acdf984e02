"""What would help an allocation that waits, and the proof of what was decided of it."""

import asyncio

from logyard_api.advising import Advised, advised
from logyard_api.asof import ASKED
from logyard_api.bodies import Answer
from logyard_api.operations import Routes, ViewQuery
from logyard_api.proofs import Decided, Proven, Waits
from logyard_api.proving import decided, proven, waits
from logyard_api.yard import Yard
from logyard_domain.codec import GENESIS
from logyard_domain.events import AllocationPlaced
from logyard_domain.records import Record
from logyard_engine.advice import inquiry
from logyard_projections.answers.explanation import Explanation
from logyard_projections.answers.why import explain

CITED_MAX = 20
"""Records that are cited."""
SCHEDULER = "scheduler"
"""Who acts in records of ticks."""
BATCH = 1_000

routes = Routes("allocations")


@routes.add("GET", "/v4/workflows/{w}/allocations/{a:path}/advice")
async def advise_allocation(yard: Yard, w: str, a: str, query: ViewQuery) -> Answer[Advised]:
    """Advise what to change so that an allocation starts now, or else as early as can be.

    Each of cores, memory, time limit, nodes, devices, annotations, exclusive use and priority is
    changed alone, as little as does it. What would come of it was found by running the real tick
    on the changed request, asked for anew in place of what waits, in a copy of the world as of
    `position`. Questions of this kind are answered one at a time; a third one gets 429.
    """
    told = await _explained(yard, w, a)
    position = _position(yard)
    found = await yard.counsel.ask(position, inquiry.AskAdvice(told.allocation_id, yard.now()))
    assert isinstance(found, inquiry.Advised)
    return Answer(advised(found.advice, told.detail), position)


@routes.add("GET", "/v4/workflows/{w}/allocations/{a:path}/proof")
async def prove_allocation(yard: Yard, w: str, a: str, query: ViewQuery) -> Answer[Proven]:
    """Prove what was decided of an allocation.

    The tick that placed or evicted it is made once more in the world as it was just before, and
    compared with the records of it; of a placement the runners-up are told. Where it waits for
    room, the tick is made as of `position`. All records that the explanation rests on are cited
    with their hashes. Questions of this kind are answered one at a time; a third one gets 429.
    """
    told = await _explained(yard, w, a)
    position = _position(yard)
    decisions = [
        await _decided(yard, what, at, told.allocation_id) for what, at in _decisions(told)
    ]
    standing = await _standing(yard, told.allocation_id, position)
    records = [await _record(yard, at) for at in _rests_on(told)]
    answer = proven(told.allocation_id, position, decisions, standing, records)
    return Answer(answer, position)


async def _explained(yard: Yard, w: str, a: str) -> Explanation:
    name = a if a == w or a.startswith(f"{w}/") else f"{w}/{a}"
    answer = await yard.find(
        lambda view: explain(view, name, yard.now()),
        f"there is no allocation {name!r}; `logyard workflow status {w}` shows its stages",
    )
    return answer.value


def _position(yard: Yard) -> int:
    asked = ASKED.get()
    return yard.past.end if asked is None else asked[0]


def _decisions(told: Explanation) -> list[tuple[str, int]]:
    """What the scheduler decided of it, and at which positions."""
    found: list[tuple[str, int]] = []
    if told.here is not None:
        found.append(("placed", told.here.positions[0]))
    if told.evicted is not None and told.evicted.by:
        found.append(("evicted", told.evicted.positions[0]))
    return found


def _rests_on(told: Explanation) -> list[int]:
    """Positions that the explanation cites, in the order of the log."""
    positions = {at for line in told.lines for at in line.positions if at}
    positions |= {at for one in told.blockers for at in one.positions if at}
    if told.policy_position:
        positions.add(told.policy_position)
    return sorted(positions)[-CITED_MAX:]


async def _decided(yard: Yard, what: str, position: int, allocation: str) -> Decided:
    record = await _record(yard, position)
    tick = await asyncio.to_thread(_tick, yard, record)
    basis = tick[0].position - 1
    chain = (await _record(yard, basis)).chain if basis else GENESIS
    placed = isinstance(record.event, AllocationPlaced)
    found = await yard.counsel.ask(
        basis,
        inquiry.AskProof(
            record.at,
            tuple(one.event for one in tick),
            position - tick[0].position if placed else -1,
        ),
    )
    assert isinstance(found, inquiry.Proved)
    return decided(what, record, chain, found.proof, found.placement)


async def _standing(yard: Yard, allocation: str, position: int) -> Waits | None:
    found = await yard.counsel.ask(position, inquiry.AskStanding(allocation, yard.now()))
    assert isinstance(found, inquiry.Stood)
    if found.standing is None:
        return None
    chain = (await _record(yard, position)).chain if position else GENESIS
    return waits(found.standing, chain)


async def _record(yard: Yard, position: int) -> Record:
    return (await asyncio.to_thread(yard.read, position - 1, 1))[0]


def _tick(yard: Yard, record: Record) -> list[Record]:
    """All records of the tick that this one is of. Blocks."""
    after = int(record.cause.removeprefix("@"))
    found: list[Record] = []
    while True:
        records = yard.read(after, BATCH)
        after += len(records)
        for one in records:
            if one.actor == SCHEDULER and (one.cause, one.at) == (record.cause, record.at):
                found.append(one)
            elif one.position > record.position:
                return found
        if len(records) < BATCH:
            return found
