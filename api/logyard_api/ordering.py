"""How an expression would order what waits now, beside the one in force."""

from collections.abc import Sequence
from heapq import nsmallest
from math import isfinite
from typing import NamedTuple

import msgspec

from logyard_domain.expressions import Expression, Scalar, moving, printed, priority, rising
from logyard_domain.rules.priorities import variables_for
from logyard_domain.world import Stage, World

EVALUATED_MAX = 2_000
"""Stages that one question is about, so that the writer is not held up."""


class Candidate(NamedTuple):
    """A stage that waits, and what expressions see of it."""

    stage: str
    name: str
    organization: str
    group: str
    user: str
    ranks: int
    submitted: tuple[int, int]
    values: dict[str, Scalar]


class Queue(NamedTuple):
    """What waits (`waiting` stages, of which `candidates` are looked at) under what expression."""

    candidates: list[Candidate]
    waiting: int
    formula: Expression
    position: int
    revision: int


class Placed(msgspec.Struct, frozen=True, rename="camel"):
    """A stage that waits, its places in the queue (from 1) and its priorities before and after.

    A priority is null where the expression gives no finite number, which counts as the lowest.
    """

    stage_id: str
    workflow_name: str
    organization_id: str
    account_id: str
    user_id: str
    ranks: int
    place_before: int
    place_after: int
    priority_before: float | None
    priority_after: float | None


class Ordering(msgspec.Struct, frozen=True, rename="camel"):
    """What waits, in the order that the tested expression gives.

    `lines` are the first of `evaluated` stages, of `waiting` that wait in all; `moved` of those
    evaluated would have another place, and `not_finite` would have no finite priority, so that the
    expression would be refused. `rising`: waiting never lowers a priority; `moving`: the order may
    change by time alone. `before` is the expression in force, of revision `revision`.
    """

    lines: tuple[Placed, ...]
    evaluated: int
    waiting: int
    moved: int
    not_finite: int
    rising: bool
    moving: bool
    before: str
    after: str
    revision: int
    position: int


def queue(world: World, now: int) -> Queue:
    """What waits at an instant. The oldest of each lane where there are too many of them."""
    lanes = list(world.lanes.values())
    each = max(1, EVALUATED_MAX // max(len(lanes), 1))
    found: list[Candidate] = []
    waiting = 0
    for lane in lanes:
        heads = [entry for entry in lane.heap if entry[2].open]
        waiting += len(heads)
        if len(found) < EVALUATED_MAX:
            chosen = heads if len(heads) <= each else nsmallest(each, heads)
            found += [_candidate(world, stage, now) for _, _, stage in chosen]
    return Queue(found, waiting, world.priority, world.position, world.revision)


def _candidate(world: World, stage: Stage, now: int) -> Candidate:
    workflow = stage.workflow
    return Candidate(
        f"{workflow.id}/{stage.plan.name}",
        workflow.name,
        workflow.organization,
        workflow.group,
        workflow.user,
        stage.waiting,
        (workflow.position, stage.plan.index),
        variables_for(world, stage, now),
    )


def ordering(found: Queue, formula: Expression, limit: int) -> Ordering:
    """The first `limit` in the order that `formula` gives."""
    before = _values(found.candidates, found.formula)
    after = _values(found.candidates, formula)
    places = {index: place for place, index in enumerate(_order(found.candidates, before), 1)}
    order = _order(found.candidates, after)
    lines = tuple(
        _line(found.candidates[index], places[index], place, before[index], after[index])
        for place, index in enumerate(order[:limit], 1)
    )
    return Ordering(
        lines=lines,
        evaluated=len(found.candidates),
        waiting=found.waiting,
        moved=sum(places[index] != place for place, index in enumerate(order, 1)),
        not_finite=sum(not isfinite(value) for value in after),
        rising=rising(formula),
        moving=moving(formula),
        before=printed(found.formula),
        after=printed(formula),
        revision=found.revision,
        position=found.position,
    )


def _values(candidates: Sequence[Candidate], formula: Expression) -> list[float]:
    return [priority(formula, one.values) for one in candidates]


def _order(candidates: Sequence[Candidate], values: Sequence[float]) -> list[int]:
    return sorted(
        range(len(candidates)), key=lambda index: (-values[index], candidates[index].submitted)
    )


def _line(one: Candidate, before: int, after: int, was: float, becomes: float) -> Placed:
    return Placed(
        stage_id=one.stage,
        workflow_name=one.name,
        organization_id=one.organization,
        account_id=one.group,
        user_id=one.user,
        ranks=one.ranks,
        place_before=before,
        place_after=after,
        priority_before=was if isfinite(was) else None,
        priority_after=becomes if isfinite(becomes) else None,
    )
