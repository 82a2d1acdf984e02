"""Answers about the queue: what runs, is ready, is parked, or waits for other stages."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Literal, get_args

import msgspec

from logyard_projections.answers.asking import page_size
from logyard_projections.answers.order import COLUMNS, Ordering, Sort
from logyard_projections.answers.ranking import finite
from logyard_projections.answers.reasons import reasons, standing_text, summary
from logyard_projections.answers.situation import Situation
from logyard_projections.answers.stages import instant
from logyard_projections.answers.stats import Totals, totals
from logyard_projections.answers.words import wants
from logyard_projections.promises import BACKFILLS
from logyard_projections.queue import ACTIVE, WAITING, Owner, Waiting
from logyard_projections.shapes import SHAPES
from logyard_projections.stages import (
    ALLOCATIONS,
    LIVE,
    STAGES,
    Allocation,
    Stage,
    allocation_key,
    place_of,
    stage_key,
)
from logyard_projections.tables import Value
from logyard_projections.view import LIMIT_MAX, BadToken, View, Wanted
from logyard_projections.view import token as row_token

Section = Literal["running", "ready", "parked", "pending", "finished"]
SECTIONS: tuple[Section, ...] = ("running", "ready", "parked", "pending")
"""The order in which the queue is told; `finished` only where it is asked for."""
AT_ONCE = 100
"""Lines that are looked up together."""
WIRE_QUEUES = {
    "running": "ALLOCATION_QUEUE_RUNNING",
    "ready": "ALLOCATION_QUEUE_READY",
    "parked": "ALLOCATION_QUEUE_READY",
    "pending": "ALLOCATION_QUEUE_PENDING",
    "finished": "ALLOCATION_QUEUE_FINISHED",
}
WIRE_STATUSES = {
    "waiting": "ALLOCATION_STATUS_UNSPECIFIED",
    "delayed": "ALLOCATION_STATUS_UNSPECIFIED",
    "placed": "ALLOCATION_STATUS_CREATING",
    "running": "ALLOCATION_STATUS_RUNNING",
    "stopping": "ALLOCATION_STATUS_RUNNING",
    "finished": "ALLOCATION_STATUS_FINISHED",
    "failed": "ALLOCATION_STATUS_ERROR",
    "timeout": "ALLOCATION_STATUS_ERROR",
    "lost": "ALLOCATION_STATUS_ERROR",
    "canceled": "ALLOCATION_STATUS_CANCELLED",
    "preempted": "ALLOCATION_STATUS_PREEMPTED",
}


class QueueEntry(msgspec.Struct, frozen=True, rename="camel"):
    """`count` allocations that are alike: one that holds resources, or waiting ranks of one stage.

    Up to `ttl` (seconds) as on the wire. `rank` is that of the allocation in `id`, the first of
    them. `priority` is absent where the expression in force gives no finite number; those come
    last. `kind` and `why` say what they wait for, or how they came to their room; instants in `why`
    are in UTC. `promised` is by when the first of them was promised a start.
    """

    id: str
    workflow_id: str
    job_name: str
    priority: float | None
    weight: int
    queue_time: str | None
    status: str
    queue: str
    node_id: str
    preemptible: bool
    ttl: int
    section: Section
    count: int
    delayed: int
    rank: int
    array: bool
    stage: str
    workflow_name: str
    organization: str
    group: str
    user: str
    shape: int
    wants: str
    nodes: dict[str, int]
    position: int
    index: int
    waited_ms: int
    kind: str
    why: str
    promised: str | None


class FreeDevice(msgspec.Struct, frozen=True, rename="camel"):
    """On how many nodes at least one of a device is free."""

    name: str
    nodes: int


class QueuePage(msgspec.Struct, frozen=True, rename="camel"):
    """A page of the queue as of a position. `shown` allocations are on it, `totals` in all.

    Lines are in the order of priority (or as they were sorted). Where priorities move by
    themselves and too much waits to be put in order at reading, the oldest lines are, and the
    others follow by age: then `bounded`.
    """

    allocations: tuple[QueueEntry, ...]
    page_token: str
    position: int
    at: str | None
    shown: int
    totals: Totals
    nodes: int
    free_devices: tuple[FreeDevice, ...]
    bounded: bool
    policy_revision: int


class Asked(msgspec.Struct, frozen=True):
    """Conditions on the queue; all must hold. `sections` empty means all but `finished`.

    `expand` lists each waiting rank. `sort` orders the lines of each section.
    """

    sections: tuple[Section, ...] = ()
    user: str = ""
    group: str = ""
    workflow: str = ""
    priority_min: float | None = None
    expand: bool = False
    sort: Sort = "priority"


def sections_of(name: str) -> tuple[Section, ...]:
    """Sections by our name or the wire's; nothing for an empty name. Raises ValueError."""
    short = name.removeprefix("ALLOCATION_QUEUE_").lower()
    if short in ("", "unspecified"):
        return ()
    if name.startswith("ALLOCATION_QUEUE_") and short == "ready":
        return ("ready", "parked")
    for section in get_args(Section):
        if section == short:
            return (section,)
    raise ValueError(f"queue {name!r} is not known; there are {', '.join(get_args(Section))}")


