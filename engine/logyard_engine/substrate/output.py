"""Output and results of a node on another machine: carried to the server in pieces, over HTTP.

A piece is named by its offset, so that sending one twice changes nothing. What the server has is
asked by nobody: a new agent begins at offset 0 again.
"""

import logging
import os
import select
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, urlencode

from logyard_domain.commands import Refused
from logyard_engine.substrate.door import Door
from logyard_engine.substrate.printed import Printed, Stream

EVERY_S = 1.0
PIECE_BYTES = 1 << 20

_log = logging.getLogger(__name__)


class HttpResults:
    """Results by ``PUT /v4/workflows/{workflow}/results/{path}``."""

    def __init__(self, url: str, token: str = "") -> None:
        self._url = url
        self._token = token

    def put(self, workflow: str, path: str, source: BinaryIO, size: int) -> None:
        door = Door(self._url, self._token)
        place = f"/v4/workflows/{quote(workflow, safe='')}/results/{quote(path.lstrip('/'))}"
        try:
            door.send("PUT", place, source, size)
        except Refused as error:
            raise OSError(error.message) from error
        finally:
            door.close()


class _Carried:
    """One allocation's two streams: how far each has been carried, and what to do at the end."""

    __slots__ = ("offsets", "printed", "then")

    def __init__(self, printed: Printed) -> None:
        self.printed = printed
        self.offsets: dict[Stream, int] = {"out": 0, "err": 0}
        self.then: Callable[[], None] | None = None


class HttpOutputs:
    """Output by ``POST /v4/workflows/{workflow}/output?allocation=&stream=&offset=``, as it grows.

    It is what `node` printed below `logs`.
    """

    def __init__(
        self, url: str, node: str, logs: Path, token: str = "", every_s: float = EVERY_S
    ) -> None:
        self._node = node
        self._logs = logs
        self._door = Door(url, token)
        self._every_s = every_s
        self._lock = threading.Lock()
        self._watched: dict[str, _Carried] = {}
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._closed = False
        self._thread = threading.Thread(target=self._carry, name="logyard-output", daemon=True)
        self._thread.start()

    def watch(self, allocation: str) -> None:
        printed = Printed(self._logs, self._node, allocation)
        with self._lock:
            self._watched.setdefault(allocation, _Carried(printed))

    def finish(self, allocation: str, then: Callable[[], None]) -> None:
        with self._lock:
            carried = self._watched.get(allocation)
            if carried is not None:
                carried.then = then
        if carried is None:
            then()
        os.eventfd_write(self._event, 1)

    def close(self) -> None:
        self._closed = True
        os.eventfd_write(self._event, 1)
        self._thread.join()
        self._door.close()

    def _carry(self) -> None:
        while not self._closed:
            select.select([self._event], [], [], self._every_s)
            with self._lock:
                watched = list(self._watched.items())
            try:
                os.eventfd_read(self._event)
            except BlockingIOError:
                pass
            for allocation, carried in watched:
                if self._closed:
                    return
                try:
                    self._carry_one(allocation, carried)
                except OSError as error:
                    _log.info("output of %s waits: %s", allocation, error)
                    # Not in a hurry: the server is away.
                    select.select([], [], [], self._every_s)
                    break

    def _carry_one(self, allocation: str, carried: _Carried) -> None:
        # Read first: what is written after the end was told is nobody's output.
        then = carried.then
        try:
            for stream in carried.offsets:
                self._carry_stream(allocation, carried, stream)
        except Refused as error:
            # The server does not want it, so nobody waits for it.
            _log.warning("output of %s is not taken: %s", allocation, error)
        if then is None:
            return
        with self._lock:
            del self._watched[allocation]
        then()

    def _carry_stream(self, allocation: str, carried: _Carried, stream: Stream) -> None:
        workflow = quote(allocation.partition("/")[0], safe="")
        while piece := carried.printed.read(stream, carried.offsets[stream], PIECE_BYTES):
            offset = carried.offsets[stream]
            query = urlencode({"allocation": allocation, "stream": stream, "offset": offset})
            self._door.send("POST", f"/v4/workflows/{workflow}/output?{query}", piece)
            carried.offsets[stream] = offset + len(piece)
