"""What only the PostgreSQL runner has to stand: lost connections and other writers."""

import psycopg
import pytest

from logyard_projections.catalog import PROJECTIONS
from logyard_projections.runners.postgres import PostgresRunner
from logyard_projections.workflows import WORKFLOWS
from tests.projections.story import random_story


def cut_connections(url: str) -> int:
    """End every other connection to the database; how many there were."""
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    return len(found)


def test_a_lost_connection_is_made_again(postgres_url: str) -> None:
    records = random_story(4).records
    runner = PostgresRunner(postgres_url, PROJECTIONS, kept=2)
    try:
        for start in range(0, len(records), 30):
            runner.apply(records[start : start + 30])
            assert cut_connections(postgres_url) >= 1
            with runner.read() as view:
                assert view.mark.position == runner.position
        assert runner.position == len(records)
        plain = PostgresRunner(postgres_url, PROJECTIONS, schema="plain")
        try:
            plain.apply(records)
            with runner.read() as one, plain.read() as other:
                assert one.scan(WORKFLOWS).rows == other.scan(WORKFLOWS).rows
        finally:
            plain.close()
    finally:
        runner.close()


def test_two_writers_cannot_mix(postgres_url: str) -> None:
    records = random_story(4).records
    first = PostgresRunner(postgres_url, PROJECTIONS)
    second = PostgresRunner(postgres_url, PROJECTIONS)
    try:
        first.apply(records[:20])
        with pytest.raises(RuntimeError, match="no longer at position 0"):
            second.apply(records[:30])
        assert second.position == 0
        first.apply(records)
        assert first.position == len(records)
    finally:
        first.close()
        second.close()


def test_a_schema_has_a_plain_name(postgres_url: str) -> None:
    for name in ("a.b", "Views", "x; drop", ""):
        with pytest.raises(ValueError, match="is no schema name"):
            PostgresRunner(postgres_url, PROJECTIONS, schema=name)
