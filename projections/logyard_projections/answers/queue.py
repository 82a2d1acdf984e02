"""Answers about the queue: what runs, is ready, is parked, or waits for other stages."""

from collections.abc import Iterable, Iterator
from heapq import merge
from typing import Literal, get_args

import msgspec

from logyard_projections.answers.asking import page_size
from logyard_projections.answers.reasons import reasons, summary
from logyard_projections.answers.stages import instant, priority_at
from logyard_projections.answers.stats import Totals, totals
from logyard_projections.answers.words import wants
from logyard_projections.queue import OWNERS, WAITING, Owner, Waiting, key_of
from logyard_projections.shapes import SHAPES, Shape, shape_key
from logyard_projections.stages import (
    ALLOCATIONS,
    DAY_MS,
    LIVE,
    STAGES,
    Allocation,
    Stage,
    allocation_key,
    stage_key,
)
from logyard_projections.view import BadToken, View, Wanted
from logyard_projections.view import token as row_token

Section = Literal["running", "ready", "parked", "pending", "finished"]
SECTIONS: tuple[Section, ...] = ("running", "ready", "parked", "pending")
"""The order in which the queue is told; `finished` only where it is asked for."""
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
    them; `order` sorts the queue: least score, first
    submitted, first in its workflow; `kind` and `why` say what they wait for.
    """

    id: str
    workflow_id: str
    job_name: str
    priority: float
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
    order: tuple[int, int, int]
    waited_ms: int
    kind: str
    why: str


class QueuePage(msgspec.Struct, frozen=True, rename="camel"):
    """A page of the queue as of a position. `shown` allocations are on it, `totals` in all."""

    allocations: tuple[QueueEntry, ...]
    page_token: str
    position: int
    at: str | None
    shown: int
    totals: Totals


class Asked(msgspec.Struct, frozen=True):
    """Conditions on the queue; all must hold. `sections` empty means all but `finished`.

    `expand` lists each waiting rank.
    """

    sections: tuple[Section, ...] = ()
    user: str = ""
    group: str = ""
    workflow: str = ""
    priority_min: float | None = None
    expand: bool = False


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


def queue_page(
    view: View, asked: Asked, *, size: int = 0, token: str = "", now: int = 0
) -> QueuePage:
    """A page of the queue, as of the view or of the instant `now` where that is later.

    Raises BadToken.
    """
    at = max(view.mark.at, now)
    limit = page_size(size)
    teller = _Teller(view, asked, at)
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
    return QueuePage(
        tuple(entries),
        following,
        view.mark.position,
        instant(view.mark.at),
        sum(entry.count for entry in entries),
        totals(view),
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

    Each entry comes with its place: how many entries of its row come before it, and the token of
    the row before, so that a page can begin with it.
    """

    def __init__(self, view: View, asked: Asked, at: int) -> None:
        self.view = view
        self.asked = asked
        self.at = at
        self.owners: dict[str, Owner | None] = {}
        self.stages: dict[str, Stage | None] = {}
        self.shapes: dict[int, Shape | None] = {}
        self.known: dict[str, tuple[str, str]] = {}
        self.parked = tuple(shape.id for shape in view.scan(SHAPES, where={"parked": 1}).rows)
        self.score_max = None
        if asked.priority_min is not None:
            self.score_max = at - int(asked.priority_min * DAY_MS)

    def told(
        self, section: Section, after: str, skip: int, want: int
    ) -> Iterator[tuple[QueueEntry, str]]:
        """Entries of a section after a row, without the first `skip` of the row that follows."""
        if section == "running" or section == "finished":
            return self._allocations(section, after, want)
        return self._stages(section, after, skip, want)

    def _allocations(
        self, section: Section, after: str, want: int
    ) -> Iterator[tuple[QueueEntry, str]]:
        order = "live" if section == "running" else ""
        while True:
            page = self.view.scan(
                ALLOCATIONS, order=order, after=after, limit=max(want, 25), prefix=self._prefix()
            )
            for one in page.rows:
                entry = self._holder(one, section)
                if entry is not None:
                    yield entry, f"0:{after}"
                key = allocation_key(one.workflow, one.stage, one.rank, one.attempt)
                after = row_token(ALLOCATIONS, order, False, one.live if order else None, key)
            if not page.token:
                return
            after = page.token

    def _prefix(self) -> str:
        return f"{self.asked.workflow}/" if self.asked.workflow else ""

    def _holder(self, one: Allocation, section: Section) -> QueueEntry | None:
        if section == "finished" and one.state != "ended":
            return None
        if self.score_max is not None and one.score > self.score_max:
            return None
        stage = self._stage(one.workflow, one.stage)
        owner = self._owner(one.workflow)
        asked = self.asked
        if owner is None and (asked.user or asked.group):
            return None
        if owner is not None and (
            (asked.user and owner.user != asked.user)
            or (asked.group and owner.group != asked.group)
        ):
            return None
        return None if stage is None else self._entry(stage, owner, section, one, 1)

    def _stages(
        self, section: Section, after: str, skip: int, want: int
    ) -> Iterator[tuple[QueueEntry, str]]:
        rows = (
            self._parked(after, want) if section == "parked" else self._open(section, after, want)
        )
        for row in rows:
            if self.score_max is not None and row.score > self.score_max:
                return
            stage = self._stage(row.workflow, row.stage)
            if stage is not None:
                owner = Owner(row.name, row.organization, row.group, row.user, row.priority)
                if self.asked.expand and section != "pending":
                    ranks = self._ranks(stage, owner, section, skip)
                    for number, entry in enumerate(ranks, skip):
                        yield entry, f"{number}:{after}"
                else:
                    count = stage.total if section == "pending" else stage.waiting + stage.delayed
                    yield self._entry(stage, owner, section, None, count), f"0:{after}"
            after, skip = row_token(WAITING, "score", False, row.score, key_of(row)), 0

    def _where(self) -> dict[str, Wanted]:
        pairs = (
            ("user", self.asked.user),
            ("group", self.asked.group),
            ("workflow", self.asked.workflow),
        )
        return {column: value for column, value in pairs if value}

    def _open(self, section: Section, after: str, want: int) -> Iterator[Waiting]:
        unless = {"shape": self.parked} if section == "ready" and self.parked else None
        where: dict[str, Wanted] = {"queue": section, **self._where()}
        while True:
            page = self.view.scan(
                WAITING, where=where, unless=unless, order="score", after=after, limit=want
            )
            self._fetch_stages(page.rows)
            yield from page.rows
            after = page.token
            if not after:
                return

    def _parked(self, after: str, want: int) -> Iterator[Waiting]:
        def of_shape(shape: int) -> Iterator[Waiting]:
            where: dict[str, Wanted] = {"queue": "ready", "shape": shape, **self._where()}
            token = after
            while True:
                page = self.view.scan(WAITING, where=where, order="score", after=token, limit=want)
                yield from page.rows
                token = page.token
                if not token:
                    return

        return merge(*map(of_shape, self.parked), key=lambda row: (row.score, key_of(row)))

    def _ranks(
        self, stage: Stage, owner: Owner, section: Section, skip: int
    ) -> Iterator[QueueEntry]:
        """Each waiting rank: those that wait again, then those that were never placed."""
        key = stage_key(stage.workflow, stage.name)
        token = ""
        while True:
            page = self.view.scan(ALLOCATIONS, where={"again": key}, after=token)
            for allocation in page.rows[skip:]:
                yield self._entry(stage, owner, section, allocation, 1)
            skip = max(skip - len(page.rows), 0)
            token = page.token
            if not token:
                break
        for rank in range(stage.unplaced + skip, stage.last + 1):
            yield self._entry(stage, owner, section, None, 1, rank)

    def _entry(
        self,
        stage: Stage,
        owner: Owner | None,
        section: Section,
        allocation: Allocation | None,
        count: int,
        rank: int | None = None,
    ) -> QueueEntry:
        shape = self._shape(stage.shape)
        kind, why = self._why(stage, shape, allocation)
        state: str = allocation.state if allocation is not None else "waiting"
        since = stage.ready_at or stage.submitted_at
        until = self.at
        if allocation is not None:
            since = allocation.queued_at
            state = allocation.outcome if allocation.state == "ended" else allocation.state
            until = allocation.placed_at or self.at
            rank = allocation.rank
        elif rank is None:
            rank = min(stage.unplaced, stage.last)
        holds = allocation is not None and allocation.state in LIVE
        name = f"{stage.workflow}/{stage.name}/{rank}#1"
        return QueueEntry(
            id=name if allocation is None else allocation.id,
            workflow_id=stage.workflow,
            job_name=stage.title,
            priority=round(priority_at(stage.score, self.at), 6),
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
            workflow_name=owner.name if owner is not None else "",
            organization=owner.organization if owner is not None else "",
            group=owner.group if owner is not None else "",
            user=owner.user if owner is not None else "",
            shape=stage.shape,
            wants=wants(shape.request) if shape is not None else "",
            order=(stage.score, stage.submitted_position, stage.index),
            waited_ms=max(until - since, 0),
            kind=kind,
            why="started by order" if holds and state == "running" else why,
        )

    def _why(
        self, stage: Stage, shape: Shape | None, allocation: Allocation | None
    ) -> tuple[str, str]:
        # All ranks of a stage that were never placed wait for the same.
        key = "" if allocation is not None else stage_key(stage.workflow, stage.name)
        known = self.known.get(key)
        if known is None:
            found = reasons(self.view, stage, shape, allocation, self.at)
            known = found[0].kind, summary(found)
            if key:
                self.known[key] = known
        return known

    def _shape(self, number: int) -> Shape | None:
        if number and number not in self.shapes:
            self.shapes[number] = self.view.get(SHAPES, shape_key(number))
        return self.shapes.get(number)

    def _fetch_stages(self, rows: Iterable[Waiting]) -> None:
        keys = [stage_key(row.workflow, row.stage) for row in rows]
        missing = [key for key in keys if key not in self.stages]
        found = self.view.get_many(STAGES, missing)
        self.stages.update({key: found.get(key) for key in missing})

    def _stage(self, workflow: str, name: str) -> Stage | None:
        key = stage_key(workflow, name)
        if key not in self.stages:
            self.stages[key] = self.view.get(STAGES, key)
        return self.stages[key]

    def _owner(self, workflow: str) -> Owner | None:
        if workflow not in self.owners:
            self.owners[workflow] = self.view.get(OWNERS, workflow)
        return self.owners[workflow]
