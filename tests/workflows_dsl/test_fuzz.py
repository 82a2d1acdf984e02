"""Whatever is done to a workflow file, reading it gives a workflow or the language's own error."""

import re
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logyard_workflows_dsl import Unreadable, dump, load, upgrade

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
FILES = [
    *sorted((Path(__file__).parent / "files").glob("*.yaml")),
    *sorted(CORPUS.glob("fuzzball-workflow-examples/*/*.yaml")),
    *sorted(CORPUS.glob("ciq-fuzzball-catalog/rendered/main/*.yaml")),
]
TEXTS = [text for path in FILES if len(text := path.read_text(encoding="utf-8")) < 5_000]
TOKENS = [
    "",
    "~",
    "null",
    "{}",
    "[]",
    "[",
    "]",
    "{",
    "}",
    ":",
    ": ",
    "- ",
    "? ",
    "&a ",
    "*a",
    "<<: *a",
    "!x ",
    "!!binary ",
    "|",
    ">-",
    "'",
    '"',
    "%",
    "@",
    "#",
    "---",
    "...",
    "\t",
    "\r",
    "\0",
    "\x85",
    "\u2028",
    "\ufeff",
    "\ud800",
    "\U0001f600",
    "-1",
    "0",
    "1e999",
    "9" * 30,
    "0x",
    ".inf",
    "true",
    "../..",
    "/",
    "file://",
    "secret://user/X",
    "volume://user/ephemeral",
    "1GiB",
    "2 hours",
    "v1",
    "version",
    "jobs",
    "depends-on: [{name: a}]",
    "mounts: {v: {location: /x}}",
    "${{ x }}",
    "x" * 5_000,
]


BREAKS = re.compile("[\n\r\x85\u2028\u2029]")


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A known text after a few random changes."""
    lines = draw(st.sampled_from(TEXTS)).split("\n")
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(len(lines) - 1, 0)))
        line = lines[at] if lines else ""
        column = draw(st.integers(0, len(line)))
        token = draw(st.one_of(st.sampled_from(TOKENS), st.text(max_size=4)))
        match draw(st.integers(0, 7)):
            case 0:
                lines[at : at + 1] = []
            case 1:
                lines[at:at] = [line]
            case 2:
                lines[at : at + 1] = [line[:column] + token + line[column:]]
            case 3:
                lines[at : at + 1] = [line[:column] + token]
            case 4:
                lines[at : at + 1] = ["  " + line]
            case 5:
                lines[at : at + 1] = [line.partition(":")[0] + ": " + token]
            case 6:
                other = draw(st.integers(0, max(len(lines) - 1, 0)))
                lines[at:at] = lines[other : other + 3]
            case _:
                lines = lines[:at]
    return "\n".join(lines)


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_mutated_files(text: str) -> None:
    try:
        loaded = load(text, file="f")
    except Unreadable as refused:
        assert refused.problems
        for problem in refused.problems:
            assert 1 <= problem.line <= len(BREAKS.split(text)) + 1
            assert problem.column >= 1
            assert problem.message
            assert problem.message.isprintable()
        return
    assert load(dump(loaded.workflow)).workflow == loaded.workflow
    upgraded = upgrade(text)
    assert load(upgraded.text).workflow == upgraded.workflow


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.binary()))
def test_anything_at_all(text: str | bytes) -> None:
    try:
        load(text)
    except Unreadable as refused:
        assert refused.problems
