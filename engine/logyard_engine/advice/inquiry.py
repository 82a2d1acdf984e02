"""What is asked of the process that holds a past world, and what it says; as frames on pipes."""

import struct
from typing import IO

import msgspec

from logyard_domain.events import AnyEvent
from logyard_engine.advice.advising import Advice
from logyard_engine.advice.proof import Proof, Standing
from logyard_engine.advice.runners_up import Placement

_LENGTH = struct.Struct(">I")


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """Hold the world of this snapshot; without one, that of `cluster` before its first event."""

    cluster: str
    snapshot: bytes = b""


class Replay(msgspec.Struct, frozen=True, tag="replay"):
    """Let happen what follows on position `after`: records as stored, without a gap."""

    after: int
    states: tuple[bytes, ...]


class AskAdvice(msgspec.Struct, frozen=True, tag="advise"):
    """What would help this allocation at `now` (ms)?"""

    allocation: str
    now: int


class AskStanding(msgspec.Struct, frozen=True, tag="stand"):
    """Does the tick at `now` leave this allocation unplaced?"""

    allocation: str
    now: int


class AskProof(msgspec.Struct, frozen=True, tag="prove"):
    """Does the tick at `now` (ms) make these events once more? `placed` is the place among them of
    a placement whose runners-up are wanted, or -1.
    """

    now: int
    events: tuple[AnyEvent, ...]
    placed: int = -1


class Proved(msgspec.Struct, frozen=True, tag="proved"):
    proof: Proof
    placement: Placement | None


class Advised(msgspec.Struct, frozen=True, tag="advised"):
    advice: Advice


class Stood(msgspec.Struct, frozen=True, tag="stood"):
    standing: Standing | None


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The question has no answer, and why."""

    message: str


Question = Begin | Replay | AskAdvice | AskStanding | AskProof
Told = Proved | Advised | Stood | Failed

_encoder = msgspec.msgpack.Encoder()
_questions = msgspec.msgpack.Decoder(Question)
_told = msgspec.msgpack.Decoder(Told)


def send(pipe: IO[bytes], message: Question | Told) -> None:
    """Write one message."""
    data = _encoder.encode(message)
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


def question(pipe: IO[bytes]) -> Question | None:
    """The next question; None when there will be none."""
    data = _frame(pipe)
    return None if data is None else _questions.decode(data)


def told(pipe: IO[bytes]) -> Told | None:
    """The next answer; None when there will be none."""
    data = _frame(pipe)
    return None if data is None else _told.decode(data)


def packed(message: Told) -> bytes:
    """An answer as bytes, to be handed on by `pass_on`."""
    return _encoder.encode(message)


def pass_on(pipe: IO[bytes], data: bytes) -> None:
    """Write one message that is packed."""
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


def _frame(pipe: IO[bytes]) -> bytes | None:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(head)
    data = pipe.read(size)
    return data if len(data) == size else None
