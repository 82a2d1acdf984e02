"""What an answer consists of leaves in one piece.

The HTTP server writes the head of an answer and its body one after the other. Each write is a
system call, made while no other thread can compute, and each wakes the client.
"""

import asyncio
from asyncio import AbstractEventLoop, BaseProtocol, Transport
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

GATHERED_BYTES = 32 * 1024
"""More is written at once, so that a reader who is slower is noticed."""


class Protocol(HttpToolsProtocol):
    """HTTP/1.1 by httptools, with gathered writes."""

    def connection_made(  # type: ignore[override]
        self, transport: Transport
    ) -> None:
        super().connection_made(Gathered(transport, asyncio.get_running_loop()))


class Gathered(Transport):
    """A transport that writes what is handed to it when the event loop has a moment."""

    def __init__(self, transport: Transport, loop: AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._soon: Callable[[Callable[[], None]], object] = loop.call_soon
        self._pieces: list[bytes | bytearray | memoryview] = []
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._pieces:
            self._soon(self._flush)
        self._pieces.append(data)
        self._size += len(data)
        if self._size >= GATHERED_BYTES:
            self._flush()

    def _flush(self) -> None:
        pieces, self._pieces, self._size = self._pieces, [], 0
        if pieces and not self._transport.is_closing():
            self._transport.write(pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        self._pieces, self._size = [], 0
        self._transport.abort()

    def write_eof(self) -> None:
        self._flush()
        self._transport.write_eof()

    def can_write_eof(self) -> bool:
        return self._transport.can_write_eof()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def set_protocol(self, protocol: BaseProtocol) -> None:
        self._transport.set_protocol(protocol)

    def get_protocol(self) -> BaseProtocol:
        return self._transport.get_protocol()

    def is_reading(self) -> bool:
        return self._transport.is_reading()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size() + self._size

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._transport.get_write_buffer_limits()
