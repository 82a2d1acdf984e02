"""Watch a workflow to its end: progress from its events, then the outcome in a line or two."""

import queue
import sys
import threading
import time
from collections.abc import Callable

import click

from logyard_api.cli import output
from logyard_api.cli.client import Client, Query, segment
from logyard_api.cli.outcomes import FAILED, INTERRUPTED, OK, Answered, NoServer
from logyard_api.cli.session import Session
from logyard_api.cli.stream import Event, following
from logyard_api.cli.units import memory, span
from logyard_api.cli.workflow.progress import Progress, Stage, stage_and_rank
from logyard_api.cli.workflow.screen import Screen

TAIL_LINES = 10
REDRAW_S = 0.2
ASK_WHY_S = 1.0
"""A stage that waits is asked why this long after the last answer."""

Listener = Callable[[Event], None]


def watch(
    session: Session, workflow: str, *, screen: Screen | None, listener: Listener | None = None
) -> Progress:
    """Follow a workflow until it is over. `listener` sees every event after it was folded in.

    After Ctrl-C it asks once whether to stop the workflow too, and ends the command.
    """
    progress = Progress()
    holds: dict[str, str] = {}
    try:
        _follow(session, workflow, progress, holds, screen, listener)
    except KeyboardInterrupt:
        if screen is not None:
            screen.close()
        interrupted(session, workflow)
    finally:
        if screen is not None:
            screen.close()
    return progress


def interrupted(session: Session, workflow: str) -> None:
    """Ask whether to stop the workflow too, where somebody can answer; then end the command."""
    if sys.stdin.isatty() and sys.stderr.isatty():
        output.say("")
        if click.confirm(f"stop {workflow} too?", default=False, err=True):
            session.client.patch(f"/workflows/{segment(workflow)}:stop", {})
            output.say(f"{workflow} is being stopped")
            raise click.exceptions.Exit(INTERRUPTED)
    output.say(f"{workflow} runs on; `logyard workflow stop {workflow}` stops it")
    raise click.exceptions.Exit(INTERRUPTED)


def outcome(session: Session, progress: Progress, *, tail: bool = True) -> int:
    """Say on stderr how the workflow ended, and why when not well. The exit code.

    `tail` shows the last lines of output of what failed.
    """
    took = span(progress.ended_ms - progress.began_ms)
    name = progress.name or progress.workflow
    if progress.status == "finished":
        output.say(f"{name}: {progress.workflow} finished in {took}")
        _show_results(session, progress)
        return OK
    if progress.status == "canceled":
        output.say(f"{name}: {progress.workflow} was canceled after {took}")
        return FAILED
    blamed = next(
        (one for one in progress.failures if stage_and_rank(one)[0] == progress.failed_stage), ""
    )
    why = progress.error or f"{progress.failed_stage} did not end well"
    output.say(f"{name} failed: {why} ({progress.workflow}, after {took})")
    if blamed and tail:
        _show_tail(session, progress, blamed)
    return FAILED


def _follow(
    session: Session,
    workflow: str,
    progress: Progress,
    holds: dict[str, str],
    screen: Screen | None,
    listener: Listener | None,
) -> None:
    arrived: queue.Queue[Event | BaseException] = queue.Queue()
    # The stream blocks in its own thread, so that the screen can move on and Ctrl-C is heard.
    threading.Thread(
        target=_listen, args=(session.another(), workflow, arrived), daemon=True
    ).start()
    asked_at = time.monotonic()
    while not progress.over:
        for event in _batch(arrived):
            if isinstance(event, BaseException):
                raise event
            progress.feed(event)
            if listener is not None:
                listener(event)
        if screen is not None and progress.stages:
            if time.monotonic() - asked_at >= ASK_WHY_S and not progress.over:
                _ask_why(session, progress, holds)
                asked_at = time.monotonic()
            screen.show(progress, holds)


def _batch(arrived: "queue.Queue[Event | BaseException]") -> list[Event | BaseException]:
    """What arrived, all of it, after waiting for the first a little."""
    found: list[Event | BaseException] = []
    try:
        found.append(arrived.get(timeout=REDRAW_S))
        while True:
            found.append(arrived.get_nowait())
    except queue.Empty:
        return found


def _listen(client: Client, workflow: str, arrived: "queue.Queue[Event | BaseException]") -> None:
    try:
        for event in following(client, {"workflow": workflow}, 0):
            arrived.put(event)
    except BaseException as trouble:  # handed on: the main thread decides what to say
        arrived.put(trouble)


def _ask_why(session: Session, progress: Progress, holds: dict[str, str]) -> None:
    holds.clear()
    for stage in progress.stages.values():
        if _waits(stage):
            holds[stage.name] = _reason(session, progress.workflow, stage.name)
            return


def _waits(stage: Stage) -> bool:
    return stage.state == "queued" or (stage.state == "running" and stage.waiting > 0)


def _reason(session: Session, workflow: str, stage: str) -> str:
    name = segment(f"{workflow}/{stage}")
    path = f"/workflows/{segment(workflow)}/allocations/{name}/explain"
    try:
        return str(session.client.get(path).get("detail", ""))
    except (Answered, NoServer):
        return ""


def _show_results(session: Session, progress: Progress) -> None:
    workflow = progress.workflow
    path = f"/workflows/{segment(workflow)}/results"
    try:
        told = session.client.get(path, {"after": progress.position})
    except Answered:
        return
    for result in told.get("results", []):
        output.say(f"  result {result['path']}  {memory(int(result['sizeBytes']))}")
    if told.get("results"):
        output.say(f"  fetch with `logyard workflow results {workflow} --to FOLDER`")


def _show_tail(session: Session, progress: Progress, allocation: str) -> None:
    stage, rank = stage_and_rank(allocation)
    workflow = progress.workflow
    query: Query = {
        "name": stage,
        "rank": rank,
        "show.tail": TAIL_LINES,
        "raw": True,
        "after": progress.position,
    }
    try:
        reply = session.client.ask("GET", f"/workflows/{segment(workflow)}:log", query)
    except Answered:
        return
    last = reply.body.decode(errors="replace").splitlines()[-TAIL_LINES:]
    for line in last:
        output.say(f"  | {line}")
    more = f"logyard workflow log {workflow}/{stage}" + (f"/{rank}" if rank else "")
    output.say(f"`{more}` shows all of its output" if last else f"it wrote nothing (`{more}`)")
