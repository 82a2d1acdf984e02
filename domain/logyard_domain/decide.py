"""`decide(world, command, now)`: what a command leads to. It may refuse, and it changes nothing."""

from typing import assert_never

from logyard_domain.commands import (
    AnyCommand,
    CordonNode,
    DeclareLost,
    DeleteGroup,
    DrainNode,
    PreemptAllocation,
    RegisterNode,
    RemoveNode,
    Report,
    SetConfig,
    StartServer,
    StopServer,
    StopWorkflow,
    SubmitWorkflow,
    UncordonNode,
    UpdateGroup,
    UpdateOrganization,
    UpdateUser,
)
from logyard_domain.events import AnyEvent
from logyard_domain.rules import allocations, cluster, entities, fleet, workflows
from logyard_domain.world import World


def decide(world: World, command: AnyCommand, now: int) -> list[AnyEvent]:
    """The events that the command leads to at instant `now` (ms); none for what is already so.

    Raises Refused where the world does not allow it.
    """
    match command:
        case Report():
            return allocations.report(world, command, now)
        case SubmitWorkflow():
            return workflows.submit_workflow(world, command)
        case StopWorkflow():
            return workflows.stop_workflow(world, command)
        case RegisterNode():
            return fleet.register_node(world, command, now)
        case CordonNode():
            return fleet.cordon_node(world, command)
        case UncordonNode():
            return fleet.uncordon_node(world, command)
        case DrainNode():
            return fleet.drain_node(world, command)
        case RemoveNode():
            return fleet.remove_node(world, command)
        case DeclareLost():
            return fleet.declare_lost(world, command, now)
        case StartServer():
            return cluster.start_server(world, command)
        case StopServer():
            return cluster.stop_server(world, command)
        case SetConfig():
            return cluster.set_config(world, command, now)
        case PreemptAllocation():
            return allocations.preempt(world, command, now)
        case UpdateOrganization():
            return entities.update_organization(world, command)
        case UpdateGroup():
            return entities.update_group(world, command)
        case DeleteGroup():
            return entities.delete_group(world, command)
        case UpdateUser():
            return entities.update_user(world, command)
        case _:
            assert_never(command)
