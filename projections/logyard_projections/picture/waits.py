"""What waits while the log is read, and for what."""

from collections.abc import Mapping

import msgspec

from logyard_domain.events import WorkflowSubmitted
from logyard_domain.holds import Hold
from logyard_domain.plan import StagePlan
from logyard_domain.records import Record
from logyard_domain.resources import Request
from logyard_projections.answers.waits import NAMES
from logyard_projections.picture.grid import Course, Grid
from logyard_projections.picture.picture import REASONS, Owner, Waiting
from logyard_projections.plans import stages_of
from logyard_projections.shapes import passed, reason_of

Totals = dict[str, int]


class Shape:
    """Equal requests: why they wait since when, and for how long they did for each reason.

    `waiting` is how many ranks do now, those aside that their stage's own limit holds back.
    """

    def __init__(self, request: Request, at: int) -> None:
        self.request = request
        self.reason = NAMES["unheld"]
        self.since = at
        self.totals: Totals = {}
        self.waiting = 0

    def until(self, at: int) -> Totals:
        """For how long which reason was in force until `at`."""
        return passed(self.totals, self.reason, self.since, at)


class Turn(msgspec.Struct, frozen=True, gc=False):
    """A rank in the queue: since when, and from when on it could be placed (0: not yet).

    `totals` is what its stage had waited by then.
    """

    queued: int
    queued_position: int
    requeued: str = ""
    ready: int = 0
    ready_position: int = 0
    totals: Totals = {}


class Stage:
    """A stage of a living workflow. `live` ranks hold room, `waiting` could be placed."""

    def __init__(self, owner: Owner, plan: StagePlan, kinds: Mapping[str, str]) -> None:
        self.owner = owner
        self.plan = plan
        self.shape: Shape | None = None
        self.number = 0
        self.live = 0
        self.waiting = 0
        self.delayed = 0
        self.limited = False
        self.turn = Turn(owner.submitted, owner.position)
        self.again: dict[int, Turn] = {}
        self.jobs = sum(kinds.get(need) == "job" for need in plan.needs)
        self.staged = len(plan.needs) > self.jobs
        self.pending: str | None = "data" if self.staged and not self.jobs else "dependency"
        self.data_since = owner.submitted
        self._own: Totals = {}
        self._mark: Totals = {}
        self._entered = 0

    @property
    def total(self) -> int:
        """How many ranks it has."""
        return self.plan.last - self.plan.first + 1

    def totals(self, at: int) -> Totals:
        """For how long which reason held its ranks back until `at`, since its shape was seen."""
        if self.shape is None:
            return {}
        found = dict(self.shape.until(at))
        if self.limited:
            self._add_limit(found, at)
        for reason, ms in self._own.items():
            found[reason] = found.get(reason, 0) + ms
        return found

    def limit(self, limited: bool, at: int) -> None:
        """It comes to its own limit of ranks, or leaves it."""
        if self.shape is None or limited == self.limited:
            return
        if limited:
            self._mark, self._entered = self.shape.until(at), at
        else:
            self._add_limit(self._own, at)
        self.limited = limited

    def _add_limit(self, totals: Totals, at: int) -> None:
        """While it is at its limit, that is the reason, and not what holds its shape."""
        for reason, ms in (self.shape.until(at) if self.shape else {}).items():
            totals[reason] = totals.get(reason, 0) - ms + self._mark.get(reason, 0)
        totals["limit"] = totals.get("limit", 0) + at - self._entered


class _Workflow:
    def __init__(self, owner: Owner, plans: tuple[StagePlan, ...]) -> None:
        kinds = {plan.name: plan.kind for plan in plans}
        self.stages = {plan.name: Stage(owner, plan, kinds) for plan in plans}
        self.dependants: dict[str, list[str]] = {}
        for plan in plans:
            for need in plan.needs:
                self.dependants.setdefault(need, []).append(plan.name)


