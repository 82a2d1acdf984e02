"""The writer and the configuration."""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from logyard_domain import configuration
from logyard_domain.commands import Refused, SetConfig, StartServer, StopServer
from logyard_domain.events import AnyEvent, ConfigSet, ServerStarted, ServerStopped
from logyard_domain.expressions import DEFAULT_PRIORITY, Expression, moving, rising
from logyard_domain.rules.priorities import priority_of
from logyard_domain.rules.queueing import relane
from logyard_domain.world import World

PRIORITY = "scheduler.priority"


def start_server(world: World, command: StartServer) -> list[AnyEvent]:
    """Each writer gets the next term."""
    return [ServerStarted(term=world.term + 1, version=command.version)]


def stop_server(world: World, _: StopServer) -> list[AnyEvent]:
    """The end of the present term."""
    return [ServerStopped(term=world.term)]


def set_config(world: World, command: SetConfig, now: int) -> list[AnyEvent]:
    """A new revision, unless nothing would change.

    A priority expression is tried on everything that waits: it must give each a finite number.
    """
    try:
        values = configuration.checked(command.values)
    except ValueError as trouble:
        raise Refused(str(trouble), "invalid") from None
    formulas = dict(command.formulas)
    if values[PRIORITY] == configuration.DEFAULTS[PRIORITY]:
        formulas.pop(PRIORITY, None)
    elif PRIORITY not in formulas:
        raise Refused(f"{PRIORITY}: the expression came without its meaning", "invalid")
    if values == world.config and formulas == world.formulas and world.revision:
        return []
    if formulas.get(PRIORITY, DEFAULT_PRIORITY) != world.priority:
        _tried(world, formulas.get(PRIORITY, DEFAULT_PRIORITY), now)
    return [ConfigSet(revision=world.revision + 1, values=values, formulas=formulas)]


def _tried(world: World, formula: Expression, now: int) -> None:
    for lane in list(world.lanes.values()):
        stage = lane.head()
        if stage is None:
            continue
        value = priority_of(world, formula, stage, now)
        if not isfinite(value):
            raise Refused(
                f"{PRIORITY}: it gives {stage.workflow.id}/{stage.plan.name}, which waits now, "
                f"no finite number; guard divisions, and log and sqrt of what can be 0, for "
                "instance with max(x, 1)",
                "invalid",
            )


def _server_started(world: World, event: ServerStarted) -> None:
    world.term = event.term


def _server_stopped(world: World, event: ServerStopped) -> None:
    world.term = event.term


def _config_set(world: World, event: ConfigSet) -> None:
    configure(world, event.revision, event.values, event.formulas)
    world.ranked_at = world.position


def configure(
    world: World,
    revision: int,
    values: Mapping[str, configuration.Value],
    formulas: Mapping[str, Expression],
) -> None:
    """Put a revision of the configuration in force."""
    world.revision = revision
    # A setting that this release adds has its default until it is set.
    world.config = configuration.DEFAULTS | dict(values)
    world.formulas = dict(formulas)
    world.priority = world.formulas.get("scheduler.priority", DEFAULT_PRIORITY)
    world.moving = moving(world.priority)
    before, world.rising = world.rising, rising(world.priority)
    if world.rising != before:
        relane(world)


APPLY: dict[type, Callable[[World, Any], None]] = {
    ServerStarted: _server_started,
    ServerStopped: _server_stopped,
    ConfigSet: _config_set,
}
