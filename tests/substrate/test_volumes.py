"""Ephemeral volumes: filled, mounted, kept and removed, and nothing leads out of them."""

import shutil
from pathlib import Path

import pytest

from logyard_domain.commands import Ended
from logyard_domain.work import Task
from logyard_engine.substrate import beneath, sandbox
from logyard_engine.substrate.desk import Desk
from logyard_engine.substrate.node import EmbeddedNode
from logyard_engine.substrate.results import FolderResults
from logyard_engine.substrate.volumes import VolumeError, Volumes
from tests.substrate.outputs import printed

needs_bwrap = pytest.mark.skipif(not sandbox.bwrap(), reason="bubblewrap does not work here")


def stage(name: str, kind: str, **more: object) -> Task:
    fields: dict[str, object] = {"kind": kind, "limit_ms": 60_000} | more
    return Task(task=f"wf-1/{name}", workflow="wf-1", stage=name, **fields)  # type: ignore[arg-type]


def do(desk: Desk, *tasks: Task) -> list[Ended]:
    return [desk.wait(desk.want(task))[0] for task in tasks]


VOLUME = stage("volume", "volume", volume="data")
INGRESS = stage("in", "ingress", volume="data", path="/deep/in.txt", content="grüße\n")


@pytest.mark.usefixtures("node")
@needs_bwrap
def test_a_workflow_of_data(desk: Desk, tmp_path: Path) -> None:
    work = stage(
        "work",
        "job",
        script="tr a-z A-Z < /data/deep/in.txt > out.txt; cat /etc/app/conf; pwd",
        mounts={"/data": "data"},
        files={"/etc/app/conf": "level=3\n"},
        cwd="/data/results",
    )
    egress = stage("out", "egress", volume="data", path="results", result="all")
    single = stage("one", "egress", volume="data", path="deep/in.txt", result="copy.txt")
    ends = do(desk, VOLUME, INGRESS, work, egress, single)
    assert [(ended.outcome, ended.error) for ended in ends] == [("finished", "")] * 5
    assert printed(tmp_path, "wf-1/work/0#1") == "level=3\n/data/results\n"
    assert (tmp_path / "results/wf-1/all/out.txt").read_text() == "GRüßE\n"
    assert (tmp_path / "results/wf-1/copy.txt").read_text() == "grüße\n"
    desk.drop_volumes("wf-1")
    desk.wait_until(lambda: desk.removed == ["wf-1"])
    assert not (tmp_path / "volumes/wf-1").exists()
    # What was shown to the job was never made on the host.
    assert not Path("/data/results").exists()
    assert not Path("/etc/app").exists()


@pytest.mark.usefixtures("node")
@needs_bwrap
def test_mount_over_the_node_s_own_folder(desk: Desk, tmp_path: Path) -> None:
    over = str(tmp_path.parents[-2])
    work = stage("work", "job", script="pwd; ls -A " + over, mounts={over: "data"})
    ends = do(desk, VOLUME, work)
    assert ends[1].error == ""
    assert printed(tmp_path, "wf-1/work/0#1") == "/.logyard/work\n"


@pytest.mark.usefixtures("node")
@needs_bwrap
def test_program_inside_a_volume(desk: Desk, tmp_path: Path) -> None:
    tool = stage("in", "ingress", volume="data", path="bin/tool", content="#!/bin/sh\necho $1")
    chmod = stage("chmod", "job", argv=("chmod", "+x", "/v/bin/tool"), mounts={"/v": "data"})
    work = stage(
        "work", "job", argv=("tool", "hi"), mounts={"/v": "data"}, env=("PATH=/v/bin:/bin",)
    )
    ends = do(desk, VOLUME, tool, chmod, work)
    assert [ended.error for ended in ends] == [""] * 4
    assert printed(tmp_path, "wf-1/work/0#1") == "hi\n"


@pytest.mark.usefixtures("node")
@needs_bwrap
def test_exit_code_comes_out_of_the_sandbox(desk: Desk) -> None:
    work = stage("work", "job", argv=("sh", "-c", "exit 9"), mounts={"/data": "data"})
    assert do(desk, VOLUME, work)[1].exit_code == 9


@pytest.mark.usefixtures("node")
@needs_bwrap
@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"mounts": {"/data": "none"}}, "volume none does not exist on this node"),
        ({"mounts": {"data": "data"}}, "mount data: an absolute path below / is needed"),
        ({"mounts": {"/": "data"}}, "mount /: an absolute path below / is needed"),
        ({"mounts": {"/etc/passwd/x": "data"}}, "/etc/passwd is no folder"),
        (
            {"mounts": {"/data": "data"}, "files": {"/data/../x": ""}},
            "file /data/../x: an absolute path below / is needed",
        ),
    ],
)
def test_mounts_that_cannot_be(desk: Desk, more: dict[str, object], error: str) -> None:
    ended = do(desk, VOLUME, stage("work", "job", argv=("true",), **more))[1]
    assert (ended.outcome, ended.exit_code) == ("failed", 125)
    assert error in ended.error


