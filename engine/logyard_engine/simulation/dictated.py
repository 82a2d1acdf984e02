"""A log in a file that another process writes, so that deciding and writing take turns no more."""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import Queue
from threading import Thread

import msgspec

from logyard_domain.records import Entry
from logyard_engine.log.log import AppendFailed
from logyard_engine.log.opening import open_log
from logyard_engine.simulation.buffered import BufferedLog
from logyard_engine.simulation.scribe import LENGTH_BYTES

PIECES_MAX = 8
"""Pieces that may wait for the scribe; then the simulation waits for it."""


class DictatedLog(BufferedLog):
    """A `BufferedLog` in the file `place`, made now if there is none.

    Raises CannotOpen. Whatever goes wrong with the scribe later raises AppendFailed at the next
    append, flush or close.
    """

    def __init__(self, place: Path, cluster: str) -> None:
        # Opening it here tells what is wrong at once; the scribe has it open from then on.
        super().__init__(open_log(place, cluster))
        self._failure = ""
        self._told = False
        self._chain = self._log.chain
        self._encoder = msgspec.msgpack.Encoder()
        self._scribe = subprocess.Popen(
            [sys.executable, "-m", "logyard_engine.simulation.scribe", str(place), cluster],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._pieces: Queue[bytes | None] = Queue(PIECES_MAX)
        self._thread = Thread(target=self._dictate, name="logyard-dictation", daemon=True)
        self._thread.start()

    def flush(self) -> None:
        """Return when the scribe has written all that was held back."""
        super().flush()
        if not self._thread.is_alive():
            return
        self._pieces.put(b"")
        assert self._scribe.stdout is not None
        answer = self._scribe.stdout.readline().decode().split()
        if not answer:
            self._failed()
        self._chain = answer[0]

    def close(self) -> None:
        """Write what was held back, and let the scribe end. A trouble is told once."""
        try:
            if self._told:
                self._log.close()
            else:
                super().close()
        finally:
            if self._thread.is_alive():
                self._pieces.put(None)
                self._thread.join()
            self._scribe.wait()
            for pipe in (self._scribe.stdout, self._scribe.stderr):
                if pipe is not None:
                    pipe.close()

    @property
    def chain(self) -> str:
        """As `LogReader.chain`."""
        self.flush()
        return self._chain

    def take(self, states: Sequence[bytes]) -> None:
        """Refuses: the scribe alone writes. Raises AppendFailed."""
        raise AppendFailed("records are not taken as they are while a simulation is written")

    def _write(self, entries: list[Entry]) -> None:
        if self._failure:
            self._failed()
        self._pieces.put(self._encoder.encode(entries))

    def _dictate(self) -> None:
        """Hand the pieces over, in a thread: a full pipe keeps only it waiting."""
        pipe = self._scribe.stdin
        assert pipe is not None
        while (piece := self._pieces.get()) is not None:
            try:
                if not self._failure:
                    pipe.write(len(piece).to_bytes(LENGTH_BYTES, "big") + piece)
                    pipe.flush()
            except OSError as trouble:
                self._failure = str(trouble)
        with suppress(OSError):
            pipe.close()

    def _failed(self) -> None:
        assert self._scribe.stderr is not None
        said = self._scribe.stderr.read().decode(errors="replace").strip()
        self._failure = said or self._failure or "its process ended"
        self._told = True
        raise AppendFailed(f"the log could not be written: {self._failure}")
