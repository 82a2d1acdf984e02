"""Settings of the server process: flags over environment over a TOML file over defaults.

They decide nothing about work: what decisions depend on is part of the log (see
`logyard_domain.configuration`), and only its wanted values stand here, under `decisions`.
"""

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast, get_args

import msgspec

from logyard_api.auth import check_token, is_loopback, read_token
from logyard_api.decisions import PRIORITY, flat, meanings, settled
from logyard_api.logging_setup import Format, Level
from logyard_domain.configuration import Value
from logyard_domain.quantities import parse_size
from logyard_workflows_dsl.expressions import UnreadableExpression, rendered

FILE_NAME = "logyard.toml"
PREFIX = "LOGYARD_"


class Unusable(Exception):
    """The settings cannot be used. The message says which, where set, and what would be right."""


class Settings(
    msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True
):
    """One server process.

    data: folder of the log, snapshots, results and output; made when missing; without it
        `logyard` in `$XDG_DATA_HOME` or `~/.local/share`
    host: address to listen on
    port: TCP port; 0 takes a free one, printed and written to `server.json` in the data folder
    cluster: name of the cluster, in every record and id
    log: where the log is: empty for SQLite in the data folder, `memory`, or `postgresql://...`
    projections: where the views are kept: empty for SQLite in the data folder, `memory`, or
        `postgresql://...`
    nodes: how many nodes run inside this process; 0 for none
    node-cores: cores of each of them; 0 shares out the cores of this machine
    node-memory: memory of each, such as `8GiB`; empty shares out the memory of this machine
    node-devices: devices of each, as `name=count,...`
    node-annotations: annotations of each, as `key=value,...`
    token: bearer token that requests must carry; needed when `host` is not a loopback address
    token-file: file that holds the token, readable by its owner only
    log-level: `debug`, `info`, `warning` or `error`
    log-format: `human` or `json`
    decisions: configuration of the cluster to set at start, by key
    """

    data: Path = Path()
    host: str = "127.0.0.1"
    port: int = 8400
    cluster: str = "main"
    log: str = ""
    projections: str = ""
    nodes: int = 1
    node_cores: int = 0
    node_memory: str = ""
    node_devices: dict[str, int] = {}
    node_annotations: dict[str, str] = {}
    token: str = ""
    token_file: str = ""
    log_level: Level = "info"
    log_format: Format = "human"
    decisions: dict[str, Value] = {}

    @property
    def node_memory_bytes(self) -> int:
        """Memory of each node inside the process, 0 when it is to be shared out."""
        return parse_size(self.node_memory) if self.node_memory else 0


_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(Settings)}
_COMMA = re.compile(",")
_DECISIONS_COMMA = re.compile(r",(?=\s*[\w.]+\s*=(?!=))|,(?=\s*(?:,|$))")
"""An expression has commas too: the next pair begins where a name and one = follow."""
_MAPS = frozenset({"node-devices", "node-annotations", "decisions"})


def load(
    flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None = None
) -> Settings:
    """The settings in force. `flags` has kebab-case names, without those that were not given.

    `file` is the TOML file; without it `logyard.toml` in the working folder is read where it is.
    Raises Unusable.
    """
    found = _from_file(file)
    found.update(_from_environment(environment))
    found.update({name: (value, f"--{name}") for name, value in flags.items()})
    for name, (_, origin) in found.items():
        if name not in _FIELDS:
            raise Unusable(f"{origin}: {_unknown(name)}")
    values = {name: _converted(name, value, origin) for name, (value, origin) in found.items()}
    values.setdefault("data", str(_default_folder(environment)))
    settings = msgspec.convert(values, Settings, dec_hook=_path)
    return _checked(settings)


def _default_folder(environment: Mapping[str, str]) -> Path:
    home = environment.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "logyard"


def _from_file(file: Path | None) -> dict[str, tuple[Any, str]]:
    path = file or Path(FILE_NAME)
    if file is None and not path.exists():
        return {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as trouble:
        raise Unusable(f"{path}: {trouble.strerror}") from trouble
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as trouble:
        raise Unusable(f"{path}: this is no TOML: {trouble}") from trouble
    if isinstance(table.get("data"), str):
        table["data"] = str(path.parent / table["data"])
    return {name: (value, f"{path}: {name}") for name, value in table.items()}


def _from_environment(environment: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    for name in _FIELDS:
        variable = PREFIX + name.upper().replace("-", "_")
        if variable in environment:
            found[name] = (environment[variable], variable)
    return found


def _unknown(name: str) -> str:
    near = get_close_matches(name, _FIELDS, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(_FIELDS)}"
    return f"no such setting; {hint}"


def _converted(name: str, value: Any, origin: str) -> Any:
    if name in _MAPS and isinstance(value, str):
        value = _pairs(value, origin, _DECISIONS_COMMA if name == "decisions" else _COMMA)
    if name == "decisions":
        return _decisions(value, origin)
    try:
        return msgspec.to_builtins(
            msgspec.convert(value, _FIELDS[name].type, strict=False, dec_hook=_path),
            enc_hook=str,
        )
    except msgspec.ValidationError as trouble:
        words = ", ".join(str(word) for word in get_args(_FIELDS[name].type))
        hint = f"; it is one of {words}" if isinstance(value, str) and words else ""
        raise Unusable(f"{origin}: {value!r} cannot be used: {trouble}{hint}") from trouble


def _path(kind: type, value: Any) -> Any:
    return Path(str(value)) if kind is Path else value


def _pairs(text: str, origin: str, comma: re.Pattern[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in comma.split(text))):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise Unusable(f"{origin}: {part!r} is no pair; write key=value,key=value")
        pairs[key.strip()] = value.strip()
    return pairs


def _decisions(value: Any, origin: str) -> dict[str, Value]:
    if not isinstance(value, dict):
        raise Unusable(f"{origin}: this must be a table of keys and values")
    try:
        values = settled(flat(cast(dict[str, Any], value)), bare=True)
    except ValueError as trouble:
        raise Unusable(f"{origin}: {trouble}") from trouble
    try:
        meanings(values)
    except UnreadableExpression as trouble:
        shown = rendered(trouble.faults, str(values[PRIORITY]))
        raise Unusable(f"{origin}:\n{shown}") from trouble
    return values


def _checked(settings: Settings) -> Settings:
    try:
        if settings.token and settings.token_file:
            raise ValueError("token and token-file are both set; keep one")
        if settings.token_file:
            settings = msgspec.structs.replace(
                settings, token=read_token(Path(settings.token_file)), token_file=""
            )
        if settings.token:
            check_token(settings.token)
        elif not is_loopback(settings.host):
            raise ValueError(
                f"host {settings.host} can be reached from other machines and no token is set: "
                "give --token-file FILE or LOGYARD_TOKEN, or listen on 127.0.0.1"
            )
        if not 0 <= settings.port <= 65535:
            raise ValueError(f"port {settings.port}: a port is between 0 and 65535")
        if not 0 <= settings.nodes <= 1000:
            raise ValueError(f"nodes {settings.nodes}: between 0 and 1000 nodes run in one process")
        if settings.node_cores < 0:
            raise ValueError(
                f"node-cores {settings.node_cores}: the least is 0, all of the machine"
            )
        _ = settings.node_memory_bytes
    except ValueError as trouble:
        raise Unusable(str(trouble)) from trouble
    return settings
