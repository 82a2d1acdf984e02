"""Why something waits, runs or has ended: one structure for command line, API and programs."""

import msgspec

from logyard_domain.holds import BehindHigher
from logyard_domain.resources import Request
from logyard_projections.answers.pool import Holder, NodeCount, Pool, Quantity, survey
from logyard_projections.answers.reasons import WIRE, Kind, Reason, needs_of, reasons, shape_of
from logyard_projections.answers.stages import instant, priority_at
from logyard_projections.answers.subjects import find, telling_rank
from logyard_projections.answers.waits import Wait, Waited, wait_of
from logyard_projections.answers.words import listed, number_of, size, wants
from logyard_projections.instants import lasting
from logyard_projections.queue import WAITING
from logyard_projections.shapes import Shape
from logyard_projections.stages import (
    DAY_MS,
    STAGES,
    Allocation,
    Stage,
    stage_key,
)
from logyard_projections.view import View
from logyard_projections.workflows import WORKFLOWS, Workflow

_PREFIX = "EXPLAIN_ALLOCATION_REASON_"


class BlockingJob(msgspec.Struct, frozen=True, rename="camel"):
    """An allocation that has to end first, on the wire."""

    allocation_id: str
    workflow_id: str
    est_finish: str | None


class Blocker(msgspec.Struct, frozen=True, rename="camel"):
    """One reason, in the order of rank: the first is the one that counts."""

    kind: Kind
    text: str
    positions: tuple[int, ...]


class Term(msgspec.Struct, frozen=True, rename="camel"):
    """A term of the priority; all terms sum to it."""

    name: str
    value: float


class Line(msgspec.Struct, frozen=True, rename="camel"):
    """A line for people, and the positions that it rests on."""

    label: str
    text: str
    positions: tuple[int, ...]


class Explanation(msgspec.Struct, frozen=True, rename="camel"):
    """Fields up to `blocking_jobs` as on the wire; ours after them, as of `position` and `at`.

    `kind` classifies, `summary` answers in one sentence, `blockers` are all reasons ranked, `pool`
    counts the nodes by cause (sums to `pool_nodes`), `needs` compares with the nearest node,
    `holders` are in the way (`held_by` in all), `terms` sum to `priority`, `waited` to `waited_ms`.
    """

    allocation_id: str
    workflow_id: str
    reason: str
    detail: str
    waiting_dependency_names: tuple[str, ...]
    blocking_head_allocation_id: str
    head_est_start: str | None
    provisioner_transaction_id: str
    nearest_node_id: str
    head_shape: Request | None
    blocking_jobs: tuple[BlockingJob, ...]
    position: int
    at: str | None
    subject: str
    kind: Kind
    summary: str
    blockers: tuple[Blocker, ...]
    wants: str
    needs: tuple[Quantity, ...]
    pool: tuple[NodeCount, ...]
    pool_nodes: int
    could_hold: int
    holders: tuple[Holder, ...]
    held_by: int
    priority: float
    terms: tuple[Term, ...]
    waited: tuple[Waited, ...]
    waited_ms: int
    lines: tuple[Line, ...]


def explain(view: View, name: str, now: int = 0) -> Explanation | None:
    """Explain an allocation, a rank (``WORKFLOW/STAGE/RANK``), a stage or a workflow.

    As of the view, or of the instant `now` where that is later. None where there is no such thing.
    Raises ValueError for a name that cannot be one.
    """
    found = find(view, name)
    if found is None:
        return None
    stage, rank, allocation = found
    workflow = view.get(WORKFLOWS, stage.workflow)
    return (
        None
        if workflow is None
        else _Explainer(view, workflow, stage, rank, allocation, now).told()
    )


