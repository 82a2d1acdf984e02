"""One scheduling pass (NM-EASY): what waits is placed in order, what goes on waiting says why, and
the first that is blocked gets a promise that nothing placed behind it may delay.

Order is (priority, submission). One that fits is placed at once. One that does not may evict (see
`victims`). Else it is *first in line* for the classes of nodes that it could run on, and gets a
promise; what comes later in order and could use the same classes is *backfilled*: placed only where
it ends before the promised instant, or leaves enough beside what was promised. Classes that it
could never use stay open to others, who may be first in line for those. What fits no node even
when empty is parked, and so is what needs nodes that are closed; neither blocks anybody.

The answer depends on the world and the instant alone; `Memory` only saves work.
"""

from collections.abc import Iterator

from logyard_domain.events import (
    AllocationPlaced,
    AllocationStopping,
    AnyEvent,
    PlacementKind,
    ReservationReleased,
    ShapeHeld,
    ShapeReleased,
)
from logyard_domain.holds import BehindHigher, Hold, NodesBusy, NodesClosed, NoNodes, NotEvaluated
from logyard_domain.identifiers import allocation_id
from logyard_domain.world import Lane, Shape, Stage, World
from logyard_engine.scheduler.ahead import queue_ahead
from logyard_engine.scheduler.memory import Memory
from logyard_engine.scheduler.order import Order
from logyard_engine.scheduler.promise import Promise, promise
from logyard_engine.scheduler.seats import Finder, Seats
from logyard_engine.scheduler.slips import recorded
from logyard_engine.scheduler.victims import Eviction, Evictions


def tick(world: World, memory: Memory, now: int) -> Iterator[AnyEvent]:
    """Decisions of one pass at instant `now` (ms), one after the other.

    Each event must be applied to the world before the next one is asked for.
    """
    if not (world.lanes or world.held or world.reservations):
        world.freed.clear()
        memory.full.clear()
        memory.notice(world)
        return
    yield from _Pass(world, memory, now).run()


