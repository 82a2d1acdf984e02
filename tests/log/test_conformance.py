"""What every log keeps to, whatever its storage."""

import gc
from itertools import islice
from threading import Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logyard_domain import codec
from logyard_domain.records import Record
from logyard_engine.log.log import AppendFailed, CannotOpen, Fenced
from logyard_engine.log.verify import verify
from tests.log.conftest import Storage
from tests.log.entries import CLUSTER, cordoned, encoded, entries_of, some, started


def test_a_new_log_is_empty(storage: Storage) -> None:
    log = storage.open()
    assert (log.cluster, log.position, log.chain) == (CLUSTER, 0, codec.GENESIS)
    assert log.read(0, 100) == []
    assert list(log.read_states()) == []


def test_what_is_appended_is_read(storage: Storage) -> None:
    log = storage.open()
    entries = some(7)
    first = log.append(entries[:3])
    second = log.append(entries[3:])
    assert [record.position for record in first + second] == list(range(1, 8))
    assert entries_of(first + second) == entries
    assert log.read(0, 100) == first + second
    assert log.read(0, 2) == first[:2]
    assert log.read(2, 3) == (first + second)[2:5]
    assert log.read(7, 100) == []
    assert (log.position, log.chain) == (7, second[-1].chain)


def test_the_chain_holds_over_appends(storage: Storage) -> None:
    log = storage.open()
    for start in range(0, 60, 7):
        log.append(some(60)[start : start + 7])
    verified = verify(log.read_states(), head=(log.position, log.chain))
    assert (verified.count, verified.position, verified.chain) == (60, 60, log.chain)


def test_bytes_are_those_of_the_codec(storage: Storage) -> None:
    log = storage.open()
    log.append(some(120))
    assert list(log.read_states()) == encoded(120)


def test_an_empty_append_writes_nothing(storage: Storage) -> None:
    log = storage.open()
    log.append(some(2))
    before = (log.position, log.chain)
    assert log.append([]) == []
    assert (log.position, log.chain) == before
    assert len(list(log.read_states())) == 2


def test_reopening_goes_on_where_it_ended(storage: Storage) -> None:
    log = storage.open()
    records = log.append(some(5))
    log.close()
    again = storage.open()
    assert (again.position, again.chain) == (5, records[-1].chain)
    records += again.append(some(5, seed=1))
    assert storage.open().read(0, 100) == records
    verify(again.read_states())


def test_a_reader_sees_what_a_writer_appends_later(storage: Storage) -> None:
    log = storage.open()
    log.append(some(2))
    reader = storage.reader()
    assert (reader.cluster, reader.position, reader.chain) == (CLUSTER, 2, log.chain)
    later = log.append(some(3, seed=1))
    assert reader.read(2, 10) == later
    assert reader.position == 2


def test_read_states_takes_bounds(storage: Storage) -> None:
    log = storage.open()
    log.append(some(10))
    everything = list(log.read_states())
    assert list(log.read_states(4)) == everything[4:]
    assert list(log.read_states(4, 7)) == everything[4:7]
    assert list(log.read_states(4, 400)) == everything[4:]
    assert list(log.read_states(10)) == []
    assert list(log.read_states(0, 0)) == []


def test_large_batches_and_many_pages(storage: Storage) -> None:
    log = storage.open()
    records = log.append(some(12_345))
    assert log.position == len(records) == 12_345
    assert verify(log.read_states(), head=(12_345, log.chain)).count == 12_345
    assert log.read(12_000, 1_000) == records[12_000:]


def test_half_read_states_hold_nothing_back(storage: Storage) -> None:
    log = storage.open()
    log.append(some(6_000))
    for _ in range(30):
        states = log.read_states()
        assert len(list(islice(states, 3))) == 3
        log.append(some(1))
    assert log.position == 6_030
    gc.collect()


