"""The files that jobs print into: few files, however many jobs.

The files of one workflow on one node are its binder. Their names begin with the binder's stem:

- ``STEM.N.out`` and ``STEM.N.err`` are sheet N: one job at a time prints into it, and an empty
  sheet is handed on to the next job.
- ``STEM.bound.out`` and ``STEM.bound.err`` take what earlier jobs printed, when their sheet is
  handed on. A sheet that holds much is not handed on, but stays what it is.
- ``STEM.idx`` tells where everything is, a line at a time: ``+ N NAME`` sheet N is NAME's from now
  on; ``= STREAM START SIZE NAME`` what NAME printed is so many bytes of the bound file.

No job holds a file in which others' output lies, so none can spoil it (a plain ``> /dev/stderr``
empties the file). An index line is written before what it tells of is undone.

A binder in which nobody printed can be passed on to another workflow by renaming its files, as
making files is dear.
"""

import fcntl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Stream = Literal["out", "err"]

BOUND_BYTES = 1 << 16
"""A sheet that holds more is not handed on."""

INDEX = ".idx"
_PASSED_ON_MAX = 4
"""Sheets of a binder that may be passed on."""

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
_STREAMS: "tuple[Stream, Stream]" = ("out", "err")


def sheet_path(stem: str, number: int, stream: "Stream") -> str:
    """Where a sheet of a binder is."""
    return f"{stem}.{number}.{stream}"


def bound_path(stem: str, stream: "Stream") -> str:
    """Where a binder keeps what was printed on sheets that were handed on."""
    return f"{stem}.bound.{stream}"


def holds_line(number: int, name: bytes) -> bytes:
    """The index line of a sheet that is handed out."""
    return b"+ %d %s\n" % (number, name)


def bound_line(stream: "Stream", start: int, size: int, name: bytes) -> bytes:
    """The index line of output that was bound."""
    return b"= %s %d %d %s\n" % (stream.encode(), start, size, name)


class Sheet:
    """A pair of files. `handles` are open, or -1; `holder` is who had it last."""

    __slots__ = ("_readers", "binder", "full", "handles", "held", "holder", "number")

    def __init__(self, binder: "Binder", number: int) -> None:
        self.binder = binder
        self.number = number
        self._readers: dict[Stream, int] = {}
        self.handles = (-1, -1)
        self.holder = b""
        self.held = False
        self.full = False

    def open(self) -> None:
        """Open both files, or neither. Raises OSError."""
        if self.handles[0] < 0:
            out = os.open(sheet_path(self.binder.stem, self.number, "out"), _FLAGS, 0o644)
            try:
                err = os.open(sheet_path(self.binder.stem, self.number, "err"), _FLAGS, 0o644)
            except OSError:
                os.close(out)
                raise
            self.handles = (out, err)

    def close(self) -> None:
        if self.handles[0] >= 0:
            for handle in self.handles:
                os.close(handle)
            self.handles = (-1, -1)
            for handle in self._readers.values():
                os.close(handle)
            self._readers.clear()

    def unused(self) -> bool:
        """Whether it is empty, and nobody can print on it any more. Closed, it is opened again."""
        self.close()
        self.open()
        return all(os.lseek(one, 0, os.SEEK_END) == 0 and _alone(one) for one in self.handles)

    def content(self, stream: "Stream") -> bytes:
        """What is printed on it, of a sheet that may be handed on."""
        reader = self._readers.get(stream)
        if reader is None:
            # Kept open: to close a file that was emptied makes some file systems write it out.
            path = sheet_path(self.binder.stem, self.number, stream)
            reader = self._readers[stream] = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        return os.pread(reader, 2 * BOUND_BYTES, 0)

    def empty(self) -> None:
        """What is printed on it is elsewhere, so it need not be here."""
        for stream, handle in zip(_STREAMS, self.handles, strict=True):
            path = sheet_path(self.binder.stem, self.number, stream)
            try:
                if self.full:
                    os.unlink(path)
                else:
                    os.truncate(path if handle < 0 else handle, 0)
            except FileNotFoundError:
                continue


