"""Files under the data folder that requests name: no path leads out of it."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path, PurePosixPath
from typing import TypeVar
from uuid import uuid4

import msgspec

from logyard_api.errors import Code, Failure, invalid, missing

PATH_CHARS_MAX = 1024
SEGMENT_CHARS_MAX = 255

T = TypeVar("T")


class Found(msgspec.Struct, frozen=True):
    """A file below a folder: its path there, and its size in bytes."""

    path: str
    size: int


def inside(folder: Path, name: str) -> Path:
    """The path `name` below `folder`. Raises Failure where it leads out of it, also by a link."""
    parts = PurePosixPath(name).parts
    wrong = (
        not name
        or len(name) > PATH_CHARS_MAX
        or "\0" in name
        or name.startswith("/")
        or name.endswith("/")
        or any(part in ("..", ".") or len(part.encode()) > SEGMENT_CHARS_MAX for part in parts)
    )
    if wrong:
        raise invalid(
            f"path: {name[:80]!r} cannot be used; write a relative path without `..`, for instance "
            "tiles/17.png"
        )
    path = folder.joinpath(*parts)
    if not path.resolve().is_relative_to(folder.resolve()):
        raise missing(f"there is no file {name!r}")
    return path


def listed(folder: Path, most: int) -> list[Found]:
    """The regular files below a folder, sorted by path, at most `most`. Blocks."""
    found: list[Found] = []
    for top, folders, files in os.walk(folder):
        folders.sort()
        for name in files:
            path = Path(top, name)
            try:
                stat = path.lstat()
            except OSError:
                continue
            if path.is_symlink() or name.startswith(".incoming-"):
                continue
            found.append(Found(path.relative_to(folder).as_posix(), stat.st_size))
        if len(found) > most:
            break
    return sorted(found, key=lambda one: one.path)[:most]


async def store(path: Path, content: AsyncIterator[bytes], most: int) -> int:
    """Write a file whole or not at all, replacing what was there; its size in bytes.

    Raises Failure where it is larger than `most` bytes or cannot be written.
    """
    partial = path.parent / f".incoming-{uuid4().hex}"
    try:
        await aside(lambda: path.parent.mkdir(parents=True, exist_ok=True))
        with partial.open("wb") as file:
            size = 0
            async for piece in content:
                size += len(piece)
                if size > most:
                    raise Failure(Code.INVALID, f"the file is larger than {most} bytes", http=413)
                file.write(piece)
            await aside(lambda: _flush(file.fileno()))
        await aside(lambda: os.replace(partial, path))
    except OSError as trouble:
        raise invalid(f"path: this file cannot be written: {trouble.strerror}") from trouble
    finally:
        partial.unlink(missing_ok=True)
    return size


def _flush(descriptor: int) -> None:
    os.fsync(descriptor)


async def aside(work: Callable[[], T]) -> T:
    """Do blocking work in a thread."""
    return await asyncio.get_running_loop().run_in_executor(None, work)
