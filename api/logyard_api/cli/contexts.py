"""The file that remembers servers by name: ``config.toml`` in the user's configuration folder."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from logyard_api.cli.outcomes import USAGE, Trouble


class Context(NamedTuple):
    """A server, and the file that holds its token (empty: none is needed)."""

    server: str
    token_file: str = ""

    def token(self) -> str:
        """The token. Raises Trouble when its file cannot be read."""
        if not self.token_file:
            return ""
        try:
            return Path(self.token_file).read_text().strip()
        except OSError as trouble:
            raise Trouble(f"the token file of the context: {trouble}", USAGE) from trouble


class Contexts(NamedTuple):
    """All contexts by name, and the one in use (empty: none)."""

    current: str
    contexts: dict[str, Context]


def load(file: Path) -> Contexts:
    """What the file says; nothing where there is none. Raises Trouble naming what is wrong."""
    try:
        told: dict[str, Any] = tomllib.loads(file.read_text())
    except FileNotFoundError:
        return Contexts("", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as trouble:
        raise Trouble(f"{file}: {trouble}", USAGE) from trouble
    try:
        found = {
            str(name): Context(str(entry["server"]), str(entry.get("token-file", "")))
            for name, entry in told.get("contexts", {}).items()
        }
    except (KeyError, TypeError, AttributeError) as trouble:
        raise Trouble(
            f'{file}: every [contexts.NAME] needs a line like server = "http://127.0.0.1:8400"',
            USAGE,
        ) from trouble
    current = str(told.get("current", ""))
    if current and current not in found:
        raise Trouble(f"{file}: the context in use, {current!r}, is not in it", USAGE)
    return Contexts(current, found)


def save(file: Path, kept: Contexts) -> None:
    """Write the file, whole or not at all."""
    lines = [f"current = {_quoted(kept.current)}"]
    for name, entry in sorted(kept.contexts.items()):
        lines += ["", f"[contexts.{_quoted(name)}]", f"server = {_quoted(entry.server)}"]
        if entry.token_file:
            lines.append(f"token-file = {_quoted(entry.token_file)}")
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_text("\n".join(lines) + "\n")
    os.replace(fresh, file)


def _quoted(text: str) -> str:
    # A JSON string is a basic string of TOML.
    return json.dumps(text, ensure_ascii=False)
