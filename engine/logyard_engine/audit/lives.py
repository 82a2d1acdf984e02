"""Workflows, stages and ranks go their way: what may follow on what, and what has to follow."""

import msgspec

from logyard_domain.definition import resolved
from logyard_domain.events import (
    AllocationReady,
    AllocationRequeued,
    StageCanceled,
    StageFailed,
    StageFinished,
    StageReady,
    StageStarted,
    WorkflowCanceled,
    WorkflowFailed,
    WorkflowFinished,
    WorkflowStarted,
    WorkflowStopping,
    WorkflowSubmitted,
)
from logyard_domain.plan import StagePlan, plan
from logyard_engine.audit.findings import Ledger
from logyard_engine.audit.state import State
from logyard_engine.audit.work import Shape, Stage, Workflow

PLANS_MAX = 10_000


class Lives:
    """Events of workflows and stages, and of ranks that wait."""

    def __init__(self, state: State, ledger: Ledger) -> None:
        self._state = state
        self._ledger = ledger
        self._plans: dict[tuple[bytes, bool], tuple[StagePlan, ...]] = {}

    def _wrong(self, subject: str, what: str) -> None:
        self._ledger.breach("I3", subject, what)

    # Workflows

    def submitted(self, event: WorkflowSubmitted) -> None:
        state = self._state
        self._ledger.checked["I3"] += 1
        if event.workflow in state.workflows:
            self._wrong(event.workflow, "it was submitted twice")
            return
        workflow = Workflow(event.workflow, event.organization, event.group, event.user)
        workflow.priority = event.priority
        workflow.timeout_ms = event.timeout_ms
        workflow.submitted_at = state.at
        workflow.position = state.position
        for one in self._planned(event):
            stage = workflow.stages[one.name] = Stage(workflow, one)
            state.turn.touched[stage] = None
        for stage in workflow.stages.values():
            for need in stage.plan.needs:
                workflow.stages[need].dependants.append(stage)
        workflow.open_stages = len(workflow.stages)
        state.workflows[event.workflow] = workflow

    def _planned(self, event: WorkflowSubmitted) -> tuple[StagePlan, ...]:
        key = (msgspec.json.encode(event.definition), event.preemptible)
        found = self._plans.get(key)
        if found is None:
            definition = event.definition
            if event.preemptible:
                definition = msgspec.structs.replace(definition, preemptible=True)
            if len(self._plans) >= PLANS_MAX:
                self._plans.clear()
            found = self._plans[key] = plan(resolved(definition))
        return found

    def workflow_started(self, event: WorkflowStarted) -> None:
        workflow = self._workflow(event.workflow, ("pending",), "start")
        if workflow is not None:
            workflow.status = "started"

    def stopping(self, event: WorkflowStopping) -> None:
        workflow = self._workflow(event.workflow, ("pending", "started"), "be stopped")
        if workflow is not None:
            workflow.status = "stopping"
            for stage in workflow.stages.values():
                self._state.turn.touched[stage] = None
                if stage.queued:
                    self._state.queue(stage)

    def finished(self, event: WorkflowFinished) -> None:
        workflow = self._workflow(event.workflow, ("started",), "finish")
        if workflow is not None:
            bad = [one for one in workflow.stages.values() if one.status != "finished"]
            self._over(
                workflow, f"finished, though {bad[0].name} is {bad[0].status}" if bad else ""
            )

    def failed(self, event: WorkflowFailed) -> None:
        workflow = self._workflow(event.workflow, ("pending", "started"), "fail")
        if workflow is not None:
            what = ""
            if event.stage != workflow.failed_stage:
                first = workflow.failed_stage or "nothing"
                what = f"failed because of {event.stage}, though {first} failed first"
            self._over(workflow, what)

    def canceled(self, event: WorkflowCanceled) -> None:
        workflow = self._workflow(event.workflow, ("stopping",), "be canceled")
        if workflow is not None:
            self._over(workflow, "")

    def _workflow(self, id: str, states: tuple[str, ...], verb: str) -> Workflow | None:
        self._ledger.checked["I3"] += 1
        workflow = self._state.workflows.get(id)
        if workflow is None:
            self._wrong(id, f"it cannot {verb}: no such workflow is alive")
        elif workflow.status not in states:
            self._wrong(id, f"it cannot {verb}: it is {workflow.status}")
        else:
            return workflow
        return None

    def _over(self, workflow: Workflow, what: str) -> None:
        if workflow.open_stages:
            what = what or f"ended, though {workflow.open_stages} of its stages have not"
        if what:
            self._wrong(workflow.id, what)
        workflow.status = "over"
        del self._state.workflows[workflow.id]
        for stage in workflow.stages.values():
            if stage.queued:
                self._state.ranking.dequeue(stage)

    # Stages

    def ready(self, event: StageReady) -> None:
        state = self._state
        stage = self._stage(event.workflow, event.stage, ("waiting",), "get ready")
        if stage is None:
            return
        if stage.unmet:
            self._wrong(stage.path, f"it is ready, though {stage.unmet} stages before it are not")
        shape = state.shapes.get(event.shape)
        if shape is None:
            self._wrong(stage.path, f"it has shape {event.shape}, which was never declared")
            return
        self._asked(stage, shape)
        stage.status = "ready"
        stage.shape = shape
        state.queue(stage)

    def _asked(self, stage: Stage, shape: Shape) -> None:
        """It queues with what its definition asks for."""
        self._ledger.checked["I2"] += 1
        wanted = stage.plan.request
        storage = stage.workflow.storage if stage.plan.volumes else ""
        if shape.request == wanted or (
            storage and shape.request == msgspec.structs.replace(wanted, storage=storage)
        ):
            return
        self._ledger.breach(
            "I2", stage.path, f"shape {shape.id} is not what its definition asks for"
        )

    def stage_started(self, event: StageStarted) -> None:
        stage = self._stage(event.workflow, event.stage, ("ready",), "start")
        if stage is not None:
            if not stage.started:
                self._wrong(stage.path, "it started, though none of its ranks did")
            stage.status = "started"

    def stage_finished(self, event: StageFinished) -> None:
        stage = self._stage(event.workflow, event.stage, ("started",), "finish")
        if stage is not None:
            self._ledger.checked["I11"] += 1
            if stage.finished != stage.total:
                self._ledger.breach(
                    "I11",
                    stage.path,
                    f"it finished with {stage.finished} of its {stage.total} ranks",
                )
            for dependant in stage.dependants:
                dependant.unmet -= 1
            stage.status = "finished"
            self._done(stage)

    def stage_failed(self, event: StageFailed) -> None:
        stage = self._stage(event.workflow, event.stage, ("ready", "started"), "fail")
        if stage is not None:
            if not stage.failed:
                self._wrong(stage.path, "it failed, though no rank of it did")
            stage.status = "failed"
            workflow = stage.workflow
            workflow.failed_stage = workflow.failed_stage or event.stage
            self._done(stage)

    def stage_canceled(self, event: StageCanceled) -> None:
        states = ("waiting", "ready", "started")
        stage = self._stage(event.workflow, event.stage, states, "be canceled")
        if stage is not None:
            stage.status = "canceled"
            self._done(stage)

    def _stage(self, workflow: str, name: str, states: tuple[str, ...], verb: str) -> Stage | None:
        self._ledger.checked["I3"] += 1
        found = self._state.workflows.get(workflow)
        stage = found.stages.get(name) if found is not None else None
        if stage is None:
            self._wrong(f"{workflow}/{name}", f"it cannot {verb}: no such stage is alive")
        elif stage.status not in states:
            self._wrong(stage.path, f"it cannot {verb}: it is {stage.status}")
        else:
            return stage
        return None

    def _done(self, stage: Stage) -> None:
        placed = stage.holding + stage.lined
        if placed:
            self._wrong(stage.path, f"it is {stage.status}, though {placed} ranks of it are placed")
        stage.delayed = None
        stage.again = []
        stage.workflow.open_stages -= 1
        turn = self._state.turn
        turn.touched[stage] = None
        for dependant in stage.dependants:
            turn.touched[dependant] = None
        if stage.queued:
            self._state.queue(stage)

    # Ranks that wait again

    def requeued(self, event: AllocationRequeued) -> None:
        state = self._state
        self._ledger.checked["I3"] += 1
        name = event.allocation
        rank, stage = _rank(state, name)
        attempt = None if stage is None else state.turn.ended.pop((stage, rank[0]), None)
        if stage is None or attempt is None or attempt.number + 1 != rank[1]:
            self._wrong(name, "it was requeued, though no attempt before it has just ended")
            return
        self._reason(event, stage, rank[0], attempt.stopping)
        stage.failed -= 1
        if event.not_before > state.at:
            if stage.delayed is None:
                stage.delayed = {}
            stage.delayed[rank[0]] = (rank[1], event.not_before)
        else:
            stage.again.append(rank)
            stage.again.sort()
        state.queue(stage)

    def _reason(self, event: AllocationRequeued, stage: Stage, rank: int, stopping: str) -> None:
        reason, at = event.reason, self._state.at
        if reason in ("preempted", "drained"):
            if stopping != reason:
                self._wrong(event.allocation, f"it was requeued as {reason}, and it was not")
        elif reason == "lost":
            stage.losses = stage.losses or {}
            stage.losses[rank] = count = stage.losses.get(rank, 0) + 1
            most = int(self._state.config["workflow.lostRetries"])
            if count > most:
                self._wrong(event.allocation, f"it was lost {count} times; the most is {most}")
        else:
            stage.failures = stage.failures or {}
            stage.failures[rank] = count = stage.failures.get(rank, 0) + 1
            retry = stage.plan.retry
            if retry is None or count > retry.attempts:
                self._wrong(
                    event.allocation,
                    f"new try number {count}; {retry.attempts if retry else 0} are allowed",
                )
            elif event.not_before != at + retry.pause_ms(count):
                waits = event.not_before - at
                self._wrong(
                    event.allocation,
                    f"it backs off for {waits} ms instead of {retry.pause_ms(count)} ms",
                )

    def waits_again(self, event: AllocationReady) -> None:
        state = self._state
        self._ledger.checked["I3"] += 1
        rank, stage = _rank(state, event.allocation)
        known = stage.delayed.get(rank[0]) if stage is not None and stage.delayed else None
        if stage is None or known is None or known[0] != rank[1]:
            self._wrong(event.allocation, "it is ready again, though it does not back off")
            return
        assert stage.delayed is not None
        del stage.delayed[rank[0]]
        if known[1] > state.at:
            self._wrong(
                event.allocation,
                f"it is ready {known[1] - state.at} ms before its back-off is over",
            )
        stage.again.append(rank)
        stage.again.sort()
        state.queue(stage)

    # The end of a turn

    def conclude(self) -> None:
        """What has to follow did follow."""
        turn = self._state.turn
        for stage in turn.touched:
            missing = _missing(stage)
            if missing:
                self._wrong(stage.path, missing)
        for (stage, rank), attempt in turn.ended.items():
            owed = attempt.stopping in ("preempted", "drained") and stage.failed == 1
            if owed and stage.workflow.status in ("pending", "started"):
                rule = "I9" if attempt.stopping == "preempted" else "I3"
                self._ledger.breach(
                    rule, attempt.id, f"it was {attempt.stopping} and rank {rank} was not requeued"
                )