class _Explainer:
    """Gathers the facts of one explanation."""

    def __init__(
        self,
        view: View,
        workflow: Workflow,
        stage: Stage,
        rank: int,
        allocation: Allocation | None,
        now: int,
    ) -> None:
        self.view = view
        self.workflow = workflow
        self.stage = stage
        self.rank = rank
        self.allocation = allocation
        self.at = max(view.mark.at, now)
        self.id = allocation.id if allocation else f"{workflow.id}/{stage.name}/{rank}#1"
        self.shape: Shape | None = shape_of(view, stage)
        self.reasons = reasons(view, stage, self.shape, allocation, self.at)
        waits = allocation is None or allocation.state in ("waiting", "delayed")
        self.waits = waits and stage.status in ("ready", "started")
        if self.waits and workflow.stopping:
            stopping = Reason("never", "the workflow is being stopped", (workflow.position,))
            self.reasons.insert(0, stopping)
        self.head = self._head() if self.waits else ""
        self.pool: Pool | None = None
        if self.waits and self.shape is not None:
            self.pool = survey(view, self.shape.request)
        self.wait: Wait = wait_of(view, stage, allocation, self.at)

    def told(self) -> Explanation:
        first, pool, shape = self.reasons[0], self.pool, self.shape
        terms = self._terms()
        blocked = first.kind in ("capacity", "turn")
        jobs = pool.holders if pool is not None and blocked else ()
        head_shape = self._head_shape()
        return Explanation(
            allocation_id=self.id,
            workflow_id=self.workflow.id,
            reason=_PREFIX + self._wire(),
            detail=first.text,
            waiting_dependency_names=needs_of(self.view, self.stage),
            blocking_head_allocation_id=self.head,
            head_est_start=None,
            provisioner_transaction_id="",
            nearest_node_id=self._nearest(),
            head_shape=head_shape.request if head_shape is not None else None,
            blocking_jobs=tuple(
                BlockingJob(one.allocation_id, one.workflow_id, one.est_finish) for one in jobs
            ),
            position=self.view.mark.position,
            at=instant(self.at),
            subject=self.id,
            kind=first.kind,
            summary=f"{self.id} {self._sentence()}",
            blockers=tuple(Blocker(one.kind, one.text, one.positions) for one in self.reasons),
            wants=wants(shape.request) if shape is not None else "",
            needs=pool.quantities if pool is not None else (),
            pool=pool.counts if pool is not None else (),
            pool_nodes=pool.nodes if pool is not None else 0,
            could_hold=pool.could_hold if pool is not None else 0,
            holders=pool.holders if pool is not None else (),
            held_by=pool.held_by if pool is not None else 0,
            priority=sum(term.value for term in terms),
            terms=terms,
            waited=self.wait.parts,
            waited_ms=self.wait.total_ms,
            lines=tuple(self._lines(terms)),
        )

    def _wire(self) -> str:
        outcome = self.allocation.outcome if self.allocation is not None else ""
        ended = self.reasons[0].kind == "ended"
        if ended and (outcome == "preempted"):
            return "PREEMPTED"
        if ended and (outcome == "canceled" or (not outcome and self.stage.status != "finished")):
            return "CANCELLED"
        return WIRE[self.reasons[0].kind]

    def _sentence(self) -> str:
        first = self.reasons[0]
        if first.kind in ("running", "ended", "dependency", "back-off"):
            return first.text
        opening = {
            "never": "will not start",
            "until-someone-acts": "waits until someone acts",
            "capacity": "waits for capacity",
            "turn": "waits for its turn",
            "limit": "waits for its own stage",
            "not-evaluated": "waits",
        }[first.kind]
        return f"{opening}: {first.text.removeprefix('never: ')}"

    def _nearest(self) -> str:
        if self.allocation is not None and self.allocation.node:
            return self.allocation.node
        return self.pool.nearest if self.pool is not None else ""

    def _head_shape(self) -> Shape | None:
        """The shape that the nodes are kept for."""
        shape = self.shape
        if not self.waits or shape is None:
            return None
        if isinstance(shape.hold, BehindHigher):
            other = msgspec.structs.replace(self.stage, shape=shape.hold.shape)
            return shape_of(self.view, other)
        return shape

    def _head(self) -> str:
        """The allocation that is looked at first among those that this one waits behind."""
        shape = self._head_shape()
        if shape is None:
            return ""
        found = self.view.scan(
            WAITING, where={"queue": "ready", "shape": shape.id}, order="score", limit=1
        ).rows
        if not found or (found[0].workflow, found[0].stage) == (self.workflow.id, self.stage.name):
            return ""
        stage = self.view.get(STAGES, stage_key(found[0].workflow, found[0].stage))
        if stage is None:
            return ""
        _, rank, allocation = telling_rank(self.view, stage)
        return allocation.id if allocation else f"{stage.workflow}/{stage.name}/{rank}#1"

    def _terms(self) -> tuple[Term, ...]:
        age = (self.at - self.stage.submitted_at) / DAY_MS
        total = priority_at(self.stage.score, self.at)
        return (
            Term("organization", 0.0),
            Term("group", 0.0),
            Term("user", 0.0),
            Term("workflow", round(total - age)),
            Term("age", age),
        )

    def _lines(self, terms: tuple[Term, ...]) -> list[Line]:
        lines: list[Line] = []
        if self.shape is not None:
            where = (self.shape.declared, self.stage.ready_position)
            lines.append(Line("needs", wants(self.shape.request), where))
        if self.pool is not None:
            lines += _pool_lines(self.pool)
        if len(self.reasons) > 1:
            others = self.reasons[1:]
            positions = tuple(sorted({at for one in others for at in one.positions}))
            lines.append(Line("also", listed([one.text for one in others]), positions))
        if self.head:
            held = (self.shape.since_position,) if self.shape is not None else ()
            lines.append(Line("behind", self.head, held))
        shown = " + ".join(f"{term.name} {_plain(term.value)}" for term in terms)
        total = sum(term.value for term in terms)
        lines.append(
            Line("order", f"priority {_plain(total)} = {shown}", (self.stage.submitted_position,))
        )
        parts = ", ".join(f"{one.reason} {lasting(one.ms)}" for one in self.wait.parts)
        text = lasting(self.wait.total_ms) + (f": {parts}" if parts else "")
        lines.append(Line("waited", text, self.wait.positions))
        return lines


def _plain(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _pool_lines(pool: Pool) -> list[Line]:
    counts = [f"{one.nodes:,} {one.cause}" for one in pool.counts]
    text = number_of(pool.nodes, "node") + (f": {', '.join(counts)}" if counts else "")
    positions = tuple(sorted({at for one in pool.counts for at in one.positions})[-5:])
    lines = [Line("pool", text, positions)]
    short = [one for one in pool.quantities if one.short]
    if short:
        parts = [
            f"{_amount(one, one.short)} short "
            f"({_amount(one, one.free)} free of {_amount(one, one.need)})"
            for one in short
        ]
        lines.append(Line("nearest", f"{pool.nearest}: {', '.join(parts)}", positions))
    if pool.holders:
        names = [
            one.allocation_id
            + (f" (ends within {lasting(one.within_ms)})" if one.within_ms is not None else "")
            for one in pool.holders
        ]
        basis = tuple(sorted({at for one in pool.holders for at in one.positions})[:5])
        more = pool.held_by - len(names[:3])
        text = ", ".join(names[:3]) + (f" and {number_of(more, 'other')}" if more > 0 else "")
        lines.append(Line("held by", text, basis))
    return lines


def _amount(quantity: Quantity, number: int) -> str:
    if quantity.dimension == "memory":
        return size(number)
    name = {"cores": "cpu"}.get(quantity.dimension, quantity.dimension.rpartition("/")[2])
    return f"{number} {name}"
