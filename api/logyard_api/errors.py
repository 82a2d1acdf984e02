"""What goes wrong for a caller, as one exception and one body: a ``google.rpc.Status``."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import msgspec


class Code(IntEnum):
    """The gRPC codes that answers carry."""

    INVALID = 3
    TIMEOUT = 4
    MISSING = 5
    EXISTS = 6
    FORBIDDEN = 7
    EXHAUSTED = 8
    CONFLICT = 9
    RANGE = 11
    UNKNOWN_METHOD = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


HTTP_STATUS: dict[Code, int] = {
    Code.INVALID: 400,
    Code.TIMEOUT: 504,
    Code.MISSING: 404,
    Code.EXISTS: 409,
    Code.FORBIDDEN: 403,
    Code.EXHAUSTED: 429,
    Code.CONFLICT: 400,
    Code.RANGE: 400,
    Code.UNKNOWN_METHOD: 405,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.UNAUTHENTICATED: 401,
}

CODE_OF_STATUS: dict[int, Code] = {
    400: Code.INVALID,
    401: Code.UNAUTHENTICATED,
    403: Code.FORBIDDEN,
    404: Code.MISSING,
    405: Code.UNKNOWN_METHOD,
    409: Code.EXISTS,
    413: Code.INVALID,
    429: Code.EXHAUSTED,
    503: Code.UNAVAILABLE,
    504: Code.TIMEOUT,
}

REFUSAL_CODES = {"invalid": Code.INVALID, "missing": Code.MISSING, "conflict": Code.CONFLICT}
"""By the kind of a domain refusal."""


class Status(msgspec.Struct, frozen=True):
    """Any answer that is no success. `code` is a gRPC code, `message` says what would be right."""

    code: int
    message: str
    details: list[dict[str, Any]] = []


class Failure(Exception):
    """The answer is a `Status`, sent with the HTTP status of its code or with `http`."""

    def __init__(
        self,
        code: Code,
        message: str,
        details: Sequence[dict[str, Any]] = (),
        http: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = list(details)
        self.http = http or HTTP_STATUS[code]

    def body(self) -> bytes:
        """The JSON body of the answer."""
        return msgspec.json.encode(Status(int(self.code), self.message, self.details))


def invalid(message: str, details: Sequence[dict[str, Any]] = ()) -> Failure:
    """The request is wrong whatever the state of the cluster."""
    return Failure(Code.INVALID, message, details)


def missing(message: str) -> Failure:
    """What the request names does not exist."""
    return Failure(Code.MISSING, message)


def unavailable(message: str) -> Failure:
    """Not now; the same request may succeed later."""
    return Failure(Code.UNAVAILABLE, message)
