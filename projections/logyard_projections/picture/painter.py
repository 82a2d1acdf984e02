"""The fold from records to a picture."""

from collections.abc import Callable
from typing import Any

from logyard_domain import events
from logyard_domain.events import AllocationEnded, AllocationPlaced
from logyard_domain.identifiers import allocation_parts
from logyard_domain.records import Record
from logyard_projections.feed import Fed, Unread
from logyard_projections.picture.bars import Bars
from logyard_projections.picture.fleet import Fleet
from logyard_projections.picture.grid import Course, Grid
from logyard_projections.picture.lives import Life
from logyard_projections.picture.picture import (
    Picture,
    Promise,
    Revision,
    Stop,
    Sum,
)
from logyard_projections.picture.waits import Shape, Stage, Waits

BARS_MOST = 100_000
REVISIONS_MOST = 1_000
STATES: dict[type, str] = {
    events.NodeCordoned: "cordoned",
    events.NodeUncordoned: "up",
    events.NodeDraining: "draining",
    events.NodeDrained: "drained",
    events.NodeLost: "lost",
    events.NodeReturned: "up",
    events.NodeRemoved: "",
}


class Painter:
    """Takes the records of a log, from its beginning on, and makes a picture of a span of it.

    `since` and `until` are instants; records after `until` must not be given. What it keeps is
    bounded by what lives at once, by `bars_most`, and by the number of nodes and shapes.
    """

    def __init__(self, since: int, until: int, bars_most: int = BARS_MOST) -> None:
        self._grid = Grid(since, until)
        self._fleet = Fleet(self._grid)
        self._waits = Waits(self._grid)
        self._bars = Bars(self._grid, bars_most)
        self._running = Course(self._grid)
        self._lives: dict[str, Life] = {}
        self._promises: dict[str, Promise] = {}
        self._revisions: list[Revision] = []
        self._groups: dict[tuple[str, str], Sum] = {}
        self._cluster = ""
        self._first = self._position = self._unknown = 0
        self._handlers: dict[type, Callable[[Record, Any], None]] = {
            events.ConfigSet: self._configured,
            events.NodeRegistered: self._registered,
            events.WorkflowSubmitted: self._waits.submitted,
            events.WorkflowFinished: self._gone,
            events.WorkflowFailed: self._gone,
            events.WorkflowCanceled: self._gone,
            events.StageReady: self._ready,
            events.StageFinished: self._over,
            events.StageFailed: self._over,
            events.StageCanceled: self._over,
            events.ShapeDeclared: self._declared,
            events.ShapeHeld: self._held,
            events.ShapeReleased: self._held,
            events.AllocationPlaced: self._placed,
            events.AllocationSeated: self._seated,
            events.ReservationHeld: self._promised,
            events.ReservationMoved: self._promised,
            events.ReservationReleased: self._unpromised,
            events.AllocationStarted: self._started,
            events.AllocationStopping: self._stopping,
            events.AllocationEnded: self._ended,
            events.AllocationRequeued: self._requeued,
            events.AllocationReady: self._back,
            **dict.fromkeys(STATES, self._turned),
        }

    def take(self, record: Fed) -> None:
        """Fold one record. One that this release cannot read is counted and passed over."""
        self._first = self._first or record.position
        self._position = record.position
        if isinstance(record, Unread):
            self._unknown += 1
            return
        self._cluster = record.cluster
        handler = self._handlers.get(type(record.event))
        if handler is not None:
            handler(record, record.event)

    def picture(self) -> Picture:
        """What came of it. Nothing can be taken after that."""
        until = self._grid.until
        for life in self._lives.values():
            if life.begin:
                self._draw(life)
        bars = self._bars.kept()
        used = {bar.shape for bar in bars}
        return Picture(
            cluster=self._cluster,
            since=self._grid.since,
            until=until,
            first=self._first,
            position=self._position,
            unknown=self._unknown,
            revisions=self._in_force(),
            nodes=self._fleet.rows(),
            spans=self._fleet.spans(until),
            shapes={n: shape.request for n, shape in self._waits.shapes.items() if n in used},
            bars=bars,
            shade=self._bars.shade(),
            shaded=self._bars.shaded,
            width=self._grid.width,
            steps=self._grid.number,
            loads=self._fleet.loads(until),
            waits=self._waits.courses(until),
            running=self._running.means(until),
            running_peak=round(self._running.peak),
            groups=self._groups,
            waiting=self._waits.waiting(),
        )

    def _in_force(self) -> tuple[Revision, ...]:
        """The policies of the span: the last one from before it, and those set in it."""
        before = [one for one in self._revisions if one.at <= self._grid.since][-1:]
        return (*before, *(one for one in self._revisions if one.at > self._grid.since))

    def _configured(self, record: Record, event: events.ConfigSet) -> None:
        self._revisions.append(Revision(event.revision, record.at, record.position))
        del self._revisions[:-REVISIONS_MOST]

    def _registered(self, record: Record, event: events.NodeRegistered) -> None:
        self._fleet.registered(event, record.at)

    def _turned(self, record: Record, event: Any) -> None:
        self._fleet.turned(event.node, STATES[type(event)], record.at)

    def _gone(self, record: Record, event: Any) -> None:
        self._waits.gone(event.workflow)

    def _over(self, record: Record, event: Any) -> None:
        self._waits.over(event.workflow, event.stage, record.at)

    def _ready(self, record: Record, event: events.StageReady) -> None:
        stage = self._waits.stage(event.workflow, event.stage)
        if stage is not None:
            self._waits.ready(stage, event.shape, record)

    def _declared(self, record: Record, event: events.ShapeDeclared) -> None:
        self._waits.shapes[event.shape] = Shape(event.request, record.at)

    def _held(self, record: Record, event: events.ShapeHeld | events.ShapeReleased) -> None:
        hold = event.hold if isinstance(event, events.ShapeHeld) else None
        self._waits.held(event.shape, hold, record.at)

    def _promised(
        self, record: Record, event: events.ReservationHeld | events.ReservationMoved
    ) -> None:
        old = self._promises.get(event.allocation)
        here = (event.at, record.position)
        self._promises[event.allocation] = (
            Promise(*here, *here)
            if old is None
            else Promise(old.first, old.first_position, *here, old.moves + 1)
        )

    def _unpromised(self, record: Record, event: events.ReservationReleased) -> None:
        self._promises.pop(event.allocation, None)

    def _placed(self, record: Record, event: AllocationPlaced) -> None:
        found = self._rank(event.allocation)
        promise = self._promises.pop(event.allocation, None)
        if found is None:
            return
        stage, rank, attempt = found
        turn = self._waits.placed(stage, rank, attempt, record.at)
        life = self._lives[event.allocation] = Life(
            id=event.allocation,
            stage=stage,
            rank=rank,
            attempt=attempt,
            turn=turn,
            event=event,
            placed=record.at,
            placed_position=record.position,
            waits=self._waits.parts(stage, turn, record.at),
            promise=promise,
            chunks=event.chunks or {event.node: 1},
        )
        before = self._lives.get(event.behind)
        if before is not None:
            life.behind, before.follower = before.id, life.id
        life.evicting = bool(event.after)
        if before is not None or event.after:
            self._waits.count(life.wait, record.at, 1)
        else:
            self._begin(life, record)

    def _seated(self, record: Record, event: events.AllocationSeated) -> None:
        life = self._lives.get(event.allocation)
        if life is not None and life.evicting:
            life.evicting = False
            self._waits.count("eviction", record.at, -1)
            self._await(life, "eviction", record.at)
            self._begin(life, record)

    def _begin(self, life: Life, record: Record) -> None:
        """It has its room from now on: what it was handed, or what is taken for it now."""
        shape = life.stage.shape
        if shape is not None and not life.pieces:
            life.pieces = self._fleet.occupy(shape.request, life.chunks, record.at)
        life.begin, life.begin_position = record.at, record.position
        self._running.change(record.at, 1)

    def _await(self, life: Life, reason: str, at: int) -> None:
        if at > life.placed:
            life.waits.append((reason, at - life.placed))

    def _started(self, record: Record, event: events.AllocationStarted) -> None:
        life = self._lives.get(event.allocation)
        if life is not None:
            life.started, life.started_position = record.at, record.position

    def _stopping(self, record: Record, event: events.AllocationStopping) -> None:
        life = self._lives.get(event.allocation)
        if life is not None:
            life.stop = Stop(event.reason, record.at, record.position, event.by, event.gap)

    def _ended(self, record: Record, event: AllocationEnded) -> None:
        life = self._lives.pop(event.allocation, None)
        if life is None:
            return
        self._waits.ended(life.stage, record.at)
        follower = self._lives.get(life.follower)
        before = self._lives.get(life.behind)
        if life.begin:
            self._running.change(record.at, -1)
        else:
            self._waits.count(life.wait, record.at, -1)
        if follower is not None:
            follower.behind = life.behind
        if before is not None:
            before.follower = life.follower
        elif follower is not None:
            self._waits.count("behind", record.at, -1)
            self._await(follower, "behind", record.at)
            follower.pieces, follower.chunks = life.pieces, life.chunks
            self._begin(follower, record)
        elif life.begin and life.stage.shape is not None:
            request = life.stage.shape.request
            self._fleet.vacate(request, life.chunks, life.pieces, record.at)
        if life.begin:
            self._draw(life, (record, event))

    def _draw(self, life: Life, ended: tuple[Record, AllocationEnded] | None = None) -> None:
        """Where it had room within the span, it is part of the picture."""
        bar = life.bar(self._grid.until, ended)
        if bar.end < self._grid.since or bar.begin > self._grid.until:
            return
        owner = bar.owner
        found = self._groups.setdefault((owner.organization, owner.group), Sum())
        found.allocations += 1
        found.backfilled += bar.kind == "backfilled"
        found.preempting += bar.kind == "preempting"
        found.preempted += bar.stop is not None and bar.stop.reason == "preempted"
        found.bad += bar.outcome in ("failed", "lost", "timeout")
        inside = min(bar.end, self._grid.until) - max(bar.begin, self._grid.since)
        found.core_ms += max(inside, 0) * bar.cores
        found.waited_ms += bar.placed - bar.ready
        self._bars.add(bar)

    def _requeued(self, record: Record, event: events.AllocationRequeued) -> None:
        found = self._rank(event.allocation)
        if found is not None:
            stage, rank, _ = found
            self._waits.requeued(stage, rank, event.reason, event.not_before, record)

    def _back(self, record: Record, event: events.AllocationReady) -> None:
        found = self._rank(event.allocation)
        if found is not None:
            self._waits.back(found[0], found[1], record)

    def _rank(self, allocation: str) -> tuple[Stage, int, int] | None:
        workflow, name, rank, attempt = allocation_parts(allocation)
        stage = self._waits.stage(workflow, name)
        return None if stage is None else (stage, rank, attempt)
