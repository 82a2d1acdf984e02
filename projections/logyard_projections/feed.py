"""From the bytes of a log to what views are fed with."""

import msgspec

from logyard_domain import codec
from logyard_domain.records import Record


class Unread(msgspec.Struct, frozen=True):
    """A record whose event type this release does not know. Views pass over it, and are stale."""

    position: int
    tag: str
    chain: str


Fed = Record | Unread


def read(position: int, state: bytes) -> Fed:
    """The record in `state`, also where its event cannot be understood. Raises codec.Damaged."""
    try:
        return codec.decode(position, state)
    except codec.UnknownEvent as unknown:
        return Unread(position, unknown.tag, codec.chain_of(state))
