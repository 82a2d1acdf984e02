"""What jobs print, as files: ``<root>/<workflow>/<stage>/<rank>.<attempt>.out`` and ``.err``."""

import os
from pathlib import Path
from typing import Literal

from logyard_api.errors import Failure, invalid, missing
from logyard_domain.identifiers import allocation_parts

PIECE_BYTES = 256 * 1024
"""Most that is read at once."""

Stream = Literal["out", "err"]


def output_file(root: Path, allocation: str, stream: Stream) -> Path:
    """Where the output of an attempt is. Raises Failure where the text names no allocation."""
    try:
        workflow, stage, rank, attempt = allocation_parts(allocation)
    except ValueError as trouble:
        raise invalid(f"allocation: {trouble}") from trouble
    if any(part in ("", ".", "..") for part in (workflow, *stage.split("/"))) or "\0" in allocation:
        raise missing(f"there is no allocation {allocation!r}")
    return root / workflow / stage / f"{rank}.{attempt}.{stream}"


def read_piece(path: Path, offset: int, most: int = PIECE_BYTES) -> bytes:
    """What the file holds from `offset` on; nothing where there is no file or no more. Blocks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(descriptor, most, offset)
    finally:
        os.close(descriptor)


def write_piece(path: Path, offset: int, data: bytes) -> int:
    """Put bytes at `offset`, which may have been put there before; the size of the file. Blocks.

    Raises Failure where bytes before `offset` are missing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        if offset > size:
            raise _hole(offset, size)
        os.pwrite(descriptor, data, offset)
        return max(size, offset + len(data))
    finally:
        os.close(descriptor)


def _hole(offset: int, size: int) -> Failure:
    return invalid(
        f"query: offset: {offset} leaves a hole; the server has {size} bytes: go on there"
    )


def tail_offset(path: Path, lines: int) -> int:
    """Where the last `lines` lines of the file begin. Blocks."""
    try:
        end = path.stat().st_size
    except FileNotFoundError:
        return 0
    position, found = end, 0
    while position > 0:
        start = max(0, position - PIECE_BYTES)
        piece = read_piece(path, start, position - start)
        # The line end of the last line does not begin another one.
        upto = len(piece) - 1 if position == end and piece.endswith(b"\n") else len(piece)
        while (at := piece.rfind(b"\n", 0, upto)) >= 0:
            found += 1
            if found == lines:
                return start + at + 1
            upto = at
        position = start
    return 0
