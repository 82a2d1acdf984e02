"""Why something waits, runs or has ended."""

from functools import cached_property

import msgspec

from logyard_domain.expressions import printed
from logyard_domain.resources import Request
from logyard_projections.answers.evictions import evicted_of, protected_from, spared_text
from logyard_projections.answers.explanation import (
    Blocker,
    BlockingJob,
    Explanation,
    Here,
)
from logyard_projections.answers.forecasts import Forecast, forecast_of
from logyard_projections.answers.history import history_of
from logyard_projections.answers.pool import Pool, Sees, holders, survey
from logyard_projections.answers.ranking import finite
from logyard_projections.answers.reasons import Reason, needs_of, reasons, standing_text
from logyard_projections.answers.situation import Situation
from logyard_projections.answers.stages import instant
from logyard_projections.answers.subjects import find
from logyard_projections.answers.telling import lines_of
from logyard_projections.answers.waits import wait_of
from logyard_projections.answers.words import wants
from logyard_projections.promises import BACKFILLS, PROMISES, Promise
from logyard_projections.queue import Owner
from logyard_projections.stages import (
    ALLOCATIONS,
    LIVE,
    Allocation,
    Stage,
    allocation_key,
    place_of,
)
from logyard_projections.view import View
from logyard_projections.workflows import WORKFLOWS, Workflow

_PREFIX = "EXPLAIN_ALLOCATION_REASON_"


def explain(view: View, name: str, now: int = 0, *, sees: Sees | None = None) -> Explanation | None:
    """Explain an allocation, a rank (``WORKFLOW/STAGE/RANK``), a stage or a workflow.

    As of the view, or of the instant `now` where that is later. None where there is no such thing.
    `sees` tells whose work may be named to who asks; without it all of it is.
    Raises ValueError for a name that cannot be one.
    """
    found = find(view, name)
    if found is None:
        return None
    stage, rank, allocation = found
    workflow = view.get(WORKFLOWS, stage.workflow)
    if workflow is None:
        return None
    situation = Situation(view, max(view.mark.at, now))
    return _Explainer(situation, workflow, stage, rank, allocation, sees).told()


