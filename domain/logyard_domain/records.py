"""A record: one event with its place, instant, origin and link to the record before it."""

import msgspec

from logyard_domain.events import AnyEvent
from logyard_domain.identifiers import Millis, Position


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An event that is about to be appended.

    `actor` is who did it (``user:ana``, ``node:n1``, ``scheduler``, ``server``); `cause` what led
    to it: the key of a command, or ``@POSITION`` of the log that a decision was based on.
    """

    event: AnyEvent
    at: Millis
    actor: str
    cause: str


class Record(msgspec.Struct, frozen=True):
    """An event on the log of `cluster`. `chain` is a hash over the previous record's chain and
    this one.
    """

    position: Position
    at: Millis
    cluster: str
    actor: str
    cause: str
    event: AnyEvent
    chain: str
