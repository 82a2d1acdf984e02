"""Restart: the newest usable snapshot, then the records after it, through the same `evolve`."""

import gc
from collections.abc import Callable

import msgspec

from logyard_domain import snapshot
from logyard_domain.codec import decode_fact
from logyard_domain.evolve import evolve
from logyard_domain.world import World
from logyard_engine.log.log import Log
from logyard_engine.snapshots import Snapshots

PROGRESS_EVERY = 50_000
FORGET_EVERY = 1_000


def recover(
    log: Log,
    snapshots: Snapshots | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> World:
    """The world at the log's last position. `progress` gets the position reached and the last one.

    Raises UnknownEvent when a newer release wrote the log, Damaged when it cannot be read.
    """
    world = _restored(log, snapshots) or World(log.cluster)
    # Replay makes only objects that stay: looking for garbage meanwhile costs half the time.
    enabled = gc.isenabled()
    gc.disable()
    try:
        for position, state in log.read_states(world.position, None):
            event, at = decode_fact(position, state)
            evolve(world, event, at, position)
            if position % FORGET_EVERY == 0:
                _forget_scratch(world)
                if progress is not None and position % PROGRESS_EVERY == 0:
                    progress(position, log.position)
        _forget_scratch(world)
    finally:
        if enabled:
            gc.enable()
    return world


def save(world: World, log: Log, snapshots: Snapshots) -> None:
    """Keep the world as it is at the log's last position."""
    assert world.position == log.position
    snapshots.save(world.position, log.chain, snapshot.FORMAT, snapshot.dump(world))


def _forget_scratch(world: World) -> None:
    """What settling left to do was done, and is in the log."""
    world.touched.clear()
    world.touched_nodes.clear()


def _restored(log: Log, snapshots: Snapshots | None) -> World | None:
    found = snapshots.newest(snapshot.FORMAT, log.position) if snapshots else None
    if found is None:
        return None
    try:
        world = snapshot.restore(found.data)
    except msgspec.DecodeError:
        return None
    return world if _belongs(world, log, found.chain) else None


def _belongs(world: World, log: Log, chain: str) -> bool:
    """Whether the snapshot was taken of this very log."""
    if world.cluster != log.cluster or world.position > log.position:
        return False
    if not world.position:
        return True
    return log.read(world.position - 1, 1)[0].chain == chain
