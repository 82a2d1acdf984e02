"""Random trees and random values of their variables."""

import functools
import math
import sys

from hypothesis import strategies as st

from logyard_domain.expressions import (
    FUNCTIONS,
    PRIORITY,
    Binary,
    Call,
    Choice,
    Expression,
    Listing,
    Number,
    Scalar,
    Text,
    Truth,
    Unary,
    Variable,
)

DEVICES = ("nvidia.com/gpu", 'odd "name"\\', "fpga")
NAMES = ("ana", "bob", "", "日本", "a\nb")
NUMBERS = tuple(
    name
    for name, meaning in PRIORITY.variables.items()
    if meaning.kind == "number" and not meaning.keyed
)
TEXTS = tuple(name for name, meaning in PRIORITY.variables.items() if meaning.kind == "text")
ROUGH = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 24.0, 3600.0, 1e-40, 5e-324, -5e-324, 1e300, -1e300,
    sys.float_info.max, -sys.float_info.max, math.inf, -math.inf, math.nan, 1e15, 2.0**53,
)  # fmt: skip
"""Numbers at which something special happens."""

numbers = st.one_of(
    st.sampled_from([abs(n) for n in ROUGH if math.isfinite(n)]),
    st.floats(0, allow_infinity=False).map(abs),
    st.integers(0, 100).map(float),
).map(Number)
number_variables = st.one_of(
    st.sampled_from(NUMBERS).map(Variable),
    st.sampled_from(["queue.age_seconds", "queue.age_hours"]).map(Variable),
    st.sampled_from(DEVICES).map(lambda name: Variable("request.devices", name)),
)
texts = st.one_of(
    st.sampled_from(NAMES), st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
).map(Text)
rough = st.one_of(st.sampled_from(ROUGH), st.floats(), st.floats(-1e4, 1e4))


@functools.cache
def number_trees(depth: int) -> st.SearchStrategy[Expression]:
    """Trees of type number that pass the check, no deeper than `depth` operations."""
    leaves: st.SearchStrategy[Expression] = st.one_of(numbers, number_variables)
    if depth == 0:
        return leaves
    below = number_trees(depth - 1)
    arithmetic = st.sampled_from(["+", "-", "*", "/", "%"])
    return st.one_of(
        leaves,
        st.builds(Binary, st.sampled_from(["+", "-", "*"]), below, below),
        st.builds(Binary, arithmetic, below, below),
        st.builds(Unary, st.just("-"), below),
        st.builds(Choice, truth_trees(depth - 1), below, below),
        st.sampled_from(list(FUNCTIONS)).flatmap(lambda name: _calls(name, below)),
    )


@functools.cache
def truth_trees(depth: int) -> st.SearchStrategy[Expression]:
    """Trees of type truth that pass the check."""
    leaves: st.SearchStrategy[Expression] = st.one_of(
        st.booleans().map(Truth), st.just(Variable("request.preemptible"))
    )
    if depth == 0:
        return leaves
    below, count = truth_trees(depth - 1), number_trees(depth - 1)
    words = text_trees(depth - 1)
    equals = st.sampled_from(["==", "!="])
    return st.one_of(
        leaves,
        st.builds(Binary, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), count, count),
        st.builds(Binary, st.sampled_from(["and", "or", "==", "!="]), below, below),
        st.builds(Unary, st.just("not"), below),
        st.builds(Choice, below, below, below),
        st.builds(Binary, equals, words, words),
        st.builds(Binary, st.just("in"), words, _lists(words)),
        st.builds(Binary, st.just("in"), count, _lists(count)),
    )


@functools.cache
def text_trees(depth: int) -> st.SearchStrategy[Expression]:
    """Trees of type text that pass the check."""
    leaves: st.SearchStrategy[Expression] = st.one_of(texts, st.sampled_from(TEXTS).map(Variable))
    if depth == 0:
        return leaves
    below = text_trees(depth - 1)
    return st.one_of(leaves, leaves, st.builds(Choice, truth_trees(depth - 1), below, below))


def _lists(items: st.SearchStrategy[Expression]) -> st.SearchStrategy[Listing]:
    return st.lists(items, max_size=3).map(lambda held: Listing(tuple(held)))


def _calls(name: str, below: st.SearchStrategy[Expression]) -> st.SearchStrategy[Call]:
    least, most = FUNCTIONS[name].least, FUNCTIONS[name].most
    arguments = st.lists(below, min_size=least, max_size=most or 3)
    return arguments.map(lambda held: Call(name, tuple(held)))


def any_trees() -> st.SearchStrategy[Expression]:
    """Trees of any form, whether their types are right or not."""
    words = st.sampled_from(["a", "a.b", "inner", "order.not_", "request.devices"])
    leaves = st.one_of(
        numbers,
        texts,
        st.booleans().map(Truth),
        st.builds(Variable, words, st.just("") | st.just("k")),
    )
    signs = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "and", "or"]
    return st.recursive(
        leaves,
        lambda below: st.one_of(
            st.builds(Binary, st.sampled_from(signs), below, below),
            st.builds(Unary, st.sampled_from(["-", "not"]), below),
            st.builds(Choice, below, below, below),
            st.lists(below, max_size=3).map(lambda held: Listing(tuple(held))),
            st.builds(Call, st.sampled_from(["min", "f"]), st.lists(below, max_size=3).map(tuple)),
        ),
        max_leaves=20,
    )


@st.composite
def values_within(draw: st.DrawFn) -> dict[str, Scalar]:
    """Values of all variables but the age, within their limits."""
    values: dict[str, Scalar] = {name: draw(st.sampled_from(NAMES)) for name in TEXTS}
    values["request.preemptible"] = draw(st.booleans())
    names = [*(n for n in NUMBERS if not PRIORITY.variables[n].rate), *DEVICES]
    for name in names:
        meaning = PRIORITY.variables.get(name, PRIORITY.variables["request.devices"])
        usual = st.sampled_from([meaning.least, meaning.most, 0.0, 1.0, 3.0, 100.0])
        column = name if name in PRIORITY.variables else f"request.devices[{name}]"
        values[column] = draw(usual | st.floats(meaning.least, meaning.most))
    return values


def aged(values: dict[str, Scalar], age_seconds: float) -> dict[str, Scalar]:
    """The values at an age."""
    return {**values, "queue.age_seconds": age_seconds, "queue.age_hours": age_seconds / 3600}
