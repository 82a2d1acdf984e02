"""As whom a command acts, until people have identities of their own."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
_OPTIONS = (
    ("user", "Logyard-User", "LOGYARD_USER", "Act as this user; the server's login otherwise."),
    ("group", "Logyard-Group", "LOGYARD_GROUP", "For this group; `default` otherwise."),
    (
        "organization",
        "Logyard-Organization",
        "LOGYARD_ORGANIZATION",
        "The organization of the group.",
    ),
)


def acting(function: F) -> F:
    """Give a verb `--user`, `--group` and `--organization`."""
    for name, _, variable, text in reversed(_OPTIONS):
        function = click.option(f"--{name}", envvar=variable, help=text)(function)
    return function


def headers(user: str | None, group: str | None, organization: str | None) -> dict[str, str]:
    """What a request carries, so that it acts so."""
    given = {"user": user, "group": group, "organization": organization}
    return {
        header: str(given[name]).encode().decode("latin-1")
        for name, header, _, _ in _OPTIONS
        if given[name]
    }
