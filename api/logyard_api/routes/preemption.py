"""Evicting by name."""

from logyard_api.bodies import Answer, Body, Reply
from logyard_api.operations import Routes
from logyard_api.yard import Yard
from logyard_domain.commands import PreemptAllocation

routes = Routes("queue")


class PreemptBody(Body, frozen=True):
    """Whom to evict.

    allocationId: of an allocation that runs, such as wf-3f8mk2qa7c/render/17#1
    """

    allocation_id: str


class Preempted(Reply, frozen=True):
    """What is being evicted.

    id: of the allocation
    position: of the log, at which it is told to end
    """

    id: str
    position: int


@routes.add("POST", "/v4/scheduler/allocations:preempt")
async def preempt_allocation(yard: Yard, body: PreemptBody) -> Answer[Preempted]:
    """Evict a running allocation, whether or not it is preemptible. It is queued again."""
    receipt = await yard.ask(
        PreemptAllocation(allocation=body.allocation_id), f"preempt {body.allocation_id}"
    )
    return Answer(Preempted(id=body.allocation_id, position=receipt.position), receipt.position)
