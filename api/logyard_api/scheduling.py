"""What scheduling tells the metrics: placements, promises, evictions and near misses.

Everything is told by the records of each turn, in the writer's thread; a few readings are of the
world as the last turn left it.
"""

from collections import Counter as Counts
from collections.abc import Callable

from logyard_api.metrics import Metrics, Reading
from logyard_domain import events
from logyard_domain.records import Record
from logyard_domain.rules.priorities import priority_of
from logyard_domain.world import Allocation, Stage, World
from logyard_engine.turn import Turned

WAITS_S = (0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0, 604_800.0)
ERRORS_S = (
    -86_400.0, -14_400.0, -3600.0, -900.0, -300.0, -60.0, -10.0, -1.0, 0.0,
    1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0,
)  # fmt: skip
KINDS = ("direct", "backfilled", "preempting")
LOOK_MS = 5_000
"""How often near misses are looked for, at most."""
CANDIDATES_MAX = 2_000


class Scheduling:
    """Counts what the scheduler does. `now` gives the instant (ms)."""

    def __init__(
        self, metrics: Metrics, world: World, misses: Counts[str], now: Callable[[], int]
    ) -> None:
        self._world = world
        self._misses = misses
        self._missed: Counts[str] = Counts()
        self._now = now
        self._looked_at = 0
        self._near: float | None = None
        self._due: tuple[int, ...] = ()
        self._promised = {name: one.at for name, one in world.reservations.items()}
        self._since: dict[str, int] = {}
        """When a stage or a later attempt could first be placed, for those that still wait."""
        self._victims = {
            name for name, one in world.allocations.items() if one.stopping == "preempted"
        }
        placed = metrics.counter("scheduler_placements", "Allocations placed.", ("kind",))
        self._placed = {kind: placed.labels(kind) for kind in KINDS}
        self._backfilled = metrics.counter(
            "scheduler_backfilled", "Allocations placed before their turn, delaying no promise."
        )
        self._preemptions = metrics.counter(
            "scheduler_preemptions", "Victims by how they ended.", ("outcome",)
        )
        self._missing = metrics.counter(
            "scheduler_preemption_misses", "Times that a rule stood in the way.", ("rule",)
        )
        self._blocked = metrics.histogram(
            "scheduler_preemption_blocked_seconds",
            "How long a preemptor had waited when it evicted.",
            buckets=WAITS_S,
        )
        self._errors = metrics.histogram(
            "scheduler_forecast_error_seconds",
            "How much later than first promised an allocation was placed.",
            buckets=ERRORS_S,
        )
        metrics.gauge(
            "scheduler_reservations_held",
            "Promises to who is first in line.",
            (),
            lambda: [({}, float(len(self._due)))],
        )
        metrics.gauge(
            "scheduler_head_predicted_wait_seconds",
            "Time until the first in line is promised to start; the longest where there are some.",
            (),
            self._predicted,
        )
        metrics.gauge(
            "scheduler_preemption_near_miss_gap",
            "Largest gap between one first in line and one that runs that was not enough to evict.",
            (),
            lambda: [] if self._near is None else [({}, self._near)],
        )
        self._handlers: dict[type, Callable[[Record], None]] = {
            events.StageReady: self._ready,
            events.AllocationRequeued: self._requeued,
            events.AllocationPlaced: self._seated,
            events.ReservationHeld: self._held,
            events.ReservationReleased: self._released,
            events.AllocationStopping: self._stopping,
            events.AllocationEnded: self._ended,
            events.StageFinished: self._over,
            events.StageFailed: self._over,
            events.StageCanceled: self._over,
        }

    def turned(self, turn: Turned, _: float) -> None:
        """A turn was made."""
        handlers = self._handlers
        for record in turn.records:
            handler = handlers.get(type(record.event))
            if handler is not None:
                handler(record)
        self._due = tuple(one.at for one in self._world.reservations.values())
        if not self._due:
            self._near = None
        if self._misses != self._missed:
            self._count_misses()

    def _predicted(self) -> list[Reading]:
        due = self._due
        return [({}, max(0.0, (max(due) - self._now()) / 1000))] if due else []

    def _count_misses(self) -> None:
        for rule, number in self._misses.items():
            more = number - self._missed[rule]
            if more:
                self._missing.labels(rule).inc(more)
        near = self._misses["gap"] != self._missed["gap"]
        self._missed = Counts(self._misses)
        if not near:
            self._near = None
        elif self._world.at - self._looked_at >= LOOK_MS:
            self._looked_at = self._world.at
            self._near = near_miss(self._world)

    def _ready(self, record: Record) -> None:
        event = record.event
        assert isinstance(event, events.StageReady)
        self._since[f"{event.workflow}/{event.stage}"] = record.at

    def _over(self, record: Record) -> None:
        event = record.event
        assert isinstance(event, events.StageFinished | events.StageFailed | events.StageCanceled)
        self._since.pop(f"{event.workflow}/{event.stage}", None)

    def _requeued(self, record: Record) -> None:
        event = record.event
        assert isinstance(event, events.AllocationRequeued)
        self._since[event.allocation] = max(record.at, event.not_before)

    def _seated(self, record: Record) -> None:
        event = record.event
        assert isinstance(event, events.AllocationPlaced)
        self._placed[event.kind].inc()
        again = self._since.pop(event.allocation, 0)
        if event.kind == "backfilled":
            self._backfilled.inc()
        elif event.kind == "preempting":
            since = again or self._since.get(event.allocation.rpartition("/")[0], 0)
            if since:
                self._blocked.observe((record.at - since) / 1000)
        promised = self._promised.pop(event.allocation, 0)
        if promised:
            self._errors.observe((record.at - promised) / 1000)

    def _held(self, record: Record) -> None:
        event = record.event
        assert isinstance(event, events.ReservationHeld)
        self._promised[event.allocation] = event.at

    def _released(self, record: Record) -> None:
        event = record.event
        assert isinstance(event, events.ReservationReleased)
        self._promised.pop(event.allocation, None)

    def _stopping(self, record: Record) -> None:
        event = record.event
        assert isinstance(event, events.AllocationStopping)
        if event.reason == "preempted":
            self._victims.add(event.allocation)

    def _ended(self, record: Record) -> None:
        event = record.event
        assert isinstance(event, events.AllocationEnded)
        if event.allocation in self._victims:
            self._victims.discard(event.allocation)
            self._preemptions.labels(event.outcome).inc()


