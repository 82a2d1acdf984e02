"""What is particular to the log in PostgreSQL: lost connections above all."""

from collections.abc import Callable, Iterator

import psycopg
import pytest
from eventsourcing.persistence import IntegrityError, StoredEvent

from logyard_domain import codec
from logyard_engine.log.log import (
    AppendFailed,
    CannotOpen,
    Fenced,
    InDoubt,
    Log,
    LogReader,
    LogTrouble,
)
from logyard_engine.log.opening import open_for_reading, open_log
from logyard_engine.log.postgres import PostgresRecorder, open_database
from logyard_engine.log.recorded import RecordedLog
from logyard_engine.log.verify import verify
from tests.log.entries import CLUSTER, encoded, some
from tests.services.postgres import PostgresServer
from tests.services.proxy import Moment, Proxy

BATCH = b'"chain":"'
"""In what a client says when it appends."""


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[Proxy]:
    made = Proxy(postgres_server.port)
    yield made
    made.close()


@pytest.fixture
def far(postgres_url: str, postgres_server: PostgresServer, proxy: Proxy) -> Iterator[RecordedLog]:
    """A log that is reached through the proxy, with three records and a connection made."""
    open_log(postgres_url, CLUSTER).close()
    url = postgres_url.replace(f":{postgres_server.port}/", f":{proxy.port}/")
    recorder = PostgresRecorder(
        f"{url}?sslmode=disable&gssencmode=disable", connect_timeout_s=0.5, patience_s=(0, 0.01)
    )
    log = RecordedLog(recorder, CLUSTER)
    log.append(some(3))
    yield log
    log.close()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_lost_connection_writes_once(far: RecordedLog, proxy: Proxy, moment: Moment) -> None:
    called: list[int] = []
    proxy.cut(moment, BATCH, lambda: called.append(1))
    records = far.append(some(5, seed=1))
    assert called == [1]
    assert far.position == 8
    assert far.read(3, 100) == records
    far.append(some(1))
    assert verify(far.read_states(), head=(9, far.chain)).count == 9


def test_the_commit_arrives_after_it_was_not_found(
    far: RecordedLog, proxy: Proxy, postgres_url: str
) -> None:
    # The same bytes, committed by a session that the writer does not know to live still.
    batch = some(5, seed=1)
    ghost = open_log(postgres_url, CLUSTER)
    pauses: list[float] = []

    def commit_late(pause_s: float) -> None:
        pauses.append(pause_s)
        if len(pauses) == 2:
            ghost.append(batch)

    far._pause = commit_late  # pyright: ignore[reportPrivateUsage]
    proxy.cut("before", BATCH, lambda: proxy.cut("before", BATCH))
    far.append(batch)
    assert pauses == [0, 0.01]
    assert list(far.read_states())[3:] == list(ghost.read_states(3))
    assert (far.position, far.chain) == (ghost.position, ghost.chain) == (8, far.chain)
    ghost.close()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_another_writer_meanwhile(
    far: RecordedLog, proxy: Proxy, postgres_url: str, moment: Moment
) -> None:
    # It appends between the loss and the look: at the same place, or after the whole batch.
    def append_elsewhere() -> None:
        other = open_log(postgres_url, CLUSTER)
        other.append(some(2, seed=2))
        other.close()

    proxy.cut(moment, BATCH, append_elsewhere)
    if moment == "before":
        with pytest.raises(Fenced):
            far.append(some(5, seed=1))
        assert verify(far.read_states()).count == 5
    else:
        assert far.append(some(5, seed=1))[-1].position == 8
        with pytest.raises(Fenced):
            far.append(some(1))
        assert verify(far.read_states()).count == 10


def test_a_connection_that_does_not_come_back(
    far: RecordedLog, proxy: Proxy, postgres_url: str
) -> None:
    proxy.cut("after", BATCH, proxy.refuse)
    with pytest.raises(InDoubt, match="lost while appending after position 3"):
        far.append(some(5, seed=1))
    with pytest.raises(AppendFailed, match="accepts no more appends"):
        far.append(some(1))
    again = open_log(postgres_url, CLUSTER)
    assert again.position == 8
    again.close()


