"""Every kind of event as one sentence for people, with the thing that it is about before it.

Each sentence is made of the event's own fields and says nothing that is not in them.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from logyard_api.cli.units import count, instant, many, memory, span

Data = Mapping[str, Any]


class Told(NamedTuple):
    """Whom an event is about, within its workflow where it has one, and what it says."""

    about: str
    sentence: str


def told(event: Mapping[str, Any]) -> Told:
    """A CloudEvent in words. A type that this release does not know is named as it is."""
    tag = str(event["type"]).removeprefix("logyard.")
    data: Data = event.get("data", {})
    words = SENTENCES.get(tag)
    sentence = words(data) if words else f"{tag} (not known to this release of the command)"
    return Told(_about(tag, data, str(event.get("subject", ""))), sentence)


def workflow_of(event: Mapping[str, Any]) -> str:
    """The workflow that an event belongs to; empty where it belongs to none."""
    data: Data = event.get("data", {})
    return str(data.get("workflow") or str(data.get("allocation", "")).partition("/")[0])


def rank_of(allocation: str) -> str:
    """Stage, rank and attempt as people say them: `assemble`, `render 17, attempt 2`."""
    _, _, rest = allocation.partition("/")
    stage, _, tail = rest.rpartition("/")
    rank, _, attempt = tail.partition("#")
    name = stage if rank == "0" else f"{stage} {rank}"
    return name if attempt in {"", "1"} else f"{name}, attempt {attempt}"


def hold(value: Mapping[str, Any]) -> str:
    """The reason for which a shape waits."""
    kind = str(value.get("type", ""))
    match kind:
        case "no_nodes":
            return "no node is up"
        case "never_fits":
            return f"never: {_misfits(value.get('misfits', []))}"
        case "nodes_busy":
            return "no node has enough free"
        case "nodes_closed":
            return "the nodes that could hold it are cordoned, draining or lost"
        case "behind_higher":
            return f"the nodes are kept for shape {value.get('shape')}, of higher priority"
        case _:
            return kind


def _misfits(causes: list[str]) -> str:
    return f"no node offers {', '.join(causes)}" if causes else "no node could hold it"


def _about(tag: str, data: Data, subject: str) -> str:
    if "allocation" in data:
        return rank_of(str(data["allocation"]))
    if "stage" in data and not tag.startswith("workflow."):
        return str(data["stage"])
    if "workflow" in data:
        return "workflow"
    if "node" in data:
        return f"node {data['node']}"
    if "shape" in data:
        return f"shape {data['shape']}"
    return "cluster" if not subject else subject


def _because(data: Data, key: str = "reason") -> str:
    return f": {data[key]}" if data.get(key) else ""


def _submitted(data: Data) -> str:
    group = data.get("group", "default")
    text = f"{data.get('name', '')} started by {data.get('user', '?')} (group {group})"
    priority = data.get("priority", 0)
    text += f", priority {priority}" if priority else ""
    return text + (", preemptible" if data.get("preemptible") else "")


def _registered(data: Data) -> str:
    has: Data = data.get("capacity", {})
    parts = [many(int(has.get("cores", 0)), "core"), memory(int(has.get("memory", 0)))]
    parts += [f"{number} {name}" for name, number in dict(has.get("devices", {})).items()]
    return f"registered with {', '.join(parts)}"


def _ended(data: Data) -> str:
    outcome = str(data.get("outcome", "?"))
    parts: list[str] = []
    if data.get("signal") is not None:
        parts.append(f"signal {data['signal']}")
    elif data.get("exit_code") is not None and (outcome != "finished" or data["exit_code"]):
        parts.append(f"exit code {data['exit_code']}")
    if data.get("run_ms"):
        parts.append(f"ran {span(data['run_ms'])}")
    if data.get("peak_bytes"):
        parts.append(f"peak {memory(data['peak_bytes'])}")
    text = f"{outcome} ({', '.join(parts)})" if parts else outcome
    return text + _because(data, "error")


def _behind(data: Data) -> str:
    return f" behind {data['behind'].partition('/')[2]}" if data.get("behind") else ""


def _requeued(data: Data) -> str:
    why = {
        "retry": "tried again",
        "lost": "queued again after its node was lost",
        "preempted": "queued again after it was preempted",
        "drained": "queued again, because its node is drained",
    }.get(str(data.get("reason")), f"queued again ({data.get('reason')})")
    return why


def _request(data: Data) -> str:
    wants: Data = data.get("request", {})
    return f"declared: {request(wants)}"


def request(wants: Data) -> str:
    """What a request asks for: `8 cpu, 60GiB, 1 nvidia.com/gpu`."""
    parts = [f"{wants.get('cores', 0)} cpu"]
    if wants.get("memory"):
        parts.append(memory(int(wants["memory"])))
    parts += [f"{number} {name}" for name, number in dict(wants.get("devices", {})).items()]
    text = ", ".join(parts)
    nodes = int(wants.get("nodes", 1))
    text = f"{nodes} x ({text})" if nodes > 1 else text
    return text + (", alone on its node" if wants.get("exclusive", "none") != "none" else "")


def _settings(data: Data) -> str:
    return f"configuration r{data.get('revision')}: {many(len(data.get('values', {})), 'setting')}"


def _closing(verb: str) -> Callable[[Data], str]:
    return lambda data: verb + _because(data)


def _failed(data: Data) -> str:
    return f"failed: {data.get('error', '')}".removesuffix(": ")


SENTENCES: dict[str, Callable[[Data], str]] = {
    "server.started": lambda data: (
        f"server {data.get('version', '')} took the log, term {data.get('term')}"
    ),
    "server.stopped": lambda data: f"server stopped in good order, term {data.get('term')}",
    "config.set": _settings,
    "node.registered": _registered,
    "node.cordoned": _closing("cordoned"),
    "node.uncordoned": lambda _: "open for work again",
    "node.draining": lambda data: (
        ("draining, what runs is evicted" if data.get("evict") else "draining") + _because(data)
    ),
    "node.drained": lambda _: "drained: nothing runs there any more",
    "node.lost": lambda data: f"lost: silent for {span(data.get('silent_ms', 0))}",
    "node.returned": lambda _: "heard again",
    "node.removed": lambda _: "removed from the cluster",
    "workflow.submitted": _submitted,
    "workflow.started": lambda _: "its first stage began",
    "workflow.stopping": _closing("is being stopped"),
    "workflow.finished": lambda _: "finished",
    "workflow.failed": lambda data: (
        f"failed at {data.get('stage')}: {data.get('error', '')}".removesuffix(": ")
    ),
    "workflow.canceled": lambda _: "canceled",
    "volumes.removed": lambda _: "its ephemeral volumes are removed",
    "stage.ready": lambda data: f"queued as shape {data.get('shape')}",
    "stage.started": lambda _: "began",
    "stage.finished": lambda _: "finished",
    "stage.failed": _failed,
    "stage.canceled": _closing("canceled"),
    "shape.declared": _request,
    "shape.held": lambda data: f"waits: {hold(data.get('hold', {}))}",
    "shape.released": lambda _: "waits for nothing any more",
    "allocation.placed": lambda data: f"placed on {data.get('node')}{_behind(data)}",
    "allocation.started": lambda _: "runs",
    "allocation.stopping": lambda data: f"is being ended ({data.get('reason')})",
    "allocation.ended": _ended,
    "allocation.requeued": _requeued,
    "allocation.ready": lambda _: "queues again after its back-off",
}
"""By tag: the event's fields to a sentence."""


def line(event: Mapping[str, Any], workflows: bool) -> str:
    """An event as one line: time, position, whom it is about, what it says.

    `workflows` puts the workflow before what it is about, for streams of more than one.
    """
    about, sentence = told(event)
    owner = workflow_of(event)
    if workflows and owner:
        about = owner if about == "workflow" else f"{owner} {about}"
    at = instant(str(event["time"])).astimezone().time().isoformat("milliseconds")
    position = count(int(event["logyardposition"]))
    return f"{at}  {position:>7}  {about:<{28 if workflows else 12}}  {sentence}"