def sort_of(text: str) -> Sort:
    """How lines are sorted; by priority for an empty text. Raises ValueError."""
    for sort in COLUMNS:
        if sort == (text or "priority"):
            return sort
    raise ValueError(f"sort {text!r} is not known; there are {', '.join(COLUMNS)}")


def queue_page(
    view: View, asked: Asked, *, size: int = 0, token: str = "", now: int = 0
) -> QueuePage:
    """A page of the queue, as of the view or of the instant `now` where that is later.

    Raises BadToken.
    """
    situation = Situation(view, max(view.mark.at, now))
    limit = page_size(size)
    teller = _Teller(situation, asked)
    sections = asked.sections or SECTIONS
    first, skip, after = _read_token(token, sections)
    entries: list[QueueEntry] = []
    following = ""
    for section in sections[sections.index(first) :]:
        for entry, place in teller.told(section, after, skip, limit - len(entries) + 1):
            if len(entries) == limit:
                following = f"{section}:{place}"
                break
            entries.append(entry)
        if following:
            break
        after, skip = "", 0
    rooms = situation.rooms
    return QueuePage(
        allocations=tuple(entries),
        page_token=following,
        position=view.mark.position,
        at=instant(view.mark.at),
        shown=sum(entry.count for entry in entries),
        totals=totals(view),
        nodes=rooms.nodes,
        free_devices=tuple(FreeDevice(*one) for one in sorted(rooms.devices().items())),
        bounded=teller.ordering.bounded,
        policy_revision=situation.ranker.formula.revision,
    )


def _read_token(token: str, sections: tuple[Section, ...]) -> tuple[Section, int, str]:
    if not token:
        return sections[0], 0, ""
    name, skip, after = (*token.split(":", 2), "", "")[:3]
    for section in sections:
        if section == name and skip.isascii() and skip.isdigit() and len(skip) < 10:
            return section, int(skip), after
    raise BadToken("this page token belongs to another question; start again without one")