class Binder:
    """The sheets of one workflow on this node. With `carried` their content is only needed until
    somebody has carried it to a server.
    """

    __slots__ = ("_bound", "_free", "_index", "_next", "_torn", "blank", "carried", "held", "stem")

    def __init__(self, stem: str, carried: bool) -> None:
        self.stem = stem
        self.carried = carried
        self.held = 0
        self.blank = True
        """Whether nobody is known to have printed here."""
        self._free: list[Sheet] = []
        self._next = -1
        self._index = -1
        self._torn = False
        self._bound: dict[Stream, int] = {}

    def take(self, name: bytes) -> Sheet:
        """A sheet for this job. Raises OSError."""
        if self._index < 0:
            try:
                self._index = os.open(self.stem + INDEX, _FLAGS, 0o644)
            except FileNotFoundError:
                _make_folder(self.stem)
                self._index = os.open(self.stem + INDEX, _FLAGS, 0o644)
            if self._next < 0:
                # Every sheet that an earlier keeper numbered has a line, longer than one byte.
                self._next = os.fstat(self._index).st_size
                self.blank = not self._next
        sheet = None
        while self._free and sheet is None:
            sheet = self._free.pop()
            if not self._cleared(sheet):
                sheet.close()
                sheet.full = True
                self.blank = False
                sheet = None
        if sheet is None:
            sheet = Sheet(self, self._next)
            self._next += 1
            sheet.open()
        try:
            self._note(holds_line(sheet.number, name))
        except OSError:
            self._free.append(sheet)
            raise
        sheet.holder = name
        sheet.held = True
        self.held += 1
        return sheet

    def give_back(self, sheet: Sheet) -> None:
        """Its job is over."""
        sheet.held = False
        self.held -= 1
        self._free.append(sheet)

    def close(self) -> None:
        """Close every file. The binder can be used all the same."""
        for sheet in self._free:
            sheet.close()
        for handle in self._bound.values():
            os.close(handle)
        self._bound.clear()
        if self._index >= 0:
            os.close(self._index)
            self._index = -1

    def pass_on(self, stem: str, carried: bool) -> bool:
        """Become the binder of another workflow; False when this is not possible.

        Then the binder is closed and as good as before. Raises OSError when the files are neither
        the one's nor the other's: then it must not be used again.
        """
        self.blank = self._unused(stem)
        if not self.blank:
            self.close()
            return False
        # Without an index nobody looks for the sheets, so they may move one after the other.
        os.ftruncate(self._index, 0)
        try:
            os.rename(self.stem + INDEX, stem + INDEX)
        except FileNotFoundError:
            _make_folder(stem)
            os.rename(self.stem + INDEX, stem + INDEX)
        for number, sheet in enumerate(self._free):
            for stream in _STREAMS:
                before = sheet_path(self.stem, sheet.number, stream)
                os.rename(before, sheet_path(stem, number, stream))
            # Who had the sheet before must not take it for the one that he had.
            self._free[number] = Sheet(self, number)
            self._free[number].handles = sheet.handles
            sheet.holder = b""
        self._next = len(self._free)
        self.stem = stem
        self.carried = carried
        return True

    def _unused(self, stem: str) -> bool:
        if self.held or self._index < 0 or not self.blank:
            return False
        if not 0 < self._next == len(self._free) <= _PASSED_ON_MAX:
            return False
        try:
            # What the other one printed at another time must not be covered.
            return not os.path.exists(stem + INDEX) and all(one.unused() for one in self._free)
        except OSError:
            return False

    def _cleared(self, sheet: Sheet) -> bool:
        """Make the sheet empty by binding what it holds; False when it has to stay as it is."""
        try:
            sheet.open()
            out, err = sheet.handles
            # The job before may have changed the flags, which all who had it share.
            fcntl.fcntl(out, fcntl.F_SETFL, os.O_APPEND)
            fcntl.fcntl(err, fcntl.F_SETFL, os.O_APPEND)
            sizes = os.lseek(out, 0, os.SEEK_END), os.lseek(err, 0, os.SEEK_END)
            if sizes == (0, 0):
                return True
            if max(sizes) > BOUND_BYTES:
                return False
            for stream, handle, size in zip(_STREAMS, sheet.handles, sizes, strict=True):
                if size:
                    self._bind(sheet, stream)
                    os.ftruncate(handle, 0)
        except OSError:
            return False
        return True

    def _bind(self, sheet: Sheet, stream: "Stream") -> None:
        self.blank = False
        text = sheet.content(stream)
        if stream not in self._bound:
            self._bound[stream] = os.open(bound_path(self.stem, stream), _FLAGS, 0o644)
        start = os.fstat(self._bound[stream]).st_size
        _write(self._bound[stream], text)
        self._note(bound_line(stream, start, len(text), sheet.holder))

    def _note(self, line: bytes) -> None:
        # Half a line, of when the disk was full, must not spoil this one.
        text = b"\n" + line if self._torn else line
        self._torn = True
        _write(self._index, text)
        self._torn = False


def _make_folder(stem: str) -> None:
    os.makedirs(os.path.dirname(stem), exist_ok=True)


def _write(handle: int, data: bytes) -> None:
    written = os.write(handle, data)
    if written < len(data):
        # The next call tells what is in the way.
        os.write(handle, data[written:])


def _alone(handle: int) -> bool:
    """Whether this is the only open handle of a file; a file system that cannot tell says no."""
    try:
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return False
    return True
