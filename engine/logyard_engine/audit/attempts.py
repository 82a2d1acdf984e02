"""Attempts are placed, seated, started, stopped and ended: whether they may, and what it does."""

from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationSeated,
    AllocationStarted,
    AllocationStopping,
)
from logyard_engine.audit.ends import due
from logyard_engine.audit.evictions import Evictions
from logyard_engine.audit.findings import Ledger
from logyard_engine.audit.fleet import Node
from logyard_engine.audit.precedence import Precedence
from logyard_engine.audit.promises import Promises
from logyard_engine.audit.state import State
from logyard_engine.audit.work import Attempt, Shape, Stage

KILLED_MS = 2_000
"""A kill takes so long at most, also on a busy machine."""
SKEW_MS = 2_000
"""By so much a node's clock may be ahead in the course of one attempt."""


class Attempts:
    """Events of attempts."""

    def __init__(
        self,
        state: State,
        ledger: Ledger,
        precedence: Precedence,
        promises: Promises,
        evictions: Evictions,
    ) -> None:
        self._state = state
        self._ledger = ledger
        self._precedence = precedence
        self._promises = promises
        self._evictions = evictions

    def _wrong(self, subject: str, what: str) -> None:
        self._ledger.breach("I3", subject, what)

    # Placed

    def placed(self, event: AllocationPlaced) -> None:
        """A rank gets the right to its chunks."""
        state = self._state
        state.settle()
        attempt = self._opened(event)
        if attempt is None:
            return
        stage = attempt.stage
        shape = stage.shape
        assert shape is not None
        state.known(shape)
        state.ranking.refresh(state.at)
        if event.revision and event.revision != state.revision:
            self._ledger.breach(
                "I12",
                attempt.id,
                f"placed under revision {event.revision}, and {state.revision} is in force",
            )
        if attempt.kind == "backfilled":
            state.turn.backfilled += 1
            self._precedence.backfilled(attempt)
        else:
            self._precedence.in_order(attempt)
        self._promises.kept(attempt)
        self._seats(attempt, event, shape)
        self._take_rank(stage, attempt)
        state.attempts[attempt.id] = attempt
        attempt.grace_ms = state.grace_ms
        if event.behind:
            self._lined_up(attempt, event.behind)
            state.queue(stage)
            return
        if event.kind == "preempting" or event.after:
            self._evictions.placed(attempt, event.after)
        state.turn.placed.append((attempt, stage.key))
        stage.holding += 1
        state.occupy(attempt)
        if not attempt.after:
            state.begin(attempt)
        self._room(attempt)
        state.queue(stage)
        state.dirty = True

    def _opened(self, event: AllocationPlaced) -> Attempt | None:
        """The attempt, if its rank waits."""
        state = self._state
        self._ledger.checked["I3"] += 1
        name = event.allocation
        id, _, rest = name.partition("/")
        stage_name, _, tail = rest.rpartition("/")
        rank_text, _, number_text = tail.partition("#")
        workflow = state.workflows.get(id)
        stage = workflow.stages.get(stage_name) if workflow is not None else None
        if stage is None or stage.shape is None:
            self._wrong(name, "it was placed, though its stage is not ready")
            return None
        rank, number = int(rank_text), int(number_text)
        if name in state.attempts:
            self._wrong(name, "it was placed twice without an end between")
            return None
        waits = (rank, number) in stage.again if stage.again else False
        if not waits and (number != 1 or not stage.next <= rank <= stage.last):
            if stage.delayed and stage.delayed.get(rank, (0, 0))[0] == number:
                early = stage.delayed.pop(rank)[1] - state.at
                self._wrong(name, f"it was placed {early} ms before its back-off is over")
            else:
                self._wrong(name, "it was placed, though this attempt of its rank does not wait")
                return None
        elif not stage.open:
            self._wrong(name, self._closed(stage))
        attempt = Attempt(name, stage, rank, number, stage.shape.request)
        attempt.kind = event.kind
        attempt.position = attempt.sequence = state.position
        attempt.placed_at = state.at
        return attempt

    @staticmethod
    def _closed(stage: Stage) -> str:
        if stage.holding >= stage.concurrency:
            return f"it was placed, though {stage.holding} of {stage.concurrency} at once run"
        if stage.failed:
            return "it was placed, though a rank of its stage failed for good"
        status = stage.workflow.status
        return f"it was placed, though its stage is {stage.status} and its workflow {status}"

    def _take_rank(self, stage: Stage, attempt: Attempt) -> None:
        rank = (attempt.rank, attempt.number)
        if stage.again and rank in stage.again:
            stage.again.remove(rank)
        elif attempt.number == 1:
            if attempt.rank > stage.next:
                self._ledger.breach(
                    "I8", attempt.id, f"it was placed before rank {stage.next} of the same stage"
                )
                stage.again += [(passed, 1) for passed in range(stage.next, attempt.rank)]
                stage.again.sort()
            stage.next = attempt.rank + 1

    def _seats(self, attempt: Attempt, event: AllocationPlaced, shape: Shape) -> None:
        """Its chunks, on nodes that may run it."""
        self._ledger.checked["I2"] += 1
        nodes = self._state.fleet.nodes
        chunks = event.chunks or {event.node: 1}
        if event.node not in chunks:
            self._ledger.breach("I2", attempt.id, f"node {event.node} leads it and has no chunk")
        for name, count in chunks.items():
            node = nodes.get(name)
            if node is None:
                self._ledger.breach("I2", attempt.id, f"node {name} is not there")
                continue
            if node.status != "up":
                self._ledger.breach("I2", attempt.id, f"node {name} is {node.status}")
            if node.kind is None or node.kind.number not in shape.kinds:
                self._ledger.breach(
                    "I2", attempt.id, f"node {name} lacks {node.lacks(attempt.request)}"
                )
            attempt.size += count
            attempt.chunks.append((node, count))
        if attempt.size != attempt.request.nodes:
            self._ledger.breach(
                "I2",
                attempt.id,
                f"it got {attempt.size} chunks and asked for {attempt.request.nodes}",
            )
        if attempt.stage.plan.kind == "volume" and not attempt.stage.plan.needs and attempt.chunks:
            attempt.stage.workflow.storage = attempt.chunks[0][0].storage

    def _lined_up(self, attempt: Attempt, behind: str) -> None:
        """It queues on a node behind one that has the same room for as long."""
        state = self._state
        before = state.attempts.get(behind)
        if (
            before is None
            or before.stage.shape is not attempt.stage.shape
            or before.stage.limit_ms != attempt.stage.limit_ms
            or before.follower is not None
            or [node for node, _ in before.chunks] != [node for node, _ in attempt.chunks]
        ):
            self._wrong(attempt.id, f"it cannot take over the room of {behind}")
            return
        attempt.behind, before.follower = before, attempt
        state.lined += 1
        attempt.stage.lined += 1
        state.turn.lined.append((attempt, attempt.stage.key))
        for node, _ in attempt.chunks:
            node.queued += 1
        first = before
        while first.behind is not None:
            first = first.behind
        state.stirred(first)

    # Room

    def _room(self, attempt: Attempt) -> None:
        """No node has given away more than it has."""
        self._ledger.checked["I1"] += 1
        if not _asks(attempt):
            return
        request = attempt.request
        alone = request.exclusive != "none"
        for node, _ in attempt.chunks:
            if (
                node.free_cores < 0
                or node.free_memory < 0
                or node.sole > alone
                or alone
                or (request.devices and min(node.free_devices.values(), default=0) < 0)
            ):
                self._crowded(attempt, node)

    def _crowded(self, attempt: Attempt, node: Node) -> None:
        """Look at a node whose room may have been given away twice, which victims allow."""
        request = attempt.request
        victims = {victim for one in node.holders for victim in one.after}
        claims = [one for one in node.holders if one not in victims]
        self._sum(attempt, node, claims, "given away")
        others = [
            one
            for one in node.holders
            if one is not attempt and one not in attempt.after and _asks(one)
        ]
        if request.exclusive != "none" and others:
            self._ledger.breach(
                "I1",
                attempt.id,
                f"it wants node {node.name} for itself, and {others[0].id} is there",
            )
        else:
            sole = [one for one in others if one.request.exclusive != "none"]
            if sole:
                self._ledger.breach(
                    "I1", attempt.id, f"{sole[0].id} has node {node.name} for itself"
                )
        if not attempt.after:
            holders = [one for one in node.holders if not one.after]
            self._sum(attempt, node, holders, "in use")

    def _sum(self, attempt: Attempt, node: Node, holders: list[Attempt], word: str) -> None:
        request = attempt.request
        if request.cores:
            cores = sum(one.request.cores * node.holders[one] for one in holders)
            if cores > node.cores:
                self._over(attempt, node, f"{cores} of {node.cores} cores", word)
        if request.memory:
            memory = sum(one.request.memory * node.holders[one] for one in holders)
            if memory > node.memory:
                self._over(attempt, node, f"{memory} of {node.memory} bytes", word)
        for device, _ in request.devices:
            count = sum(
                dict(one.request.devices).get(device, 0) * node.holders[one] for one in holders
            )
            has = node.devices.get(device, 0)
            if count > has:
                self._over(attempt, node, f"{count} of {has} {device}", word)

    def _over(self, attempt: Attempt, node: Node, what: str, word: str) -> None:
        self._ledger.breach("I1", attempt.id, f"with it {what} of node {node.name} are {word}")

    # Seated, started, stopping

    def seated(self, event: AllocationSeated) -> None:
        """Its victims have ended."""
        state = self._state
        self._ledger.checked["I3"] += 1
        attempt = state.attempts.get(event.allocation)
        if attempt is None or attempt.since or attempt.after:
            self._wrong(event.allocation, "it was seated, though nobody made room for it just now")
            return
        state.turn.seatable.pop(attempt, None)
        state.begin(attempt)
        for node, _ in attempt.chunks:
            node.releases = None
            if not state.plain:
                state.journal.append(node)
        self._room(attempt)
        state.dirty = True

    def started(self, event: AllocationStarted) -> None:
        """Its first process runs."""
        self._ledger.checked["I3"] += 1
        attempt = self._state.attempts.get(event.allocation)
        if attempt is None:
            self._wrong(event.allocation, "it started, though it is not placed")
            return
        if attempt.began:
            self._wrong(attempt.id, "it started twice")
        elif not attempt.since:
            self._wrong(attempt.id, "it started before it had its room")
        attempt.began = True
        stage = attempt.stage
        if not stage.started:
            stage.started = True
            self._state.turn.touched[stage] = None

    def stopping(self, event: AllocationStopping) -> None:
        """It is told to end."""
        state = self._state
        self._ledger.checked["I3"] += 1
        attempt = state.attempts.get(event.allocation)
        if attempt is None:
            self._wrong(event.allocation, "it is being stopped, though it is not placed")
            return
        if attempt.stopping:
            self._wrong(attempt.id, "it is being stopped twice")
            return
        if event.reason == "preempted":
            self._evictions.stopping(attempt, event)
        attempt.stopping = event.reason
        attempt.stopped_at = state.at
        first = attempt
        while first.behind is not None:
            first = first.behind
        state.stirred(first)
        state.dirty = True

    # Ended

    def ended(self, event: AllocationEnded) -> None:
        """It is over, and its room is free."""
        state = self._state
        self._ledger.checked["I3"] += 1
        attempt = state.attempts.pop(event.allocation, None)
        if attempt is None:
            self._wrong(event.allocation, "it ended, though it is not placed")
            return
        stage = attempt.stage
        self._judged(attempt, event)
        if attempt.since and state.at > due(attempt, state.grace_ms):
            state.overran(attempt)
        for node, _ in attempt.chunks:
            if node.status == "draining":
                state.turn.nodes[node.name] = None
        self._hand_on(attempt)
        if attempt.since:
            state.ranking.charge(attempt, state.at)
        self._let_go(attempt)
        if event.outcome == "finished":
            stage.finished += 1
        else:
            stage.failed += 1
            state.turn.ended[stage, attempt.rank] = attempt
        state.turn.touched[stage] = None
        state.queue(stage)
        state.dirty = True

    def _judged(self, attempt: Attempt, event: AllocationEnded) -> None:
        state = self._state
        if event.outcome == "finished" and not attempt.began:
            self._wrong(attempt.id, "it finished, though it never started")
        if event.outcome == "preempted" and attempt.stopping != "preempted":
            self._wrong(attempt.id, "it ended as preempted, and nobody evicted it")
        most = attempt.stage.limit_ms + max(attempt.grace_ms, state.grace_ms)
        if event.run_ms > most + KILLED_MS:
            self._wrong(
                attempt.id,
                f"it ran for {event.run_ms} ms; with its limit and the grace {most} ms are allowed",
            )
        self._ledger.checked["I11"] += 1
        held_ms = state.at - attempt.placed_at
        if event.run_ms > held_ms + SKEW_MS:
            self._ledger.breach(
                "I11", attempt.id, f"it ran for {event.run_ms} ms, and was placed {held_ms} ms ago"
            )

    def _hand_on(self, attempt: Attempt) -> None:
        """Its follower takes over the room, or it is free."""
        state = self._state
        follower, before = attempt.follower, attempt.behind
        if follower is not None:
            follower.behind = before
        if before is not None:
            before.follower = follower
            state.lined -= 1
            attempt.stage.lined -= 1
            for node, _ in attempt.chunks:
                node.queued -= 1
            first = before
            while first.behind is not None:
                first = first.behind
            state.stirred(first)
            return
        state.forget(attempt)
        state.vacate(attempt)
        attempt.stage.holding -= 1
        if follower is None:
            return
        state.lined -= 1
        follower.stage.lined -= 1
        follower.stage.holding += 1
        for node, _ in follower.chunks:
            node.queued -= 1
        state.occupy(follower)
        state.begin(follower)

    def _let_go(self, attempt: Attempt) -> None:
        """Whoever waited for its end, or was waited for by it."""
        state = self._state
        claimant = attempt.claimant
        if claimant is not None:
            claimant.after.discard(attempt)
            if not claimant.after and not claimant.since:
                state.pending -= 1
                state.turn.seatable[claimant] = None
        if not attempt.since and attempt.after:
            state.pending -= 1
        for victim in attempt.after:
            victim.claimant = None
        state.turn.seatable.pop(attempt, None)

    def conclude(self) -> None:
        """What has to follow did follow."""
        for attempt in self._state.turn.seatable:
            self._wrong(attempt.id, "all its victims have ended, and it was not seated")


def _asks(attempt: Attempt) -> bool:
    """Whether it asks for anything; staging does not."""
    shape = attempt.stage.shape
    return shape is not None and shape.asks
