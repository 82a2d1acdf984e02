"""Run the command line as people do: a process of its own, with its own configuration."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The answer of a command with --json."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The answer of a command that prints an object a line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Terminal:
    """A user with a home of their own. `server` is the server they ask where one is set."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.server = ""

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment that commands see."""
        kept = {key: value for key, value in os.environ.items() if key[:8] != "LOGYARD_"}
        kept |= {
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_DATA_HOME": str(self.home / "share"),
            "TZ": "UTC",
        }
        if self.server:
            kept["LOGYARD_SERVER"] = self.server
        return kept | dict(more or {})

    def start(
        self, *arguments: str | Path, more: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start a command and leave it running."""
        return subprocess.Popen(
            [sys.executable, "-m", "logyard", *map(str, arguments)],
            env=self.environment(more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.home,
        )

    def run(
        self,
        *arguments: str | Path,
        typed: str | bytes = "",
        more: Mapping[str, str] | None = None,
        seconds: float = 60.0,
    ) -> Done:
        """Run a command to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "logyard", *map(str, arguments)],
            env=self.environment(more),
            input=typed.encode() if isinstance(typed, str) else typed,
            capture_output=True,
            timeout=seconds,
            cwd=self.home,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """A user who knows no server yet."""
    home = tmp_path / "home"
    home.mkdir()
    return Terminal(home)
