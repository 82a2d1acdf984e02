"""What has to hold after every tick: promises are exact and kept free, and nothing idles."""

from logyard_domain.events import ShapeDeclared, ShapeHeld, ShapeReleased
from logyard_domain.holds import NeverFits, NodesClosed, NoNodes
from logyard_engine.audit.boards import AnyBoard, PlainBoard, earliest_without
from logyard_engine.audit.ends import expected
from logyard_engine.audit.findings import Ledger
from logyard_engine.audit.fleet import Node
from logyard_engine.audit.rooms import Room, room_at
from logyard_engine.audit.state import State
from logyard_engine.audit.work import Attempt, Promise, Shape, Stage

PARKED = ("never_fits", "nodes_closed", "no_nodes")


class Conclusions:
    """I4, I7 and I14."""

    def __init__(self, state: State, ledger: Ledger) -> None:
        self._state = state
        self._ledger = ledger
        self._left: dict[Node, Room] = {}
        """What is left beside a promise on its nodes, at the promised instant."""

    # Shapes and their holds

    def declared(self, event: ShapeDeclared) -> None:
        """A request gets a number."""
        self._ledger.checked["I3"] += 1
        shapes = self._state.shapes
        if event.shape in shapes:
            self._ledger.breach("I3", f"shape {event.shape}", "it was declared twice")
            return
        if event.shape != len(shapes) + 1:
            self._ledger.breach(
                "I3", f"shape {event.shape}", f"it was declared after shape {len(shapes)}"
            )
        shapes[event.shape] = Shape(event.shape, event.request)

    def held(self, event: ShapeHeld) -> None:
        """The log says why it waits."""
        self._ledger.checked["I14"] += 1
        self._state.settle()
        shape = self._state.shapes.get(event.shape)
        if shape is None:
            self._ledger.breach("I3", f"shape {event.shape}", "it is held and was never declared")
            return
        hold = event.hold
        shape.held = str(hold.__struct_config__.tag)
        self._state.known(shape)
        name = f"shape {shape.id}"
        if isinstance(hold, NeverFits | NodesClosed | NoNodes):
            if shape.placeable:
                self._ledger.breach("I14", name, f"it is parked as {shape.held}, and could run")
            elif isinstance(hold, NoNodes) and self._state.fleet.nodes:
                self._ledger.breach("I14", name, "it is held as if there were no nodes")
        elif not shape.placeable:
            self._ledger.breach(
                "I14", name, f"it is held as {shape.held}, and could not run at all"
            )

    def released(self, event: ShapeReleased) -> None:
        """It waits for nothing."""
        self._ledger.checked["I3"] += 1
        shape = self._state.shapes.get(event.shape)
        if shape is None or not shape.held:
            self._ledger.breach("I3", f"shape {event.shape}", "it was released and was not held")
            return
        shape.held = ""

    # The end of a tick

    def conclude(self, cut: bool) -> None:
        """Draw the conclusions of a tick; there are none where it was cut off by its limit."""
        state = self._state
        if not (state.dirty or state.late or state.ranking.moving) or cut:
            return
        if not state.ranking.waiting and not state.promises:
            state.dirty = False
            return
        state.settle()
        state.ranking.refresh(state.at)
        state.notice_late(state.at)
        state.dirty = False
        self._left.clear()
        promises = list(state.promises.values())
        for promise in promises:
            state.known(promise.shape)
            self._exact(promise)
        every = state.turn.backfilled >= int(state.config["scheduler.backfill.depth"])
        behind = bool(state.config["scheduler.backfill.enabled"]) and not every
        for shape in state.ranking.waiting:
            state.known(shape)
            if not shape.placeable:
                self._parked(shape)
                continue
            board = state.board(shape)
            ahead = [one for one in promises if not one.shape.kinds.isdisjoint(shape.kinds)]
            if ahead:
                self._behind(shape, board, ahead, behind)
            else:
                self._first(shape, board)

    def _parked(self, shape: Shape) -> None:
        self._ledger.checked["I14"] += 1
        if shape.held not in PARKED:
            first = shape.queue[0][1]
            self._ledger.breach(
                "I14",
                first.next_waiting(),
                f"nothing that is up could run it, and it waits as {shape.held or 'if it could'}",
            )

    def _first(self, shape: Shape, board: AnyBoard) -> None:
        """Nobody is promised its nodes: it must not fit, and must be promised something itself."""
        state, wanted = self._state, shape.request.nodes
        self._ledger.checked["I7"] += 1
        first = shape.queue[0][1]
        if board.total() >= wanted:
            self._ledger.breach(
                "I7", first.next_waiting(), "it fits now and nobody before it waits, and it waits"
            )
        elif wanted > 1 or self._several():
            self._ledger.checked["I4"] += 1
            self._ledger.breach(
                "I4",
                first.next_waiting(),
                f"it is the first in line for its nodes at {state.at} and has no promise",
            )

    def _several(self) -> bool:
        """Whether what waits differs in anything but its age."""
        state = self._state
        lines = {
            state.ranking.line(stage) for shape in state.ranking.waiting for _, stage in shape.queue
        }
        return len(lines) > 1

    def _behind(self, shape: Shape, board: AnyBoard, ahead: list[Promise], backfill: bool) -> None:
        """Others are promised its nodes: it comes after one of them, and cannot be backfilled."""
        state = self._state
        checked = self._ledger.checked
        key, first = shape.queue[0]
        if all(promise.stage.key > key for promise in ahead):
            self._outranks(first, ahead)
        checked["I7"] += 1
        wanted = shape.request.nodes
        if board.total() < wanted:
            return
        holder = next((promise for promise in ahead if promise.shape is shape), None)
        if holder is not None:
            self._ledger.breach("I7", holder.allocation, "it has a promise and fits now")
        elif backfill:
            limit_ms = shape.limits[0]
            ends = state.at + limit_ms + state.grace_ms
            late = [promise for promise in ahead if ends > promise.at]
            if not late or self._beside(shape, board, late) >= wanted:
                stage = next(one for _, one in shape.queue if one.limit_ms == limit_ms)
                when = "and would end before the promise" if not late else "beside the promise"
                self._ledger.breach("I7", stage.next_waiting(), f"it fits now {when}, and waits")

    def _outranks(self, first: Stage, ahead: list[Promise]) -> None:
        self._ledger.checked["I10"] += 1
        state = self._state
        if all(state.ranking.precedes(first, promise.stage, state.at) for promise in ahead):
            self._ledger.breach(
                "I10",
                first.next_waiting(),
                f"it comes before {ahead[0].allocation}, which has the promise for the same nodes",
            )

    def _beside(self, shape: Shape, board: AnyBoard, late: list[Promise]) -> int:
        """How many chunks could run on beyond the promises."""
        if isinstance(board, PlainBoard):
            return board.total() - sum(promise.idle for promise in late)
        found, wanted = 0, shape.request.nodes
        if not shape.asks:
            return board.total()
        for node, count in board.roomy.items():
            promise = node.promise
            if promise is not None and promise in late:
                count = min(count, self._room_beside(promise, node).chunks(shape.request))
            found += count
            if found >= wanted:
                break
        return found

    def _room_beside(self, promise: Promise, node: Node) -> Room:
        room = self._left.get(node)
        if room is None:
            state = self._state
            room = room_at(node, promise.at, state.grace_ms, state.at)
            room.take(promise.shape.request, promise.chunks[node])
            self._left[node] = room
        return room

    # Promises

    def _exact(self, promise: Promise) -> None:
        """The promise is for the earliest instant, its nodes are free then, and it waits."""
        self._ledger.checked["I4"] += 1
        stage, shape = promise.stage, promise.shape
        if not stage.queued or stage.next_waiting() != promise.allocation:
            self._ledger.breach("I4", promise.allocation, "it has a promise and does not wait next")
            return
        at = self._earliest(shape, promise.shape.request.nodes)
        if at != promise.at:
            self._inexact(promise, at)
            return
        self._free_then(promise)

    def _earliest(self, shape: Shape, wanted: int) -> int | None:
        state = self._state
        board = state.board(shape)
        if isinstance(board, PlainBoard):
            if not (state.pending or state.lined or state.late):
                return board.earliest(wanted)
            board = state.fresh_board(shape)
        return board.earliest(wanted, state.grace_ms, state.at)

    def _inexact(self, promise: Promise, now: int | None) -> None:
        """Tell a promise that was wrong from one that was delayed by what was placed behind it."""
        state = self._state
        shape = promise.shape
        behind = {
            one
            for one, key in state.turn.placed
            if one.kind == "backfilled" and key > promise.stage.key
        }
        nodes = list(state.fleet.up(shape.kinds))
        if state.plain:
            for node in nodes:
                node.releases = None
        decided = earliest_without(shape.request, nodes, state.grace_ms, state.at, behind)
        name = promise.allocation
        if decided != promise.at:
            self._ledger.breach(
                "I4",
                name,
                f"it is promised {promise.at}, and the earliest instant is {_when(decided)}",
            )
        if decided != now:
            names = ", ".join(sorted(one.id for one in behind)[:5])
            self._ledger.breach(
                "I4",
                name,
                f"it fits at {_when(now)} instead of {_when(decided)}, because of {names}",
            )

    def _free_then(self, promise: Promise) -> None:
        """Each promised node has room for its chunks at the promised instant."""
        state = self._state
        shape = promise.shape
        if promise.fresh:
            promise.fresh = False
            nodes = list(promise.chunks)
            if sum(promise.chunks.values()) != shape.request.nodes:
                self._ledger.breach(
                    "I4",
                    promise.allocation,
                    f"it is promised {sum(promise.chunks.values())} chunks",
                )
        else:
            nodes = self._squeezed(promise)
        plain = isinstance(shape.board, PlainBoard)
        for node in nodes:
            if plain:
                fits = not any(
                    one.request.cores and expected(one, state.grace_ms, state.at) > promise.at
                    for one in node.holders
                )
            else:
                if state.plain:
                    node.releases = None
                room = room_at(node, promise.at, state.grace_ms, state.at)
                fits = room.chunks(shape.request) >= promise.chunks[node]
            if (
                not fits
                or node.status != "up"
                or node.kind is None
                or (node.kind.number not in shape.kinds)
            ):
                self._ledger.breach(
                    "I4",
                    promise.allocation,
                    f"promised node {node.name} has no room for it at {promise.at}",
                )

    def _squeezed(self, promise: Promise) -> list[Node]:
        """Promised nodes on which something was placed that goes on beyond the promise."""
        state = self._state
        return [
            node
            for attempt, _ in state.turn.placed
            if _goes_on(attempt, promise.at, state.grace_ms)
            for node, _ in attempt.chunks
            if node.promise is promise
        ]


def _goes_on(attempt: Attempt, at: int, grace_ms: int) -> bool:
    return bool(attempt.after) or attempt.since + attempt.stage.limit_ms + grace_ms > at


def _when(at: int | None) -> str:
    if at is None:
        return "never"
    return "now" if at == 0 else str(at)
