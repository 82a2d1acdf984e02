"""Hold a log against the lifecycles of the domain."""

from collections.abc import Sequence

from logyard_domain.codec import tag_of
from logyard_domain.identifiers import allocation_parts
from logyard_domain.lifecycles import ALLOCATION, ATTEMPT, BEGIN, NODE, STAGE, WORKFLOW, Lifecycle
from logyard_domain.records import Record


def follow_lives(records: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The last state of everything, by lifecycle and name.

    Raises ValueError at the first event that may not happen where it does.
    """
    states: dict[tuple[str, str], str] = {}

    def step(lifecycle: Lifecycle, name: str, tag: str, begin: str = BEGIN) -> None:
        key = (lifecycle.name, name)
        states[key] = lifecycle.after(states.get(key, begin), tag)

    for record in records:
        event, tag = record.event, tag_of(record.event)
        noun = tag.partition(".")[0]
        workflow, stage = getattr(event, "workflow", ""), getattr(event, "stage", "")
        if noun == "workflow":
            step(WORKFLOW, workflow, tag)
        elif noun == "stage":
            # The submission brings every stage into being.
            step(STAGE, f"{workflow}/{stage}", tag, "waiting")
        elif noun == "node":
            step(NODE, getattr(event, "node", ""), tag)
        elif noun == "allocation":
            name = getattr(event, "allocation", "")
            id, stage, rank, _ = allocation_parts(name)
            step(ALLOCATION, f"{id}/{stage}/{rank}", tag, "ready")
            if tag not in ("allocation.requeued", "allocation.ready"):
                step(ATTEMPT, name, tag)
    return states
