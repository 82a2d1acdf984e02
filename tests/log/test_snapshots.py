"""Snapshots: kept, found, passed over, deleted."""

import logging
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logyard_engine.snapshots import KEPT, Snapshot, Snapshots

CHAIN = "c" * 32


@pytest.fixture
def snapshots(tmp_path: Path) -> Snapshots:
    return Snapshots(tmp_path / "snapshots")


def test_none_at_first(snapshots: Snapshots) -> None:
    assert snapshots.newest("world.1") is None
    snapshots.clear()


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 10_000])
def test_what_is_saved_is_found(snapshots: Snapshots, data: bytes) -> None:
    snapshots.save(17, CHAIN, "world.1", data)
    assert snapshots.newest("world.1") == Snapshot(17, CHAIN, "world.1", data)


def test_the_newest_is_found_up_to_a_position(snapshots: Snapshots) -> None:
    for position in (0, 9, 100):
        snapshots.save(position, CHAIN, "world.1", b"%d" % position)
    found = {
        upto: snapshot.position if (snapshot := snapshots.newest("world.1", upto)) else None
        for upto in (None, 100, 99, 9, 8)
    }
    assert found == {None: 100, 100: 100, 99: 9, 9: 9, 8: 0}


def test_the_newest_are_kept(snapshots: Snapshots) -> None:
    for position in (100, 5, 900, 70, 1_000):
        snapshots.save(position, CHAIN, "world.1", b"data")
    names = sorted(path.name for path in snapshots.folder.iterdir())
    assert names == [f"{position:016d}.snapshot" for position in (100, 900, 1_000)]
    assert len(names) == KEPT


def test_a_later_one_at_the_same_position_replaces(snapshots: Snapshots) -> None:
    snapshots.save(5, CHAIN, "world.1", b"old")
    snapshots.save(5, CHAIN, "world.2", b"new")
    assert snapshots.newest("world.1") is None
    assert snapshots.newest("world.2") == Snapshot(5, CHAIN, "world.2", b"new")


def test_another_format_is_passed_over(
    snapshots: Snapshots, caplog: pytest.LogCaptureFixture
) -> None:
    snapshots.save(5, CHAIN, "world.1", b"old")
    snapshots.save(6, CHAIN, "world.2", b"new")
    found = snapshots.newest("world.1")
    assert found is not None
    assert found.position == 5
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "its format is 'world.2', not 'world.1'" in record.getMessage()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_a_damaged_one_is_never_returned(snapshots: Snapshots, data: st.DataObject) -> None:
    snapshots.save(5, CHAIN, "world.1", b"older")
    path = snapshots.save(6, CHAIN, "world.1", b"newer, and to be damaged")
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    kind = data.draw(st.sampled_from(["flip", "cut"]))
    flipped = bytes([whole[at] ^ data.draw(st.integers(1, 255))])
    path.write_bytes(whole[:at] + (flipped + whole[at + 1 :] if kind == "flip" else b""))
    found = snapshots.newest("world.1")
    assert found is not None
    assert found in (
        Snapshot(5, CHAIN, "world.1", b"older"),
        # Some flips change what the packing says and nothing of what it holds.
        Snapshot(6, CHAIN, "world.1", b"newer, and to be damaged"),
    )


def test_damage_is_said(snapshots: Snapshots, caplog: pytest.LogCaptureFixture) -> None:
    path = snapshots.save(6, CHAIN, "world.1", b"data")
    path.rename(path.with_name("0000000000000007.snapshot"))
    assert snapshots.newest("world.1") is None
    assert "0000000000000007.snapshot is passed over: its digest" in caplog.text


def test_clear_leaves_what_is_not_its_own(snapshots: Snapshots) -> None:
    path = snapshots.save(6, CHAIN, "world.1", b"data")
    path.with_suffix(".draft").write_bytes(b"left by a crash")
    (snapshots.folder / "notes.txt").write_text("mine")
    (snapshots.folder / "best.snapshot").write_text("mine")
    snapshots.clear()
    assert {path.name for path in snapshots.folder.iterdir()} == {"notes.txt", "best.snapshot"}
    assert snapshots.newest("world.1") is None
