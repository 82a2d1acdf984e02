"""Who may come in: one static bearer token, needed where the server is reached from outside."""

import hmac
import ipaddress
import os
from pathlib import Path

OPEN_PATHS = frozenset({"/v4/version", "/healthz", "/readyz"})
"""Answered without a token."""

TOKEN_CHARS_MIN = 16


class Guard:
    """Compares a request's token with the server's, in constant time. No token: all may enter."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def admits(self, path: str, headers: list[tuple[bytes, bytes]]) -> bool:
        """Whether a request with these raw headers may go on to `path`."""
        if not self._token or path in OPEN_PATHS:
            return True
        for name, value in headers:
            if name == b"authorization":
                scheme, _, token = value.partition(b" ")
                return scheme.lower() == b"bearer" and hmac.compare_digest(token, self._token)
        return False


def is_loopback(host: str) -> bool:
    """Whether a server that listens on `host` can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_token(path: Path) -> str:
    """The token in a file that only its owner can read.

    Raises ValueError where the file is missing, open to others, or holds no usable token.
    """
    try:
        mode = path.stat().st_mode
        token = path.read_text(encoding="utf-8").strip()
    except OSError as trouble:
        raise ValueError(f"token file {path}: {trouble.strerror}") from trouble
    if os.name == "posix" and mode & 0o077:
        raise ValueError(f"token file {path}: others can read it; run chmod 600 {path}")
    check_token(token)
    return token


def check_token(token: str) -> None:
    """Raises ValueError for a token that is too short or cannot be sent in a header."""
    if len(token) < TOKEN_CHARS_MIN:
        raise ValueError(f"the token has {len(token)} characters; the least is {TOKEN_CHARS_MIN}")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("the token has characters other than printable ASCII without spaces")
