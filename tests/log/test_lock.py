"""One server for a data folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from logyard_engine.log.lock import FILE, FolderHeld, FolderLock
from tests.log import holder


def test_the_second_is_told_who_holds_it(tmp_path: Path) -> None:
    command = [sys.executable, str(holder.__file__), str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(FolderHeld) as found:
            FolderLock(tmp_path)
        assert str(found.value) == (
            f"data folder {tmp_path} is in use by the server with process id {child.pid}; "
            "stop it first, or use another folder"
        )
        child.kill()
        child.wait()
        # It is free at once, whatever the file still says.
        assert (tmp_path / FILE).read_text() == f"{child.pid}\n"
        with FolderLock(tmp_path):
            assert (tmp_path / FILE).read_text() == f"{os.getpid()}\n"


def test_it_can_be_taken_again_after_closing(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    with pytest.raises(FolderHeld, match=f"process id {os.getpid()};"):
        FolderLock(tmp_path)
    lock.close()
    lock.close()
    FolderLock(tmp_path).close()


def test_children_do_not_keep_it(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False):
        lock.close()
        FolderLock(tmp_path).close()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FolderHeld, match="nowhere cannot be locked: No such file"):
        FolderLock(tmp_path / "nowhere")
