"""What a node has and what a request asks for."""

from typing import Literal

import msgspec

MULTINODE = "multinode"
"""The feature that nodes must announce for jobs on several nodes at once."""

Exclusive = Literal["none", "job", "workflow"]


class Capacity(msgspec.Struct, frozen=True, omit_defaults=True):
    """Resources of a node, or of one chunk of a request.

    `cores` are whole cores, `memory` is bytes, `devices` maps a device name such as
    ``nvidia.com/gpu`` to a count.
    """

    cores: int
    memory: int
    devices: dict[str, int] = {}


class Request(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What an allocation looks like to the scheduler. Equal requests share one shape.

    `devices` and `annotations` are sorted pairs, so that equal requests are equal values. A node is
    eligible when it has every annotation with the equal value, every device, every feature
    (``mounts``, ...), and, where `storage` is not empty, that storage. `bounded` tells whether
    there is a time limit. `nodes` is how many equal chunks of the rest it asks for.
    """

    cores: int
    memory: int = 0
    devices: tuple[tuple[str, int], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    features: tuple[str, ...] = ()
    storage: str = ""
    exclusive: Exclusive = "none"
    nodes: int = 1
    preemptible: bool = False
    bounded: bool = True


def asks_nothing(request: Request) -> bool:
    """Staging asks for no resources: it fits wherever it may run, at any time, and disturbs nobody,
    not even who has a node for himself.
    """
    return not (request.cores or request.memory or request.devices) and request.exclusive == "none"