@pytest.fixture
def volumes(tmp_path: Path) -> Volumes:
    return Volumes(tmp_path / "volumes", FolderResults(tmp_path / "results"))


@pytest.fixture
def folder(volumes: Volumes, tmp_path: Path) -> Path:
    volumes.perform(VOLUME)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("s")
    return volumes.folder("wf-1", "data")


def test_everything_may_be_done_twice(volumes: Volumes, folder: Path) -> None:
    for task in (VOLUME, INGRESS, INGRESS):
        volumes.perform(task)
    assert (folder / "deep/in.txt").read_text() == "grüße\n"
    volumes.drop("wf-1")
    volumes.drop("wf-1")
    assert not folder.exists()


@pytest.mark.parametrize("path", ["../escaped", "a/../../escaped", "link/escaped", "rel/escaped"])
def test_ingress_stays_inside(volumes: Volumes, folder: Path, tmp_path: Path, path: str) -> None:
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "rel").symlink_to("../../../outside")
    with pytest.raises(VolumeError, match="leads out of the volume"):
        volumes.perform(stage("in", "ingress", volume="data", path=path, content="x"))
    assert not list(tmp_path.rglob("escaped"))


@pytest.mark.parametrize("path", ["link", "link/secret", "tree", "rel/secret"])
def test_egress_stays_inside(volumes: Volumes, folder: Path, tmp_path: Path, path: str) -> None:
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "rel").symlink_to("../../../outside")
    (folder / "tree").mkdir()
    (folder / "tree/leak").symlink_to(tmp_path / "outside/secret")
    with pytest.raises(VolumeError, match="leads out of the volume"):
        volumes.perform(stage("out", "egress", volume="data", path=path, result="r"))


def test_egress_follows_links_that_stay(volumes: Volumes, folder: Path, tmp_path: Path) -> None:
    (folder / "tree/sub").mkdir(parents=True)
    (folder / "file").write_text("f")
    (folder / "tree/up").symlink_to("../file")
    (folder / "tree/sub/here").symlink_to("../up")
    (folder / "current").symlink_to("tree")
    volumes.perform(stage("out", "egress", volume="data", path="current", result="kept/"))
    kept = tmp_path / "results/wf-1/kept"
    assert {str(path.relative_to(kept)) for path in kept.rglob("*") if path.is_file()} == {
        *("up", "sub/here")
    }


def test_circle_of_links_ends(volumes: Volumes, folder: Path) -> None:
    (folder / "tree").mkdir()
    (folder / "tree/round").symlink_to("../tree")
    with pytest.raises(VolumeError):
        volumes.perform(stage("out", "egress", volume="data", path="tree", result="r"))


@pytest.mark.parametrize(
    ("task", "error"),
    [
        (stage("in", "ingress", volume="none", path="x"), "volume none does not exist"),
        (stage("out", "egress", volume="data", path="x", result="r"), "x: No such file"),
        (stage("out", "egress", volume="data", path="empty", result="r"), "is an empty folder"),
        (stage("out", "egress", volume="data", path="f", result="../../r"), "leads out"),
        (stage("v", "volume", volume="../x"), "is no name of a volume"),
    ],
)
def test_errors_are_clear(volumes: Volumes, folder: Path, task: Task, error: str) -> None:
    (folder / "empty").mkdir()
    (folder / "f").write_text("x")
    with pytest.raises(VolumeError, match=error):
        volumes.perform(task)


def test_drop_removes_what_is_write_protected(volumes: Volumes, folder: Path) -> None:
    (folder / "a/b").mkdir(parents=True)
    (folder / "a/b/c").write_text("x")
    (folder / "a/b").chmod(0o500)
    volumes.drop("wf-1")
    assert not folder.exists()


def test_storage_is_named_once(volumes: Volumes, tmp_path: Path) -> None:
    other = Volumes(tmp_path / "volumes", FolderResults(tmp_path / "results"))
    assert volumes.storage() == other.storage() != ""
    elsewhere = Volumes(tmp_path / "more", FolderResults(tmp_path / "results"))
    assert elsewhere.storage() != volumes.storage()


def test_results_are_replaced_whole(tmp_path: Path, volumes: Volumes, folder: Path) -> None:
    for text in ("long text", "short"):
        (folder / "f").write_text(text)
        volumes.perform(stage("out", "egress", volume="data", path="f", result="a/b"))
    assert (tmp_path / "results/wf-1/a/b").read_text() == "short"
    assert [path.name for path in (tmp_path / "results/wf-1/a").iterdir()] == ["b"]


def test_parts_of_a_path() -> None:
    assert beneath.parts_of("/a/./b//c/../d") == ["a", "b", "d"]
    with pytest.raises(beneath.Escape, match="leads out"):
        beneath.parts_of("a/../..")


def test_system_bubblewrap_or_the_bundled_one() -> None:
    found = sandbox.bwrap()
    assert not found or shutil.which(found)


def test_node_says_whether_it_can_mount(desk: Desk, node: EmbeddedNode) -> None:
    desk.wait_until(lambda: bool(desk.registrations))
    assert ("mounts" in desk.registrations[0].features) == bool(sandbox.bwrap())
