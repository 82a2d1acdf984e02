"""`logyard run`: one command as a job, its output here, its exit code ours."""

import os
import re
import sys
import threading
from collections.abc import Mapping
from typing import Any, BinaryIO

import click

from logyard_api.cli import output
from logyard_api.cli.acting import acting, headers
from logyard_api.cli.client import segment
from logyard_api.cli.outcomes import FAILED, OK, USAGE, Trouble
from logyard_api.cli.session import Session, asks
from logyard_api.cli.stream import Event
from logyard_api.cli.units import count
from logyard_api.cli.workflow.progress import Progress, stage_and_rank
from logyard_api.cli.workflow.screen import Screen
from logyard_api.cli.workflow.start import ending, submit
from logyard_api.cli.workflow.watching import outcome, watch


@click.command()
@click.option("--name", help="Name of the job; that of the command where nothing is said.")
@click.option("--cores", type=click.IntRange(min=1), default=1, help="Cores; 1 by default.")
@click.option("--memory", metavar="SIZE", help="Memory, such as 512MiB.")
@click.option("--device", metavar="NAME=N", multiple=True, help="Devices, nvidia.com/gpu=1.")
@click.option("--array", metavar="FIRST-LAST", help="Run it for each FB_TASK_ID, such as 1-100.")
@click.option("--concurrency", type=click.IntRange(min=1), help="Tasks of the array at once.")
@click.option("--env", metavar="NAME[=VALUE]", multiple=True, help="Set, or pass on, a variable.")
@click.option("--volume", metavar="SPEC", multiple=True, help="/path[,size=10GiB], or name:/path.")
@click.option("--cwd", metavar="FOLDER", help="Working folder.")
@click.option("--timeout", metavar="TIME", help="Longest run, such as 30m.")
@click.option("--priority", type=click.IntRange(max=0), default=0, help="0 or less; 0 is first.")
@click.option("--preemptible", is_flag=True, help="It may be stopped for work of higher priority.")
@click.option("--key", help="Idempotency key: the same key runs it once, however often.")
@click.option("--watch", "watched", is_flag=True, help="Show progress instead of output.")
@click.option("--detach", is_flag=True, help="Do not wait: print the workflow's id.")
@click.argument("command", metavar="-- COMMAND...", nargs=-1, required=True)
@acting
@asks
def run(
    session: Session,
    /,
    watched: bool,
    detach: bool,
    key: str | None,
    priority: int,
    preemptible: bool,
    **options: Any,
) -> None:
    """Run COMMAND as a job, print what it writes, and exit with its code.

    Of a task array each task's output is printed when it ends, every line after the task's id.
    """
    name = options["name"] or _label(options["command"][0])
    body = {
        "name": name,
        "definition": definition(name, options),
        "priority": priority,
        "preemptible": preemptible,
    }
    acts = headers(options["user"], options["group"], options["organization"])
    told = submit(session, body, key, "run", acts)
    workflow = str(told["id"])
    if detach:
        session.done(told, workflow)
        return
    output.say(f"{name}: {workflow} started at position {count(int(told.get('position', 0)))}")
    if watched:
        progress = watch(session, workflow, screen=Screen())
    else:
        printer = _Printer(session, workflow, array=options["array"] is not None)
        progress = watch(session, workflow, screen=None, listener=printer.hear)
        printer.close()
    raise click.exceptions.Exit(_end(session, told, progress, name, watched))


