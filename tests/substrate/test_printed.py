"""Output: jobs share few files, and each finds exactly what it printed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from logyard_domain.work import Start, Task
from logyard_engine.substrate.desk import Desk
from logyard_engine.substrate.keeper.binders import Binders
from logyard_engine.substrate.keeper.sheets import BOUND_BYTES, bound_path, sheet_path
from logyard_engine.substrate.node import EmbeddedNode
from logyard_engine.substrate.printed import Printed, binder_stem
from tests.substrate.outputs import printed


def put(path: str, text: bytes) -> None:
    with open(path, "ab") as file:
        file.write(text)


@pytest.fixture
def stem(tmp_path: Path) -> str:
    found = binder_stem(tmp_path, "wf-1", "n.1")
    Path(found).parent.mkdir()
    return found


def output(tmp_path: Path, name: str) -> Printed:
    return Printed(tmp_path, "n.1", f"wf-1/{name}")


def test_silent_jobs_share_files(tmp_path: Path, stem: str) -> None:
    binders = Binders()
    for rank in range(100):
        binders.give_back(binders.take(stem, b"s/%d#1" % rank, False))
    assert len(list(Path(stem).parent.iterdir())) == 3
    assert output(tmp_path, "s/7#1").read("out", 0, 100) == b""


def test_what_was_printed_stays_when_the_sheet_is_handed_on(tmp_path: Path, stem: str) -> None:
    binders = Binders()
    followed = output(tmp_path, "a b:c/0#1")
    assert followed.read("out", 0, 9) == b""
    first = binders.take(stem, b"a b:c/0#1", False)
    put(sheet_path(stem, 0, "out"), b"one")
    assert followed.read("out", 1, 9) == b"ne"
    binders.give_back(first)
    second = binders.take(stem, b"b:c/0#1", False)
    assert (second is first, second.number) == (True, 0)
    put(sheet_path(stem, 0, "err"), b"two")
    assert (followed.read("out", 0, 9), followed.size("out")) == (b"one", 3)
    assert followed.read("err", 0, 9) == b""
    fresh = output(tmp_path, "b:c/0#1")
    assert (fresh.read("out", 0, 9), fresh.read("err", 0, 9), fresh.size("err")) == (b"", b"two", 3)
    assert Path(bound_path(stem, "out")).read_bytes() == b"one"


def test_much_output_keeps_its_file(tmp_path: Path, stem: str) -> None:
    binders = Binders()
    first = binders.take(stem, b"s/0#1", False)
    put(sheet_path(stem, 0, "out"), b"x" * (BOUND_BYTES + 1))
    binders.give_back(first)
    assert binders.take(stem, b"s/1#1", False).number == 1
    assert output(tmp_path, "s/0#1").size("out") == BOUND_BYTES + 1
    assert output(tmp_path, "s/1#1").size("out") == 0


def test_a_new_keeper_overwrites_nothing(tmp_path: Path, stem: str) -> None:
    Binders().take(stem, b"s/0#1", False)
    put(sheet_path(stem, 0, "out"), b"old")
    put(stem + ".idx", b"+ 1 torn")
    put(stem + ".idx", b"\n")
    again = Binders().take(stem, b"s/0#2", False)
    assert again.number > 1
    put(sheet_path(stem, again.number, "out"), b"new")
    assert output(tmp_path, "s/0#1").read("out", 0, 9) == b"old"
    assert output(tmp_path, "s/0#2").read("out", 0, 9) == b"new"


def test_early_output_is_found_in_a_long_index(tmp_path: Path, stem: str) -> None:
    binders = Binders()
    for rank in range(20_000):
        sheet = binders.take(stem, b"s/%d#1" % rank, False)
        if rank in (0, 3_333):
            put(sheet_path(stem, sheet.number, "out"), b"%d" % rank)
        binders.give_back(sheet)
    for rank in (0, 3_333):
        assert output(tmp_path, f"s/{rank}#1").read("out", 0, 9) == b"%d" % rank
    assert output(tmp_path, "s/19999#1").read("out", 0, 9) == b""
    assert output(tmp_path, "s/20000#1").read("out", 0, 9) == b""


def test_carried_output_goes(tmp_path: Path, stem: str) -> None:
    binders = Binders()
    large, small = (binders.take(stem, name, True) for name in (b"s/0#1", b"s/1#1"))
    put(sheet_path(stem, 0, "out"), b"x" * (BOUND_BYTES + 1))
    put(sheet_path(stem, 1, "out"), b"small")
    binders.give_back(small)
    binders.give_back(large)
    handed_on = binders.take(stem, b"s/2#1", True)
    assert handed_on is small
    put(sheet_path(stem, 1, "err"), b"kept")
    binders.forget(large, b"s/0#1")
    binders.forget(small, b"s/1#1")
    assert not Path(sheet_path(stem, 0, "out")).exists()
    assert Path(sheet_path(stem, 1, "err")).read_bytes() == b"kept"
    binders.give_back(handed_on)
    binders.forget(handed_on, b"s/2#1")
    assert not Path(sheet_path(stem, 1, "err")).read_bytes()
    binders.retire(stem)
    assert not list(Path(stem).parent.iterdir())


def test_many_workflows_need_few_open_files(tmp_path: Path, stem: str) -> None:
    binders = Binders()
    before = len(list(Path("/proc/self/fd").iterdir()))
    sheets = [binders.take(f"{stem}{n}", b"s/0#1", False) for n in range(100)]
    for sheet in sheets:
        put(sheet_path(sheet.binder.stem, 0, "out"), b"text")
        binders.give_back(sheet)
    assert len(list(Path("/proc/self/fd").iterdir())) - before < 200
    assert [binders.take(f"{stem}{n}", b"s/1#1", False) for n in range(100)] == sheets
    assert Path(bound_path(f"{stem}0", "out")).read_bytes() == b"text"


def test_ranks_behind_each_other_cannot_spoil_what_others_printed(
    tmp_path: Path, desk: Desk, start_node: Callable[[], EmbeddedNode]
) -> None:
    node = start_node()
    script = "echo rank $FB_TASK_ID; echo bad $FB_TASK_ID > /dev/stderr"
    task = Task(
        task="wf-1/s",
        workflow="wf-1",
        stage="s",
        kind="job",
        argv=("sh", "-c", script),
        array=True,
        limit_ms=60_000,
    )
    names = [f"wf-1/s/{rank}#1" for rank in range(20)]
    starts = [
        Start(name, "wf-1/s", rank, before)
        for rank, (name, before) in enumerate(zip(names, ["", *names], strict=False))
    ]
    desk.wait_until(lambda: bool(desk.registrations))
    node.deliver([task, *starts])
    assert {one.outcome for one in desk.wait(names)} == {"finished"}
    for rank, name in enumerate(names):
        assert printed(tmp_path, name) == f"rank {rank}\n"
        assert printed(tmp_path, name, "err") == f"bad {rank}\n"
    assert len([one for one in (tmp_path / "logs").rglob("*") if one.is_file()]) == 5


def test_files_in_which_nobody_printed_are_passed_on(tmp_path: Path) -> None:
    binders = Binders()
    (one, two, three) = (binder_stem(tmp_path, f"wf-{n}", "n.1") for n in range(3))
    for stem in (one, two, three):
        Path(stem).parent.mkdir(exist_ok=True)
    silent = Printed(tmp_path, "n.1", "wf-0/s/0#1")
    binders.give_back(binders.take(one, b"s/0#1", False))
    assert silent.read("out", 0, 9) == b""
    loud = binders.take(two, b"s/0#1", False)
    assert not Path(one + ".idx").exists()
    put(sheet_path(two, 0, "out"), b"loud")
    assert silent.read("out", 0, 9) == b""
    binders.give_back(binders.take(one, b"t/0#1", False))
    put(sheet_path(one, 0, "out"), b"later")
    assert silent.read("out", 0, 9) == b""
    binders.give_back(loud)
    binders.give_back(binders.take(three, b"s/0#1", False))
    assert Printed(tmp_path, "n.1", "wf-1/s/0#1").read("out", 0, 9) == b"loud"
    assert Printed(tmp_path, "n.1", "wf-0/t/0#1").read("out", 0, 9) == b"later"
    binders.give_back(binders.take(two, b"s/1#1", False))
    assert Printed(tmp_path, "n.1", "wf-1/s/0#1").read("out", 0, 9) == b"loud"
    assert Path(bound_path(two, "out")).read_bytes() == b"loud"


def test_files_that_somebody_still_has_open_are_not_passed_on(tmp_path: Path, stem: str) -> None:
    binders = Binders()
    sheet = binders.take(stem, b"s/0#1", False)
    straggler = os.dup(sheet.handles[0])
    binders.give_back(sheet)
    other = binders.take(stem + "2", b"s/0#1", False)
    os.write(straggler, b"late")
    assert output(tmp_path, "s/0#1").read("out", 0, 9) == b"late"
    assert not Path(sheet_path(stem + "2", 0, "out")).read_bytes()
    binders.give_back(other)
    os.close(straggler)


def test_what_an_acknowledged_end_undoes_is_its_own(tmp_path: Path, stem: str) -> None:
    binders = Binders()
    first = binders.take(stem, b"s/0#1", True)
    binders.give_back(first)
    second = binders.take(stem + "2", b"s/0#1", True)
    assert not list(Path(stem).parent.glob(f"{Path(stem).name}.*"))
    put(sheet_path(stem + "2", 0, "out"), b"text")
    binders.give_back(second)
    binders.forget(first, b"s/0#1")
    assert Path(sheet_path(stem + "2", 0, "out")).read_bytes() == b"text"
    binders.forget(second, b"s/0#1")
    binders.retire(stem + "2")
    assert not list(Path(stem).parent.iterdir())


def test_a_folder_that_is_missing_is_made(tmp_path: Path) -> None:
    binders = Binders()
    for number in range(2):
        stem = binder_stem(tmp_path / "logs", f"wf-{number}", "n.1")
        binders.give_back(binders.take(stem, b"s/0#1", False))
        assert Path(stem + ".idx").read_bytes() == b"+ 0 s/0#1\n"