class Waits:
    """All living workflows, by how many of their ranks wait for what.

    What is asked of unknown ones (the log may begin in the middle) changes nothing.
    """

    def __init__(self, grid: Grid) -> None:
        self.shapes: dict[int, Shape] = {}
        self._workflows: dict[str, _Workflow] = {}
        self._courses = {reason: Course(grid) for reason in REASONS}

    def count(self, reason: str, at: int, by: int) -> None:
        """So many more ranks wait for it."""
        self._courses[reason].change(at, by)

    def stage(self, workflow: str, stage: str) -> Stage | None:
        """The stage, where it is known."""
        found = self._workflows.get(workflow)
        return found.stages.get(stage) if found else None

    def submitted(self, record: Record, event: WorkflowSubmitted) -> None:
        """A workflow is there; all of it waits for what it depends on."""
        owner = Owner(
            event.workflow,
            event.name,
            event.organization,
            event.group,
            event.user,
            event.priority,
            record.at,
            record.position,
        )
        workflow = self._workflows[event.workflow] = _Workflow(owner, stages_of(event))
        for stage in workflow.stages.values():
            if stage.pending:
                self.count(stage.pending, record.at, stage.total)

    def ready(self, stage: Stage, shape: int, record: Record) -> None:
        """It queues: all of its ranks could be placed."""
        known = self.shapes.get(shape)
        if known is None:
            return
        if stage.pending:
            self.count(stage.pending, record.at, -stage.total)
        stage.pending, stage.shape, stage.number = None, known, shape
        if stage.jobs or not stage.staged:
            stage.data_since = record.at
        totals = stage.totals(record.at)
        stage.turn = msgspec.structs.replace(
            stage.turn, ready=record.at, ready_position=record.position, totals=totals
        )
        self._change(stage, record.at, stage.total, 0)

    def placed(self, stage: Stage, rank: int, attempt: int, at: int) -> Turn:
        """One of its ranks got a place; how it had waited."""
        self._change(stage, at, -1, 1)
        return stage.turn if attempt == 1 else stage.again.pop(rank, stage.turn)

    def ended(self, stage: Stage, at: int) -> None:
        """One of its ranks has no place any more."""
        self._change(stage, at, 0, -1)

    def requeued(
        self, stage: Stage, rank: int, reason: str, not_before: int, record: Record
    ) -> None:
        """A rank waits again, or will after a back-off."""
        turn = Turn(record.at, record.position, reason)
        if not_before > record.at:
            stage.again[rank] = turn
            stage.delayed += 1
            self.count("back-off", record.at, 1)
            return
        stage.again[rank] = self._could(stage, turn, record)
        self._change(stage, record.at, 1, 0)

    def back(self, stage: Stage, rank: int, record: Record) -> None:
        """The back-off of a rank is over."""
        turn = stage.again.get(rank)
        if turn is not None:
            stage.delayed -= 1
            self.count("back-off", record.at, -1)
            stage.again[rank] = self._could(stage, turn, record)
            self._change(stage, record.at, 1, 0)

    def over(self, workflow: str, name: str, at: int) -> None:
        """A stage waits for nothing any more; those that need it may now wait for data alone."""
        found = self._workflows.get(workflow)
        stage = found.stages.get(name) if found else None
        if found is None or stage is None:
            return
        if stage.pending:
            self.count(stage.pending, at, -stage.total)
            stage.pending = None
        self._change(stage, at, -stage.waiting, 0)
        self.count("back-off", at, -stage.delayed)
        stage.delayed = 0
        if stage.plan.kind != "job":
            return
        for other in (found.stages[one] for one in found.dependants.get(name, ())):
            other.jobs -= 1
            if not other.jobs and other.staged and other.pending:
                self.count(other.pending, at, -other.total)
                self.count("data", at, other.total)
                other.pending, other.data_since = "data", at

    def gone(self, workflow: str) -> None:
        """The workflow has ended."""
        self._workflows.pop(workflow, None)

    def held(self, number: int, hold: Hold | None, at: int) -> None:
        """The reason why a shape waits is another one."""
        shape = self.shapes.get(number)
        if shape is None:
            return
        told = reason_of(hold)
        reason = NAMES.get(told, told)
        self.count(shape.reason, at, -shape.waiting)
        self.count(reason, at, shape.waiting)
        shape.totals, shape.since, shape.reason = shape.until(at), at, reason

    def parts(self, stage: Stage, turn: Turn, at: int) -> list[tuple[str, int]]:
        """What the wait of a rank that is placed at `at` was made of, by reason."""
        if turn.requeued:
            parts = [("back-off", turn.ready - turn.queued)]
        else:
            parts = [
                ("dependency", stage.data_since - turn.queued),
                ("data", turn.ready - stage.data_since),
            ]
        for reason, ms in stage.totals(at).items():
            parts.append((reason, ms - turn.totals.get(reason, 0)))
        return [part for part in parts if part[1] > 0]

    def waiting(self) -> int:
        """How many ranks could be placed now and are not."""
        return sum(
            stage.waiting for flow in self._workflows.values() for stage in flow.stages.values()
        )

    def courses(self, at: int) -> tuple[Waiting, ...]:
        """How many waited for what, until `at`, for each reason that there was."""
        found: list[Waiting] = []
        for reason, course in self._courses.items():
            total = round(course.total(at))
            if total:
                found.append(Waiting(reason, course.means(at), total, round(course.peak)))
        return tuple(found)

    def _could(self, stage: Stage, turn: Turn, record: Record) -> Turn:
        return msgspec.structs.replace(
            turn,
            ready=record.at,
            ready_position=record.position,
            totals=stage.totals(record.at),
        )

    def _change(self, stage: Stage, at: int, waiting: int, live: int) -> None:
        shape = stage.shape
        if shape is None:
            return
        stage.live += live
        limited = stage.waiting + waiting > 0 and stage.live >= stage.plan.concurrency
        before, after = stage.waiting, stage.waiting + waiting
        stage.waiting = after
        self._wait(stage, shape, at, -before)
        stage.limit(limited, at)
        self._wait(stage, shape, at, after)

    def _wait(self, stage: Stage, shape: Shape, at: int, by: int) -> None:
        if stage.limited:
            self.count("limit", at, by)
        elif by:
            shape.waiting += by
            self.count(shape.reason, at, by)
