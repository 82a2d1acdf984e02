"""`logyard queue`: what runs, what waits, and why."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from logyard_api.cli import output
from logyard_api.cli.client import Query
from logyard_api.cli.sentences import local
from logyard_api.cli.session import Session, as_of, asks
from logyard_api.cli.units import clock, count, instant, many, now_ms, span

Answer = Mapping[str, Any]
PAUSE_S = 2.0
"""Between two looks of --watch."""
BAR = " .:-=+*#%@"
"""Shares in use, from nothing to all."""

_REASONS: dict[str, str] = {
    "no_nodes": "no node is up",
    "never_fits": "never: no node could hold it",
    "nodes_busy": "no room that is not promised to others",
    "nodes_closed": "nodes are cordoned, draining or lost",
    "behind_higher": "it would delay what is first in line",
    "not_evaluated": "not evaluated yet",
    "unheld": "not evaluated yet",
}


@click.group()
def queue() -> None:
    """What runs, what waits, and why."""


@queue.command()
@click.option("--expand", is_flag=True, help="A line for each waiting rank.")
@click.option("--workflow", help="Only of this workflow.")
@click.option("--mine", is_flag=True, help="Only of my workflows.")
@click.option("--user", help="Only of this user.")
@click.option("--group", help="Only of this group.")
@click.option("--min-priority", type=float, help="Only what has at least this priority.")
@click.option(
    "--queue",
    "section",
    type=click.Choice(["running", "ready", "parked", "pending", "finished"]),
    help="Only this part; without it all but what is finished.",
)
@click.option(
    "--sort",
    type=click.Choice(["priority", "age", "user", "group"]),
    default="priority",
    help="Order within each part; by priority.",
)
@click.option("--limit", type=click.IntRange(min=1), default=100, help="At most so many lines.")
@click.option("--watch", is_flag=True, help="Show it anew every two seconds, until Ctrl-C.")
@as_of
@asks
def show(
    session: Session,
    expand: bool,
    workflow: str | None,
    mine: bool,
    user: str | None,
    group: str | None,
    min_priority: float | None,
    section: str | None,
    sort: str,
    limit: int,
    watch: bool,
) -> None:
    """Show the queue: what runs, then what waits, in the order in which it is looked at.

    Equal requests of a stage are one line with their number.
    """
    query: Query = {
        "expand": expand or None,
        "workflow": workflow,
        "mine": mine or None,
        "user": user,
        "group": group,
        "priorityMin": None if min_priority is None else f"{min_priority!r}",
        "queue": section,
        "sort": sort,
    }
    if watch:
        _watched(session, lambda: _shown(session, *_entries(session, query, limit)))
    else:
        _shown(session, *_entries(session, query, limit))


@queue.command()
@click.option("--window", metavar="TIME", help="What counts as of late, such as 6h; 1h.")
@as_of
@asks
def stats(session: Session, window: str | None) -> None:
    """Show the queue in numbers: by organization, group, user, shape and reason; waits, throughput
    and use of the nodes of late; how true forecasts of starts came.
    """
    query: Query = {"windowSeconds": _seconds(window) if window else None}
    told: dict[str, Any] = session.client.get("/queue/stats", query)
    if session.json:
        output.answer_json(told)
        return
    totals = told["totals"]
    output.answer(
        f"{count(totals['running'])} running, {count(totals['ready'])} ready,"
        f" {count(totals['parked'])} parked, {count(totals['pending'])} pending"
    )
    for title, key in (
        ("ORGANIZATION", "byOrganization"),
        ("GROUP", "byGroup"),
        ("USER", "byUser"),
        ("SHAPE", "byShape"),
    ):
        _table(title, told[key])
    waiting: dict[str, int] = told["waitingByReason"]
    if waiting:
        output.answer()
        output.table(
            ("WAITING", "FOR"),
            [(count(number), _REASONS.get(reason, reason)) for reason, number in waiting.items()],
            right=("WAITING",),
        )
    _of_late(told)
    _forecasts(told["forecasts"])
    output.answer(f"as of position {count(told['position'])}")


def _watched(session: Session, show: Callable[[], None]) -> None:
    """Again and again; on a terminal in the same place."""
    in_place = not session.json and not output.plain()
    while True:
        if in_place:
            click.clear()
        show()
        time.sleep(PAUSE_S)


def _shown(session: Session, told: Answer, entries: list[dict[str, Any]]) -> None:
    if session.json:
        output.answer_json({**told, "allocations": entries})
        return
    if entries:
        output.table(
            ("QUEUE", "PRIO", "WORKFLOW", "STAGE", "WANTS", "WAITED", "WHY", "ALLOCATION"),
            [_row(one) for one in entries],
            right=("PRIO",),
        )
    else:
        output.answer("the queue is empty")
    output.answer(_foot(told, entries))


def _entries(
    session: Session, query: Query, limit: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    entries: list[dict[str, Any]] = []
    token = ""
    while True:
        size = min(1000, limit - len(entries))
        told: dict[str, Any] = session.client.get(
            "/queue", {**query, "pageSize": size, "pageToken": token or None}
        )
        entries += told["allocations"]
        token = told["pageToken"]
        if not token or len(entries) >= limit:
            return told, entries


def _row(one: Answer) -> tuple[str, ...]:
    several = one["count"] > 1
    stage = str(one["stage"])
    if one["array"] and not several:
        stage += f"[{one['rank']}]"
    why = local(one["why"])
    priority = one.get("priority")
    return (
        one["section"],
        "lowest" if priority is None else f"{priority:.1f}",
        f"{one['workflowId']} {one['workflowName']}".rstrip(),
        stage,
        one["wants"],
        span(one["waitedMs"]),
        f"{count(one['count'])} alike: {why}" if several else why,
        f"({count(one['count'])})" if several else one["id"],
    )


def _foot(told: Answer, entries: list[dict[str, Any]]) -> str:
    shown = sum(one["count"] for one in entries)
    parts = [f"{count(shown)} shown as {many(len(entries), 'line')}"]
    if told["pageToken"]:
        parts.append("there are more (--limit)")
    if told["totals"].get("backingOff"):
        parts.append(f"{count(told['totals']['backingOff'])} back off before another attempt")
    if told["bounded"]:
        parts.append("priorities move: the oldest are in order, the others follow by age")
    for device in told["freeDevices"]:
        name = str(device["name"]).rpartition("/")[2]
        nodes = f"{count(device['nodes'])} of {many(told['nodes'], 'node')}"
        parts.append(f"{nodes} {'has' if device['nodes'] == 1 else 'have'} a free {name}")
    age = ""
    if told.get("at"):
        age = f" ({span(now_ms() - instant(told['at']).timestamp() * 1000)} ago)"
    return f"{'; '.join(parts)}; position {count(told['position'])}{age}"


def _table(title: str, counted: Sequence[Answer]) -> None:
    rows = [_counted(one) for one in counted if any(one["counts"].values())]
    if not rows:
        return
    numbers = ("RUNNING", "READY", "PENDING", "FINISHED", "FAILED", "ATTEMPTS", "EVICTED")
    output.answer()
    output.table(
        (title, *numbers, "CPU TIME", "WAIT p50", "p90", "p99"),
        rows,
        right=(*numbers, "CPU TIME", "WAIT p50", "p90", "p99"),
    )


def _counted(one: Answer) -> tuple[str, ...]:
    counts, waits = one["counts"], one["waits"]
    spans = ("p50Ms", "p90Ms", "p99Ms")
    return (
        one["name"],
        count(counts["running"] + counts["placed"]),
        count(counts["ready"] + counts["parked"]),
        count(counts["pending"]),
        count(counts["finished"]),
        count(counts["failed"]),
        count(one["attempts"]),
        count(one["preempted"]) if one["preempted"] else "",
        span(one["cpuMs"]),
        *(span(waits[key]) if waits["count"] else "" for key in spans),
    )


def _of_late(told: Answer) -> None:
    output.answer()
    output.answer(f"in the last {span(told['windowMs'])}:")
    output.answer(
        f"  {count(told['submitted'])} submitted, {count(told['placed'])} placed,"
        f" {count(told['finished'])} finished, {count(told['failed'])} failed,"
        f" {count(told['canceled'])} canceled; {told['endedPerSecond']:g} ended a second"
    )
    if told["backfilled"] or told["preempting"] or told["evicted"]:
        output.answer(
            f"  of the placed {count(told['backfilled'])} were backfilled and"
            f" {count(told['preempting'])} evicted others; {count(told['evicted'])} were evicted"
        )
    output.answer(f"  waits {_spread(told['waits'])}")
    output.answer(f"  runs  {_spread(told['runs'])}")
    for name, share in told["usedNow"].items():
        over = [one["share"].get(name, 0.0) for one in told["use"]]
        bar = "".join(BAR[min(round(one * (len(BAR) - 1)), len(BAR) - 1)] for one in over)
        short = {"cores": "cpu"}.get(name, name.rpartition("/")[2])
        since = f", since {clock(told['use'][0]['start'], 'minutes')} [{bar}]" if over else ""
        output.answer(f"  {short} in use {share:.0%} now{since}")


def _forecasts(found: Sequence[Answer]) -> None:
    if not found:
        return
    output.answer()
    output.table(
        ("FORECASTS", "NUMBER", "IN TIME", "ERROR p10", "p50", "p90"),
        [
            (
                f"up to {span(one['aheadMs'])} ahead" if one["aheadMs"] else "further ahead",
                count(one["count"]),
                f"{one['kept'] / one['count']:.0%}",
                *(_signed(one[key]) for key in ("p10Ms", "p50Ms", "p90Ms")),
            )
            for one in found
        ],
        right=("NUMBER", "IN TIME", "ERROR p10", "p50", "p90"),
    )


def _signed(ms: int) -> str:
    return f"-{span(-ms)}" if ms < 0 else f"+{span(ms)}" if ms else "0s"


def _spread(one: Answer) -> str:
    if not one["count"]:
        return "none"
    return (
        f"half within {span(one['p50Ms'])}, 90% within {span(one['p90Ms'])},"
        f" 99% within {span(one['p99Ms'])} (of {count(one['count'])})"
    )


def _seconds(text: str) -> int:
    from logyard_domain.quantities import parse_duration

    try:
        return max(1, parse_duration(text) // 1000)
    except ValueError as trouble:
        raise click.BadParameter(str(trouble), param_hint="--window") from None
