"""The link of a node on another machine (or in another process): orders as a stream of JSON lines.

``POST /v4/substrate/{node}:register`` a `RegisterNode`; ``GET /v4/substrate/{node}/orders``
answers with one `Order` a line for as long as it lasts, and with empty lines to show that it
lives; ``POST ...:report`` a `Report`, answered when it is durable; ``POST ...:heartbeat``.
"""

import http.client
import queue
import threading
from collections.abc import Callable
from urllib.parse import quote

import msgspec

from logyard_domain.commands import RegisterNode, Report
from logyard_domain.work import Order
from logyard_engine.substrate.door import Door
from logyard_engine.substrate.link import Done, Inbox

SILENCE_S = 30.0
"""A stream without even an empty line for so long is broken."""


class _Heard(msgspec.Struct):
    """A heartbeat's answer; a server that does not know the node says so."""

    known: bool = True


_ORDER = msgspec.json.Decoder(Order)


class HttpLink:
    """Speaks to the server at `url`, with `token` as bearer where not empty."""

    def __init__(self, url: str, node: str, token: str = "") -> None:
        self._url = url
        self._token = token
        self._path = f"/v4/substrate/{quote(node, safe='')}"
        self._closed = False
        self._stream: Door | None = None
        self._inbox: Inbox | None = None
        self._jobs: queue.SimpleQueue[Callable[[Door], None] | None] = queue.SimpleQueue()
        self._sender = threading.Thread(target=self._send_all, name="logyard-sender", daemon=True)
        Door(url)
        self._sender.start()

    def register(self, node: RegisterNode, inbox: Inbox) -> None:
        self._inbox = inbox
        stream = Door(self._url, self._token, SILENCE_S)
        # An older stream sees that it is no longer the one, at the latest after the silence.
        self._stream = stream
        threading.Thread(
            target=self._listen, args=(stream, node, inbox), name="logyard-orders", daemon=True
        ).start()

    def report(self, report: Report, done: Done) -> None:
        body = msgspec.json.encode(report)

        def send(door: Door) -> None:
            error: BaseException | None = None
            try:
                door.send("POST", f"{self._path}:report", body)
            except Exception as failure:
                error = failure
            done(error)

        self._jobs.put(send)

    def heartbeat(self, node: str) -> None:
        def send(door: Door) -> None:
            try:
                answer = door.send("POST", f"{self._path}:heartbeat", b"")
                heard = msgspec.json.decode(answer or b"{}", type=_Heard)
            except Exception:
                # The next one, or the stream, will tell.
                return
            if not heard.known and self._inbox is not None:
                self._inbox.closed("the server does not know this node")

        self._jobs.put(send)

    def close(self) -> None:
        self._closed = True
        self._jobs.put(None)
        self._sender.join()

    def _send_all(self) -> None:
        door = Door(self._url, self._token)
        while (job := self._jobs.get()) is not None:
            job(door)
        door.close()

    def _listen(self, stream: Door, node: RegisterNode, inbox: Inbox) -> None:
        reason = "the server closed the stream"
        try:
            stream.send("POST", f"{self._path}:register", msgspec.json.encode(node))
            inbox.opened()
            with stream.open("GET", f"{self._path}/orders") as response:
                while not self._closed and self._stream is stream:
                    line = response.readline()
                    if not line:
                        break
                    if line.strip():
                        inbox.orders([_ORDER.decode(line)])
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = str(error) or repr(error)
        except Exception as error:
            reason = str(error)
        finally:
            stream.close()
        if not self._closed and self._stream is stream:
            inbox.closed(reason)