class _Explainer:
    """Gathers the facts of one explanation."""

    def __init__(
        self,
        situation: Situation,
        workflow: Workflow,
        stage: Stage,
        rank: int,
        allocation: Allocation | None,
        sees: Sees | None,
    ) -> None:
        self.situation = situation
        self.view = situation.view
        self.workflow = workflow
        self.stage = stage
        self.allocation = allocation
        self.sees = sees
        self.id = allocation.id if allocation else f"{workflow.id}/{stage.name}/{rank}#1"
        self.owner = Owner(
            workflow.name, workflow.organization, workflow.group, workflow.user, workflow.priority
        )
        waits = allocation is None or allocation.state in ("waiting", "delayed")
        self.waits = waits and stage.status in ("ready", "started")
        self.promise = self._promise(rank)
        self.own = situation.promise_of(stage.workflow, stage.name)
        first = self.own is None or self.own.allocation == self.id
        self.reasons = reasons(situation, stage, allocation, first)
        if self.waits and workflow.stopping:
            stopping = Reason("never", "the workflow is being stopped", (workflow.position,))
            self.reasons.insert(0, stopping)

    @cached_property
    def request(self) -> Request:
        """What it asks for."""
        stage = self.stage
        return self.situation.ranker.request_of(stage.shape, stage.workflow, stage.name)

    @cached_property
    def head(self) -> Promise | None:
        """The promise that it may not get in the way of."""
        if not self.waits or self.own is not None:
            return None
        shape = self.situation.shape(self.stage.shape)
        blocking = getattr(shape.hold, "shape", 0) if shape is not None else 0
        if blocking:
            return self.situation.promised_to(blocking)
        if all(one.kind != "turn" for one in self.reasons):
            return None
        return self.situation.in_line_before(self.stage.workflow, self.stage.name, self.request)

    @cached_property
    def pool(self) -> Pool | None:
        """The nodes, where it waits for some."""
        if not self.waits or self.situation.shape(self.stage.shape) is None:
            return None
        return survey(self.situation, self.request, self.own.chunks if self.own else ())

    def told(self) -> Explanation:
        first, pool, stage, situation = self.reasons[0], self.pool, self.stage, self.situation
        blocked = pool is not None and first.kind in ("capacity", "turn", "not-evaluated")
        shown, others = holders(situation, pool, self.sees) if blocked and pool else ((), None)
        forecast = self._forecast(self.promise)
        head = self._forecast(self.head)
        first_in_line = head or forecast
        wait = wait_of(self.view, stage, self.allocation, situation.at)
        protected, protected_text = (
            protected_from(situation, stage, self.owner, self.request) if blocked else ((), "")
        )
        head_shape = situation.shape(self.head.shape) if self.head is not None else None
        ranker = situation.ranker
        told = Explanation(
            allocation_id=self.id,
            workflow_id=self.workflow.id,
            reason=_PREFIX + self._wire(),
            detail=first.text,
            waiting_dependency_names=needs_of(self.view, stage),
            blocking_head_allocation_id=self.head.allocation if self.head else self._ahead(),
            head_est_start=first_in_line.start if first_in_line is not None else None,
            provisioner_transaction_id="",
            nearest_node_id=self._nearest(),
            head_shape=head_shape.request if head_shape is not None else self._own_shape(),
            blocking_jobs=tuple(
                BlockingJob(one.allocation_id, one.workflow_id, one.est_finish) for one in shown
            ),
            position=self.view.mark.position,
            at=instant(situation.at),
            subject=self.id,
            kind=first.kind,
            summary=f"{self.id} {self._sentence()}",
            blockers=tuple(Blocker(one.kind, one.text, one.positions) for one in self.reasons),
            wants=wants(self.request) if situation.shape(stage.shape) is not None else "",
            chunks=self.request.nodes,
            free_now=pool.free_now if pool is not None else 0,
            needs=pool.quantities if pool is not None else (),
            pool=pool.counts if pool is not None else (),
            pool_nodes=pool.nodes if pool is not None else 0,
            could_hold=pool.could_hold if pool is not None else 0,
            holders=shown,
            held_by=pool.held_by if pool is not None else 0,
            others=others,
            forecast=forecast,
            head=head,
            priority=finite(ranker.of_stage(stage, self.owner)),
            terms=ranker.terms(stage, self.owner),
            formula=printed(ranker.formula.tree),
            policy_revision=ranker.formula.revision,
            policy_position=ranker.formula.position,
            waited=wait.parts,
            waited_ms=wait.total_ms,
            history=history_of(self.view, stage, self.allocation, situation.at),
            here=self._here(),
            evicted=evicted_of(self.allocation),
            spared=self._spared(),
            protected=protected,
            lines=(),
        )
        return self._with_lines(told, wait.positions, protected_text)

    def _with_lines(
        self, told: Explanation, waited: tuple[int, ...], protected_text: str
    ) -> Explanation:
        stage, ranker = self.stage, self.situation.ranker
        shape = self.situation.shape(stage.shape)
        asked = (shape.declared, stage.ready_position) if shape is not None else ()
        basis = ranker.basis(stage, self.owner)
        before = self._before()
        lines = lines_of(self.situation, told, asked, basis, waited, protected_text, before)
        return msgspec.structs.replace(told, lines=tuple(lines))

    def _promise(self, rank: int) -> Promise | None:
        """What this attempt was promised."""
        attempt = self.allocation.attempt if self.allocation is not None else 1
        key = allocation_key(self.stage.workflow, self.stage.name, rank, attempt)
        return self.view.get(PROMISES, key)

    def _forecast(self, promise: Promise | None) -> Forecast | None:
        return forecast_of(self.view, promise, self.situation.at) if promise is not None else None

    def _wire(self) -> str:
        outcome = self.allocation.outcome if self.allocation is not None else ""
        ended = self.reasons[0].kind == "ended"
        if ended and (outcome == "preempted"):
            return "PREEMPTED"
        if ended and (outcome == "canceled" or (not outcome and self.stage.status != "finished")):
            return "CANCELLED"
        return self.reasons[0].word

    def _sentence(self) -> str:
        first = self.reasons[0]
        if first.kind in ("running", "ended", "dependency", "back-off"):
            return first.text
        if self.own is not None and self.own.allocation == self.id and first.kind == "capacity":
            start, _, _ = first.text.removeprefix("head: starts ").partition(" (")
            scarce = self.situation.rooms.scarce(self.request)
            where = ", ".join(self.own.chunks)
            return f"waits for capacity: {scarce}; it is the head, promised {where} {start}"
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

    def _own_shape(self) -> Request | None:
        """Of the head itself, what is kept for it is what it asks for."""
        return self.request if self.own is not None and self.waits else None

    def _ahead(self) -> str:
        """Of a rank whose stage has the promise, the rank that it was made to."""
        own = self.own
        if own is not None and self.waits and own.allocation != self.id:
            return own.allocation
        return ""

    def _here(self) -> Here | None:
        one = self.allocation
        if one is None or not one.placed_at:
            return None
        backfill = self.view.get(BACKFILLS, place_of(one.id).key)
        ahead = self.view.get(ALLOCATIONS, one.behind) if one.behind else None
        positions = [one.placed_position, backfill.position if backfill is not None else 0]
        return Here(
            node_id=one.node,
            nodes=one.seats,
            kind=one.kind,
            behind=ahead.id if ahead is not None else "",
            before=backfill.before if backfill is not None else "",
            evicts=one.after,
            seated=instant(one.seated_at),
            revision=one.revision,
            text=standing_text(self.situation, one),
            positions=tuple(at for at in (*positions, one.seated_position) if at),
        )

    def _spared(self) -> str:
        one = self.allocation
        if one is None or one.state not in LIVE or one.stopping == "preempted":
            return ""
        return spared_text(self.situation, self.stage, self.owner, one)

    def _before(self) -> Allocation | None:
        """The attempt before this one."""
        one = self.allocation
        if one is None or one.attempt < 2:
            return None
        key = allocation_key(one.workflow, one.stage, one.rank, one.attempt - 1)
        return self.view.get(ALLOCATIONS, key)
