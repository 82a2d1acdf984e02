"""Fixtures of the API tests."""

from tests.services.server import make_server, yard_server

__all__ = ["make_server", "yard_server"]
