"""What a priority expression sees of an allocation, and what it gives."""

from logyard_domain.expressions import Expression, Scalar, priority
from logyard_domain.resources import Request
from logyard_domain.rules.entities import group_key, user_key
from logyard_domain.usage import decayed
from logyard_domain.world import Stage, World

GIB = 1 << 30


def variables_for(world: World, stage: Stage, now: int) -> dict[str, Scalar]:
    """The variables of an expression, for the ranks of a stage that has a shape, at `now` (ms).

    Age counts from submission, whether it waits or runs.
    """
    workflow = stage.workflow
    request = world.shapes[stage.shape].request
    group = world.groups.get((workflow.organization, workflow.group))
    age_s = (now - workflow.submitted_at) / 1000
    values: dict[str, Scalar] = {
        "organization.priority": float(world.organizations.get(workflow.organization, 0)),
        "group.priority": float(group.priority if group else 0),
        "user.priority": float(world.users.get(workflow.user, 0)),
        "workflow.priority": float(workflow.priority),
        "queue.age_seconds": age_s,
        "queue.age_hours": age_s / 3600,
        "usage.group": used(world, group_key(workflow), now),
        "usage.user": used(world, user_key(workflow), now),
        "organization.name": workflow.organization,
        "group.name": workflow.group,
        "user.name": workflow.user,
    }
    return values | request_variables(request, stage.limit_ms)


def request_variables(request: Request, limit_ms: int) -> dict[str, Scalar]:
    """Those that the request and its time limit give; devices that it asks none of are left out."""
    return {
        "request.nodes": float(request.nodes),
        "request.cores": float(request.cores),
        "request.memory_gib": request.memory / GIB,
        "request.limit_seconds": limit_ms / 1000,
        "request.preemptible": request.preemptible,
        **{f"request.devices[{device}]": float(count) for device, count in request.devices},
    }


def used(world: World, key: str, now: int) -> float:
    """Decayed core-hours of a group or user (see `group_key`, `user_key`)."""
    usage = world.usage.get(key)
    return decayed(usage, now, int(world.config["usage.halfLife"])) if usage else 0.0


def priority_of(world: World, formula: Expression, stage: Stage, now: int) -> float:
    """The priority of the ranks of a stage; -inf where the expression gives no finite number."""
    return priority(formula, variables_for(world, stage, now))
