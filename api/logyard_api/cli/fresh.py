"""Folders that a command fills anew, and the settings that it takes as KEY=VALUE."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from logyard_api.cli.outcomes import USAGE, Trouble

if TYPE_CHECKING:
    from logyard_domain.configuration import Value
    from logyard_domain.expressions import Expression

LOG = "log.sqlite"
_LOCK = "server.lock"


def folder_for(out: Path, others: Iterable[str], force: bool) -> Path:
    """Where the log goes: DIR/log.sqlite, which is not there (any more), as `others` are not.

    Raises Trouble where a server lives there, where a log is kept already, and where the folder
    cannot be made.
    """
    if (out / _LOCK).exists():
        raise Trouble(f"{out}: this is the data folder of a server; choose another --out", USAGE)
    try:
        out.mkdir(parents=True, exist_ok=True)
        if (out / LOG).exists() and not force:
            raise Trouble(
                f"{out}: there is a log already; choose another --out, or --force to replace it",
                USAGE,
            )
        for name in (LOG, f"{LOG}-wal", f"{LOG}-shm", *others):
            (out / name).unlink(missing_ok=True)
    except OSError as trouble:
        raise Trouble(f"{out}: {trouble.strerror}", USAGE) from None
    return out / LOG


def settings_of(given: Iterable[str]) -> "tuple[dict[str, Value], dict[str, Expression]]":
    """The settings that --set names, checked, and the meaning of expressions among them."""
    from logyard_api.decisions import meanings, settled
    from logyard_workflows_dsl.expressions import UnreadableExpression

    texts: dict[str, str] = {}
    for text in given:
        key, found, value = text.partition("=")
        if not found:
            raise Trouble(f"--set {text}: write KEY=VALUE, such as scheduler.lookahead=0", USAGE)
        texts[key.strip()] = value.strip()
    try:
        values = settled(texts, bare=True)
        return values, meanings(values)
    except UnreadableExpression as trouble:
        raise Trouble(str(trouble), USAGE) from None
    except ValueError as trouble:
        raise Trouble(f"--set {trouble}", USAGE) from None
