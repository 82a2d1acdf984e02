"""Files below a folder that somebody else writes into: no path and no link leads out of it.

Every component is opened from its parent's handle without following links, so a link that is put in
place meanwhile changes nothing. Links that stay inside are followed by hand.
"""

import errno
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

_LINKS_MAX = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class Escape(Exception):
    """The path, or a link on it, leads out of its folder. The message names it."""


def parts_of(path: str) -> list[str]:
    """Components of a path below a folder; a leading ``/`` means that folder. Raises Escape on
    ``..`` above it.
    """
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                raise Escape(f"{path} leads out of the volume")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return parts


@contextmanager
def parent(root: Path, path: str, create: bool = False) -> Generator[tuple[int, str]]:
    """Handle of the folder that holds `path` below `root`, and the last name in it (``.`` for
    `root`).

    The last name is no link. `create` makes missing folders. Raises Escape, and OSError when a
    component is missing or is no folder.
    """
    pending = parts_of(path)[::-1]
    handles = [os.open(root, _FOLDER)]
    links = 0
    try:
        name = "."
        while pending:
            name = pending.pop()
            if name == "..":
                if len(handles) == 1:
                    raise Escape(f"{path} leads out of the volume by a link")
                os.close(handles.pop())
                name = "."
                continue
            target = _link(handles[-1], name)
            if target is not None:
                links += 1
                if links > _LINKS_MAX:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                if target.startswith("/"):
                    raise Escape(f"{path} leads out of the volume: {name} is a link to {target}")
                pending += [part for part in target.split("/") if part not in ("", ".")][::-1]
                name = "."
            elif pending:
                handles.append(_folder(handles[-1], name, create))
                name = "."
        yield handles[-1], name
    finally:
        for handle in handles:
            os.close(handle)


def make_folder(root: Path, path: str) -> None:
    """Create `path` below `root`, with its parents; what is there already stays."""
    with parent(root, path + "/.keep" if parts_of(path) else ".", create=True):
        return


def write(root: Path, path: str, content: bytes, mode: int = 0o644) -> None:
    """Put a file below `root` in one step (a reader sees all of it or the old one)."""
    with parent(root, path, create=True) as (folder, name):
        if name == ".":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        spare = f".{name}.{os.getpid()}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        fd = os.open(spare, flags, mode, dir_fd=folder)
        with open(fd, "wb") as file:
            file.write(content)
        os.rename(spare, name, src_dir_fd=folder, dst_dir_fd=folder)


def files(root: Path, path: str) -> Iterator[tuple[str, int]]:
    """Each file at or below `path`: its name relative to `path` (empty for `path` itself) and an
    open handle, which the caller closes.

    Folders of links that lead round in a circle end with Escape; devices and pipes are skipped.
    """
    with parent(root, path) as (folder, name):
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if not stat.S_ISDIR(mode):
            yield "", os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            return
    yield from _below(root, "/".join(parts_of(path)), "", 0)


def _below(root: Path, path: str, relative: str, links: int) -> Iterator[tuple[str, int]]:
    if links > _LINKS_MAX:
        raise Escape(f"{path}: links lead round in a circle")
    with parent(root, path) as (folder, name):
        handle = os.open(name, _FOLDER, dir_fd=folder)
    try:
        with os.scandir(handle) as entries:
            listed = sorted((entry.name, entry.is_symlink()) for entry in entries)
    finally:
        os.close(handle)
    for entry, is_link in listed:
        inside, shown = f"{path}/{entry}", f"{relative}{entry}"
        with parent(root, inside) as (folder, name):
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISREG(mode):
                yield shown, os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
        if stat.S_ISDIR(mode):
            yield from _below(root, inside, shown + "/", links + is_link)


def _link(folder: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise


def _folder(folder: int, name: str, create: bool) -> int:
    if create:
        try:
            os.mkdir(name, 0o755, dir_fd=folder)
        except FileExistsError:
            pass
    return os.open(name, _FOLDER, dir_fd=folder)
