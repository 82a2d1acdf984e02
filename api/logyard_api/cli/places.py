"""Which server a command asks, and where this user's files are.

The first that says something wins: ``--server``, ``LOGYARD_SERVER``, the context in use, and the
server that runs on the data folder of this machine.
"""

import json
import os
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from logyard_api.cli.outcomes import USAGE, NoServer, Trouble

SERVER_FILE = "server.json"
SETTINGS_FILE = Path("logyard.toml")
"""Settings of a server that is started in this folder."""


class Place(NamedTuple):
    """A server: its address, the token it wants, and where the address was found."""

    url: str
    token: str
    origin: str

    @property
    def prefix(self) -> str:
        """Path that a proxy put before the API, without a slash at its end."""
        return urlsplit(self.url).path.rstrip("/")


def config_file() -> Path:
    """The file that keeps contexts."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "logyard" / "config.toml"


def data_folder() -> Path:
    """The data folder that `logyard serve` would take here and now."""
    if told := os.environ.get("LOGYARD_DATA"):
        return Path(told)
    if SETTINGS_FILE.exists():
        import tomllib

        try:
            told = tomllib.loads(SETTINGS_FILE.read_text()).get("data")
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as trouble:
            raise Trouble(f"{SETTINGS_FILE}: {trouble}", USAGE) from trouble
        if isinstance(told, str):
            return Path(told)
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "logyard"


def find(option: str | None) -> Place:
    """The server to ask. Raises Trouble for a wrong address, NoServer where none is named."""
    token = os.environ.get("LOGYARD_TOKEN", "")
    if option:
        return Place(_address(option, "--server"), token, "--server")
    if told := os.environ.get("LOGYARD_SERVER"):
        return Place(_address(told, "LOGYARD_SERVER"), token, "LOGYARD_SERVER")
    from logyard_api.cli import contexts

    kept = contexts.load(config_file())
    if kept.current:
        chosen = kept.contexts[kept.current]
        return Place(chosen.server, token or chosen.token(), f"context {kept.current}")
    return local(data_folder(), token)


def local(folder: Path, token: str = "") -> Place:
    """The server that runs on a data folder, as it wrote down itself. Raises NoServer."""
    file = folder / SERVER_FILE
    try:
        told = json.loads(file.read_text())
        url = str(told["url"])
    except (OSError, ValueError, KeyError, TypeError):
        raise NoServer(
            "no server is known: no --server, no LOGYARD_SERVER, no context in use,"
            f" and none runs on {folder}\n"
            "start one with `logyard serve`, or name one with --server URL"
        ) from None
    return Place(url, token, str(file))


def _address(text: str, origin: str) -> str:
    url = text if "://" in text else f"http://{text}"
    parts = urlsplit(url)
    try:
        well = parts.scheme in {"http", "https"} and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        well = False
    if not well:
        raise Trouble(
            f"{origin}: {text!r} is no address of a server; write for instance http://127.0.0.1:8400",
            USAGE,
        )
    return url.rstrip("/")