class _Pass:
    """The state of one tick."""

    def __init__(self, world: World, memory: Memory, now: int) -> None:
        memory.refresh(world)
        self.world = world
        self.memory = memory
        self.now = now
        self.grace = int(world.config["workflow.killGrace"])
        self.left = int(world.config["scheduler.placementsPerTick"])
        self.depth = int(world.config["scheduler.backfill.depth"])
        if not world.config["scheduler.backfill.enabled"]:
            self.depth = 0
        self.order = Order(world, memory.priorities, now)
        self.finder = Finder(world, memory)
        self.evictions = Evictions(world, memory, now)
        self.promises: list[Promise] = []
        self.failed: dict[int, int] = {}
        """Shape -> the shortest time limit with which it did not fit behind a promise."""
        self.holds: dict[int, Hold] = {}
        self.outranked = 0
        """Position of the last placement of this pass that was made in order."""
        self.idle: set[str] = set()

    def run(self) -> Iterator[AnyEvent]:
        """The whole pass."""
        while self.left and (first := self.order.first()):
            lane, stage = first
            shape = self.world.shapes[lane.key.shape]
            numbers = self.memory.numbers_for(shape)
            before = [one for one in self.promises if one.classes & numbers]
            if before:
                yield from self._behind(lane, stage, shape, before)
            else:
                yield from self._in_order(lane, stage, shape)
        self.finder.remember()
        for lane in self.order.rest():
            self.holds.setdefault(lane.key.shape, NotEvaluated())
        yield from self._promised()
        yield from self._held()

    def _in_order(self, lane: Lane, stage: Stage, shape: Shape) -> Iterator[AnyEvent]:
        """It is the turn of this one."""
        seats = self.finder.direct(shape)
        if seats is not None:
            yield self._placed(stage, seats, "direct")
            self.outranked = self.world.position
            return
        self.order.skip()
        if not self.world.nodes:
            self.holds.setdefault(shape.id, NoNodes())
            return
        classes = self.memory.classes_for(shape)
        if not classes:
            self.holds.setdefault(shape.id, self.memory.parked_for(shape))
            return
        if not any(found.up for found in classes):
            self.holds.setdefault(shape.id, NodesClosed())
            return
        eviction = self.evictions.plan(stage, shape)
        if eviction is not None:
            yield from self._evicted(stage, eviction)
            return
        yield from queue_ahead(self.world, stage)
        if lane.head() is not stage:
            return
        if shape.request.nodes == 1 and self._alone(stage):
            self.idle.add(self._next(stage))
            self.holds.setdefault(shape.id, NodesBusy())
            return
        self.memory.notice(self.world)
        found = promise(self.world, self.memory.profile, shape, stage, classes, self.now)
        if found is None:
            self.holds.setdefault(shape.id, self._never(shape))
            return
        self.promises.append(found)
        self.holds.setdefault(shape.id, NodesBusy())

    def _alone(self, stage: Stage) -> bool:
        """Whether a promise would say nothing: only others like it wait, and none was made yet."""
        return (
            self.order.lanes == 1
            and (bool(stage.holding) or stage.waiting > 1 or len(stage.lane.heap) > 1)  # type: ignore[union-attr]
            and self._next(stage) not in self.world.reservations
        )

    def _never(self, shape: Shape) -> Hold:
        """Why it could not start even if all that runs ended."""
        closed = any(
            self.memory.by_node[node.name].number in self.memory.numbers_for(shape)
            for node in self.world.nodes.values()
            if node.status != "up"
        )
        return NodesClosed() if closed else self.memory.parked_for(shape)

    def _behind(
        self, lane: Lane, stage: Stage, shape: Shape, before: list[Promise]
    ) -> Iterator[AnyEvent]:
        """Another one is first in line for its nodes."""
        limit = lane.key.limit_ms
        if self.depth <= 0:
            self.holds.setdefault(shape.id, self._undecided(before))
            self.order.skip()
            return
        if limit >= self.failed.get(shape.id, limit + 1):
            self.order.skip()
            return
        ends = self.now + limit + self.grace
        seats, otherwise = self.finder.behind(shape, before, ends)
        if seats is not None:
            for one in before:
                if ends > one.at:
                    for node, chunks in seats.items():
                        if node in one.left:
                            one.left[node].take(shape.request, chunks)
            yield self._placed(stage, seats, "backfilled")
            return
        self.depth -= 1
        self.failed[shape.id] = limit
        hold = BehindHigher(shape=before[0].shape.id) if otherwise else NodesBusy()
        self.holds.setdefault(shape.id, hold)
        self.order.skip()

    def _undecided(self, before: list[Promise]) -> Hold:
        if not self.world.config["scheduler.backfill.enabled"]:
            return BehindHigher(shape=before[0].shape.id)
        return NotEvaluated()

    def _next(self, stage: Stage) -> str:
        return allocation_id(stage.workflow.id, stage.plan.name, *stage.first_waiting())

    def _placed(
        self, stage: Stage, seats: Seats, kind: PlacementKind, after: tuple[str, ...] = ()
    ) -> AllocationPlaced:
        self.left -= 1
        return AllocationPlaced(
            allocation=self._next(stage),
            node=next(iter(seats)).name,
            chunks=chunks_of(seats),
            kind=kind,
            after=after,
            revision=self.world.revision,
        )

    def _evicted(self, stage: Stage, eviction: Eviction) -> Iterator[AnyEvent]:
        preemptor = self._next(stage)
        for victim, gap in eviction.victims:
            yield AllocationStopping(
                allocation=victim.id,
                reason="preempted",
                by=preemptor,
                gap=gap,
                ran_ms=self.now - victim.since,
            )
        after = tuple(victim.id for victim, _ in eviction.victims)
        yield self._placed(stage, eviction.seats, "preempting", after)
        self.outranked = self.world.position

    def _promised(self) -> Iterator[AnyEvent]:
        """Record what was promised, and what is not any more."""
        current = {self._next(one.stage): one for one in self.promises}
        for allocation in list(self.world.reservations):
            if allocation not in current and self.left:
                stage = self.world.reservations[allocation].stage
                if allocation in self.idle:
                    continue
                hold = self.holds.get(stage.shape)
                never = isinstance(hold, NodesClosed | NoNodes) or hold is None
                yield ReservationReleased(
                    allocation=allocation, cause="never" if never else "outranked"
                )
        for allocation, one in current.items():
            chunks = {node.name: count for node, count in one.chunks.items()}
            yield from recorded(self.world, allocation, one.at, chunks, self.outranked, self.now)

    def _held(self) -> Iterator[AnyEvent]:
        """Record why shapes wait, where it changed."""
        for shape in list(self.world.held):
            if shape not in self.holds:
                yield ShapeReleased(shape=shape)
        for shape, hold in self.holds.items():
            if self.world.shapes[shape].hold != hold:
                yield ShapeHeld(shape=shape, hold=hold)


def chunks_of(seats: Seats) -> dict[str, int]:
    """As an event has it: nothing for a single chunk."""
    if sum(seats.values()) == 1:
        return {}
    return {node.name: count for node, count in seats.items()}
