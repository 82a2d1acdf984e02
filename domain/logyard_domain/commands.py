"""Everything that can be asked of the engine, in the imperative."""

import msgspec

from logyard_domain.definition import Workflow as Definition
from logyard_domain.events import Outcome
from logyard_domain.resources import Capacity


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """Base of all commands."""


class StartServer(Command, frozen=True, kw_only=True, tag="server.start"):
    version: str


class StopServer(Command, frozen=True, kw_only=True, tag="server.stop"):
    pass


class SetConfig(Command, frozen=True, kw_only=True, tag="config.set"):
    """The configuration that decisions shall use from now on (see `configuration`)."""

    values: dict[str, int | float | bool | str]


class SubmitWorkflow(Command, frozen=True, kw_only=True, tag="workflow.submit"):
    """Start a workflow. The same `key` again (per user) gives the same workflow and no event."""

    key: str
    name: str
    definition: Definition
    source: str = ""
    organization: str = "default"
    group: str = "default"
    user: str
    priority: int = 0
    preemptible: bool = False


class StopWorkflow(Command, frozen=True, kw_only=True, tag="workflow.stop"):
    workflow: str
    reason: str = ""


class RegisterNode(Command, frozen=True, kw_only=True, tag="node.register"):
    """See `NodeRegistered`."""

    node: str
    capacity: Capacity
    incarnation: str
    annotations: dict[str, str] = {}
    storage: str = ""
    features: tuple[str, ...] = ()
    limits: str = ""
    host: str = ""
    version: str = ""


class CordonNode(Command, frozen=True, kw_only=True, tag="node.cordon"):
    node: str
    reason: str = ""


class UncordonNode(Command, frozen=True, kw_only=True, tag="node.uncordon"):
    node: str


class DrainNode(Command, frozen=True, kw_only=True, tag="node.drain"):
    node: str
    reason: str = ""
    evict: bool = False


class RemoveNode(Command, frozen=True, kw_only=True, tag="node.remove"):
    """Forget a node that is lost, or that is empty."""

    node: str


class DeclareLost(Command, frozen=True, kw_only=True, tag="node.declare_lost"):
    """The engine has not heard from the node for `silent_ms`."""

    node: str
    silent_ms: int


class Began(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A node says: this allocation's first process runs."""

    allocation: str
    started_at: int = 0


class Ended(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A node says: this allocation is over. Fields as in `AllocationEnded`."""

    allocation: str
    outcome: Outcome
    exit_code: int | None = None
    signal: int | None = None
    run_ms: int = 0
    cpu_ms: int = 0
    peak_bytes: int = 0
    error: str = ""
    started_at: int = 0


class Report(Command, frozen=True, kw_only=True, tag="node.report"):
    """What happened on a node since its last report. May be sent twice; old attempts change
    nothing.

    An `Ended` whose start was never reported implies it (with `started_at`, where not 0).
    """

    node: str
    began: tuple[Began, ...] = ()
    ended: tuple[Ended, ...] = ()
    volumes_removed: tuple[str, ...] = ()


AnyCommand = (
    StartServer
    | StopServer
    | SetConfig
    | SubmitWorkflow
    | StopWorkflow
    | RegisterNode
    | CordonNode
    | UncordonNode
    | DrainNode
    | RemoveNode
    | DeclareLost
    | Report
)


class Refused(Exception):
    """A command that the present world does not allow. The message says what would be right.

    `kind` is ``invalid`` (the request is wrong whatever the state), ``missing`` (what it names
    does not exist) or ``conflict`` (the present state forbids it).
    """

    def __init__(self, message: str, kind: str = "conflict") -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
