"""What exactly is executed: a command found in PATH, or a script handed to its interpreter."""

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from logyard_engine.substrate.environment import DEFAULT_PATH
from logyard_engine.substrate.keeper.children import (
    EXIT_NOT_EXECUTABLE,
    EXIT_NOT_FOUND,
    EXIT_NOT_STARTED,
)

DEFAULT_INTERPRETER = "/bin/sh"


class Refusal(Exception):
    """The work cannot be started here. The message is for the author of the workflow; `exit_code`
    is 127 for a missing executable, 126 for one that may not be executed, else 125.
    """

    def __init__(self, message: str, exit_code: int = EXIT_NOT_STARTED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def executable(
    name: str, env: Mapping[str, str], cwd: str, on_host: Callable[[str], str | Path]
) -> str:
    """Path (as the job sees it) of the executable that `name` means; `on_host` maps it to this
    node's.

    Raises Refusal.
    """
    if "/" in name:
        path = os.path.normpath(os.path.join(cwd, name))
        host = Path(on_host(path))
        if not host.exists():
            raise Refusal(f"{name} does not exist on this node", EXIT_NOT_FOUND)
        if not _runs(host):
            raise Refusal(f"{name} is not executable", EXIT_NOT_EXECUTABLE)
        return path
    search = env.get("PATH") or DEFAULT_PATH
    refused = ""
    for folder in search.split(":"):
        path = f"{folder or cwd}/{name}"
        seen = os.fspath(on_host(path))
        try:
            mode = os.stat(seen).st_mode
        except OSError:
            continue
        if stat.S_ISREG(mode):
            if os.access(seen, os.X_OK):
                return os.path.normpath(path)
            refused = refused or path
    if refused:
        raise Refusal(f"{refused} is not executable", EXIT_NOT_EXECUTABLE)
    raise Refusal(f"{name} was not found; PATH is {search}", EXIT_NOT_FOUND)


def interpreter(script: str, on_host: Callable[[str], Path]) -> tuple[str, ...]:
    """The interpreter of a script with its one argument, as the kernel reads ``#!``; without that
    line `DEFAULT_INTERPRETER`. Raises Refusal when it does not exist.
    """
    first = script.partition("\n")[0]
    if not first.startswith("#!") or not first[2:].strip():
        return (DEFAULT_INTERPRETER,)
    words = first[2:].strip().split(None, 1)
    if not words[0].startswith("/"):
        raise Refusal(
            f"the script's first line names {words[0]}; an interpreter is named by its whole path, "
            f"for instance /usr/bin/env {words[0]}",
            EXIT_NOT_FOUND,
        )
    host = on_host(words[0])
    if not host.exists():
        raise Refusal(f"the script's interpreter {words[0]} does not exist", EXIT_NOT_FOUND)
    if not _runs(host):
        raise Refusal(f"the script's interpreter {words[0]} is not executable", EXIT_NOT_EXECUTABLE)
    return tuple(words)


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