def test_a_restarted_server_is_waited_for(postgres_server: PostgresServer) -> None:
    url = postgres_server.new_database()
    log = open_log(url, CLUSTER)
    log.append(some(3))
    postgres_server.stop()
    postgres_server.start()
    log.append(some(60, seed=1))
    assert log.read(60, 10)[-1].position == 63
    log.close()


@pytest.mark.parametrize("count", [1, 2, 130])
def test_rows_are_those_that_the_library_reads(postgres_url: str, count: int) -> None:
    states = [state for _, state in encoded(count)]
    tags = [f"tag.{number}" for number in range(count)]
    recorder = open_database(postgres_url)
    recorder.insert_states(CLUSTER, 1, tags, states)
    events = [
        StoredEvent(CLUSTER, position, tag, state)
        for position, (tag, state) in enumerate(zip(tags, states, strict=True), 1)
    ]
    assert recorder.select_events(CLUSTER) == events
    stock = [StoredEvent(CLUSTER, count + place, "tag.next", b"{}") for place in (1, 2)]
    recorder.insert_events(stock)
    assert recorder.select_events(CLUSTER, gt=count) == stock
    with pytest.raises(IntegrityError):
        recorder.insert_events(stock)
    recorder.close()


def test_connections_commit_durably_and_take_the_urls_options(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {admin.info.dbname} SET synchronous_commit = off".encode())
    recorder = open_database(f"{postgres_url}?application_name=yard")
    with recorder.datastore.get_connection() as connection:
        row = connection.execute(
            "SELECT current_setting('synchronous_commit') AS a,"
            " current_setting('application_name') AS b"
        ).fetchone()
    assert row == {"a": "on", "b": "yard"}
    recorder.close()


def test_clusters_can_share_a_table_only_unawares(postgres_url: str) -> None:
    recorder = open_database(postgres_url)
    recorder.insert_states("a", 1, ["t"], [b"{}"])
    recorder.insert_states("b", 1, ["t"], [b"{}"])
    assert recorder.select_states("b", 0, 10, 10) == [(1, b"{}")]
    recorder.close()


def _open(url: str) -> Log:
    return open_log(url, CLUSTER)


@pytest.mark.parametrize("opened", [_open, open_for_reading])
def test_tables_that_are_no_log(postgres_url: str, opened: Callable[[str], LogReader]) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("CREATE TABLE logyard_log (a int)")
        with pytest.raises(CannotOpen, match="its table logyard_log is no Logyard log"):
            opened(postgres_url)
        admin.execute("COMMENT ON TABLE logyard_log IS 'Logyard log, schema 9'")
        with pytest.raises(CannotOpen, match=r"newer release wrote this log \(its schema is 9"):
            opened(postgres_url)


def test_what_cannot_be_reached_says_why(postgres_url: str) -> None:
    secret = postgres_url.replace("postgres@", "postgres:hunter2@") + "_not"
    with pytest.raises(CannotOpen, match=r'database "test_\d+_not" does not exist') as found:
        open_log(secret, CLUSTER)
    assert "hunter2" not in str(found.value)
    with pytest.raises(CannotOpen, match="no PostgreSQL URL"):
        open_log("postgresql://h/d?nonsense=1", CLUSTER)
    with pytest.raises(CannotOpen, match="there is no log in this database"):
        open_for_reading(postgres_url)


def test_a_statement_that_the_server_refuses(postgres_url: str) -> None:
    log = open_log(postgres_url, CLUSTER)
    log.append(some(2))
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("ALTER TABLE logyard_log RENAME TO elsewhere")
        with pytest.raises(AppendFailed, match=r"nothing was appended after position 2.*exist"):
            log.append(some(2))
        with pytest.raises(LogTrouble, match="cannot be read after position 0"):
            log.read(0, 1)
    log.close()


def test_removed_rows_are_seen_as_a_gap(postgres_url: str) -> None:
    log = open_log(postgres_url, CLUSTER)
    log.append(some(30))
    with psycopg.connect(postgres_url) as admin:
        admin.execute("DELETE FROM logyard_log WHERE originator_version BETWEEN 5 AND 25")
    assert [position for position, _ in log.read_states()] == [1, 2, 3, 4, *range(26, 31)]
    assert len(log.read(0, 4)) == 4
    for after, limit in ((4, 5), (0, 100)):
        with pytest.raises(codec.Damaged, match=r"position 5: missing; .* position 26"):
            log.read(after, limit)
    log.close()