def test_a_large_record(storage: Storage) -> None:
    log = storage.open()
    (record,) = log.append([cordoned("n1", "x" * 3_000_000)])
    assert log.read(0, 1) == [record]


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.text(), st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_any_text_comes_back(storage: Storage, node: str, reason: str) -> None:
    log = storage.open()
    written = log.append([cordoned(node, reason)])
    assert log.read(log.position - 1, 1) == written
    log.close()


def test_a_second_writer_is_fenced(storage: Storage) -> None:
    first = storage.open()
    first.append(some(3))
    second = storage.open()
    kept = first.append(some(2, seed=1))
    with pytest.raises(Fenced, match="after position 3"):
        second.append(some(4, seed=2))
    assert first.read(3, 100) == kept
    first.append(some(60, seed=3))
    assert verify(first.read_states(), head=(first.position, first.chain)).count == 65


def test_a_conflict_in_the_middle_writes_nothing(storage: Storage) -> None:
    first = storage.open()
    second = storage.open()
    first.append(some(1))
    with pytest.raises(Fenced):
        second.append(some(200, seed=1))
    assert len(list(first.read_states())) == 1


def test_after_a_failure_nothing_more_is_accepted(storage: Storage) -> None:
    first = storage.open()
    second = storage.open()
    first.append(some(1))
    with pytest.raises(Fenced):
        second.append(some(1))
    for _ in range(2):
        with pytest.raises(AppendFailed, match="no more appends: another writer"):
            second.append(some(1))
    with pytest.raises(AppendFailed):
        second.append([])
    assert second.read(0, 10) == first.read(0, 10)


def test_of_racing_writers_one_wins_each_position(storage: Storage) -> None:
    written: list[list[Record]] = []
    fenced: list[Fenced] = []

    def race(seed: int) -> None:
        log = logs[seed]
        try:
            for _ in range(20):
                written.append(log.append(some(3, seed)))
        except Fenced as trouble:
            fenced.append(trouble)

    logs = [storage.open() for _ in range(3)]
    threads = [Thread(target=race, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = storage.open()
    everything = [record for batch in written for record in batch]
    assert sorted(everything, key=lambda record: record.position) == found.read(0, 1_000)
    assert len(fenced) == 2
    assert verify(found.read_states()).count == len(everything) == 60


def test_another_clusters_log_is_refused(storage: Storage) -> None:
    storage.open("main").append([started(1)])
    with pytest.raises(CannotOpen, match="log of cluster 'main', not of 'other'"):
        storage.open("other")


def test_take_appends_records_as_they_are(storage: Storage) -> None:
    states = [state for _, state in encoded(130)]
    log = storage.open()
    log.take(states[:100])
    log.take(states[100:])
    log.take([])
    assert list(log.read_states()) == list(enumerate(states, 1))
    assert log.position == 130
    verify(log.read_states(), head=(130, log.chain))
    log.append(some(1))


def test_take_refuses_what_does_not_follow(storage: Storage) -> None:
    states = [state for _, state in encoded(4)]
    log = storage.open()
    with pytest.raises(codec.Damaged) as found:
        log.take([states[0], states[2]])
    assert found.value.position == 2
    foreign, _ = codec.encode(some(1), "other", 0, codec.GENESIS)
    with pytest.raises(codec.Damaged, match="a record of cluster 'other', not of 'main'"):
        log.take(foreign)
    assert list(log.read_states()) == []
    log.take(states)


def test_closing_twice_is_allowed(storage: Storage) -> None:
    log = storage.open()
    log.append([started(1)])
    log.close()
    log.close()


def test_others_read_while_one_appends(storage: Storage) -> None:
    log = storage.open()
    written: list[Record] = []

    def append() -> None:
        for start in range(0, 240, 8):
            written.extend(log.append(some(240)[start : start + 8]))

    writer = Thread(target=append)
    writer.start()
    seen: list[Record] = []
    while writer.is_alive():
        seen += log.read(len(seen), 50)
    writer.join()
    seen += log.read(len(seen), 500)
    assert seen == written
    assert len(seen) == 240
