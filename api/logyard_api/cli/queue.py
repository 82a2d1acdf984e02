"""`logyard queue`: what runs, what waits, and why."""

from collections.abc import Mapping
from typing import Any

import click

from logyard_api.cli import output
from logyard_api.cli.client import Query
from logyard_api.cli.session import Session, asks
from logyard_api.cli.units import count, instant, many, now_ms, span

Answer = Mapping[str, Any]

_REASONS: dict[str, str] = {
    "no_nodes": "no node is up",
    "never_fits": "never: no node could hold it",
    "nodes_busy": "no node has enough free",
    "nodes_closed": "nodes are cordoned, draining or lost",
    "behind_higher": "behind work of higher priority",
    "turn": "nothing: it is placed in turn",
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
@click.option(
    "--queue",
    "section",
    type=click.Choice(["running", "ready", "parked", "pending", "finished"]),
    help="Only this part; without it all but what is finished.",
)
@click.option("--limit", type=click.IntRange(min=1), default=100, help="At most so many lines.")
@asks
def show(
    session: Session,
    expand: bool,
    workflow: str | None,
    mine: bool,
    user: str | None,
    group: str | None,
    section: str | None,
    limit: int,
) -> None:
    """Show the queue: what runs, then what waits, in the order in which it is looked at.

    Equal requests of a stage are one line with their number.
    """
    told, entries = _entries(
        session,
        {
            "expand": expand or None,
            "workflow": workflow,
            "mine": mine or None,
            "user": user,
            "group": group,
            "queue": section,
        },
        limit,
    )
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


@queue.command()
@click.option("--window", metavar="TIME", help="What counts as of late, such as 6h; 1h.")
@asks
def stats(session: Session, window: str | None) -> None:
    """Show the queue in numbers: by group, user, shape and reason; waits and throughput of late."""
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
    for title, key in (("GROUP", "byGroup"), ("USER", "byUser"), ("SHAPE", "byShape")):
        if any(any(one["counts"].values()) for one in told[key]):
            output.answer()
            output.table(
                (
                    title,
                    "RUNNING",
                    "READY",
                    "PENDING",
                    "FINISHED",
                    "FAILED",
                    "ATTEMPTS",
                    "CPU TIME",
                ),
                [_counted(one) for one in told[key] if any(one["counts"].values())],
                right=("RUNNING", "READY", "PENDING", "FINISHED", "FAILED", "ATTEMPTS"),
            )
    waiting: dict[str, int] = told["waitingByReason"]
    if waiting:
        output.answer()
        output.table(
            ("WAITING", "FOR"),
            [(count(number), _REASONS.get(reason, reason)) for reason, number in waiting.items()],
            right=("WAITING",),
        )
    output.answer()
    output.answer(f"in the last {span(told['windowMs'])}:")
    output.answer(
        f"  {count(told['submitted'])} submitted, {count(told['placed'])} placed,"
        f" {count(told['finished'])} finished, {count(told['failed'])} failed,"
        f" {count(told['canceled'])} canceled; {told['endedPerSecond']:g} ended a second"
    )
    output.answer(f"  waits {_spread(told['waits'])}")
    output.answer(f"  runs  {_spread(told['runs'])}")
    output.answer(f"as of position {count(told['position'])}")


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
    why = f"{count(one['count'])} alike: {one['why']}" if several else one["why"]
    return (
        one["section"],
        f"{one['priority']:.1f}",
        f"{one['workflowId']} {one['workflowName']}".rstrip(),
        stage,
        one["wants"],
        span(one["waitedMs"]),
        why,
        f"({count(one['count'])})" if several else one["id"],
    )


def _foot(told: Answer, entries: list[dict[str, Any]]) -> str:
    shown = sum(one["count"] for one in entries)
    parts = [f"{count(shown)} shown as {many(len(entries), 'line')}"]
    if told["pageToken"]:
        parts.append("there are more (--limit)")
    if told["totals"].get("backingOff"):
        parts.append(f"{count(told['totals']['backingOff'])} back off before another attempt")
    age = ""
    if told.get("at"):
        age = f" ({span(now_ms() - instant(told['at']).timestamp() * 1000)} ago)"
    return f"{'; '.join(parts)}; position {count(told['position'])}{age}"


def _counted(one: Answer) -> tuple[str, ...]:
    counts = one["counts"]
    return (
        one["name"],
        count(counts["running"] + counts["placed"]),
        count(counts["ready"] + counts["parked"]),
        count(counts["pending"]),
        count(counts["finished"]),
        count(counts["failed"]),
        count(one["attempts"]),
        span(one["cpuMs"]),
    )


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
