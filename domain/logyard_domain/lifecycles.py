"""The lives of workflows, stages, allocations, attempts and nodes, as tables of transitions.

`evolve` carries them out; these tables say what may follow on what. Tests hold every log against
them, and `docs/lifecycles.md` is drawn from them.
"""

from collections.abc import Mapping

import msgspec

BEGIN = "[*]"
"""The state of what is not there yet; in diagrams also that of what has ended."""


class Transition(msgspec.Struct, frozen=True):
    """In state `source`, the event with tag `event` leads to `target`."""

    source: str
    event: str
    target: str


class Lifecycle(msgspec.Struct, frozen=True):
    """All transitions of one kind of thing. States without a way out are final."""

    name: str
    transitions: tuple[Transition, ...]

    @property
    def final(self) -> frozenset[str]:
        """States that nothing leads out of."""
        sources = {t.source for t in self.transitions}
        return frozenset(t.target for t in self.transitions if t.target not in sources)

    def after(self, state: str, event: str) -> str:
        """The state that the event leads to.

        Raises ValueError when it may not happen in this state.
        """
        for transition in self.transitions:
            if transition.source == state and transition.event == event:
                return transition.target
        raise ValueError(f"{self.name}: {event} cannot happen in state {state}")


def _lifecycle(name: str, table: Mapping[tuple[str, str], str]) -> Lifecycle:
    return Lifecycle(name, tuple(Transition(*key, target) for key, target in table.items()))


WORKFLOW = _lifecycle(
    "workflow",
    {
        (BEGIN, "workflow.submitted"): "pending",
        ("pending", "workflow.started"): "started",
        ("pending", "workflow.stopping"): "stopping",
        ("pending", "workflow.failed"): "failed",
        ("started", "workflow.stopping"): "stopping",
        ("started", "workflow.finished"): "finished",
        ("started", "workflow.failed"): "failed",
        ("stopping", "workflow.canceled"): "canceled",
    },
)
"""A workflow fails from `pending` when no stage of it could even begin."""

STAGE = _lifecycle(
    "stage",
    {
        (BEGIN, "workflow.submitted"): "waiting",
        ("waiting", "stage.ready"): "ready",
        ("waiting", "stage.canceled"): "canceled",
        ("ready", "stage.started"): "started",
        ("ready", "stage.failed"): "failed",
        ("ready", "stage.canceled"): "canceled",
        ("started", "stage.finished"): "finished",
        ("started", "stage.failed"): "failed",
        ("started", "stage.canceled"): "canceled",
    },
)

ALLOCATION = _lifecycle(
    "allocation",
    {
        (BEGIN, "stage.ready"): "ready",
        ("ready", "allocation.placed"): "placed",
        ("ready", "stage.failed"): "canceled",
        ("ready", "stage.canceled"): "canceled",
        ("placed", "allocation.seated"): "placed",
        ("placed", "allocation.started"): "running",
        ("placed", "allocation.stopping"): "stopping",
        ("placed", "allocation.ended"): "ended",
        ("running", "allocation.stopping"): "stopping",
        ("running", "allocation.ended"): "ended",
        ("stopping", "allocation.started"): "stopping",
        ("stopping", "allocation.ended"): "ended",
        ("ended", "allocation.requeued"): "backing off",
        ("backing off", "allocation.ready"): "ready",
        ("backing off", "allocation.placed"): "placed",
        ("backing off", "stage.failed"): "canceled",
        ("backing off", "stage.canceled"): "canceled",
    },
)

# An allocation is one rank of a stage through all its attempts; it is over when its last attempt
# has ended and none follows.
ATTEMPT = _lifecycle(
    "attempt",
    {
        (BEGIN, "allocation.placed"): "placed",
        ("placed", "allocation.seated"): "placed",
        ("placed", "allocation.started"): "started",
        ("placed", "allocation.stopping"): "stopping",
        ("placed", "allocation.ended"): "ended",
        ("started", "allocation.stopping"): "stopping",
        ("started", "allocation.ended"): "ended",
        ("stopping", "allocation.started"): "stopping",
        ("stopping", "allocation.ended"): "ended",
    },
)

NODE = _lifecycle(
    "node",
    {
        (BEGIN, "node.registered"): "up",
        ("up", "node.registered"): "up",
        ("up", "node.cordoned"): "cordoned",
        ("up", "node.draining"): "draining",
        ("up", "node.lost"): "lost",
        ("up", "node.removed"): "removed",
        ("cordoned", "node.registered"): "cordoned",
        ("cordoned", "node.uncordoned"): "up",
        ("cordoned", "node.draining"): "draining",
        ("cordoned", "node.lost"): "lost",
        ("cordoned", "node.removed"): "removed",
        ("draining", "node.registered"): "draining",
        ("draining", "node.uncordoned"): "up",
        ("draining", "node.drained"): "drained",
        ("draining", "node.lost"): "lost",
        ("draining", "node.removed"): "removed",
        ("drained", "node.registered"): "drained",
        ("drained", "node.uncordoned"): "up",
        ("drained", "node.lost"): "lost",
        ("drained", "node.removed"): "removed",
        ("lost", "node.returned"): "up",
        ("lost", "node.removed"): "removed",
        ("removed", "node.registered"): "up",
    },
)

LIFECYCLES = (WORKFLOW, STAGE, ALLOCATION, ATTEMPT, NODE)


def diagram(lifecycle: Lifecycle) -> str:
    """The lifecycle as a Mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    for one in lifecycle.transitions:
        source, target = one.source.replace(" ", "_"), one.target.replace(" ", "_")
        lines.append(f"    {source} --> {target}: {one.event}")
    lines += [f"    {state} --> [*]" for state in sorted(lifecycle.final)]
    return "\n".join(lines)
