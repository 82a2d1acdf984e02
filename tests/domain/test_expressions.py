"""Trees on the wire, their meaning, what is wrong with them, and their terms."""

import math
import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logyard_domain.expressions import (
    DEFAULT_PRIORITY,
    DEPTH_MAX,
    NODES_MAX,
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
    check,
    children,
    evaluate,
    measure,
    printed,
    priority,
    terms_of,
    variables_of,
    walk,
)
from logyard_domain.expressions.arithmetic import logarithm, remainder
from tests.domain.trees import (
    ROUGH,
    aged,
    any_trees,
    number_trees,
    rough,
    truth_trees,
    values_within,
)

AGE = Variable("queue.age_hours")
_decoder: msgspec.json.Decoder[Expression] = msgspec.json.Decoder(Expression)


def bits(value: Scalar) -> bytes | Scalar:
    """Something that is equal for the same float only, and for nan and nan."""
    if isinstance(value, float) and not math.isnan(value):
        return struct.pack("<d", value)
    return "nan" if isinstance(value, float) else value


def call(function: str, *numbers: float) -> Scalar:
    return evaluate(Call(function, tuple(map(Variable, "abc"[: len(numbers)]))), _abc(*numbers))


def binary(operator: str, *numbers: float) -> Scalar:
    tree = msgspec.convert(["b", operator, ["v", "a", ""], ["v", "b", ""]], Expression)
    return evaluate(tree, _abc(*numbers))


def _abc(*numbers: float) -> dict[str, Scalar]:
    return dict(zip("abc", numbers, strict=False))


def test_the_default_priority_on_the_wire() -> None:
    wire = (
        b'["b","+",["b","+",["b","+",["b","+",["v","organization.priority",""],'
        b'["v","group.priority",""]],["v","user.priority",""]],["v","workflow.priority",""]],'
        b'["b","/",["v","queue.age_hours",""],["n",24.0]]]'
    )
    assert msgspec.json.encode(DEFAULT_PRIORITY) == wire
    assert _decoder.decode(wire) == DEFAULT_PRIORITY
    assert not check(DEFAULT_PRIORITY)
    assert printed(DEFAULT_PRIORITY) == (
        "organization.priority + group.priority + user.priority + workflow.priority"
        " + queue.age_hours / 24"
    )


def test_every_node_on_the_wire() -> None:
    tree = Choice(
        Binary("in", Variable("user.name"), Listing((Text("ana"), Text("bob")))),
        Call("min", (Variable("request.devices", "gpu"), Number(2.0))),
        Unary("-", Choice(Truth(True), Number(1.0), Number(0.5))),
    )
    wire = (
        b'["?",["b","in",["v","user.name",""],["l",[["s","ana"],["s","bob"]]]],'
        b'["c","min",[["v","request.devices","gpu"],["n",2.0]]],'
        b'["u","-",["?",["t",true],["n",1.0],["n",0.5]]]]'
    )
    assert msgspec.json.encode(tree) == wire
    assert _decoder.decode(wire) == tree


@given(any_trees())
def test_any_tree_survives_the_wire(tree: Expression) -> None:
    assert _decoder.decode(msgspec.json.encode(tree)) == tree


@pytest.mark.parametrize("value", [-1.0, -0.0, math.inf, math.nan])
def test_a_number_has_no_sign_and_is_finite(value: float) -> None:
    with pytest.raises(ValueError, match="finite, without a sign"):
        Number(value)
    with pytest.raises(msgspec.ValidationError, match="without a sign"):
        _decoder.decode(b'["n",-1.0]')


@given(any_trees())
def test_measure_and_walk_agree_with_the_tree(tree: Expression) -> None:
    def depth(node: Expression) -> int:
        return 1 + max(map(depth, children(node)), default=0)

    assert measure(tree) == (depth(tree), len(list(walk(tree))))


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (binary("/", 1, 0), math.inf),
        (binary("/", -1, 0), -math.inf),
        (binary("/", 1, -0.0), -math.inf),
        (binary("/", 0, 0), math.nan),
        (binary("/", math.nan, 0), math.nan),
        (binary("*", 1e300, 1e300), math.inf),
        (binary("-", math.inf, math.inf), math.nan),
        (binary("%", 7, 3), 1.0),
        (binary("%", -7, 3), 2.0),
        (binary("%", 7, -3), -2.0),
        (binary("%", -6, 3), 0.0),
        (binary("%", 6, -3), -0.0),
        (binary("%", 7, 0), math.nan),
        (binary("%", math.inf, 3), math.nan),
        (binary("%", 5, math.inf), 5.0),
        (binary("%", -5, math.inf), math.inf),
        (binary("==", math.nan, math.nan), False),
        (binary("!=", math.nan, math.nan), True),
        (binary("<", math.nan, 1), False),
        (binary(">=", math.nan, 1), False),
        (binary("==", 0.0, -0.0), True),
        (call("min", 2, 1, 3), 1.0),
        (call("max", 2, 1, 3), 3.0),
        (call("min", 1, math.nan), math.nan),
        (call("max", math.nan, 1), math.nan),
        (call("min", 0.0, -0.0), 0.0),
        (call("max", -0.0, 0.0), -0.0),
        (call("abs", -2), 2.0),
        (call("floor", -0.5), -1.0),
        (call("ceil", -0.5), -0.0),
        (call("round", 0.5), 0.0),
        (call("round", 1.5), 2.0),
        (call("round", 2.5), 2.0),
        (call("round", -2.5), -2.0),
        (call("floor", math.inf), math.inf),
        (call("floor", 1e300), 1e300),
        (call("sqrt", 9), 3.0),
        (call("sqrt", -1), math.nan),
        (call("sqrt", -0.0), -0.0),
        (call("log", 1), 0.0),
        (call("log", 0), -math.inf),
        (call("log", -1), math.nan),
        (call("log", math.inf), math.inf),
        (call("clamp", 5, 1, 3), 3.0),
        (call("clamp", 0, 1, 3), 1.0),
        (call("clamp", 5, 3, 1), 1.0),
        (call("clamp", math.nan, 1, 3), math.nan),
        (evaluate(Binary("in", Variable("a"), Listing((Variable("a"),))), {"a": math.nan}), False),
        (evaluate(Binary("in", Number(1.0), Listing(())), {}), False),
        (evaluate(Variable("request.devices", "absent"), {}), 0.0),
        (evaluate(Variable("a"), {"a": 3}), 3.0),
    ],
)
def test_the_meaning_of(found: Scalar, wanted: Scalar) -> None:
    assert type(found) is type(wanted)
    assert bits(found) == bits(wanted)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_priority_that_is_not_finite_is_the_lowest(value: float) -> None:
    assert priority(Variable("a"), {"a": value}) == -math.inf


