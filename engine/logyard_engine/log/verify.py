"""Proof that a log is what was once written: every record, in its place, unchanged."""

from collections.abc import Callable, Iterator

import msgspec

from logyard_domain import codec

PROGRESS_EVERY = 10_000


class Verified(msgspec.Struct, frozen=True):
    """What was found to hold: `count` records, up to `position`, whose record has `chain`."""

    count: int
    position: int
    chain: str


def verify(
    states: Iterator[tuple[int, bytes]],
    progress: Callable[[int], None] | None = None,
    *,
    after: int = 0,
    chain: str = codec.GENESIS,
    head: tuple[int, str] | None = None,
) -> Verified:
    """Check a log from its first record on, or from the one that follows on position `after`,
    whose record has `chain`.

    Raises codec.Damaged with the first position where a record was changed, removed, inserted or
    moved. Records cut off at the end cannot be missed by the chain alone: `head`, the position
    and chain of a record known from elsewhere (a snapshot, an earlier check), must be there too.
    `progress` hears a position now and then.
    """
    expected = after
    for position, state in states:
        expected += 1
        if position != expected:
            raise codec.Damaged(*_misplaced(expected, position))
        chain = codec.checked(position, state, chain)
        if head is not None and position == head[0] and chain != head[1]:
            raise codec.Damaged(
                position, f"its chain is {chain}, and not {head[1]}: another history"
            )
        if progress is not None and position % PROGRESS_EVERY == 0:
            progress(position)
    if head is not None and expected < head[0]:
        raise codec.Damaged(expected + 1, f"missing; the log went on to position {head[0]}")
    return Verified(expected - after, expected, chain)


def _misplaced(expected: int, position: int) -> tuple[int, str]:
    if position > expected:
        return expected, f"missing; the next record has position {position}"
    return position, f"comes again or too late; position {expected} is due"
