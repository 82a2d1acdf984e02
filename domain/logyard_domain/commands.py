"""Everything that can be asked of the engine, in the imperative."""

import msgspec

from logyard_domain.definition import Workflow as Definition
from logyard_domain.events import Outcome
from logyard_domain.expressions import Expression
from logyard_domain.resources import Capacity


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """Base of all commands."""


class StartServer(Command, frozen=True, kw_only=True, tag="server.start"):
    version: str


class StopServer(Command, frozen=True, kw_only=True, tag="server.stop"):
    pass


class SetConfig(Command, frozen=True, kw_only=True, tag="config.set"):
    """The configuration that decisions shall use from now on (see `configuration`).

    `formulas` has the meaning of each setting that is an expression.
    """

    values: dict[str, int | float | bool | str]
    formulas: dict[str, Expression] = {}


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


class PreemptAllocation(Command, frozen=True, kw_only=True, tag="allocation.preempt"):
    """Evict a running allocation; it is requeued. For administrators: no rule of preemption is
    asked, except that it runs.
    """

    allocation: str


class UpdateOrganization(Command, frozen=True, kw_only=True, tag="organization.update"):
    """Make an organization known, or change its priority."""

    organization: str
    priority: int | None = None


class UpdateGroup(Command, frozen=True, kw_only=True, tag="group.update"):
    """Make a group known, or change its priority and which groups it may preempt."""

    organization: str = "default"
    group: str
    priority: int | None = None
    preempt: tuple[str, ...] = ()
    no_preempt: tuple[str, ...] = ()


class DeleteGroup(Command, frozen=True, kw_only=True, tag="group.delete"):
    """Forget a group of which no workflow is alive."""

    organization: str = "default"
    group: str


class UpdateUser(Command, frozen=True, kw_only=True, tag="user.update"):
    """Make a user known, or change their priority."""

    user: str
    priority: int | None = None


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
    | PreemptAllocation
    | UpdateOrganization
    | UpdateGroup
    | DeleteGroup
    | UpdateUser
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
