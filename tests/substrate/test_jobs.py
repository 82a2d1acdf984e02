"""Commands and scripts: how they are found and started, what they see, how their ends are told."""

from collections.abc import Callable
from pathlib import Path

import pytest

from logyard_domain.commands import Ended
from logyard_domain.work import Task
from logyard_engine.substrate.desk import Desk
from logyard_engine.substrate.node import EmbeddedNode
from tests.substrate.outputs import printed as printed_by

pytestmark = pytest.mark.usefixtures("node")


def job(*argv: str, **more: object) -> Task:
    fields: dict[str, object] = {"kind": "job", "argv": argv, "limit_ms": 60_000} | more
    return Task(task="wf-1/s", workflow="wf-1", stage="s", **fields)  # type: ignore[arg-type]


@pytest.fixture
def run(desk: Desk) -> Callable[[Task], Ended]:
    return lambda task: desk.wait(desk.want(task, [7]))[0]


@pytest.fixture
def printed(desk: Desk, tmp_path: Path) -> Callable[[Task], str]:
    def output(task: Task) -> str:
        ended = desk.wait(desk.want(task, [7]))[0]
        out = printed_by(tmp_path, "wf-1/s/7#1")
        err = printed_by(tmp_path, "wf-1/s/7#1", "err")
        assert (ended.outcome, err) == ("finished", ""), ended.error
        return out

    return output


@pytest.mark.parametrize(
    ("script", "outcome", "exit_code", "signal"),
    [
        ("true", "finished", 0, None),
        ("exit 3", "failed", 3, None),
        ("kill -9 $$", "failed", 137, 9),
        ("kill -TERM $$; sleep 9", "failed", 143, 15),
    ],
)
def test_ends(
    run: Callable[[Task], Ended], script: str, outcome: str, exit_code: int, signal: int | None
) -> None:
    ended = run(job("sh", "-c", script))
    assert (ended.outcome, ended.exit_code, ended.signal) == (outcome, exit_code, signal)
    assert ended.started_at > 1_600_000_000_000


def test_what_a_job_used_is_told(run: Callable[[Task], Ended]) -> None:
    ended = run(job("sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"))
    assert 0 < ended.cpu_ms <= ended.run_ms * 2 + 20
    assert ended.peak_bytes > 1 << 20


def test_output_is_kept_by_rank_and_attempt(desk: Desk, tmp_path: Path) -> None:
    task = job("sh", "-c", "echo out of $LOGYARD_ALLOCATION; echo err >&2")
    desk.wait([*desk.want(task, [0, 1]), *desk.want(task, [1], attempt=2)])
    for name in ("wf-1/s/0#1", "wf-1/s/1#1", "wf-1/s/1#2"):
        assert printed_by(tmp_path, name) == f"out of {name}\n"
        assert printed_by(tmp_path, name, "err") == "err\n"


@pytest.mark.parametrize(
    ("task", "exit_code", "error"),
    [
        (job("no-such-program"), 127, "no-such-program was not found; PATH is "),
        (job("/no/such/program"), 127, "/no/such/program does not exist on this node"),
        (job("/etc/passwd"), 126, "/etc/passwd is not executable"),
        (job("/tmp"), 126, "/tmp is not executable"),
        (job("true", cwd="/no/such/place"), 125, "cwd /no/such/place is no folder on this node"),
        (job(script="#!/no/such/sh\n:"), 127, "interpreter /no/such/sh does not exist"),
        (job(script="#!python3\n:"), 127, "for instance /usr/bin/env python3"),
        (job(), 125, "there is no command to run"),
        (job("true", files={"data": "x"}), 125, "an absolute path below / is needed"),
    ],
)
def test_what_cannot_be_started_says_why(
    run: Callable[[Task], Ended], task: Task, exit_code: int, error: str
) -> None:
    ended = run(task)
    assert (ended.outcome, ended.exit_code) == ("failed", exit_code)
    assert error in ended.error