@given(rough, rough)
def test_the_remainder_is_that_of_python(left: float, right: float) -> None:
    if right != 0 and not math.isinf(left):
        assert bits(remainder(left, right)) == bits(left % right)
    else:
        assert math.isnan(remainder(left, right))


@given(st.floats(0, exclude_min=True, allow_infinity=False))
def test_the_logarithm_is_right_to_forty_bits(value: float) -> None:
    assert math.isclose(logarithm(value), math.log(value), rel_tol=1e-15, abs_tol=1e-12)


@given(st.floats(0, exclude_min=True), st.integers(0, 2**14))
def test_the_logarithm_never_falls(value: float, steps: int) -> None:
    assert logarithm(value) <= logarithm(value * (1 + steps * 2.0**-52))


@given(number_trees(4), values_within(), st.floats(0, 1e12))
def test_the_terms_add_up_to_the_last_bit(
    tree: Expression, values: dict[str, Scalar], age: float
) -> None:
    first, *others = (evaluate(term, aged(values, age)) for term in terms_of(tree))
    assert isinstance(first, float)
    total = first
    for other in others:
        assert isinstance(other, float)
        total += other
    wanted = evaluate(tree, aged(values, age))
    assert total == wanted or bits(total) == bits(wanted)


def test_the_terms_of_a_sum() -> None:
    tree = Binary("-", Binary("+", Number(1.0), AGE), Binary("*", Number(2.0), AGE))
    assert [printed(term) for term in terms_of(tree)] == [
        "1",
        "queue.age_hours",
        "-(2 * queue.age_hours)",
    ]
    assert terms_of(Binary("-", AGE, Unary("-", AGE))) == (AGE, AGE)
    assert terms_of(AGE) == (AGE,)
    assert [printed(term) for term in terms_of(DEFAULT_PRIORITY)][-1] == "queue.age_hours / 24"


def test_the_variables_of_a_tree() -> None:
    tree = Binary("+", AGE, Binary("*", Variable("request.devices", "gpu"), AGE))
    assert variables_of(tree) == ("queue.age_hours", "request.devices[gpu]")


@given(number_trees(3))
def test_well_formed_numbers_pass(tree: Expression) -> None:
    assert not check(tree)


@given(truth_trees(3))
def test_truth_passes_where_it_is_wanted(tree: Expression) -> None:
    assert not check(tree, wanted="truth")
    assert check(tree)


@given(any_trees())
def test_the_check_takes_any_tree(tree: Expression) -> None:
    assert all(mistake.message for mistake in check(tree))


def test_depth_and_size_have_limits() -> None:
    deep: Expression = AGE
    for _ in range(DEPTH_MAX - 1):
        deep = Unary("-", deep)
    assert not check(deep)
    (mistake,) = check(Unary("-", deep))
    assert mistake.message.startswith("this is nested more than 64 deep")
    for _ in range(20_000):
        deep = Unary("-", deep)
    assert len(check(deep)) == 1
    while isinstance(deep, Unary):
        deep = deep.operand
    wide = Call("min", (AGE,) * (NODES_MAX - 1))
    assert not check(wide)
    (mistake,) = check(Call("min", (AGE,) * NODES_MAX))
    assert "at most 1000" in mistake.message


def test_mistakes_are_found_all_at_once_with_their_places() -> None:
    tree = Binary(
        "+",
        Binary("*", Variable("grup.priority"), Text("a")),
        Call("mn", (Variable("request.preemptible"), Variable("user.name", "x"))),
    )
    found = [
        (mistake.path, mistake.start, mistake.length, mistake.message) for mistake in check(tree)
    ]
    assert found == [
        ((0, 0), 0, 4, "grup.priority is not a variable; did you mean group.priority?"),
        ((0, 1), 0, 0, '* takes numbers; "a" is text'),
        ((1,), 0, 2, "mn is not a function; did you mean min?"),
        ((1, 1), 0, 0, "user.name takes no brackets; leave them out"),
    ]


@given(number_trees(3), st.sampled_from(ROUGH))
def test_evaluation_never_fails(tree: Expression, value: float) -> None:
    names = [name for name in variables_of(tree) if "name" not in name and "preempt" not in name]
    values: dict[str, Scalar] = {name: value for name in names}
    values |= {name: "ana" for name in ("organization.name", "group.name", "user.name")}
    assert isinstance(evaluate(tree, values | {"request.preemptible": True}), float)