def definition(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The version v4 workflow of one job that `options` of the command line describe."""
    job: dict[str, Any] = {
        "command": list(options["command"]),
        "resource": {"cpu": {"cores": options["cores"]}},
    }
    if options["memory"]:
        job["resource"]["memory"] = {"size": options["memory"]}
    if options["device"]:
        job["resource"]["devices"] = dict(_device(text) for text in options["device"])
    if options["env"]:
        job["env"] = [_variable(text) for text in options["env"]]
    if options["cwd"]:
        job["cwd"] = options["cwd"]
    if options["timeout"]:
        job["policy"] = {"timeout": {"execute": options["timeout"]}}
    if options["array"]:
        job["task-array"] = _array(options["array"], options["concurrency"])
    volumes: dict[str, Any] = {}
    for number, text in enumerate(options["volume"]):
        key = f"volume-{number}"
        path, volumes[key] = _volume(text)
        job.setdefault("mounts", {})[path] = {"volume": key}
    whole: dict[str, Any] = {"version": "v4", "jobs": {name: job}}
    return {**whole, "volumes": volumes} if volumes else whole


class _Printer:
    """Prints output: of a single job as it comes, of the tasks of an array as they end."""

    def __init__(self, session: Session, workflow: str, array: bool) -> None:
        self._session = session
        self._path = f"/workflows/{segment(workflow)}:log"
        self._array = array
        self._copies: list[threading.Thread] = []
        self._after = 0

    def hear(self, event: Event) -> None:
        """Take in the next event of the workflow."""
        kind, allocation = str(event["type"]), str(event["data"].get("allocation", ""))
        # What is asked for because of an event must know of it.
        self._after = int(event["logyardposition"])
        if kind == "logyard.allocation.started" and not self._array:
            # Each stream of the job goes to the same stream here, at the same time.
            for stream, sink in (("out", sys.stdout.buffer), ("err", sys.stderr.buffer)):
                copy = threading.Thread(
                    target=self._follow, args=(allocation, stream, sink), daemon=True
                )
                copy.start()
                self._copies.append(copy)
        elif kind == "logyard.allocation.ended" and self._array:
            self._print(allocation)

    def close(self) -> None:
        """Wait until all that was written is printed."""
        for copy in self._copies:
            copy.join()

    def _follow(self, allocation: str, stream: str, sink: BinaryIO) -> None:
        query = {
            **_where(allocation),
            "stream": stream,
            "show.follow": True,
            "raw": True,
            "after": self._after,
        }
        try:
            with self._session.another() as client:
                for piece in client.chunks(self._path, query):
                    sink.write(piece)
                    sink.flush()
        except Trouble as trouble:
            output.say(f"output of {allocation}: {trouble.message}")

    def _print(self, allocation: str) -> None:
        where = _where(allocation)
        query = {**where, "raw": True, "after": self._after}
        reply = self._session.client.ask("GET", self._path, query)
        for line in reply.body.decode(errors="replace").splitlines():
            output.answer(f"{where['rank']}: {line}")


def _where(allocation: str) -> dict[str, str | int | bool | list[str] | None]:
    stage, rank = stage_and_rank(allocation)
    return {"name": stage, "rank": rank, "attempt": int(allocation.rpartition("#")[2])}


def _end(
    session: Session, told: dict[str, Any], progress: Progress, name: str, watched: bool
) -> int:
    well = progress.status == "finished"
    if session.json:
        output.answer_json({**told, **ending(progress), "exitCode": progress.code_of(name)})
    if watched or not well:
        outcome(session, progress, tail=watched)
    return OK if well else progress.code_of(name) or FAILED


def _label(command: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", os.path.basename(command).lower()).strip("-")
    return words[:63].strip("-") or "run"


def _array(text: str, concurrency: int | None) -> dict[str, int]:
    first, dash, last = text.partition("-")
    if not (first.isdigit() and (last.isdigit() or not dash)):
        raise Trouble(f"--array: {text!r} is no range; write for instance 1-100", USAGE)
    array = {"start": int(first), "end": int(last or first)}
    return {**array, "concurrency": concurrency} if concurrency else array


def _device(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not name or not number.isdigit():
        raise Trouble(f"--device: {text!r} is no NAME=N; write nvidia.com/gpu=1", USAGE)
    return name, int(number)


def _variable(text: str) -> str:
    if "=" in text:
        return text
    if text not in os.environ:
        raise Trouble(f"--env: {text} is not set here; write {text}=VALUE", USAGE)
    return f"{text}={os.environ[text]}"


def _volume(text: str) -> tuple[str, dict[str, Any]]:
    """`/path[,size=S]` ephemeral; `name:/path` and `provisioner/name:/path` persistent."""
    place, *settings = text.split(",")
    source, _, path = place.rpartition(":")
    volume: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if key != "size" or not equals:
            raise Trouble(f"--volume: {setting!r} is not known; there is size=10GiB", USAGE)
        volume["size"] = value
    if not path.startswith("/"):
        raise Trouble(
            f"--volume: {text!r} has no absolute path; write /data,size=10GiB or name:/data", USAGE
        )
    provisioner, slash, name = source.rpartition("/")
    if source:
        volume["name"] = name
    if slash:
        volume["use"] = provisioner
    return path, volume
