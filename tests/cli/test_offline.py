"""What the command line does without a server: help, completion, the workflow language."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from logyard_api.cli.main import VERBS, ending
from logyard_api.cli.outcomes import Trouble
from logyard_api.cli.run import definition
from logyard_api.cli.verbs import Verbs
from logyard_api.cli.workflow.group import workflow
from logyard_api.cli.workflow.references import Reference, parse
from logyard_workflows_dsl import load
from tests.cli.terminal import Terminal, terminal

__all__ = ["terminal"]

EXAMPLES = Path(__file__).parents[2] / "examples"
BAD = """version: v4
jobs:
  a:
    comand: [x]
    resource: {cpu: {corse: 2}}
    script: x
"""
OLD = """version: v1
jobs:
  a:
    command: [echo, hi]
    requires: [b]
  b:
    command: [echo, ho]
"""


def test_help_lists_every_verb_and_loads_none(terminal: Terminal) -> None:
    done = terminal.run("--help")
    assert done.code == 0
    for name, verb in VERBS.items():
        assert f"  {name} " in done.out
        assert verb.summary in done.out
    assert "Exit codes: 0" in done.out


@pytest.mark.parametrize("group", [None, "workflow"])
def test_every_verb_can_be_loaded_and_has_help(
    group: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs = VERBS
    if group:
        assert isinstance(workflow, Verbs)
        verbs = dict(workflow.verbs)
    for name in verbs:
        assert ending([*([group] if group else []), name, "--help"]) == 0
        said = capsys.readouterr()
        assert said.out.startswith("Usage: logyard")
        assert not said.err


@pytest.mark.parametrize(
    ("arguments", "forbidden"),
    [
        (["--help"], {"rich", "http.client", "msgspec", "fastapi", "logging", "yaml", "ssl"}),
        (["workflow", "--help"], {"rich", "http.client", "msgspec", "fastapi", "logging"}),
        (["queue", "show"], {"rich", "msgspec", "fastapi", "yaml", "tomllib", "asyncio"}),
        (["workflow", "why", "wf-1/x"], {"rich", "msgspec", "fastapi", "yaml", "asyncio"}),
        (["events"], {"rich", "msgspec", "fastapi", "yaml", "asyncio"}),
    ],
)
def test_a_verb_loads_only_what_it_needs(arguments: list[str], forbidden: set[str]) -> None:
    program = (
        "import sys; from logyard_api.cli.main import ending; ending(sys.argv[1:]);"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--server", "http://127.0.0.1:9", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    assert forbidden & set(done.stderr.split()) == set()


def test_wrong_usage_ends_with_2(terminal: Terminal) -> None:
    assert terminal.run("frobnicate").code == 2
    assert terminal.run("workflow", "start").code == 2
    assert terminal.run("workflow", "start", "x.yaml", "--priority", "5").code == 2
    missing = terminal.run("workflow", "start", "nowhere.yaml")
    assert (missing.code, missing.err) == (2, "nowhere.yaml: No such file or directory\n")


def test_no_server_ends_with_3(terminal: Terminal) -> None:
    done = terminal.run("queue", "show")
    assert (done.code, done.out) == (3, "")
    assert "logyard serve" in done.err
    done = terminal.run("--server", "http://127.0.0.1:9", "node", "list")
    assert done.code == 3
    assert "no server answers at http://127.0.0.1:9 (--server): Connection refused" in done.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, terminal: Terminal) -> None:
    done = terminal.run("completion", shell)
    assert done.code == 0
    assert "_LOGYARD_COMPLETE" in done.out
    more = {"_LOGYARD_COMPLETE": "bash_complete", "COMP_WORDS": "logyard workflow st"}
    completed = terminal.run(more=more | {"COMP_CWORD": "2"})
    assert completed.out.split() == ["plain,start", "plain,status", "plain,stop"]


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_examples_are_valid_and_can_be_started(file: Path, terminal: Terminal) -> None:
    done = terminal.run("workflow", "validate", file)
    assert done.code == 0
    assert done.out.startswith(f"{file} is valid: ")
    assert terminal.run("workflow", "validate", "--json", file).json["notRunYet"] == []


def test_every_problem_is_told_at_once(terminal: Terminal) -> None:
    done = terminal.run("workflow", "validate", "-", typed=BAD)
    assert done.code == 1
    assert done.out.splitlines() == [
        "stdin:4:5   jobs.a.comand: unknown field; did you mean `command`?",
        "stdin:5:22  jobs.a.resource.cpu.corse: unknown field; did you mean `cores`?",
    ]
    told = terminal.run("workflow", "validate", "-", "--json", typed=BAD)
    assert told.code == 1
    assert not told.json["valid"]
    assert [one["path"] for one in told.json["errors"]] == [
        "jobs.a.comand",
        "jobs.a.resource.cpu.corse",
    ]


def test_what_is_valid_but_not_run_yet_is_said(terminal: Terminal) -> None:
    text = "version: v4\njobs:\n  a: {image: {uri: 'docker://alpine'}, command: [ls]}\n"
    done = terminal.run("workflow", "validate", "-", typed=text)
    assert done.code == 0
    assert done.out.startswith("stdin is valid: 1 job\na start would be refused:\n  jobs.a.image")


def test_what_is_no_text_is_said(terminal: Terminal) -> None:
    done = terminal.run("workflow", "validate", "-", typed=b"version: \xff")
    assert (done.code, done.err) == (2, "stdin: this is no text in UTF-8 (byte 9)\n")


def test_an_old_file_is_upgraded(terminal: Terminal) -> None:
    done = terminal.run("workflow", "upgrade", "-", typed=OLD)
    assert done.code == 0
    assert yaml.safe_load(done.out)["jobs"]["a"]["depends-on"] == [
        {"name": "b", "status": "FINISHED"}
    ]
    assert load(done.out).detected_version == "v4"
    assert "stdin: version: v1 is now v4" in done.err
    told = terminal.run("workflow", "upgrade", "-", "--json", typed=OLD).json
    assert told["upgraded"] and told["detectedVersion"] == "v1"
    assert told["rawSpecification"] == done.out
    again = terminal.run("workflow", "upgrade", "-", typed=done.out)
    assert (again.out, again.err) == (done.out, "stdin: nothing to change\n")
    assert terminal.run("workflow", "upgrade", "-", typed=BAD).code == 1


def test_the_schema_is_printed(terminal: Terminal) -> None:
    for release in ("v4", "v1"):
        schema = terminal.run("workflow", "schema", "--version", release).json
        assert schema["properties"]["version"]["const"] == release


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("wf-1", Reference("wf-1")),
        ("wf-1/train", Reference("wf-1", "train")),
        ("wf-1/train/17", Reference("wf-1", "train", 17)),
        ("wf-1/train/0#2", Reference("wf-1", "train", 0, 2)),
    ],
)
def test_references_are_read_and_written(text: str, reference: Reference) -> None:
    assert parse(text) == reference
    assert reference.text == text
    assert parse("wf-1", "train", 3) == Reference("wf-1", "train", 3)


@pytest.mark.parametrize("text", ["", "/x", "wf/x/y", "wf/", "wf/x/1#y", "wf/x/"])
def test_what_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(Trouble, match="names nothing"):
        parse(text)


def test_two_stages_are_one_too_many() -> None:
    with pytest.raises(Trouble, match="two stages"):
        parse("wf-1/a", "b")


def options(**given: object) -> dict[str, object]:
    plain: dict[str, object] = {
        "command": ("true",), "cores": 1, "memory": None, "device": (), "env": (), "cwd": None,
        "timeout": None, "array": None, "concurrency": None, "volume": (),
    }  # fmt: skip
    return plain | given


def test_run_builds_a_workflow_that_is_valid() -> None:
    whole = definition(
        "render",
        options(
            command=("sh", "-c", "echo $X"),
            cores=4,
            memory="2GiB",
            device=("nvidia.com/gpu=1",),
            env=("X=1=2",),
            cwd="/tmp",
            timeout="30m",
            array="1-100",
            concurrency=5,
            volume=("/scratch,size=10GiB", "fast/data:/data", "home:/home"),
        ),
    )
    job = load(json.dumps(whole)).workflow.jobs["render"]
    assert job.command == ("sh", "-c", "echo $X")
    assert job.env == {"X": "1=2"}
    assert job.task_array is not None
    assert (job.task_array.start, job.task_array.end, job.task_array.tasks_at_once) == (1, 100, 5)
    assert whole["volumes"] == {
        "volume-0": {"size": "10GiB"},
        "volume-1": {"name": "data", "use": "fast"},
        "volume-2": {"name": "home"},
    }
    assert set(job.mounts) == {"/scratch", "/data", "/home"}


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"array": "1-x"}, "is no range"),
        ({"array": "-5"}, "is no range"),
        ({"device": ("gpu",)}, "is no NAME=N"),
        ({"env": ("LOGYARD_SURELY_NOT_SET",)}, "is not set here"),
        ({"volume": ("data",)}, "has no absolute path"),
        ({"volume": ("/data,colour=red",)}, "is not known"),
    ],
)
def test_run_says_what_is_wrong_with_an_option(given: dict[str, object], what: str) -> None:
    with pytest.raises(Trouble, match=what) as found:
        definition("x", options(**given))
    assert found.value.code == 2
