"""Edit a log by hand: records changed, dropped, added, and all chained anew."""

from collections.abc import Iterator, Sequence

import msgspec

from logyard_domain.codec import GENESIS, decode, encode
from logyard_domain.events import AnyEvent, ReservationMoved
from logyard_domain.evolve import replay
from logyard_domain.records import Entry, Record
from logyard_domain.world import World


def changed(record: Record, **fields: object) -> Record:
    """The record with other fields in its event."""
    event = msgspec.structs.replace(record.event, **fields)
    return msgspec.structs.replace(record, event=event)


def beside(record: Record, event: AnyEvent, actor: str = "") -> Record:
    """Another event of the same instant and cause as that of the record."""
    return msgspec.structs.replace(record, event=event, actor=actor or record.actor)


def relinked(records: Sequence[Record]) -> list[Record]:
    """They take the positions 1, 2, ...; what names a position goes on naming the same record."""
    places: list[int] = [0]
    for place, record in enumerate(records, 1):
        while len(places) <= record.position:
            places.append(place - 1)
        places[record.position] = place
    entries = [_entry(record, places) for record in records]
    states, _ = encode(entries, records[0].cluster, 0, GENESIS)
    return [decode(place, state) for place, state in enumerate(states, 1)]


def _entry(record: Record, places: Sequence[int]) -> Entry:
    cause, event = record.cause, record.event
    if cause[:1] == "@":
        cause = f"@{places[min(int(cause[1:]), len(places) - 1)]}"
    if isinstance(event, ReservationMoved) and event.because:
        event = msgspec.structs.replace(event, because=places[event.because])
    return Entry(event=event, at=record.at, actor=record.actor, cause=cause)


def story(records: Sequence[Record]) -> Iterator[tuple[int, World]]:
    """Index of each record, and the world just before it."""
    world = World(records[0].cluster)
    for index, record in enumerate(records):
        yield index, world
        replay(world, record)


def tick_end(records: Sequence[Record], index: int) -> int:
    """The index after the last record of the same tick."""
    record = records[index]
    while index < len(records) and _together(record, records[index]):
        index += 1
    return index


def next_tick(records: Sequence[Record], index: int, after: int = 0) -> int:
    """Index of the first record of the next tick (later than instant `after`); -1 for none."""
    for place in range(tick_end(records, index), len(records)):
        if records[place].actor == "scheduler" and records[place].at > after:
            return place
    return -1


def _together(one: Record, other: Record) -> bool:
    return (one.actor, one.cause, one.at) == (other.actor, other.cause, other.at)
