"""Proofs in words: what was decided, on which records it rests, and what comes of it once more."""

from collections.abc import Sequence
from typing import Any

import msgspec

from logyard_api.proofs import (
    Cited,
    Decided,
    Differing,
    Proven,
    ReadWorld,
    RunnerUp,
    Waits,
)
from logyard_domain.codec import encode_event, tag_of
from logyard_domain.events import AllocationPlaced, AnyEvent
from logyard_domain.holds import Hold
from logyard_domain.records import Record
from logyard_engine.advice.proof import Basis, Difference, Proof, Standing
from logyard_engine.advice.runners_up import Placement
from logyard_engine.advice.runners_up import RunnerUp as Found
from logyard_projections.answers.sentences import text as sentence
from logyard_projections.answers.stages import instant
from logyard_projections.answers.words import listed, number_of, size


def cited(record: Record) -> Cited:
    """A record, and what it says."""
    return Cited(
        position=record.position,
        chain=record.chain,
        at=instant(record.at),
        type=tag_of(record.event),
        actor=record.actor,
        text=sentence(record),
    )


def decided(
    what: str, record: Record, chain: str, proof: Proof, placement: Placement | None
) -> Decided:
    """A decision and its proof. `chain` is that of the world that was read."""
    others = placement.runners_up if placement is not None else ()
    return Decided(
        what=what,
        decision=cited(record),
        tick=proof.recorded,
        read=_read(proof.basis, chain),
        equal=proof.equal,
        differences=tuple(_differing(one) for one in proof.differences),
        chosen=_chosen(record.event),
        fitted=placement.fitted if placement is not None else 0,
        first=placement is None or placement.first,
        runners_up=tuple(
            RunnerUp(node_id=one.node, cause=one.cause, text=_after(one)) for one in others
        ),
        text=_verdict(what, record, proof),
    )


def _chosen(event: AnyEvent) -> str:
    if not isinstance(event, AllocationPlaced):
        return ""
    return listed(event.chunks or {event.node: 1})


def _verdict(what: str, record: Record, proof: Proof) -> str:
    made = f"{what} at {record.position:,} ({record.chain})"
    once_more = f"the tick made once more in the world as of {proof.basis.position:,}"
    if proof.equal:
        return f"{made}; {once_more} makes the same {number_of(proof.recorded, 'event')}"
    return (
        f"{made}; {once_more} does NOT make the same: {proof.differing} of"
        f" {max(proof.recorded, proof.found)} differ"
    )


def waits(standing: Standing, chain: str) -> Waits:
    """How it stands. `chain` is that of the world that was read."""
    after = standing.outcome
    same = not after.placed and _word(after.hold) == _word(standing.hold)
    return Waits(
        read=_read(standing.basis, chain),
        equal=same,
        placed=after.placed,
        waiting=standing.waiting,
        hold=_word(standing.hold),
        found_hold=_word(after.hold),
        promised_at=instant(standing.promised_at),
        found_promised_at=instant(after.promised_at),
        text=_standing(standing, same),
    )


def _standing(standing: Standing, same: bool) -> str:
    after = standing.outcome
    opening = f"the tick made in the world as of {standing.basis.position:,}"
    if after.placed:
        return f"{opening} places {after.placed} of {number_of(standing.waiting, 'rank')}"
    reason = _word(after.hold) or "no reason"
    kept = "as recorded" if same else f"recorded was {_word(standing.hold) or 'no reason yet'}"
    promised = f", promised by {instant(after.promised_at)}" if after.promised_at else ""
    return f"{opening} leaves it unplaced: {reason} ({kept}){promised}"


def proven(
    allocation: str,
    position: int,
    decisions: Sequence[Decided],
    standing: Waits | None,
    records: Sequence[Record],
) -> Proven:
    """Everything together."""
    checks = [one.equal for one in decisions] + ([standing.equal] if standing else [])
    texts = [one.text for one in decisions] + ([standing.text] if standing else [])
    said = "; ".join(texts) or "nothing of it was decided by the scheduler yet"
    return Proven(
        allocation_id=allocation,
        position=position,
        summary=f"{allocation}: {said}",
        equal=all(checks) if checks else None,
        decisions=tuple(decisions),
        waits=standing,
        cited=tuple(cited(record) for record in records),
    )


def _read(basis: Basis, chain: str) -> ReadWorld:
    return ReadWorld(
        position=basis.position,
        chain=chain,
        now=instant(basis.now),
        nodes=basis.nodes,
        nodes_up=basis.nodes_up,
        running=basis.running,
        waiting=basis.waiting,
        shapes=basis.shapes,
        promises=basis.promises,
        revision=basis.revision,
        formula=basis.formula,
    )


def _differing(one: Difference) -> Differing:
    return Differing(number=one.number, recorded=_plain(one.recorded), found=_plain(one.found))


def _plain(event: AnyEvent | None) -> dict[str, Any] | None:
    if event is None:
        return None
    return msgspec.json.decode(encode_event(event), type=dict[str, Any])


def _word(hold: Hold | None) -> str:
    """``nodes busy``."""
    if hold is None:
        return ""
    return str(hold.__struct_config__.tag).replace("_", " ")


def _after(one: Found) -> str:
    free = f"{one.free_cores} cpu, {size(one.free_memory)} free"
    match one.cause:
        case "devices":
            why = f"has {one.own} devices that are not asked for, against {one.chosen}"
        case "annotations":
            why = f"has {one.own} annotations that are not asked for, against {one.chosen}"
        case "cores":
            why = f"is larger: {one.own} cpu against {one.chosen}"
        case "kind":
            why = "is of a kind that joined later"
        case "order":
            why = "is just like it, and comes after it"
        case "kept":
            why = "is kept free: the chosen one is promised to another later, and free until then"
        case "room":
            why = f"keeps more room beside its promise: {one.own} cpu against {one.chosen}"
    return f"{one.node} ({free}) {why}"
