"""`logyard simulate`: a recorded workload through the real scheduler, in virtual time."""

import csv
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from logyard_api.cli import output
from logyard_api.cli.bars import bar
from logyard_api.cli.fresh import LOG, folder_for, settings_of
from logyard_api.cli.outcomes import USAGE, Trouble
from logyard_api.cli.units import count, span

if TYPE_CHECKING:
    from logyard_domain.commands import AnyCommand
    from logyard_engine.simulation.summary import Summary
    from logyard_engine.simulation.traces.trace import Trace, TraceNode

JOBS, SUMMARY = "jobs.csv", "summary.json"
CLUSTER = "simulated"


@click.command()
@click.argument("trace", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--nodes",
    metavar="N|FILE",
    help="So many nodes, or an openb table of nodes; without it, what the trace says.",
)
@click.option(
    "--cores-per-node",
    type=click.IntRange(min=1),
    metavar="C",
    help="Equal nodes with so many cores each (1, where the trace has no nodes of its own).",
)
@click.option(
    "--memory-per-node", metavar="SIZE", help="Memory of each; as good as unlimited without it."
)
@click.option(
    "--estimate",
    type=click.Choice(["user", "run"]),
    default="user",
    show_default=True,
    help="Time limits: what users estimated, or how long the jobs really ran.",
)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting; repeat it.")
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="G=PRIORITY",
    help="A group's priority; repeat it. `G=PRIORITY>H,I` lets it preempt groups H and I.",
)
@click.option("--user", "users", multiple=True, metavar="U=PRIORITY", help="The same for a user.")
@click.option("--preemptible", is_flag=True, help="Every job may be preempted.")
@click.option(
    "--kill-after",
    type=click.IntRange(min=0),
    default=0,
    metavar="SECONDS",
    help="How long an evicted job takes to go.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="The first N jobs only.")
@click.option(
    "--compress",
    type=click.FloatRange(min=0, min_open=True),
    metavar="FACTOR",
    help="Let jobs arrive so many times as fast.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help=f"Folder for the log ({LOG}), {JOBS} and {SUMMARY}.",
)
@click.option("--force", is_flag=True, help="Replace what an earlier simulation left in DIR.")
@click.option("--json", "as_json", is_flag=True, help="The summary as JSON.")
def simulate(
    trace: Path,
    nodes: str | None,
    cores_per_node: int | None,
    memory_per_node: str | None,
    estimate: str,
    settings: tuple[str, ...],
    groups: tuple[str, ...],
    users: tuple[str, ...],
    preemptible: bool,
    kill_after: int,
    limit: int | None,
    compress: float | None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Run a recorded workload through the scheduler, as fast as it goes, and say what came of it.

    TRACE is a file of the Standard Workload Format, the MetaCentrum trace, or the openb table of
    pods; packed or not. Every decision is made by the code that a server runs, and is on the log,
    which all commands that read a log can read: `logyard log show --log DIR/log.sqlite`.
    """
    from logyard_domain.commands import Refused, SetConfig
    from logyard_engine.log.log import LogTrouble
    from logyard_engine.log.opening import open_log
    from logyard_engine.simulation.dictated import DictatedLog
    from logyard_engine.simulation.drive import SETTINGS, simulate
    from logyard_engine.simulation.summary import summarize

    values, formulas = settings_of(settings)
    entities = [*_groups(groups), *_users(users)]
    told = _trace(trace, nodes, estimate, preemptible, limit, compress)
    machines = _machines(told, nodes, cores_per_node, memory_per_node)
    try:
        log = (
            DictatedLog(folder_for(out, (JOBS, SUMMARY), force), CLUSTER)
            if out
            else open_log("memory:", CLUSTER)
        )
        try:
            with bar("simulated", len(told.jobs)) as progress:
                began = time.perf_counter()
                found = simulate(
                    told,
                    machines,
                    log,
                    config=SetConfig(values={**SETTINGS, **values}, formulas=formulas),
                    entities=entities,
                    kill_after_s=kill_after,
                    progress=progress,
                )
                took_s = time.perf_counter() - began
        finally:
            log.close()
    except Refused as refusal:
        raise Trouble(f"the engine does not take this: {refusal}", USAGE) from None
    except LogTrouble as trouble:
        raise Trouble(str(trouble)) from None
    summary = summarize(told, machines, found)
    whole = {
        **_figures(summary),
        "jobs_per_second": round(summary.jobs / took_s, 1) if took_s else 0.0,
        "seconds": round(took_s, 3),
        "settings": {
            "trace": trace.name,
            "format": told.format,
            "skipped": told.skipped,
            "estimate": estimate,
            "limit": limit,
            "compress": compress,
            "preemptible": preemptible,
            "kill_after_s": kill_after,
            "set": {**SETTINGS, **values},
            "groups": list(groups),
            "users": list(users),
        },
    }
    if out:
        _written(out, told, found, whole)
    if as_json:
        output.answer_json(whole)
    else:
        _shown(summary, told, took_s, out)


def _groups(given: tuple[str, ...]) -> "list[AnyCommand]":
    """Commands that make groups known, then those that let them preempt each other."""
    from logyard_domain.commands import UpdateGroup

    known: list[AnyCommand] = []
    lists: list[AnyCommand] = []
    for text in given:
        ranked, _, others = text.partition(">")
        name, priority = _ranked("--group", ranked)
        preempts = tuple(other for other in others.split(",") if other)
        known.append(UpdateGroup(group=name, priority=priority))
        known += [UpdateGroup(group=other) for other in preempts]
        if preempts:
            lists.append(UpdateGroup(group=name, preempt=preempts))
    return known + lists


def _users(given: tuple[str, ...]) -> "list[AnyCommand]":
    from logyard_domain.commands import UpdateUser

    pairs = [_ranked("--user", text) for text in given]
    return [UpdateUser(user=name, priority=priority) for name, priority in pairs]


def _ranked(option: str, text: str) -> tuple[str, int]:
    name, _, priority = text.partition("=")
    if not name or not priority.lstrip("-").isdigit():
        raise Trouble(f"{option} {text}: write NAME=PRIORITY, such as {name or 'chem'}=5", USAGE)
    return name, int(priority)


def _trace(
    path: Path,
    nodes: str | None,
    estimate: str,
    preemptible: bool,
    limit: int | None,
    compress: float | None,
) -> "Trace":
    import msgspec

    from logyard_engine.simulation.traces.opening import read_trace
    from logyard_engine.simulation.traces.trace import BadTrace, clairvoyant, compressed, shortened

    try:
        found = read_trace(path, Path(nodes) if nodes and not nodes.isdigit() else None)
    except BadTrace as trouble:
        raise Trouble(str(trouble), USAGE) from None
    if limit:
        found = shortened(found, limit)
    if compress:
        found = compressed(found, compress)
    if estimate == "run":
        found = clairvoyant(found)
    if preemptible:
        jobs = tuple(msgspec.structs.replace(job, preemptible=True) for job in found.jobs)
        found = msgspec.structs.replace(found, jobs=jobs)
    return found


def _machines(
    trace: "Trace", nodes: str | None, cores: int | None, memory: str | None
) -> "tuple[TraceNode, ...]":
    """The nodes of the simulation: equal ones, or those of the trace, or some of these."""
    from logyard_domain.quantities import parse_size
    from logyard_engine.simulation.workload import AMPLE_BYTES, some, uniform

    number = int(nodes) if nodes is not None and nodes.isdigit() else None
    if number == 0:
        raise Trouble("--nodes 0: a cluster has at least one node", USAGE)
    if trace.nodes and cores is None:
        if number is not None and number > len(trace.nodes):
            raise Trouble(
                f"--nodes {number}: the trace has {len(trace.nodes)} nodes; for others say how "
                "many cores each has: --cores-per-node",
                USAGE,
            )
        return trace.nodes if number is None else some(trace.nodes, number)
    if number is None:
        if not trace.processors:
            raise Trouble("the trace does not say how many processors there were: --nodes N", USAGE)
        number = -(-trace.processors // (cores or 1))
    try:
        size = parse_size(memory) if memory else AMPLE_BYTES
    except ValueError as trouble:
        raise Trouble(f"--memory-per-node: {trouble}", USAGE) from None
    return uniform(number, cores or 1, size)


def _figures(summary: "Summary") -> dict[str, Any]:
    import msgspec

    return msgspec.structs.asdict(summary)


def _written(out: Path, trace: "Trace", found: Any, whole: dict[str, Any]) -> None:
    from logyard_engine.simulation.summary import HEAD, rows

    with (out / JOBS).open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(HEAD)
        table.writerows(rows(trace, found))
    (out / SUMMARY).write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")


def _shown(summary: "Summary", trace: "Trace", took_s: float, out: Path | None) -> None:
    lines = [
        ("jobs", f"{count(summary.ran)} ran", _except(summary, trace)),
        ("on", f"{count(summary.nodes)} nodes", f"{count(summary.cores)} cores"),
        ("wait", f"{summary.mean_wait_s:,.1f} s mean", _spread(summary)),
        ("bounded slowdown", f"{summary.mean_bounded_slowdown:.6f} mean", "runs of 10 s at least"),
        ("utilization", f"{summary.utilization:.4f}", f"makespan {_span(summary.makespan_s)}"),
        ("backfilled", count(summary.backfilled), ""),
        ("preempted", count(summary.preempted), ""),
        ("took", f"{took_s:.1f} s", f"{summary.jobs / max(took_s, 1e-9):,.0f} jobs/s"),
        ("log", f"{count(summary.events)} events", f"{count(summary.turns)} turns"),
    ]
    for name, value, more in lines:
        output.answer(f"{name:17} {value:>18}  {more}".rstrip())
    if out:
        output.answer(f"written: {out / LOG}, {out / JOBS}, {out / SUMMARY}")


def _except(summary: "Summary", trace: "Trace") -> str:
    parts: list[str] = []
    if summary.waiting:
        parts.append(f"{count(summary.waiting)} never did: no node could hold them")
    if summary.timed_out:
        parts.append(f"{count(summary.timed_out)} were ended at their limit")
    parts += [f"{count(number)} left out: {why}" for why, number in trace.skipped.items()]
    return "; ".join(parts)


def _spread(summary: "Summary") -> str:
    return f"median {_span(summary.median_wait_s)}, longest {_span(summary.max_wait_s)}"


def _span(seconds: float) -> str:
    return span(seconds * 1000)
