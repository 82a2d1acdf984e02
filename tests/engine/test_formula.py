"""Whole columns give what the plain evaluator gives for each row, to the last bit."""

import struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logyard_domain.expressions import (
    DEFAULT_PRIORITY,
    PRIORITY,
    Expression,
    Scalar,
    Variable,
    evaluate,
    priority,
    variables_of,
)
from logyard_engine.scheduler.formula import Formula
from logyard_workflows_dsl.expressions import parse
from tests.domain.trees import NAMES, number_trees, rough

Rows = dict[str, list[Scalar]]


def columns_of(rows: Rows) -> dict[str, npt.NDArray[Any]]:
    dtypes = {float: np.float64, bool: np.bool_, str: object}
    return {name: np.array(held, dtypes[type(held[0])]) for name, held in rows.items()}


def same(found: float, wanted: float) -> bool:
    return struct.pack("<d", found) == struct.pack("<d", wanted)


def values_for(name: str) -> st.SearchStrategy[Scalar]:
    meaning = PRIORITY.variables[name.partition("[")[0]]
    if meaning.kind == "text":
        return st.sampled_from(NAMES)
    return st.booleans() if meaning.kind == "truth" else rough


@st.composite
def cases(draw: st.DrawFn) -> tuple[Expression, int, Rows]:
    tree = draw(number_trees(4))
    count = draw(st.integers(1, 6))
    rows = {
        name: draw(st.lists(values_for(name), min_size=count, max_size=count))
        for name in variables_of(tree)
    }
    return tree, count, rows


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_equals_the_oracle_bit_for_bit(case: tuple[Expression, int, Rows]) -> None:
    tree, count, rows = case
    formula = Formula(tree)
    wanted = [
        priority(tree, {name: held[row] for name, held in rows.items()}) for row in range(count)
    ]
    for version in (None, 1, 1):
        found = formula.values(columns_of(rows), count, version)
        assert found.dtype == np.float64
        assert all(same(a, b) for a, b in zip(found.tolist(), wanted, strict=True))
        assert formula.unsound == wanted.count(-np.inf)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_one_value_for_all_rows_is_as_good_as_a_column(
    case: tuple[Expression, int, Rows],
) -> None:
    tree, count, rows = case
    first: dict[str, Any] = {name: held[0] for name, held in rows.items()}
    found = Formula(tree).values(first, count)
    wanted = priority(tree, first)
    assert found.shape == (count,)
    assert all(same(value, wanted) for value in found.tolist())


RICH = (
    "organization.priority * 10 + min(queue.age_hours / 24, 30) - log(1 + usage.group)"
    " - sqrt(usage.user) % 7 + (user.name in ['ana', 'bob'] ? 3 : request.preemptible ? -1 : 0)"
    " + round(request.devices['gpu'] / 3)"
)


def rich_columns(count: int) -> dict[str, npt.NDArray[Any]]:
    dice = np.random.default_rng(7)
    return {
        "organization.priority": dice.integers(-5, 5, count).astype(np.float64),
        "queue.age_hours": dice.random(count) * 1000,
        "usage.group": np.where(dice.random(count) < 0.1, 1e-40, dice.random(count) * 1e6),
        "usage.user": np.where(dice.random(count) < 0.01, -1.0, dice.random(count) * 1e3),
        "user.name": dice.choice(np.array(["ana", "bob", "eve"], object), count),
        "request.preemptible": dice.random(count) < 0.5,
        "request.devices[gpu]": dice.integers(0, 8, count).astype(np.float64),
    }


def test_many_rows_equal_the_oracle_at_every_row() -> None:
    count = 20_000
    tree, columns = parse(RICH), rich_columns(count)
    formula = Formula(tree)
    found = formula.values(columns, count).tolist()
    lists = {name: column.tolist() for name, column in columns.items()}
    wanted = [
        priority(tree, {name: held[row] for name, held in lists.items()}) for row in range(count)
    ]
    assert found == wanted
    assert formula.unsound == wanted.count(-np.inf) > 0


def test_what_does_not_move_is_kept_for_a_version() -> None:
    formula = Formula(parse("user.priority * 2 + queue.age_hours"))
    columns = {"user.priority": np.array([1.0, 2.0]), "queue.age_hours": np.array([0.0, 0.0])}
    assert formula.values(columns, 2, 1).tolist() == [2, 4]
    columns["user.priority"][0] = 100.0
    columns["queue.age_hours"][1] = 7.0
    assert formula.values(columns, 2, 1).tolist() == [2, 11]
    assert formula.values(columns, 2, 2).tolist() == [200, 11]
    columns["user.priority"][0] = 1.0
    assert formula.values(columns, 2).tolist() == [2, 11]
    assert formula.values(columns, 2, 2).tolist() == [2, 11]
    single = {name: column[:1] for name, column in columns.items()}
    assert formula.values(single, 1, 2).tolist() == [2]


def test_the_answer_belongs_to_the_caller() -> None:
    columns = {"user.priority": np.array([1.0, 2.0])}
    for tree in (Variable("user.priority"), parse("user.priority * 1")):
        formula = Formula(tree)
        formula.values(columns, 2, 1)[:] = 0
        assert formula.values(columns, 2, 1).tolist() == [1, 2]


def test_nothing_to_order_and_constants() -> None:
    assert (
        Formula(DEFAULT_PRIORITY)
        .values({name: np.empty(0) for name in variables_of(DEFAULT_PRIORITY)}, 0)
        .tolist()
        == []
    )
    assert Formula(parse("1 + 2")).values({}, 3).tolist() == [3, 3, 3]
    formula = Formula(parse("1 / 0"))
    assert formula.values({}, 3).tolist() == [-np.inf] * 3
    assert formula.unsound == 3


def test_whole_numbers_and_fixed_width_texts_are_taken() -> None:
    tree = parse("user.priority / 2 + (user.name == 'ana' ? 1 : 0)")
    columns: dict[str, Any] = {"user.priority": [1, 3], "user.name": np.array(["ana", "eve"])}
    assert Formula(tree).values(columns, 2).tolist() == [1.5, 1.5]


def test_a_column_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"user.priority has shape \(2,\); 3 rows"):
        Formula(Variable("user.priority")).values({"user.priority": np.zeros(2)}, 3)
    with pytest.raises(KeyError, match=r"user\.priority"):
        Formula(Variable("user.priority")).values({}, 3)


def test_a_device_that_no_column_names_is_absent() -> None:
    tree = parse('request.devices["nvidia.com/gpu"] + 1')
    formula = Formula(tree)
    assert formula.columns == ("request.devices[nvidia.com/gpu]",)
    assert formula.values({}, 2).tolist() == [1, 1]
    assert evaluate(tree, {}) == 1.0
    assert formula.values(
        {"request.devices[nvidia.com/gpu]": np.array([0.0, 4.0])}, 2
    ).tolist() == [1, 5]
