"""Sentences and sizes for people."""

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from logyard_domain.holds import (
    BehindHigher,
    Hold,
    NeverFits,
    NodesBusy,
    NodesClosed,
    NoNodes,
    NotEvaluated,
)
from logyard_domain.quantities import format_size
from logyard_domain.resources import Request

_BINARY = ((1 << 60, "EiB"), (1 << 50, "PiB"), (1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"))


def size(number: int) -> str:
    """A number of bytes, exact where that is short, else to a tenth: ``60GiB``, ``1.5GiB``."""
    exact = format_size(number)
    if len(exact) <= 6:
        return exact
    for factor, unit in _BINARY:
        if number >= factor:
            return f"{number / factor:.1f}{unit}"
    return f"{number}B"


def device(name: str) -> str:
    """The short name of a device: ``gpu`` for ``nvidia.com/gpu``."""
    return name.rpartition("/")[2]


@lru_cache(maxsize=1024)
def wants(request: Request) -> str:
    """What one rank asks for: ``8 cpu, 60GiB, 1 gpu``, ``4 x (32 cpu, 120GiB)``."""
    parts = [f"{request.cores} cpu"] if request.cores else []
    if request.memory:
        parts.append(size(request.memory))
    parts += [f"{count} {device(name)}" for name, count in request.devices]
    parts += [f"{key}={value}" for key, value in request.annotations]
    if request.exclusive != "none":
        parts.append("a whole node")
    text = ", ".join(parts) or "no resources"
    return f"{request.nodes} x ({text})" if request.nodes > 1 else text


def number_of(count: int, noun: str) -> str:
    """``1 node``, ``12 nodes``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(names: Iterable[str], most: int = 4) -> str:
    """``a, b and 3 more``."""
    all_names = list(names)
    shown = ", ".join(all_names[:most])
    more = len(all_names) - most
    return f"{shown} and {more} more" if more > 0 else shown


def misfit(cause: str, request: Request) -> str:
    """What no node, or this node, has: ``no gpu``, ``less than 256 cpu``."""
    kind, _, rest = cause.partition(" ")
    counts = dict(request.devices)
    match kind:
        case "cores":
            return f"less than {request.cores} cpu"
        case "memory":
            return f"less than {size(request.memory)} of memory"
        case "device":
            return f"no {device(rest)}"
        case "devices":
            return f"less than {counts.get(rest, 0)} {device(rest)}"
        case "annotation":
            return f"not annotated {rest}"
        case "feature":
            return "cannot mount" if rest == "mounts" else f"has no {rest}"
        case "storage":
            return f"not on storage {request.storage}"
        case _:
            return cause


@lru_cache(maxsize=1024)
def held(hold: Hold, request: Request) -> str:
    """Why a shape waits, in a few words."""
    match hold:
        case NoNodes():
            return "the cluster has no node that is up"
        case NeverFits(misfits=misfits):
            return f"never: {_never(misfits, request)}"
        case NodesBusy():
            return f"no node has {wants(request)} free"
        case NodesClosed():
            return "every node that could hold it is closed"
        case BehindHigher():
            return "it would delay what is first in line for the same nodes"
        case NotEvaluated():
            return "not evaluated yet"


def _never(misfits: tuple[str, ...], request: Request) -> str:
    if request.nodes > 1:
        chunk = wants(msgspec.structs.replace(request, nodes=1))
        return f"there are too few nodes for {request.nodes} chunks of {chunk}"
    if len(misfits) != 1:
        causes = listed((misfit(cause, request) for cause in misfits), 3)
        return f"every node falls short ({causes})" if causes else "no node fits"
    kind, _, rest = misfits[0].partition(" ")
    match kind:
        case "cores":
            return f"no node has {request.cores} cpu"
        case "memory":
            return f"no node has {size(request.memory)} of memory"
        case "device":
            return f"no node has a {device(rest)}"
        case "devices":
            return f"no node has {dict(request.devices).get(rest, 0)} {device(rest)}"
        case "annotation":
            return f"no node is annotated {rest}"
        case "storage":
            return f"no node is on storage {request.storage}"
        case "feature" if rest == "mounts":
            return "no node can mount"
        case "feature":
            return f"no node has {rest}"
        case _:
            return "there is no node that is up"


def job_name(allocation: str) -> str:
    """A job by a name that can be asked about: ``wf-x/job``, ``wf-x/array/3``."""
    name = allocation.partition("#")[0]
    return name.removesuffix("/0")
