"""Answers leave in one piece, and long ones are not hoarded."""

import asyncio
from asyncio import Transport

from logyard_api.writing import GATHERED_BYTES, Gathered


class Sink(Transport):
    """Keeps what was written, and says so when it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def get_write_buffer_size(self) -> int:
        return 0


async def _next_round() -> None:
    await asyncio.sleep(0)


def test_head_and_body_are_one_write() -> None:
    async def talk() -> list[bytes]:
        sink = Sink()
        gathered = Gathered(sink, asyncio.get_running_loop())
        gathered.write(b"head")
        gathered.write(b"body")
        assert (sink.written, gathered.get_write_buffer_size()) == ([], 8)
        await _next_round()
        gathered.write(b"more")
        await _next_round()
        return sink.written

    assert asyncio.run(talk()) == [b"headbody", b"more"]


def test_much_is_written_at_once() -> None:
    async def talk() -> list[bytes]:
        sink = Sink()
        gathered = Gathered(sink, asyncio.get_running_loop())
        gathered.write(b"x")
        gathered.write(b"y" * GATHERED_BYTES)
        before = [*sink.written]
        gathered.write(b"z")
        gathered.close()
        await _next_round()
        assert (sink.closed, sink.written[len(before) :]) == (True, [b"z"])
        return before

    assert asyncio.run(talk()) == [b"x" + b"y" * GATHERED_BYTES]


def test_what_was_aborted_is_not_written() -> None:
    async def talk() -> list[bytes]:
        sink = Sink()
        gathered = Gathered(sink, asyncio.get_running_loop())
        gathered.write(b"head")
        sink.close()
        await _next_round()
        return sink.written

    assert asyncio.run(talk()) == []
