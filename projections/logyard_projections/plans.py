"""The stages of a submitted workflow, planned once for equal definitions."""

from functools import lru_cache

import msgspec

from logyard_domain.definition import Workflow as Definition
from logyard_domain.definition import resolved
from logyard_domain.events import WorkflowSubmitted
from logyard_domain.plan import StagePlan, plan


def stages_of(event: WorkflowSubmitted) -> tuple[StagePlan, ...]:
    """What the workflow runs as, in its order."""
    return planned(event.definition, event.preemptible)


def planned(definition: Definition, preemptible: bool) -> tuple[StagePlan, ...]:
    """The same, of a definition that was submitted as preemptible or not."""
    if preemptible:
        definition = msgspec.structs.replace(definition, preemptible=True)
    return _stages(msgspec.msgpack.encode(definition))


@lru_cache(maxsize=64)
def _stages(packed: bytes) -> tuple[StagePlan, ...]:
    return plan(resolved(msgspec.msgpack.decode(packed, type=Definition)))
