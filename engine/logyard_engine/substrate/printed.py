"""What jobs printed, read from where the keeper let them print it (`keeper.sheets`).

Files of a workflow lie in one of 256 folders below the root, ``<root>/<xx>/<workflow>.*``: those
of a node begin with ``<workflow>.<node>.``, so removing the output of a workflow is removing what
begins with its name and a dot.
"""

import hashlib
import os
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from logyard_engine.substrate.keeper.sheets import INDEX, bound_path, sheet_path

Stream = Literal["out", "err"]

_LOOK_BYTES = 1 << 16
_STREAMS: tuple[Stream, Stream] = ("out", "err")


def workflow_stem(root: Path, workflow: str) -> str:
    """What the path of every file begins with that holds output of this workflow; a dot follows."""
    folder = hashlib.sha256(workflow.encode()).hexdigest()[:2]
    return f"{root}/{folder}/{quote(workflow, safe='').replace('.', '%2E')}"


def binder_stem(root: Path, workflow: str, node: str) -> str:
    """The stem of the binder of a workflow on a node."""
    return f"{workflow_stem(root, workflow)}.{quote(node, safe='')}"


class Printed:
    """What one allocation printed on a node, while it runs and afterwards.

    Nothing where there is no output yet. For one thread at a time. All methods block.
    """

    def __init__(self, root: Path, node: str, allocation: str) -> None:
        workflow, _, name = allocation.partition("/")
        self._stem = binder_stem(root, workflow, node)
        self._name = name.encode()
        self._number = -1
        self._handed_on = False
        self._bound: dict[Stream, tuple[int, int]] = {}
        self._seen = 0
        self._line = b""
        """The index line that hands a sheet to this allocation; it ends at `_line_end`."""
        self._line_end = 0

    def read(self, stream: Stream, offset: int, most: int) -> bytes:
        """At most `most` bytes from `offset` on."""
        while True:
            path, start, size = self._place(stream)
            piece = _read(path, start + offset, max(0, min(most, size - offset)))
            # While it was read the sheet may have been handed on; then the index says so by now.
            if self._place(stream) == (path, start, size):
                return piece

    def size(self, stream: Stream) -> int:
        """How many bytes it has printed."""
        while True:
            path, start, size = self._place(stream)
            if stream in self._bound or not path:
                return size
            try:
                found = os.stat(path).st_size
            except FileNotFoundError:
                found = 0
            if self._place(stream) == (path, start, size):
                return found

    def _place(self, stream: Stream) -> tuple[str, int, int]:
        """File, first byte, and most bytes."""
        if not self._handed_on:
            self._look()
        if stream in self._bound:
            return (bound_path(self._stem, stream), *self._bound[stream])
        if self._number < 0 or self._handed_on:
            return "", 0, 0
        return sheet_path(self._stem, self._number, stream), 0, 1 << 62

    def _look(self) -> None:
        """Learn what the index says by now."""
        try:
            index = os.open(self._stem + INDEX, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            self._unlearn()
            return
        try:
            size = os.fstat(index).st_size
            if self._number >= 0:
                line, end = self._line, self._line_end
                if os.pread(index, len(line), end - len(line)) == line and size >= self._seen:
                    self._learn(os.pread(index, size - self._seen, self._seen))
                    return
                self._unlearn()
            elif size < self._seen:
                self._unlearn()
            if size > self._seen:
                self._search(index, size)
        finally:
            os.close(index)

    def _unlearn(self) -> None:
        """It is another index: the files were removed, or passed on because nothing was in them."""
        self._number, self._seen = -1, 0
        self._bound.clear()

    def _search(self, index: int, size: int) -> None:
        """From the end on: most who ask, ask about what was printed last."""
        span = _LOOK_BYTES
        while self._number < 0:
            first = max(self._seen, size - span)
            text = os.pread(index, size - first, first)
            if first > self._seen:
                cut = text.find(b"\n") + 1
                first, text = first + cut, text[cut:]
            whole = text[: text.rfind(b"\n") + 1]
            at = self._begin(whole)
            if at >= 0:
                self._seen = self._line_end = first + at
                self._learn(whole[at:])
            elif first == self._seen:
                self._seen = first + len(whole)
                return
            span *= 4

    def _begin(self, text: bytes) -> int:
        """Where the text goes on behind the line that hands a sheet to this allocation, or -1."""
        ending = b" " + self._name + b"\n"
        at = len(text)
        while (at := text.rfind(ending, 0, at)) >= 0:
            line = text[text.rfind(b"\n", 0, at) + 1 : at + len(ending)]
            fields = line[:-1].split(b" ", 2)
            if len(fields) == 3 and fields[0] == b"+" and fields[2] == self._name:
                self._number = int(fields[1])
                self._line = line
                return at + len(ending)
        return -1

    def _learn(self, text: bytes) -> None:
        """What the lines behind that one say of it."""
        text = text[: text.rfind(b"\n") + 1]
        self._seen += len(text)
        text = b"\n" + text
        end = text.find(b"\n+ %d " % self._number)
        if end >= 0:
            text = text[: end + 1]
        for stream in _STREAMS:
            ending = b" " + self._name + b"\n"
            at = 0
            while (at := text.find(ending, at)) >= 0:
                fields = text[text.rfind(b"\n", 0, at) + 1 : at + len(ending) - 1].split(b" ", 4)
                at += len(ending)
                if fields[:2] == [b"=", stream.encode()] and fields[4:] == [self._name]:
                    self._bound[stream] = (int(fields[2]), int(fields[3]))
        self._handed_on = end >= 0


def _read(path: str, start: int, most: int) -> bytes:
    if not path or not most:
        return b""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(handle, most, start)
    finally:
        os.close(handle)