class _Teller:
    """Tells the sections of one queue question.

    Each entry comes with its place: how many entries of its line come before it, and the token of
    the line before, so that a page can begin with it.
    """

    def __init__(self, situation: Situation, asked: Asked) -> None:
        self.situation = situation
        self.view = situation.view
        self.asked = asked
        self.ordering = Ordering(situation.view, situation.ranker, asked.sort)
        self.live: dict[str, list[Allocation]] = {}
        self.known: dict[str, tuple[str, str]] = {}
        page = self.view.scan(SHAPES, where={"parked": 1})
        self.parked = tuple(shape.id for shape in page.rows)

    def told(
        self, section: Section, after: str, skip: int, want: int
    ) -> Iterator[tuple[QueueEntry, str]]:
        """Entries of a section after a line, without the first `skip` of the line that follows."""
        if section == "finished":
            return self._finished(after, want)
        return self._lines(section, after, skip, want)

    def _finished(self, after: str, want: int) -> Iterator[tuple[QueueEntry, str]]:
        prefix = f"{self.asked.workflow}/" if self.asked.workflow else ""
        while True:
            page = self.view.scan(ALLOCATIONS, after=after, limit=max(want, 25), prefix=prefix)
            for one in page.rows:
                entry = self._over(one) if one.state == "ended" else None
                if entry is not None:
                    yield entry, f"0:{after}"
                key = allocation_key(one.workflow, one.stage, one.rank, one.attempt)
                after = row_token(ALLOCATIONS, "", False, None, key)
            if not page.token:
                return
            after = page.token

    def _over(self, one: Allocation) -> QueueEntry | None:
        ranker, asked = self.situation.ranker, self.asked
        stage, owner = self._stage(one.workflow, one.stage), ranker.owner_of(one.workflow)
        if stage is None or owner is None or not _belongs(owner, asked):
            return None
        # What is over keeps the age that it had.
        ranker.at = one.ended_at
        priority = ranker.of_stage(stage, owner)
        ranker.at = self.situation.at
        if asked.priority_min is not None and priority < asked.priority_min:
            return None
        return self._entry(stage, owner, "finished", one, 1, priority)

    def _lines(
        self, section: Section, after: str, skip: int, want: int
    ) -> Iterator[tuple[QueueEntry, str]]:
        ranker, least = self.situation.ranker, self.asked.priority_min
        for row, following in self._expected(section, after, want):
            stage = self._stage(row.workflow, row.stage)
            priority = ranker.of_row(row)
            if least is not None and priority < least:
                if self.asked.sort == "priority" and section != "pending":
                    return
            elif stage is not None:
                entries = self._of_line(row, stage, section, skip, priority)
                for number, entry in enumerate(entries, skip):
                    yield entry, f"{number}:{after}"
            after, skip = following, 0

    def _expected(self, section: Section, after: str, want: int) -> Iterator[tuple[Waiting, str]]:
        """Lines, some at a time with what is going to be asked about them."""
        ranker, rows = self.situation.ranker, self._rows(section, after, want)
        while some := list(islice(rows, min(want, AT_ONCE))):
            ranker.expect_priorities(row for row, _ in some)
            keys = [stage_key(row.workflow, row.stage) for row, _ in some]
            ranker.expect(STAGES, keys)
            if section == "running":
                self._expect_running(keys, want)
            yield from some

    def _expect_running(self, stages: list[str], want: int) -> None:
        """Ask at once for what runs of so many stages as `want` lines need."""
        asked: list[str] = []
        count = 0
        for key in stages:
            stage = self.situation.ranker.get(STAGES, key)
            count += stage.placed + stage.running if stage is not None else 0
            if count > LIMIT_MAX:
                break
            asked.append(key)
            if count >= want:
                break
        self.live = {key: [] for key in asked}
        page = self.view.scan(ALLOCATIONS, where={"live": tuple(asked)})
        for one in page.rows:
            self.live[stage_key(one.workflow, one.stage)].append(one)
        names = [place_of(one.id).key for one in page.rows if one.kind == "backfilled"]
        self.situation.ranker.expect(BACKFILLS, names)

    def _of_line(
        self, row: Waiting, stage: Stage, section: Section, skip: int, priority: float
    ) -> Iterator[QueueEntry]:
        owner = Owner(row.name, row.organization, row.group, row.user, row.priority)
        if section == "running":
            key = stage_key(row.workflow, row.stage)
            if key in self.live:
                for one in self.live[key][skip:]:
                    yield self._entry(stage, owner, section, one, 1, priority)
                return
            yield from self._allocations(stage, owner, section, {"live": key}, skip, priority)
        elif section == "pending":
            if not skip:
                yield self._entry(stage, owner, section, None, stage.total, priority)
        elif self.asked.expand:
            yield from self._ranks(stage, owner, section, skip, priority)
        elif not skip:
            count = stage.waiting + stage.delayed
            yield self._entry(stage, owner, section, None, count, priority)

    def _rows(self, section: Section, after: str, want: int) -> Iterator[tuple[Waiting, str]]:
        asked = self.asked
        pairs = (("user", asked.user), ("group", asked.group), ("workflow", asked.workflow))
        where: dict[str, Wanted] = {name: value for name, value in pairs if value}
        unless: dict[str, tuple[Value, ...]] = {}
        ordering, table = self.ordering, WAITING
        if section == "running":
            table = ACTIVE
        elif section == "pending":
            # It is in no line yet.
            where["queue"] = "pending"
            ordering = self.by_age
        else:
            where["queue"] = "ready"
            if section == "parked" and not self.parked:
                return
            if section == "parked":
                where["shape"] = self.parked
            elif self.parked:
                unless["shape"] = self.parked
        yield from ordering.lines(table, where, unless, after, want)

    @cached_property
    def by_age(self) -> Ordering:
        """For what is not in line yet."""
        sort: Sort = "age" if self.asked.sort == "priority" else self.asked.sort
        return Ordering(self.view, self.situation.ranker, sort)

    def _ranks(
        self, stage: Stage, owner: Owner, section: Section, skip: int, priority: float
    ) -> Iterator[QueueEntry]:
        """Each waiting rank: those that wait again, then those that were never placed."""
        told = 0
        where = {"again": stage_key(stage.workflow, stage.name)}
        for entry in self._allocations(stage, owner, section, where, 0, priority):
            told += 1
            if told > skip:
                yield entry
        for rank in range(stage.unplaced + max(skip - told, 0), stage.last + 1):
            yield self._entry(stage, owner, section, None, 1, priority, rank)

    def _allocations(
        self,
        stage: Stage,
        owner: Owner,
        section: Section,
        where: Mapping[str, Wanted],
        skip: int,
        priority: float,
    ) -> Iterator[QueueEntry]:
        token = ""
        while True:
            page = self.view.scan(ALLOCATIONS, where=where, after=token, limit=100)
            for allocation in page.rows[skip:]:
                yield self._entry(stage, owner, section, allocation, 1, priority)
            skip = max(skip - len(page.rows), 0)
            token = page.token
            if not token:
                return

    def _entry(
        self,
        stage: Stage,
        owner: Owner,
        section: Section,
        allocation: Allocation | None,
        count: int,
        priority: float,
        rank: int | None = None,
    ) -> QueueEntry:
        shape = self.situation.shape(stage.shape)
        state: str = allocation.state if allocation is not None else "waiting"
        since = stage.ready_at or stage.submitted_at
        until = self.situation.at
        if allocation is not None:
            since = allocation.queued_at
            state = allocation.outcome if allocation.state == "ended" else allocation.state
            until = allocation.since or allocation.placed_at or until
            rank = allocation.rank
        elif rank is None:
            rank = min(stage.unplaced, stage.last)
        id = f"{stage.workflow}/{stage.name}/{rank}#1" if allocation is None else allocation.id
        own = self.situation.promise_of(stage.workflow, stage.name)
        promised = own if own is not None and (own.allocation == id or count > 1) else None
        kind, why = self._why(stage, allocation, promised is not None)
        return QueueEntry(
            id=id,
            workflow_id=stage.workflow,
            job_name=stage.title,
            priority=finite(priority),
            weight=1,
            queue_time=instant(since),
            status=WIRE_STATUSES[state],
            queue=WIRE_QUEUES[section],
            node_id=allocation.node if allocation is not None else "",
            preemptible=stage.preemptible,
            ttl=stage.limit_ms // 1000,
            section=section,
            count=count,
            delayed=stage.delayed if allocation is None and count > 1 else int(state == "delayed"),
            rank=rank,
            array=stage.array,
            stage=stage.name,
            workflow_name=owner.name,
            organization=owner.organization,
            group=owner.group,
            user=owner.user,
            shape=stage.shape,
            wants=wants(shape.request) if shape is not None else "",
            nodes=allocation.seats if allocation is not None else {},
            position=stage.submitted_position,
            index=stage.index,
            waited_ms=max(until - since, 0),
            kind=kind,
            why=why,
            promised=instant(promised.at) if promised is not None else None,
        )

    def _why(self, stage: Stage, allocation: Allocation | None, first: bool) -> tuple[str, str]:
        if allocation is not None and allocation.state in LIVE:
            return "running", standing_text(self.situation, allocation)
        # All ranks of a stage that were never placed wait for the same, but for its first.
        key = "" if allocation is not None else f"{first} {stage_key(stage.workflow, stage.name)}"
        known = self.known.get(key)
        if known is None:
            found = reasons(self.situation, stage, allocation, first)
            known = found[0].kind, summary(found)
            if key:
                self.known[key] = known
        return known

    def _stage(self, workflow: str, name: str) -> Stage | None:
        return self.situation.ranker.get(STAGES, stage_key(workflow, name))


def _belongs(owner: Owner, asked: Asked) -> bool:
    return asked.user in ("", owner.user) and asked.group in ("", owner.group)
