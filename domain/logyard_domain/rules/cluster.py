"""The writer and the configuration."""

from collections.abc import Callable
from typing import Any

from logyard_domain import configuration
from logyard_domain.commands import Refused, SetConfig, StartServer, StopServer
from logyard_domain.events import AnyEvent, ConfigSet, ServerStarted, ServerStopped
from logyard_domain.world import World


def start_server(world: World, command: StartServer) -> list[AnyEvent]:
    """Each writer gets the next term."""
    return [ServerStarted(term=world.term + 1, version=command.version)]


def stop_server(world: World, _: StopServer) -> list[AnyEvent]:
    """The end of the present term."""
    return [ServerStopped(term=world.term)]


def set_config(world: World, command: SetConfig) -> list[AnyEvent]:
    """A new revision, unless nothing would change."""
    try:
        values = configuration.checked(command.values)
    except ValueError as trouble:
        raise Refused(str(trouble), "invalid") from None
    if values == world.config and world.revision:
        return []
    return [ConfigSet(revision=world.revision + 1, values=values)]


def _server_started(world: World, event: ServerStarted) -> None:
    world.term = event.term


def _server_stopped(world: World, event: ServerStopped) -> None:
    world.term = event.term


def _config_set(world: World, event: ConfigSet) -> None:
    world.revision = event.revision
    # A setting that this release adds has its default until it is set.
    world.config = configuration.DEFAULTS | event.values


APPLY: dict[type, Callable[[World, Any], None]] = {
    ServerStarted: _server_started,
    ServerStopped: _server_stopped,
    ConfigSet: _config_set,
}
