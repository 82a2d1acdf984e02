"""A TCP proxy that loses a connection at the worst moment."""

import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Literal

Moment = Literal["before", "after"]
"""Whether the server still gets what the client says last: it gets it not, or does it all."""


class Proxy:
    """Forwards 127.0.0.1:`port` to `target`, until told to cut."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._cut: Moment | None = None
        self._marker = b""
        self._then: Callable[[], None] | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._spawn(self._accept)

    def cut(self, moment: Moment, marker: bytes, then: Callable[[], None] | None = None) -> None:
        """Lose the connection at the next thing that a client says with `marker` in it.

        `then` is called in between, when the server has done it or will never do it, and before
        the client can know of the loss.
        """
        self._then = then
        self._marker = marker
        self._cut = moment

    def refuse(self) -> None:
        """Lose all connections and take no new ones."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for side in self._open:
            _shut(side)

    def close(self) -> None:
        if self._listener.fileno() >= 0:
            self.refuse()
        for thread in self._threads:
            thread.join()
        for side in self._open:
            side.close()

    def _spawn(self, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            self._open += [client, server]
            doomed = threading.Event()
            self._spawn(partial(self._up, client, server, doomed))
            self._spawn(partial(self._down, client, server, doomed))

    def _up(self, client: socket.socket, server: socket.socket, doomed: threading.Event) -> None:
        while said := _receive(client):
            if self._cut is not None and self._marker in said:
                moment, self._cut = self._cut, None
                doomed.set()
                if moment == "after":
                    _send(server, said)
                    # `_down` sees the answer, which is the proof that it is done.
                    return
                self._finish(client, server)
                return
            _send(server, said)
        _shut(server)

    def _down(self, client: socket.socket, server: socket.socket, doomed: threading.Event) -> None:
        while answer := _receive(server):
            if doomed.is_set():
                self._finish(client, server)
                return
            _send(client, answer)
        _shut(client)

    def _finish(self, client: socket.socket, server: socket.socket) -> None:
        then, self._then = self._then, None
        if then is not None:
            then()
        _shut(server)
        _shut(client)


def _receive(side: socket.socket) -> bytes:
    try:
        return side.recv(1 << 20)
    except OSError:
        return b""


def _send(side: socket.socket, what: bytes) -> None:
    try:
        side.sendall(what)
    except OSError:
        _shut(side)


def _shut(side: socket.socket) -> None:
    try:
        side.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
