"""Jobs of a trace as workflows, and nodes as registrations: what the engine is given."""

from collections.abc import Sequence

from logyard_domain.commands import RegisterNode, SubmitWorkflow
from logyard_domain.definition import Cpu, Job, Memory, Multinode, Policy, Resource, Workflow
from logyard_domain.resources import MULTINODE, Capacity
from logyard_engine.simulation.traces.trace import TraceJob, TraceNode

STAGE = "job"
"""The one stage of each workflow."""
AMPLE_BYTES = 1 << 50
"""Memory of a node of which nobody says how much it has: never what is short."""


class Definitions:
    """The definitions of jobs; equal ones are one object."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Workflow] = {}

    def of(self, job: TraceJob) -> Workflow:
        """A workflow of one job that asks for what the trace's job asked for."""
        key = (
            job.chunks, job.cores, job.memory, job.devices, job.annotations, job.estimate_s,
            job.preemptible, job.exclusive,
        )  # fmt: skip
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _definition(job)
        return found


def submission(job: TraceJob, number: int, definitions: Definitions) -> SubmitWorkflow:
    """The command that hands in the trace's job; `number` is its place in the trace."""
    return SubmitWorkflow(
        key=str(number),
        name=job.id,
        definition=definitions.of(job),
        group=job.group,
        user=job.user,
    )


def registration(node: TraceNode) -> RegisterNode:
    """The command by which a simulated node joins: it can do everything."""
    return RegisterNode(
        node=node.name,
        capacity=node.capacity,
        incarnation=f"{node.name}.1",
        annotations=node.annotations,
        storage="shared",
        features=("mounts", MULTINODE),
        limits="simulated",
    )


def uniform(nodes: int, cores: int, memory: int = AMPLE_BYTES) -> tuple[TraceNode, ...]:
    """So many equal nodes, numbered from 1 in names of equal length."""
    width = len(str(nodes))
    return tuple(
        TraceNode(f"n{number:0{width}}", Capacity(cores=cores, memory=memory))
        for number in range(1, nodes + 1)
    )


def some(nodes: Sequence[TraceNode], count: int) -> tuple[TraceNode, ...]:
    """So many of the nodes, evenly picked, so that every kind keeps its share."""
    return tuple(nodes[number * len(nodes) // count] for number in range(count))


def _definition(job: TraceJob) -> Workflow:
    multinode = None
    if job.chunks > 1:
        multinode = Multinode(nodes=job.chunks, implementation="generic")
    return Workflow(
        jobs={
            STAGE: Job(
                command=("true",),
                policy=Policy(timeout_ms=job.estimate_s * 1000),
                resource=Resource(
                    cpu=Cpu(cores=job.cores),
                    memory=Memory(size_bytes=job.memory) if job.memory else None,
                    devices=dict(job.devices),
                    annotations=dict(job.annotations),
                    exclusive=True if job.exclusive else None,
                ),
                multinode=multinode,
                preemptible=True if job.preemptible else None,
            )
        }
    )
