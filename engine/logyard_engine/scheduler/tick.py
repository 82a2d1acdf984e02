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

from collections.abc import Iterable, Iterator

from logyard_domain.events import (
    AllocationPlaced,
    AllocationStopping,
    AnyEvent,
    PlacementKind,
    ReservationReleased,
    ShapeHeld,
    ShapeReleased,
)
from logyard_domain.holds import Hold, NeverFits, NodesBusy, NodesClosed, NoNodes, NotEvaluated
from logyard_domain.identifiers import allocation_id
from logyard_domain.world import Lane, Node, Shape, Stage, World
from logyard_engine.scheduler.ahead import queue_ahead
from logyard_engine.scheduler.hopeless import bits
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
        memory.rest(world)
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
        self.backfill = bool(world.config["scheduler.backfill.enabled"])
        self.order = Order(world, memory.lanes, memory.hopeless, now)
        self.finder = Finder(world, memory)
        self.evictions = Evictions(world, memory, now)
        self.promises: list[Promise] = []
        self.barred: dict[int, tuple[int, list[Promise], bool]] = {}
        """Shape -> the shortest time limit with which it found no place behind these promises, and
        whether there was room but for them.
        """
        self.holds: dict[int, Hold] = {}
        self.placed: dict[int, int] = {}
        """Class of nodes -> position of the last placement of this pass there."""
        self.covered = 0
        """Classes for which somebody is first in line, a bit each."""

    def run(self) -> Iterator[AnyEvent]:
        """The whole pass."""
        while self.left and (first := self.order.first()):
            lane, stage = first
            shape = self.world.shapes[lane.key.shape]
            if not self.memory.possible(shape):
                self.order.skip()
                self.holds.setdefault(shape.id, self._parked(shape))
                self.memory.hopeless.never(shape)
                continue
            numbers = self.memory.numbers_for(shape)
            before = [one for one in self.promises if one.classes & numbers]
            if before:
                yield from self._behind(lane, stage, shape, before)
            else:
                yield from self._in_order(lane, stage, shape)
        self._remember()
        yield from self._promised()
        yield from self._held()

    def _in_order(self, lane: Lane, stage: Stage, shape: Shape) -> Iterator[AnyEvent]:
        """It is the turn of this one."""
        seats = self.finder.direct(shape, lane.key.limit_ms)
        if seats is not None:
            yield self._placed(stage, seats, "direct")
            self._note(seats)
            return
        eviction = self.evictions.plan(stage, shape)
        if eviction is not None:
            # What is next in the same lane has its turn before any other lane.
            yield from self._evicted(stage, eviction)
            return
        for queued in queue_ahead(self.world, stage):
            yield queued
            self._note((self.world.nodes[queued.node],))
        if lane.head() is not stage:
            # All of it is queued. What is next in the same lane has its turn.
            return
        self.order.skip()
        if shape.request.nodes == 1 and self._alone(lane, stage):
            self.holds.setdefault(shape.id, NodesBusy())
            return
        self.memory.notice(self.world)
        found = promise(self.world, self.memory, shape, stage, self.now)
        found.outranked = max((self.placed.get(number, 0) for number in found.classes), default=0)
        self.promises.append(found)
        if self.memory.hopeless.active:
            self.memory.hopeless.promised(found.mark())
        self.covered |= bits(found.classes)
        self.order.covered(self.covered)
        self.holds.setdefault(shape.id, NodesBusy())

    def _note(self, nodes: Iterable[Node]) -> None:
        """Something was just placed on these nodes."""
        for node in nodes:
            self.placed[self.memory.by_node[node.name].number] = self.world.position

    def _alone(self, lane: Lane, stage: Stage) -> bool:
        """Whether a promise would say nothing: only others like it wait, and none was made yet."""
        return (
            self.order.count == 1
            and (bool(stage.holding) or stage.waiting > 1 or len(lane.heap) > 1)
            and self._next(stage) not in self.world.reservations
        )

    def _parked(self, shape: Shape) -> Hold:
        """Why it could not start even if all that runs ended."""
        if not self.world.nodes:
            return NoNodes()
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
        known = self.barred.get(shape.id)
        seats = None
        ends = self.now + limit + self.grace
        if self.backfill and (known is None or limit < known[0]):
            seats = self.finder.behind(shape, limit, before, ends)
        if seats is None:
            if known is None or limit < known[0]:
                # Without backfill nobody looks for room.
                room = self.finder.met_room or not self.backfill
                self.barred[shape.id] = (limit if self.backfill else 0, before, room)
                self.memory.hopeless.missed(shape, limit)
            self.holds.setdefault(shape.id, NodesBusy())
            self.order.skip()
        elif self.depth <= 0:
            # It has a place, and has to be looked at the next time.
            self.memory.hopeless.forget(shape)
            self.holds.setdefault(shape.id, NotEvaluated())
            self.order.skip()
        else:
            self.depth -= 1
            for one in before:
                one.take(shape.request, seats, ends)
            yield self._placed(stage, seats, "backfilled")
            self._note(seats)
            if self.memory.freed:
                # Others who would have fitted there need not be asked one by one.
                self.memory.revive()
                self.order.covered(self.covered)

    def _remember(self) -> None:
        """Keep what was seen to have no place."""
        hopeless = self.memory.hopeless
        if not hopeless.active:
            return
        if not self.left:
            hopeless.keep()
        marks = {one: one.mark() for one in self.promises}
        for number, (limit, promises, room) in self.barred.items():
            shape = self.world.shapes[number]
            if room:
                hopeless.barred(shape, limit, frozenset(marks[one] for one in promises))
            else:
                hopeless.full(shape)

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
        self._note(eviction.seats)

    def _promised(self) -> Iterator[AnyEvent]:
        """Record what was promised, and what is not any more."""
        current = {self._next(one.stage): one for one in self.promises}
        for allocation in sorted(self.world.reservations):
            if allocation not in current and self.left:
                stage = self.world.reservations[allocation].stage
                hold = self.holds.get(stage.shape, self.world.shapes[stage.shape].hold)
                never = isinstance(hold, NodesClosed | NoNodes | NeverFits)
                yield ReservationReleased(
                    allocation=allocation, cause="never" if never else "outranked"
                )
        for allocation, one in current.items():
            chunks = {node.name: count for node, count in one.chunks.items()}
            yield from recorded(self.world, allocation, one.at, chunks, one.outranked)

    def _held(self) -> Iterator[AnyEvent]:
        """Record why shapes wait, where it changed."""
        shapes = self.world.shapes
        # Sorted, so that a world that was restored says it in the order of one that ran on.
        for shape in sorted(self.world.held):
            if not shapes[shape].lanes:
                yield ShapeReleased(shape=shape)
        for shape, hold in self.holds.items():
            if shapes[shape].hold != hold and shapes[shape].lanes:
                yield ShapeHeld(shape=shape, hold=hold)


def chunks_of(seats: Seats) -> dict[str, int]:
    """As an event has it: nothing for a single chunk."""
    if sum(seats.values()) == 1:
        return {}
    return {node.name: count for node, count in seats.items()}
