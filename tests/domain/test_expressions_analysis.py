"""What is promised of an expression without evaluating it holds whenever it is evaluated."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logyard_domain.expressions import (
    DEFAULT_PRIORITY,
    Expression,
    Scalar,
    children,
    evaluate,
    moving,
    priority,
    rising,
    timely,
    variables_of,
    walk,
)
from logyard_workflows_dsl.expressions import parse
from tests.domain.trees import aged, number_trees, values_within

RISING = [
    "queue.age_hours",
    "user.priority",
    "usage.group",
    "organization.priority + queue.age_hours / 24",
    "1 / user.priority + queue.age_hours",
    "log(usage.group) + queue.age_hours",
    "-(5 - queue.age_hours)",
    "queue.age_hours * request.cores",
    "queue.age_hours * (request.cores + 1) / (1 + usage.group)",
    "-queue.age_hours * -2",
    "min(queue.age_hours / 24, 30) + log(1 + queue.age_seconds)",
    "clamp(queue.age_hours, 1, user.priority)",
    "sqrt(queue.age_hours) + floor(queue.age_hours) + ceil(queue.age_hours)",
    "abs(queue.age_hours) - abs(user.priority)",
    "queue.age_hours > 24 ? 100 : 0",
    "queue.age_hours <= 24 ? 0 : queue.age_hours",
    "not (queue.age_hours < 24) or request.preemptible ? 1 : -1",
    "group.name == 'a' ? queue.age_hours : 2 * queue.age_hours",
    "group.name in ['a'] and queue.age_hours > 5 ? 1 : 0",
    "-1 / (1 + queue.age_hours)",
    "max(3, round(queue.age_hours))",
]
NOT_RISING = [
    "-queue.age_hours",
    "queue.age_hours * user.priority",
    "queue.age_hours % 24",
    "log(queue.age_hours - 5)",
    "sqrt(queue.age_hours - 1)",
    "1 / queue.age_hours",
    "queue.age_hours / user.priority",
    "queue.age_hours > 24 ? 0 : 1",
    "queue.age_hours > 24 ? queue.age_hours : 25",
    "queue.age_hours == 24 ? 1 : 0",
    "abs(queue.age_hours - 5)",
    "queue.age_hours * 1e305",
    "queue.age_hours - queue.age_seconds",
    "min(queue.age_hours, -queue.age_hours)",
    "user.priority > queue.age_hours ? 1 : 0",
]
STEADY = [
    "queue.age_hours",
    "user.priority * request.cores",
    "2 * (queue.age_hours / 24 + user.priority) - log(request.cores)",
    "queue.age_seconds * (3 + 4) + (group.name == 'a' ? 5 : 0)",
    "group.name == 'a' ? queue.age_hours + 5 : queue.age_hours",
    "-queue.age_hours",
]
MOVING = [
    "usage.group",
    "queue.age_hours * user.priority",
    "min(queue.age_hours, 30)",
    "queue.age_hours * queue.age_hours",
    "queue.age_hours > 24 ? 1 : 0",
    "group.name == 'a' ? 2 * queue.age_hours : queue.age_hours",
    "queue.age_hours + usage.user * 0",
    "queue.age_hours / (1 - 1)",
    "queue.age_hours * 1e305",
]


@pytest.mark.parametrize("text", RISING)
def test_is_proven_to_rise(text: str) -> None:
    assert rising(parse(text))


@pytest.mark.parametrize("text", NOT_RISING)
def test_is_not_proven_to_rise(text: str) -> None:
    assert not rising(parse(text))


@pytest.mark.parametrize("text", STEADY)
def test_differences_stay(text: str) -> None:
    assert not moving(parse(text))


@pytest.mark.parametrize("text", MOVING)
def test_differences_may_move(text: str) -> None:
    assert moving(parse(text))


def test_the_default_rises_and_keeps_differences() -> None:
    assert rising(DEFAULT_PRIORITY)
    assert not moving(DEFAULT_PRIORITY)
    assert timely(DEFAULT_PRIORITY)


def ages_on(tree: Expression) -> bool:
    return any(name.startswith("queue.") for name in variables_of(tree))


ages = st.one_of(
    st.sampled_from([0.0, 1e-3, 1.0, 3600.0, 86400.0, 86400.001, 1e9, 1e12]), st.floats(0, 1e12)
)
many = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


@many
@given(
    number_trees(3).filter(lambda tree: ages_on(tree) and rising(tree)),
    values_within(),
    ages,
    ages,
    st.booleans(),
)
def test_what_is_proven_to_rise_never_falls(
    tree: Expression, values: dict[str, Scalar], one: float, other: float, near: bool
) -> None:
    first = min(one, other)
    second = min(math.nextafter(first, math.inf), 1e12) if near else max(one, other)
    assert priority(tree, aged(values, first)) <= priority(tree, aged(values, second))


@pytest.mark.parametrize("text", RISING)
@settings(max_examples=25, deadline=None)
@given(values_within(), ages, ages)
def test_the_proven_never_fall(
    text: str, values: dict[str, Scalar], one: float, other: float
) -> None:
    tree = parse(text)
    first, second = sorted((one, other))
    assert priority(tree, aged(values, first)) <= priority(tree, aged(values, second))


@many
@given(
    number_trees(3).filter(lambda tree: ages_on(tree) and not moving(tree)),
    values_within(),
    values_within(),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
)
def test_what_is_steady_keeps_its_differences(
    tree: Expression,
    values: dict[str, Scalar],
    others: dict[str, Scalar],
    age: float,
    older: float,
    passed: float,
) -> None:
    usage = {name: values[name] for name in values if name.startswith("usage.")}
    held, other = values, others | usage
    spots = [(held, age), (other, older), (held, age + passed), (other, older + passed)]
    early, early_other, late, late_other = (priority(tree, aged(*spot)) for spot in spots)
    assert math.isfinite(early) == math.isfinite(late)
    assert math.isfinite(early_other) == math.isfinite(late_other)
    if math.isfinite(early) and math.isfinite(early_other):
        scale = max(largest(tree, aged(*spot)) for spot in spots)
        assert abs((early - early_other) - (late - late_other)) <= 1e-12 * scale


def largest(tree: Expression, values: dict[str, Scalar]) -> float:
    """The size of the largest number on the way to the value: rounding is in proportion to it."""
    found = [1.0]
    for node in walk(tree):
        if not any(map(_is_list, (node, *children(node)))):
            value = evaluate(node, values)
            if isinstance(value, float) and math.isfinite(value):
                found.append(abs(value))
    return max(found)


def _is_list(node: Expression) -> bool:
    return node.__struct_config__.tag == "l"
