"""The page on expressions is true to the code."""

import re
from pathlib import Path

import pytest

from logyard_domain.expressions import (
    DEFAULT_PRIORITY,
    DEPTH_MAX,
    FUNCTIONS,
    NODES_MAX,
    PRIORITY,
    evaluate,
    moving,
    rising,
)
from logyard_workflows_dsl.expressions import (
    TEXT_MAX,
    UnreadableExpression,
    parse,
    rendered,
)

PAGE = (Path(__file__).parents[2] / "docs" / "expressions.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```expr\n(.*?)```", PAGE, flags=re.DOTALL)
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in PAGE.splitlines()
    if line.startswith("| `")
]


def test_every_variable_is_documented_as_it_is() -> None:
    found = {row[0]: row[1:] for row in ROWS if len(row) == 4}
    wanted = {
        f'`{name}["NAME"]`' if meaning.keyed else f"`{name}`": meaning
        for name, meaning in PRIORITY.variables.items()
    }
    assert list(found) == list(wanted)
    for name, meaning in wanted.items():
        kind, text, changes = found[name]
        assert kind == (f"{meaning.kind}, {meaning.unit}" if meaning.unit else meaning.kind)
        assert text.startswith(meaning.meaning)
        assert changes == meaning.changes


def test_every_alias_is_documented() -> None:
    for alias, name in PRIORITY.aliases.items():
        (row,) = [row for row in ROWS if row[0] == f"`{name}`"]
        assert f"Also written `{alias}`" in row[2]


def test_every_function_is_documented_as_it_is() -> None:
    found = {row[0]: row[1] for row in ROWS if len(row) == 2}
    assert found == {f"`{function.form}`": function.meaning for function in FUNCTIONS.values()}


def test_the_limits_are_documented() -> None:
    assert f"{TEXT_MAX:,} characters, {NODES_MAX:,} numbers, names and operators" in PAGE
    assert f"and {DEPTH_MAX} levels" in PAGE


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_is_an_expression_that_rises(text: str) -> None:
    assert rising(parse(text))


def test_what_the_page_says_of_examples() -> None:
    default, share = parse(EXAMPLES[0]), parse(EXAMPLES[1])
    assert default == DEFAULT_PRIORITY
    assert not moving(default)
    assert moving(share)
    assert not rising(parse("queue.age_hours * user.priority"))
    assert evaluate(parse("-7 % 3"), {}) == 2.0


def test_the_error_on_the_page_is_the_error() -> None:
    text = "organization.priority + grup.priority"
    with pytest.raises(UnreadableExpression) as found:
        parse(text, name="scheduler.priority")
    assert f"```\n{rendered(found.value.faults, text)}\n```" in PAGE
