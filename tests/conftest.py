"""Fixtures that every test folder may use."""

from tests.services.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]