def test_program_of_a_foreign_format_is_no_crash(
    run: Callable[[Task], Ended], tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x00\x01\x02\x03")
    program.chmod(0o755)
    ended = run(job(str(program)))
    assert (ended.outcome, ended.exit_code) == ("failed", 126)
    assert f"cannot start {program}: Exec format error" in ended.error


def test_environment_is_clean_and_complete(
    printed: Callable[[Task], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_AGENT", "x")
    task = job("env", env=("GREETING=hello = you", "LANG=C"), cores=2, array=True)
    env = dict(line.split("=", 1) for line in printed(task).splitlines())
    assert env.keys() >= {"PATH", "HOME", "USER", "TMPDIR"}
    assert "SECRET_OF_THE_AGENT" not in env
    assert env["GREETING"] == "hello = you"
    assert env["LANG"] == "C"
    assert env["FB_WORKFLOW_ID"] == "wf-1"
    assert env["FB_JOB_NAME"] == "s"
    assert env["FB_TASK_ID"] == "7"
    assert env["LOGYARD_ALLOCATION"] == "wf-1/s/7#1"
    assert env["LOGYARD_ATTEMPT"] == "1"
    assert env["LOGYARD_CORES"] == "2"


def test_task_id_is_for_arrays_only(printed: Callable[[Task], str]) -> None:
    assert "FB_TASK_ID" not in printed(job("env"))


def test_variables_in_arguments_are_expanded_without_a_shell(
    printed: Callable[[Task], str],
) -> None:
    task = job("echo", "$A-${A}", "$NONE", "$$", "'$A'", "$Ab", env=("A=a  b",), array=True)
    assert printed(task) == "a  b-a  b $NONE $$ 'a  b' $Ab\n"


def test_variable_names_the_program(printed: Callable[[Task], str]) -> None:
    assert printed(job("$PROGRAM", "$FB_TASK_ID", env=("PROGRAM=echo",), array=True)) == "7\n"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('echo "$0 is sh" | grep -c script; echo $1', "1\nfirst arg\n"),
        ("#!/bin/sh\necho $1", "first arg\n"),
        ("#! /usr/bin/env python3\nimport sys; print(sys.argv[1:])", "['first arg', '7']\n"),
        ("#!/bin/sh -e\r\nfalse || true\r\necho $1\r\n", "first arg\n"),
    ],
)
def test_scripts(printed: Callable[[Task], str], script: str, expected: str) -> None:
    assert printed(job("first arg", "$FB_TASK_ID", script=script, array=True)) == expected


def test_script_and_its_folder_are_gone_afterwards(
    printed: Callable[[Task], str], node: EmbeddedNode, tmp_path: Path
) -> None:
    where = Path(printed(job(script="pwd; touch left-over")).strip())
    assert tmp_path in where.parents
    assert node.stop("leave", 20)
    assert not where.exists()


def test_cwd_is_kept(printed: Callable[[Task], str], tmp_path: Path) -> None:
    assert printed(job("pwd", cwd=str(tmp_path))) == f"{tmp_path}\n"
    assert printed(job(script="pwd", cwd=str(tmp_path))).endswith(f"{tmp_path}\n")


def test_plain_ranks_share_a_scratch_folder_of_their_workflow(
    desk: Desk, node: EmbeddedNode, tmp_path: Path
) -> None:
    desk.wait(desk.want(job("sh", "-c", "pwd"), [0, 1]))
    first = printed_by(tmp_path, "wf-1/s/0#1")
    assert first == printed_by(tmp_path, "wf-1/s/1#1")
    assert first.startswith(str(tmp_path / "node/scratch"))


def test_cpus_and_devices_are_handed_out(printed: Callable[[Task], str]) -> None:
    text = printed(job("env", devices={"acme.com/fpga": 2}))
    assert "LOGYARD_DEVICES_ACME_COM_FPGA=0,1\n" in text


def test_300_short_jobs(desk: Desk, tmp_path: Path) -> None:
    ends = desk.wait(desk.want(job("echo", "$FB_TASK_ID", array=True), range(300)))
    assert {ended.outcome for ended in ends} == {"finished"}
    assert len(desk.ends) == 300
    assert [printed_by(tmp_path, f"wf-1/s/{rank}#1") for rank in range(300)] == [
        f"{rank}\n" for rank in range(300)
    ]
    # Ends are gathered, not told one by one.
    assert len(desk.reports) < 300
