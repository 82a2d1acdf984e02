"""An explanation in lines for people."""

from collections.abc import Iterator

from logyard_projections.answers.evictions import evicted_of, evicted_text
from logyard_projections.answers.explanation import Explanation, Line
from logyard_projections.answers.forecasts import forecast_text
from logyard_projections.answers.pool import Quantity
from logyard_projections.answers.ranking import plain, policy_text, sum_text
from logyard_projections.answers.situation import Situation
from logyard_projections.answers.words import device, job_name, listed, number_of, size
from logyard_projections.instants import lasting
from logyard_projections.stages import Allocation

NAMED = 3
"""Holders that are named, and slips."""


def lines_of(
    situation: Situation,
    told: Explanation,
    asked: tuple[int, ...],
    basis: tuple[int, ...],
    waited: tuple[int, ...],
    protected: str,
    before: Allocation | None,
) -> Iterator[Line]:
    """The lines below the answer. `asked`, `basis` and `waited` are the positions that the request,
    the priority and the wait rest on; `before` is the attempt before this one.
    """
    if told.wants:
        yield Line("needs", told.wants, asked)
    if told.here is not None:
        where = listed(
            (f"{name} ({count})" if count > 1 else name for name, count in told.here.nodes.items()),
            6,
        )
        yield Line("here", f"{where}: {told.here.text}", told.here.positions)
    if told.pool_nodes:
        yield from _pool(told)
    if len(told.blockers) > 1:
        others = told.blockers[1:]
        positions = tuple(sorted({at for one in others for at in one.positions}))
        yield Line("also", listed([one.text for one in others], 4), positions)
    if told.blocking_head_allocation_id:
        text = job_name(told.blocking_head_allocation_id)
        head = told.head
        if head is not None and head.start is not None:
            text += f", promised {head.start} on {listed(head.nodes, 6)}"
        yield Line("behind", text, head.positions if head is not None else ())
    yield from _promised(told)
    if told.evicted is not None:
        yield Line("evicted", evicted_text(told.evicted), told.evicted.positions)
    earlier = evicted_of(before)
    if before is not None and earlier is not None:
        text = f"attempt {before.attempt}, {evicted_text(earlier)}"
        yield Line("evicted", text, earlier.positions)
    if told.spared:
        yield Line("not evicted", told.spared, ())
    if protected:
        yield Line("evicts", f"nobody: {protected}", ())
    text = f"priority {plain(told.priority)} = {sum_text(told.terms)}"
    yield Line("order", f"{text}; {policy_text(situation.ranker)}", basis)
    parts = ", ".join(f"{one.reason} {lasting(one.ms)}" for one in told.waited)
    text = lasting(told.waited_ms) + (f": {parts}" if parts else "")
    yield Line("waited", text, tuple(at for at in waited if at))


def _promised(told: Explanation) -> Iterator[Line]:
    forecast = told.forecast
    if forecast is None:
        return
    yield Line("forecast", forecast_text(forecast), forecast.positions)
    for slip in forecast.slips[-NAMED:]:
        if slip.cause != "held" or slip.text != "promised":
            yield Line("", slip.text, slip.positions)


def _pool(told: Explanation) -> Iterator[Line]:
    counts = [f"{one.nodes:,} {one.cause}" for one in told.pool]
    text = number_of(told.pool_nodes, "node") + (f": {', '.join(counts)}" if counts else "")
    positions = tuple(sorted({at for one in told.pool for at in one.positions})[-5:])
    yield Line("pool", text, positions)
    if told.chunks > 1:
        short = told.chunks - told.free_now
        text = f"room for {told.free_now:,} of {number_of(told.chunks, 'chunk')}"
        yield Line("free now", f"{text}; short by {short:,}" if short else text, positions)
    short_of = [one for one in told.needs if one.short]
    if short_of:
        parts = [
            f"{_amount(one, one.short)} short "
            f"({_amount(one, one.free)} free of {_amount(one, one.need)})"
            for one in short_of
        ]
        yield Line("nearest", f"{told.nearest_node_id}: {', '.join(parts)}", positions)
    yield from _holders(told)


def _holders(told: Explanation) -> Iterator[Line]:
    if not told.holders and told.others is None:
        return
    names = [
        job_name(one.allocation_id)
        + (f" (ends by {one.est_finish})" if one.est_finish is not None else "")
        for one in told.holders[:NAMED]
    ]
    others = told.others
    if others is not None:
        what = [f"{others.cores} cpu"] if others.cores else []
        what += [f"{count} {device(name)}" for name, count in others.devices.items()]
        text = f"{number_of(others.allocations, 'allocation')} of other groups"
        names.append(f"{text} ({', '.join(what)})" if what else text)
    more = told.held_by - len(told.holders[:NAMED]) - (others.allocations if others else 0)
    text = ", ".join(names) + (f" and {number_of(more, 'other')}" if more > 0 else "")
    basis = tuple(sorted({at for one in told.holders[:NAMED] for at in one.positions})[:5])
    yield Line("held by", text, basis)


def _amount(quantity: Quantity, number: int) -> str:
    if quantity.dimension == "memory":
        return size(number)
    name = "cpu" if quantity.dimension == "cores" else device(quantity.dimension)
    return f"{number} {name}"