def _missing(stage: Stage) -> str:
    """What should have followed for the stage and did not; empty when nothing."""
    workflow, status = stage.workflow, stage.status
    if workflow.status == "over":
        return ""
    if status == "waiting":
        if workflow.status == "stopping":
            return "its workflow is being stopped, and it was not canceled"
        for need in stage.plan.needs:
            found = workflow.stages[need].status
            if found in ("failed", "canceled"):
                return f"{need} is {found}, and it was not canceled"
        if not stage.unmet:
            return "everything that it needs is there, and it did not get ready"
    elif status in ("ready", "started"):
        if status == "ready" and stage.started:
            return "a rank of it started, and it did not"
        if not (stage.holding or stage.lined):
            if stage.finished == stage.total:
                return "all its ranks finished, and it did not"
            if workflow.status == "stopping":
                return "its workflow is being stopped, and it was not canceled"
            if stage.failed:
                return "a rank of it failed for good, and it did not"
    if not workflow.open_stages:
        return f"workflow {workflow.id} did not end, though all its stages have"
    return ""


def _rank(state: State, name: str) -> tuple[tuple[int, int], Stage | None]:
    """Rank and attempt of an allocation's name, and its stage when it is alive."""
    id, _, rest = name.partition("/")
    stage_name, _, tail = rest.rpartition("/")
    rank, _, number = tail.partition("#")
    workflow = state.workflows.get(id)
    stage = workflow.stages.get(stage_name) if workflow is not None else None
    return (int(rank), int(number)), stage
