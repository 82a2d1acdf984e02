"""What an explanation says: one structure for command line, API and programs."""

import msgspec

from logyard_domain.resources import Request
from logyard_projections.answers.evictions import Evicted, Protected
from logyard_projections.answers.forecasts import Forecast
from logyard_projections.answers.history import Stretch
from logyard_projections.answers.pool import Holder, NodeCount, Others, Quantity
from logyard_projections.answers.ranking import Term
from logyard_projections.answers.reasons import Kind
from logyard_projections.answers.waits import Waited


class BlockingJob(msgspec.Struct, frozen=True, rename="camel"):
    """An allocation that has to end first, on the wire."""

    allocation_id: str
    workflow_id: str
    est_finish: str | None


class Blocker(msgspec.Struct, frozen=True, rename="camel"):
    """One reason, in the order of rank: the first is the one that counts."""

    kind: Kind
    text: str
    positions: tuple[int, ...]


class Here(msgspec.Struct, frozen=True, rename="camel"):
    """Why it is where it is: placed on `nodes` (with how many chunks) as `kind`.

    `behind` is whose room it takes over, `before` whom it was placed in front of without delaying
    it, `evicts` who made room for it, until `seated`.
    """

    node_id: str
    nodes: dict[str, int]
    kind: str
    behind: str
    before: str
    evicts: tuple[str, ...]
    seated: str | None
    revision: int
    text: str
    positions: tuple[int, ...]


class Line(msgspec.Struct, frozen=True, rename="camel"):
    """A line for people, and the positions that it rests on. Instants in it are in UTC."""

    label: str
    text: str
    positions: tuple[int, ...]


class Explanation(msgspec.Struct, frozen=True, rename="camel"):
    """Fields up to `blocking_jobs` as on the wire; ours after them, as of `position` and `at`.

    `kind` classifies, `summary` answers in one sentence, `blockers` are all reasons ranked.

    It asks for `chunks` of what `wants` says, of which `free_now` fit now. `pool` counts the nodes
    by cause (sums to `pool_nodes`), `needs` compares with the nearest node, `holders` are in the
    way (`held_by` in all; `others` may not be named).

    `forecast` is what it was promised, `head` what the one before it was. `terms`, added from the
    first to the last, give `priority` (absent where the expression gives no finite number), by
    `formula`, in force since `policy_position` as revision `policy_revision`.

    `waited` sums to `waited_ms`, and so does `history`, which tells the same in order. `here` says
    why it is where it is, `evicted` for whom it had to leave, `spared` why it has not,
    `protected` what keeps it from evicting others.
    """

    allocation_id: str
    workflow_id: str
    reason: str
    detail: str
    waiting_dependency_names: tuple[str, ...]
    blocking_head_allocation_id: str
    head_est_start: str | None
    provisioner_transaction_id: str
    nearest_node_id: str
    head_shape: Request | None
    blocking_jobs: tuple[BlockingJob, ...]
    position: int
    at: str | None
    subject: str
    kind: Kind
    summary: str
    blockers: tuple[Blocker, ...]
    wants: str
    chunks: int
    free_now: int
    needs: tuple[Quantity, ...]
    pool: tuple[NodeCount, ...]
    pool_nodes: int
    could_hold: int
    holders: tuple[Holder, ...]
    held_by: int
    others: Others | None
    forecast: Forecast | None
    head: Forecast | None
    priority: float | None
    terms: tuple[Term, ...]
    formula: str
    policy_revision: int
    policy_position: int
    waited: tuple[Waited, ...]
    waited_ms: int
    history: tuple[Stretch, ...]
    here: Here | None
    evicted: Evicted | None
    spared: str
    protected: tuple[Protected, ...]
    lines: tuple[Line, ...]
