"""Preemption by the rules: who was evicted for whom, and whether it had to be."""

import sys
from collections.abc import Collection, Sequence

from logyard_domain.events import AllocationStopping
from logyard_domain.resources import Request
from logyard_engine.audit.findings import Ledger
from logyard_engine.audit.fleet import Node
from logyard_engine.audit.rooms import Room
from logyard_engine.audit.state import State
from logyard_engine.audit.work import Attempt, Stage

ROUNDING = 1e-6


class Evictions:
    """I9."""

    def __init__(self, state: State, ledger: Ledger) -> None:
        self._state = state
        self._ledger = ledger
        self._made_room: dict[tuple[str, str, int], tuple[str, int]] = {}
        """Victim (workflow, stage, rank) -> the preemptor, and when priorities last changed."""

    def _wrong(self, attempt: Attempt, what: str) -> None:
        self._ledger.breach("I9", attempt.id, what)

    # One victim

    def stopping(self, victim: Attempt, event: AllocationStopping) -> None:
        """It is evicted, for `event.by` or by an administrator."""
        state = self._state
        checked = self._ledger.checked
        checked["I9"] += 1
        checked["I11"] += 1
        if not victim.since:
            self._wrong(victim, "it was evicted before it ran")
            return
        ran_ms = state.at - victim.since
        if event.ran_ms != ran_ms:
            self._ledger.breach(
                "I11", victim.id, f"it is said to have run {event.ran_ms} ms, and ran {ran_ms} ms"
            )
        if not event.by:
            return
        preemptor = self._stage(event.by)
        if preemptor is None:
            self._wrong(victim, f"it was evicted for {event.by}, which does not wait")
            return
        turn = state.turn
        if not turn.evicted.get(event.by):
            self._gate(victim, preemptor)
        turn.evicted.setdefault(event.by, []).append(victim)
        turn.evictions += 1
        self._allowed(victim, preemptor, event, ran_ms)
        self._limits(victim)
        self._ping_pong(victim, event.by)

    def _stage(self, allocation: str) -> Stage | None:
        id, _, rest = allocation.partition("/")
        workflow = self._state.workflows.get(id)
        stage = workflow.stages.get(rest.rpartition("/")[0]) if workflow is not None else None
        return stage if stage is not None and stage.shape is not None else None

    def _gate(self, victim: Attempt, preemptor: Stage) -> None:
        """The nodes are used enough."""
        assert preemptor.shape is not None
        used = self._used(preemptor.shape.request)
        threshold = float(self._state.config["scheduler.preemption.utilizationThreshold"])
        if used < threshold:
            self._wrong(
                victim,
                f"it was evicted while {used:.3f} of the nodes were used, under {threshold:g}",
            )

    def _allowed(
        self, victim: Attempt, preemptor: Stage, event: AllocationStopping, ran_ms: int
    ) -> None:
        state = self._state
        owner, mine = victim.stage.workflow, preemptor.workflow
        if not victim.request.preemptible:
            self._wrong(victim, "it was evicted and is not preemptible")
        least = int(state.config["scheduler.preemption.minRuntime"])
        if ran_ms < least:
            self._wrong(victim, f"it was evicted after {ran_ms} ms; the least is {least} ms")
        higher = state.ranking.priority(preemptor, state.at)
        # JSON has no number beyond the largest float.
        gap = min(higher - state.ranking.priority(victim.stage, state.at), sys.float_info.max)
        wanted = float(state.config["scheduler.preemption.priorityGap"])
        if not gap >= wanted - ROUNDING:
            self._wrong(
                victim, f"it was evicted for a priority higher by {gap:g}, under {wanted:g}"
            )
        if abs(gap - event.gap) > ROUNDING:
            self._wrong(victim, f"a gap of {event.gap:g} is on record, and it is {gap:g}")
        group = state.ranking.groups.get((mine.organization, mine.group))
        allowed = group[1] if group is not None else frozenset[str]()
        if owner.organization != mine.organization or owner.group not in allowed:
            self._wrong(victim, f"group {mine.group} may not preempt group {owner.group}")

    def _limits(self, victim: Attempt) -> None:
        config, count = self._state.config, self._state.turn.evictions
        if not config["scheduler.preemption.enabled"]:
            self._wrong(victim, "it was evicted while preemption is off")
        elif count > self._most():
            self._wrong(victim, f"{count} evictions in one tick; {self._most()} are allowed")

    def _most(self) -> int:
        config = self._state.config
        most = int(config["scheduler.preemption.maxEvictionsPerTick"])
        return most if config["scheduler.preemption.multiVictim.enabled"] else min(most, 1)

    def _ping_pong(self, victim: Attempt, preemptor: str) -> None:
        """Nobody evicts whom it made room for, while priorities stay as they are."""
        changed_at = self._state.ranking.changed_at
        workflow, _, rest = preemptor.partition("/")
        stage, _, tail = rest.rpartition("/")
        made = self._made_room.get((workflow, stage, int(tail.partition("#")[0])))
        if made == (victim.id, changed_at) and not self._state.ranking.moving:
            self._wrong(victim, f"it was evicted by {preemptor}, which it had evicted before")
        owner = victim.stage
        self._made_room[owner.workflow.id, owner.name, victim.rank] = (preemptor, changed_at)

    # All victims of one preemptor

    def placed(self, attempt: Attempt, after: Sequence[str]) -> None:
        """The preemptor gets the room of its victims."""
        state = self._state
        self._ledger.checked["I9"] += 1
        victims = state.turn.evicted.pop(attempt.id, [])
        if sorted(after) != sorted(victim.id for victim in victims):
            self._wrong(
                attempt, f"it was placed after {', '.join(after)}, which were not evicted for it"
            )
        attempt.after = {state.attempts[one] for one in after if one in state.attempts}
        if attempt.after:
            state.pending += 1
        for victim in attempt.after:
            victim.claimant = attempt
        shape = attempt.stage.shape
        assert shape is not None
        if not victims:
            return
        if self._fits(attempt, ()):
            self._wrong(attempt, "it fits without any eviction")
        elif not self._fits(attempt, victims):
            self._wrong(attempt, "it does not fit though its victims leave")
        elif len(victims) > 1:
            for victim in victims:
                others = [one for one in victims if one is not victim]
                if self._fits(attempt, others):
                    self._wrong(victim, f"it was evicted for {attempt.id}, which fits without that")
        self._choice(attempt, victims)

    def _choice(self, attempt: Attempt, victims: Sequence[Attempt]) -> None:
        """The lowest priority first, then the shortest run; one where one is enough."""
        candidates = self._candidates(attempt, victims)
        for one in candidates:
            if one in victims and len(victims) == 1:
                return
            if self._fits(attempt, (one,)):
                self._wrong(
                    victims[0],
                    f"it was evicted for {attempt.id}, for whom evicting {one.id} is enough and "
                    "comes first",
                )
                return
        prefix: list[Attempt] = []
        for one in candidates:
            prefix.append(one)
            if self._fits(attempt, prefix):
                break
        for victim in victims:
            if victim not in prefix:
                self._wrong(
                    victim,
                    f"it was evicted for {attempt.id}, for whom others of less priority leave",
                )

    def _candidates(self, attempt: Attempt, victims: Collection[Attempt]) -> list[Attempt]:
        """Who may be evicted for it, in the order in which they go."""
        state = self._state
        now, mine = state.at, attempt.stage.workflow
        group = state.ranking.groups.get((mine.organization, mine.group))
        allowed = group[1] if group is not None else frozenset[str]()
        least = int(state.config["scheduler.preemption.minRuntime"])
        gap = float(state.config["scheduler.preemption.priorityGap"])
        own = state.ranking.priority(attempt.stage, now)
        found: list[tuple[float, int, str, Attempt]] = []
        for one in state.attempts.values():
            owner = one.stage.workflow
            if (
                not one.request.preemptible
                or not one.since
                or one.follower is not None
                or (one.stopping and one not in victims)
                or owner.organization != mine.organization
                or owner.group not in allowed
                or now - one.since < least
            ):
                continue
            value = state.ranking.priority(one.stage, now)
            if own > value and own - value >= gap:
                found.append((value, now - one.since, one.id, one))
        found.sort(key=lambda entry: entry[:3])
        return [one for *_, one in found]

    def _fits(self, attempt: Attempt, leaving: Collection[Attempt]) -> bool:
        """Whether it fits once those have left."""
        state = self._state
        shape = attempt.stage.shape
        assert shape is not None
        wanted = attempt.request.nodes
        for node in state.fleet.up(shape.kinds):
            wanted -= _chunks(node, attempt.request, leaving)
            if wanted <= 0:
                return True
        return False

    def _used(self, request: Request) -> float:
        """The share in use of that resource of the request which is used most."""
        cores = [0, 0]
        memory = [0, 0]
        devices = {device: [0, 0] for device, _ in request.devices}
        for node in self._state.fleet.nodes.values():
            if node.status != "up":
                continue
            cores[0] += node.cores
            cores[1] += max(0, node.free_cores)
            memory[0] += node.memory
            memory[1] += max(0, node.free_memory)
            for device, sums in devices.items():
                sums[0] += node.devices.get(device, 0)
                sums[1] += max(0, node.free_devices.get(device, 0))
        asked = [*devices.values()]
        if request.cores:
            asked.append(cores)
        if request.memory:
            asked.append(memory)
        return max((1 - free / has for has, free in asked if has), default=0.0)

    def conclude(self) -> None:
        """Whoever was evicted for something made room for it."""
        for preemptor, victims in self._state.turn.evicted.items():
            for victim in victims:
                self._wrong(victim, f"it was evicted for {preemptor}, which was not placed")


def _chunks(node: Node, request: Request, leaving: Collection[Attempt]) -> int:
    room = Room(node)
    for victim in leaving:
        chunks = node.holders.get(victim)
        if chunks:
            room.give(victim.request, chunks)
    return room.chunks(request)