def near_miss(world: World) -> float | None:
    """The largest gap, below the one that is needed, by which one that is first in line is above
    something that it might evict otherwise; None where there is none.
    """
    config = world.config
    needed = float(config["scheduler.preemption.priorityGap"])
    min_run = int(config["scheduler.preemption.minRuntime"])
    heads = [one.stage for one in world.reservations.values()]
    if not heads or not config["scheduler.preemption.enabled"]:
        return None
    candidates: dict[Stage, None] = {}
    for one in world.allocations.values():
        if _evictable(world, one, min_run):
            candidates[one.stage] = None
            if len(candidates) == CANDIDATES_MAX:
                break
    values = {
        stage: priority_of(world, world.priority, stage, world.at)
        for stage in (*heads, *candidates)
    }
    gaps = [
        values[head] - values[stage]
        for head in heads
        for stage in candidates
        if _may(world, head, stage)
    ]
    return max((gap for gap in gaps if 0 < gap < needed), default=None)


def _evictable(world: World, one: Allocation, min_run: int) -> bool:
    return (
        one.since > 0
        and not one.stopping
        and world.shapes[one.stage.shape].request.preemptible
        and world.at - one.since >= min_run
    )


def _may(world: World, head: Stage, victim: Stage) -> bool:
    ours, theirs = head.workflow, victim.workflow
    group = world.groups.get((ours.organization, ours.group))
    return (
        group is not None
        and ours.organization == theirs.organization
        and theirs.group in group.preempts
    )
