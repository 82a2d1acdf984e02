"""Scratch folders are handed on while they are empty, and only then."""

from pathlib import Path

from logyard_engine.substrate.runs import Run, Runs
from logyard_engine.substrate.scratch import Scratch


def test_only_an_empty_folder_is_handed_on(tmp_path: Path) -> None:
    (tmp_path / "aside").mkdir()
    scratch = Scratch(tmp_path / "scratch", tmp_path / "aside")
    first, second = scratch.folder("wf-1"), scratch.folder("wf-2")
    Path(first, "kept").touch()
    Path(second).chmod(0o755)
    assert (scratch.spare("wf-1"), scratch.spare("wf-2"), scratch.spare("wf-3")) == (
        False,
        True,
        False,
    )
    assert scratch.lacks("wf-1") is False
    assert scratch.lacks("wf-3") is False
    assert scratch.folder("wf-3") == second
    assert Path(second).stat().st_mode & 0o777 == 0o700
    assert scratch.lacks("wf-4") is True
    assert scratch.folder("wf-1") == first
    assert scratch.folder("wf-2") not in (first, second)
    aside = scratch.retire("wf-1")
    assert aside is not None
    assert (aside / "kept").exists()


def test_a_workflow_is_quiet_when_none_of_its_runs_is_left() -> None:
    runs = Runs()
    a, b, c = (runs.add(Run(name, name[:6])) for name in ("wf-1/s/0#1", "wf-1/s/1#1", "wf-2/s/0#1"))
    runs.remove(a, 1.0)
    assert [*runs.lately_quiet()] == []
    runs.remove(c, 2.0)
    runs.remove(b, 3.0)
    runs.known("wf-3", 4.0)
    assert [*runs.lately_quiet()] == ["wf-3", "wf-1", "wf-2"]
    assert runs.quiet(3.0) == ["wf-2"]
    runs.add(a)
    runs.known("wf-1", 5.0)
    assert [*runs.lately_quiet()] == ["wf-3"]
    assert [run.allocation for run in runs] == ["wf-1/s/0#1"]
