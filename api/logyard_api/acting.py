"""As whom a request acts, until people have identities of their own.

Whoever may use the server at all may act as any user of any group: what bears the server's token is
trusted to say who asks.
"""

import re
from typing import NamedTuple

from starlette.requests import Request

from logyard_api.errors import invalid
from logyard_api.yard import Yard
from logyard_projections.entities import DEFAULT

USER, GROUP, ORGANIZATION = "Logyard-User", "Logyard-Group", "Logyard-Organization"
ACTING = {
    USER: "who acts; the login that runs the server when absent",
    GROUP: "the group that it is for; `default` when absent",
    ORGANIZATION: "the organization of that group; `default` when absent",
}
_NAME = re.compile(r"[^/#\s\x00-\x1f\x7f]{1,200}")


class Acting(NamedTuple):
    """Who asks, and for whom."""

    user: str
    group: str
    organization: str


def acting_as(request: Request, yard: Yard) -> Acting:
    """As whom the request acts. Raises Failure for what is no name."""
    return Acting(
        _named(request, USER, yard.user),
        _named(request, GROUP, DEFAULT),
        _named(request, ORGANIZATION, DEFAULT),
    )


def _named(request: Request, header: str, otherwise: str) -> str:
    found = request.headers.get(header)
    if found is None:
        return otherwise
    name = found.encode("latin-1").decode(errors="replace").strip()
    if not _NAME.fullmatch(name):
        raise invalid(
            f"{header}: {name[:80]!r} is no name; use up to 200 letters, digits, dots and dashes"
        )
    return name
