"""Records to bytes and back, and the chain that ties each to the one before it.

The bytes of a record are one JSON object whose last member is the chain::

    {"at":1700000000000,"cluster":"main","actor":"user:ana","cause":"k1","event":{"type":...},"chain":"..."}

The chain is the first 192 bits of SHA-256 over the previous record's chain and the bytes before the
``,"chain"`` member, in URL-safe base64. The first record is chained to `GENESIS`.

An event of an older release that can no longer be read as it is gets an upcast: a pure function
from the old object to the new one, chosen by its tag.
"""

import hashlib
from binascii import b2a_base64
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from logyard_domain.events import AnyEvent
from logyard_domain.identifiers import Millis, Position
from logyard_domain.records import Entry, Record

GENESIS = "A" * 32
CHAIN_CHARS = 32
_MEMBER = b',"chain":"'
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_TAIL = len(_MEMBER) + CHAIN_CHARS + 2

UPCASTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""By old tag: the event's object as written then -> as it would be written now."""


class UnknownEvent(Exception):
    """A record holds an event type that this release does not know: a newer one wrote it."""

    def __init__(self, position: int, tag: str) -> None:
        super().__init__(f"position {position}: event type {tag!r} is not known to this release")
        self.position = position
        self.tag = tag


class Damaged(Exception):
    """The bytes of a record are no record, or do not fit the chain. `position` is its place."""

    def __init__(self, position: int, what: str) -> None:
        super().__init__(f"position {position}: {what}")
        self.position = position
        self.what = what


class _Body(msgspec.Struct, frozen=True, gc=False):
    at: int
    cluster: str
    actor: str
    cause: str
    event: AnyEvent
    chain: str = ""


class _RawBody(msgspec.Struct, frozen=True):
    at: int
    cluster: str
    actor: str
    cause: str
    event: msgspec.Raw
    chain: str = ""


class _Fact(msgspec.Struct, frozen=True, gc=False):
    at: int
    event: AnyEvent


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Body)
_fact_decoder = msgspec.json.Decoder(_Fact)
_raw_decoder = msgspec.json.Decoder(_RawBody)
_event_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def link(chain: bytes, body: bytes) -> bytes:
    """The chain of a record whose unchained bytes are `body`, after a record with `chain`."""
    digest = hashlib.sha256(chain + body).digest()[:24]
    return b2a_base64(digest, newline=False).translate(_URL_SAFE)


def encode(
    entries: Sequence[Entry], cluster: str, after: int, chain: str
) -> tuple[list[bytes], list[Record]]:
    """Bytes and records of `entries`, placed after position `after`, whose record has `chain`."""
    states: list[bytes] = []
    records: list[Record] = []
    linked = chain.encode()
    for position, entry in enumerate(entries, after + 1):
        at, actor, cause, event = entry.at, entry.actor, entry.cause, entry.event
        # The empty chain member is cut off: what is hashed is the object up to it.
        body = _encoder.encode(_Body(at, cluster, actor, cause, event))[:-12]
        linked = link(linked, body)
        states.append(b'%b,"chain":"%b"}' % (body, linked))
        place = Position(position)
        records.append(Record(place, at, cluster, actor, cause, event, linked.decode()))
    return states, records


def chain_of(state: bytes) -> str:
    """The chain that a record's bytes carry."""
    return state[-CHAIN_CHARS - 2 : -2].decode()


def checked(position: int, state: bytes, chain: str) -> str:
    """The chain of the record in `state`, after making sure that it follows on `chain`.

    Raises Damaged where the bytes were changed, or the record before them was changed, moved or
    removed.
    """
    # The two bytes after the chain are not part of what it is a hash of.
    if state[-_TAIL : -_TAIL + len(_MEMBER)] != _MEMBER or not state.endswith(b'"}'):
        raise Damaged(position, "these bytes are no record")
    found = link(chain.encode(), state[:-_TAIL])
    if found != state[-CHAIN_CHARS - 2 : -2]:
        raise Damaged(
            position,
            "the chain does not hold: this record or its place was changed after it was written",
        )
    return found.decode()


def decode(position: int, state: bytes) -> Record:
    """The record in `state`. Raises UnknownEvent or Damaged."""
    try:
        body = _decoder.decode(state)
    except msgspec.DecodeError:
        return _decode_old(position, state)
    return Record(
        Position(position),
        Millis(body.at),
        body.cluster,
        body.actor,
        body.cause,
        body.event,
        body.chain,
    )


def decode_fact(position: int, state: bytes) -> tuple[AnyEvent, int]:
    """Event and instant of the record in `state`: what a replay needs of it, and faster.

    Raises UnknownEvent or Damaged.
    """
    try:
        fact = _fact_decoder.decode(state)
    except msgspec.DecodeError:
        record = _decode_old(position, state)
        return record.event, record.at
    return fact.event, fact.at


def _decode_old(position: int, state: bytes) -> Record:
    try:
        body = _raw_decoder.decode(state)
        event: dict[str, Any] = msgspec.json.decode(body.event, type=dict[str, Any])
    except msgspec.DecodeError as trouble:
        raise Damaged(position, f"these bytes are no record: {trouble}") from trouble
    tag = str(event.get("type", ""))
    while tag in UPCASTS:
        event = UPCASTS[tag](event)
        tag = str(event.get("type", ""))
    if tag not in TAGS:
        raise UnknownEvent(position, tag)
    try:
        value = msgspec.convert(event, AnyEvent)
    except msgspec.ValidationError as trouble:
        raise Damaged(position, f"event {tag!r} cannot be read: {trouble}") from trouble
    return Record(
        Position(position), Millis(body.at), body.cluster, body.actor, body.cause, value, body.chain
    )


def encode_event(event: AnyEvent) -> bytes:
    """One event alone, as JSON."""
    return _encoder.encode(event)


def decode_event(data: bytes) -> AnyEvent:
    """The event in `data`. Raises msgspec.DecodeError."""
    return _event_decoder.decode(data)


def tag_of(event: AnyEvent) -> str:
    """The fixed tag of an event, such as ``allocation.placed``."""
    tag = event.__struct_config__.tag
    assert isinstance(tag, str)
    return tag


TAGS: frozenset[str] = frozenset(str(member.__struct_config__.tag) for member in AnyEvent.__args__)
