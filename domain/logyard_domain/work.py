"""What a node is told to do: the messages from the engine to a substrate.

The stream to a node is level-based: it opens with `Sync`, which names everything that the node
should be running, and goes on with changes. A node that connects again gets a new `Sync`; whatever
the node
runs that is not in it is stopped and forgotten, and whatever it already runs or has ended is not
started
again. Equal work of many ranks is sent once as a `Task` and named by its `task` key.
"""

from typing import Literal

import msgspec


class Task(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="task"):
    """What every rank of one stage does.

    `task` is ``WORKFLOW/STAGE``. `kind` says what the work is:

    - ``job``: run `argv`, or `script` with `argv` as its arguments;
    - ``volume``: create the ephemeral volume `volume`;
    - ``ingress``: write `content` to `path` in `volume`;
    - ``egress``: copy `path` of `volume` to `result` in the results of the workflow.

    `files` are injected (container path to text), `mounts` map a container path to a volume's key.
    `cpus` and `memory` (bytes, 0 = no limit) are limits; `limit_ms` the longest run, `grace_ms`
    between SIGTERM and SIGKILL. `array` tells that ``FB_TASK_ID`` is to be set.
    """

    task: str
    workflow: str
    stage: str
    kind: Literal["job", "volume", "ingress", "egress"]
    argv: tuple[str, ...] = ()
    script: str = ""
    env: tuple[str, ...] = ()
    cwd: str = ""
    files: dict[str, str] = {}
    mounts: dict[str, str] = {}
    volume: str = ""
    path: str = ""
    content: str = ""
    result: str = ""
    cores: int = 1
    memory: int = 0
    devices: dict[str, int] = {}
    affinity: str = "CORE"
    limit_ms: int = 0
    grace_ms: int = 30_000
    array: bool = False


class Start(msgspec.Struct, frozen=True, tag="start", omit_defaults=True, gc=False):
    """Start this allocation of a task that was sent before it on the same stream.

    With `behind`: as soon as that one has ended, with what it held.
    """

    allocation: str
    task: str
    rank: int
    behind: str = ""


class Stop(msgspec.Struct, frozen=True, tag="stop", omit_defaults=True, gc=False):
    """End this allocation: SIGTERM to its group, after `grace_ms` SIGKILL. Its end is reported as
    `outcome`.
    """

    allocation: str
    grace_ms: int
    outcome: Literal["canceled", "timeout", "preempted", "lost"] = "canceled"


class DropVolumes(msgspec.Struct, frozen=True, tag="drop_volumes", gc=False):
    """Remove every ephemeral volume of this workflow, and report it."""

    workflow: str


class Sync(msgspec.Struct, frozen=True, tag="sync"):
    """Everything that the node should be running now, and nothing else."""

    tasks: tuple[Task, ...] = ()
    starts: tuple[Start, ...] = ()
    stops: tuple[Stop, ...] = ()
    drops: tuple[DropVolumes, ...] = ()


Order = Sync | Task | Start | Stop | DropVolumes
"""One message of the stream to a node, as a tagged JSON object a line."""
