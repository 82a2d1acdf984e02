"""What jobs printed: on nodes that print into the server's folder, or as other nodes handed it in.

What was handed in lies in ``<stem of the workflow>.far/<stage>/<rank>.<attempt>.out`` and ``.err``.
"""

import os
from pathlib import Path

from logyard_api.errors import Failure, invalid, missing
from logyard_domain.identifiers import allocation_parts
from logyard_engine.substrate.printed import Printed, Stream, workflow_stem

PIECE_BYTES = 256 * 1024
"""Most that is read at once."""


class Output:
    """What one attempt printed on `node`. For one thread at a time; all methods block.

    Raises Failure where the text names no allocation.
    """

    def __init__(self, root: Path, node: str, allocation: str) -> None:
        self._far: dict[Stream, Path] = {
            "out": far_file(root, allocation, "out"),
            "err": far_file(root, allocation, "err"),
        }
        self._near = Printed(root, node, allocation)

    def read(self, stream: Stream, offset: int, most: int = PIECE_BYTES) -> bytes:
        """What there is from `offset` on; nothing where there is no output, or no more."""
        piece = _read(self._far[stream], offset, most)
        return self._near.read(stream, offset, most) if piece is None else piece

    def size(self, stream: Stream) -> int:
        """Bytes printed so far."""
        try:
            return self._far[stream].stat().st_size
        except FileNotFoundError:
            return self._near.size(stream)

    def tail_offset(self, stream: Stream, lines: int) -> int:
        """Where the last `lines` lines begin."""
        end = self.size(stream)
        if not lines:
            return end
        position, found = end, 0
        while position > 0:
            start = max(0, position - PIECE_BYTES)
            piece = self.read(stream, start, position - start)
            # The line end of the last line does not begin another one.
            upto = len(piece) - 1 if position == end and piece.endswith(b"\n") else len(piece)
            while (at := piece.rfind(b"\n", 0, upto)) >= 0:
                found += 1
                if found == lines:
                    return start + at + 1
                upto = at
            position = start
        return 0


def far_file(root: Path, allocation: str, stream: Stream) -> Path:
    """Where the output of an attempt is that is handed in. Raises Failure where the text names no
    allocation.
    """
    try:
        workflow, stage, rank, attempt = allocation_parts(allocation)
    except ValueError as trouble:
        raise invalid(f"allocation: {trouble}") from trouble
    if any(part in ("", ".", "..") for part in (workflow, *stage.split("/"))) or "\0" in allocation:
        raise missing(f"there is no allocation {allocation!r}")
    return Path(workflow_stem(root, workflow) + ".far", stage, f"{rank}.{attempt}.{stream}")


def _read(path: Path, offset: int, most: int) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
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
