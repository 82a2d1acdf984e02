"""Evictions told from both sides: why one was evicted, or not, and why one waits all the same."""

import msgspec

from logyard_domain.resources import Request
from logyard_projections.answers.situation import Situation
from logyard_projections.answers.stages import instant
from logyard_projections.answers.words import job_name, listed, number_of
from logyard_projections.entities import ENTITIES, PREEMPTERS, entity_key
from logyard_projections.instants import lasting
from logyard_projections.queue import ACTIVE, Owner, Waiting
from logyard_projections.stages import Allocation, Stage

STAGES_MOST = 300
"""Stages that run of which the rules of preemption are asked, those of lowest priority."""
ENABLED = "scheduler.preemption.enabled"
MIN_RUN = "scheduler.preemption.minRuntime"
GAP = "scheduler.preemption.priorityGap"
THRESHOLD = "scheduler.preemption.utilizationThreshold"


class Evicted(msgspec.Struct, frozen=True, rename="camel"):
    """It was evicted at `at` for `by` (empty: by an administrator), whose priority was `gap`
    higher, after it had run for `ran_ms`.
    """

    by: str
    at: str | None
    gap: float
    ran_ms: int
    positions: tuple[int, ...]


class Protected(msgspec.Struct, frozen=True, rename="camel"):
    """So many running allocations may not be evicted for what waits, by this rule."""

    rule: str
    allocations: int


def evicted_of(allocation: Allocation | None) -> Evicted | None:
    """How it was evicted, where it was."""
    if allocation is None or allocation.stopping != "preempted":
        return None
    return Evicted(
        allocation.by,
        instant(allocation.stopping_at),
        allocation.gap,
        allocation.ran_ms,
        (allocation.stopping_position,),
    )


def evicted_text(evicted: Evicted) -> str:
    """``by wf-x/job, priority 6.4 higher, after it had run for 12m``."""
    ran = f"after it had run for {lasting(evicted.ran_ms)}"
    if not evicted.by:
        return f"by an administrator, {ran}"
    return f"by {job_name(evicted.by)}, whose priority is {evicted.gap:g} higher, {ran}"


def spared_text(situation: Situation, stage: Stage, owner: Owner, one: Allocation) -> str:
    """Why a running allocation is not evicted; nothing where preemption is off."""
    if not situation.setting(ENABLED):
        return ""
    if not stage.preemptible:
        return "it is not preemptible"
    ran, least = situation.at - one.since, int(situation.setting(MIN_RUN))
    if one.since and ran < least:
        return f"it has run for {lasting(ran)}; nothing is evicted before {lasting(least)}"
    key = entity_key("group", owner.group, owner.organization)
    preempters = situation.ranker.get(PREEMPTERS, key)
    if preempters is None or not preempters.groups:
        return f"no group may preempt group {owner.group}"
    gap = float(situation.setting(GAP))
    return (
        f"nobody of group {listed(preempters.groups)} waits with a priority {gap:g} higher whom "
        "its room would do"
    )


def protected_from(
    situation: Situation, stage: Stage, owner: Owner, request: Request
) -> tuple[tuple[Protected, ...], str]:
    """Which rules keep a waiting rank from evicting what runs, with how many allocations each; and
    that in words. Nothing where preemption is off.
    """
    if not situation.setting(ENABLED):
        return (), ""
    used, least = situation.rooms.used_share(request), float(situation.setting(THRESHOLD))
    if used < least:
        text = f"only {used:.0%} of what it asks for is in use; evictions begin at {least:.0%}"
        return (), text
    group = situation.ranker.get(ENTITIES, entity_key("group", owner.group, owner.organization))
    allowed = group.preempts if group is not None else ()
    if not allowed:
        return (), f"group {owner.group} may preempt no other group"
    counts: dict[str, int] = {}
    page = situation.view.scan(ACTIVE, order="score", descending=True, limit=STAGES_MOST)
    situation.ranker.expect_priorities(row for row in page.rows if row.preemptible)
    rules = _Rules(situation, owner, allowed, situation.ranker.of_stage(stage, owner))
    for row in page.rows:
        rule = rules.first(row)
        counts[rule] = counts.get(rule, 0) + row.inflight
    told = tuple(Protected(rule, count) for rule, count in sorted(counts.items()) if count)
    parts = [f"{number_of(one.allocations, 'allocation')} {one.rule}" for one in told]
    return told, "; ".join(parts)


class _Rules:
    """What protects from one that waits: of this owner, with this priority."""

    def __init__(
        self, situation: Situation, owner: Owner, allowed: tuple[str, ...], priority: float
    ) -> None:
        self.situation = situation
        self.owner = owner
        self.allowed = allowed
        self.priority = priority
        self.gap = float(situation.setting(GAP))
        self.least = int(situation.setting(MIN_RUN))

    def first(self, row: Waiting) -> str:
        """The first rule that protects what runs of a stage; the order is the scheduler's."""
        if not row.preemptible:
            return "not preemptible"
        lower = self.situation.ranker.of_row(row)
        # Equal priority never evicts, as the scheduler has it.
        if not (lower < self.priority and self.priority - lower >= self.gap):
            return (
                f"less than {self.gap:g} below in priority" if self.gap else "not below in priority"
            )
        if row.organization != self.owner.organization or row.group not in self.allowed:
            return f"of groups that {self.owner.group} may not preempt"
        if self.situation.at - row.since < self.least:
            return f"running for less than {lasting(self.least)}"
        return "that do not make enough room, or run for too short a time"
