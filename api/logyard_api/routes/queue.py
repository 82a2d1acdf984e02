"""The queue: what runs, what waits, why, and in numbers."""

from typing import Annotated

from msgspec import Meta

from logyard_api.bodies import Answer, Count
from logyard_api.errors import invalid
from logyard_api.operations import Routes, ViewQuery
from logyard_api.yard import Yard
from logyard_projections.answers.queue import (
    Asked,
    QueuePage,
    queue_page,
    sections_of,
    sort_of,
)
from logyard_projections.answers.stats import Stats, stats
from logyard_projections.view import View

Window = Annotated[int, Meta(ge=1, le=7 * 86_400)]

routes = Routes("queue")


class QueueQuery(ViewQuery, frozen=True):
    """Which part of the queue. All conditions intersect.

    queue: running, ready, parked, pending or finished, or ALLOCATION_QUEUE_...; all but finished
        when absent
    priorityMin: at least this effective priority
    mine: only the caller's
    user: only this user's
    group: only this group's
    workflow: only this workflow's
    sort: priority (when absent), age, user or group; within running, ready, parked and pending
    expand: an entry for each waiting rank, instead of one for all that are alike
    pageSize: entries of a page; 25 when absent, at most 1000
    pageToken: `pageToken` of the page before
    """

    queue: str = ""
    priority_min: float | None = None
    mine: bool = False
    user: str = ""
    group: str = ""
    workflow: str = ""
    sort: str = ""
    expand: bool = False
    page_size: Count = 0
    page_token: str = ""


class StatsQuery(ViewQuery, frozen=True):
    """What is of late.

    windowSeconds: how far back waits, runs and throughput are looked at
    """

    window_seconds: Window = 3600


@routes.add("GET", "/v4/scheduler/queue")
async def list_queue(yard: Yard, query: QueueQuery) -> Answer[QueuePage]:
    """List allocations that run or wait, in the order of the queue; waiting ones say why."""
    return await yard.look(lambda view: _page(yard, view, query))


@routes.add("GET", "/v4/queue")
async def get_queue(yard: Yard, query: QueueQuery) -> Answer[QueuePage]:
    """The same under a shorter name."""
    return await yard.look(lambda view: _page(yard, view, query))


@routes.add("GET", "/v4/queue/stats")
async def get_queue_stats(yard: Yard, query: StatsQuery) -> Answer[Stats]:
    """The queue in numbers: by organization, group, user, shape and reason; waits, runs,
    throughput, how full the nodes were, how true forecasts of starts came.
    """
    return await yard.look(lambda view: stats(view, query.window_seconds * 1000))


def _page(yard: Yard, view: View, query: QueueQuery) -> QueuePage:
    user = yard.user if query.mine else query.user
    if query.mine and query.user not in ("", user):
        raise invalid(f"query: mine and user={query.user!r}: nothing belongs to both")
    asked = Asked(
        sections=sections_of(query.queue),
        user=user,
        group=query.group,
        workflow=query.workflow,
        priority_min=query.priority_min,
        expand=query.expand,
        sort=sort_of(query.sort),
    )
    return queue_page(view, asked, size=query.page_size, token=query.page_token, now=yard.now())
