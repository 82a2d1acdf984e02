"""What a priority expression sees of an allocation, and what it gives."""

from collections.abc import Callable

from logyard_domain.expressions import Expression, Scalar, Value, Variable, compiled, finite
from logyard_domain.resources import Request
from logyard_domain.rules.entities import group_key, user_key
from logyard_domain.usage import decayed
from logyard_domain.world import Stage, World

GIB = 1 << 30
Asked = tuple[World, Stage, int]
"""The ranks of a stage that has a shape, and the instant (ms) at which they are asked about."""


def variables_for(world: World, stage: Stage, now: int) -> dict[str, Scalar]:
    """The variables of an expression, for the ranks of a stage that has a shape, at `now` (ms).

    Age counts from submission, whether it waits or runs.
    """
    asked = (world, stage, now)
    values = {name: read(asked) for name, read in _OWNED.items()}
    return values | request_variables(world.shapes[stage.shape].request, stage.limit_ms)


def request_variables(request: Request, limit_ms: int) -> dict[str, Scalar]:
    """Those that the request and its time limit give; devices that it asks none of are left out."""
    return {
        **{name: read(request, limit_ms) for name, read in _REQUESTED.items()},
        **{f"request.devices[{device}]": float(count) for device, count in request.devices},
    }


def used(world: World, key: str, now: int) -> float:
    """Decayed core-hours of a group or user (see `group_key`, `user_key`)."""
    usage = world.usage.get(key)
    return decayed(usage, now, int(world.config["usage.halfLife"])) if usage else 0.0


def priority_of(world: World, formula: Expression, stage: Stage, now: int) -> float:
    """The priority of the ranks of a stage; -inf where the expression gives no finite number."""
    ranking = world.ranking
    if ranking is None or ranking[0] is not formula:
        ranking = world.ranking = (formula, compiled(formula, _reading))
    return finite(ranking[1]((world, stage, now)))


def _reading(variable: Variable) -> Value[Asked]:
    """How a variable is read of the world."""
    name = variable.name
    if variable.key:
        device = variable.key
        return lambda asked: float(dict(_request(asked).devices).get(device, 0))
    if name in _OWNED:
        return _OWNED[name]
    read = _REQUESTED[name]
    return lambda asked: read(_request(asked), asked[1].limit_ms)


def _request(asked: Asked) -> Request:
    return asked[0].shapes[asked[1].shape].request


def _organization(asked: Asked) -> Scalar:
    return float(asked[0].organizations.get(asked[1].workflow.organization, 0))


def _group(asked: Asked) -> Scalar:
    workflow = asked[1].workflow
    group = asked[0].groups.get((workflow.organization, workflow.group))
    return float(group.priority if group else 0)


def _user(asked: Asked) -> Scalar:
    return float(asked[0].users.get(asked[1].workflow.user, 0))


def _age_s(asked: Asked) -> float:
    return (asked[2] - asked[1].workflow.submitted_at) / 1000


_OWNED: dict[str, Value[Asked]] = {
    "organization.priority": _organization,
    "group.priority": _group,
    "user.priority": _user,
    "workflow.priority": lambda asked: float(asked[1].workflow.priority),
    "queue.age_seconds": _age_s,
    "queue.age_hours": lambda asked: _age_s(asked) / 3600,
    "usage.group": lambda asked: used(asked[0], group_key(asked[1].workflow), asked[2]),
    "usage.user": lambda asked: used(asked[0], user_key(asked[1].workflow), asked[2]),
    "organization.name": lambda asked: asked[1].workflow.organization,
    "group.name": lambda asked: asked[1].workflow.group,
    "user.name": lambda asked: asked[1].workflow.user,
}
_REQUESTED: dict[str, Callable[[Request, int], Scalar]] = {
    "request.nodes": lambda request, _: float(request.nodes),
    "request.cores": lambda request, _: float(request.cores),
    "request.memory_gib": lambda request, _: request.memory / GIB,
    "request.limit_seconds": lambda _, limit_ms: limit_ms / 1000,
    "request.preemptible": lambda request, _: request.preemptible,
}
