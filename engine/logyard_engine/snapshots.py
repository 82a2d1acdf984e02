"""Snapshots of a world beside its log, so that a start need not replay everything.

They are never the truth: each can be deleted at any time, and one that is damaged, cut off or of
another format is passed over. A file is a header, one line of JSON, and the compressed data.
"""

import hashlib
import logging
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

KEPT = 3
_SUFFIX = ".snapshot"
_DRAFT = ".draft"
_HEADER_BYTES_MAX = 4096

_logger = logging.getLogger(__name__)


class Snapshot(msgspec.Struct, frozen=True):
    """What a world was after the record at `position`, whose chain is `chain`, as `data` in
    `format`. A reader compares `chain` with the log's: a folder may hold another log's snapshots.
    """

    position: int
    chain: str
    format: str
    data: bytes


class _Header(msgspec.Struct, frozen=True):
    logyard_snapshot: int
    position: int
    chain: str
    format: str
    size: int
    sha256: str


class _Unusable(Exception):
    """Why a snapshot file is passed over."""


class Snapshots:
    """The snapshots in `folder`, which is made when the first one is saved."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, position: int, chain: str, format: str, data: bytes) -> Path:
        """Keep `data` as the snapshot at `position`, durably, and drop all but the newest.

        Raises OSError when it cannot be written; what was there before is then still there.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{position:016d}{_SUFFIX}"
        draft = path.with_suffix(_DRAFT)
        header = _Header(1, position, chain, format, len(data), "")
        sealed = msgspec.structs.replace(header, sha256=_digest(header, data))
        try:
            with draft.open("wb") as file:
                file.write(msgspec.json.encode(sealed) + b"\n")
                file.write(zlib.compress(data, 1))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        self._sync()
        for old in self._newest_first()[KEPT:]:
            old.unlink(missing_ok=True)
        return path

    def newest(self, format: str, upto: int | None = None) -> Snapshot | None:
        """The newest sound snapshot of `format`, at position `upto` or before where that is given.

        Every one that is passed over is said in the log of the program, as a warning.
        """
        for path in self._newest_first():
            if upto is not None and int(path.stem) > upto:
                continue
            try:
                return _load(path, format)
            except (_Unusable, OSError) as trouble:
                _logger.warning("snapshot %s is passed over: %s", path, trouble)
        return None

    def clear(self) -> None:
        """Delete all snapshots; the next start replays the whole log."""
        for path in (*self._newest_first(), *self._files(_DRAFT)):
            path.unlink(missing_ok=True)

    def _newest_first(self) -> list[Path]:
        return sorted(self._files(_SUFFIX), reverse=True)

    def _files(self, suffix: str) -> Iterator[Path]:
        return (path for path in self.folder.glob(f"*{suffix}") if path.stem.isdecimal())

    def _sync(self) -> None:
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _digest(header: _Header, data: bytes) -> str:
    """Over everything that the file says, so that no part of it can change unseen."""
    unsealed = msgspec.structs.replace(header, sha256="")
    digest = hashlib.sha256(msgspec.json.encode(unsealed))
    digest.update(data)
    return digest.hexdigest()


def _load(path: Path, format: str) -> Snapshot:
    with path.open("rb") as file:
        first = file.readline(_HEADER_BYTES_MAX)
        try:
            header = msgspec.json.decode(first, type=_Header)
        except msgspec.DecodeError as trouble:
            raise _Unusable(f"its header cannot be read ({trouble})") from trouble
        if header.format != format:
            raise _Unusable(f"its format is {header.format!r}, not {format!r}")
        try:
            data = zlib.decompress(file.read(), bufsize=max(header.size, 1))
        except (zlib.error, MemoryError, OverflowError) as trouble:
            raise _Unusable(f"its data cannot be unpacked ({trouble})") from trouble
    if header.sha256 != _digest(header, data) or header.position != int(path.stem):
        raise _Unusable("its digest does not fit: it was changed or cut off")
    return Snapshot(header.position, header.chain, header.format, data)
