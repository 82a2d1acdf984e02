"""Expressions as people write them: what they are read as, and what is said of wrong ones."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.domain.trees import any_trees, number_trees, text_trees, truth_trees

from logyard_domain.expressions import (
    DEFAULT_PRIORITY,
    PRIORITY,
    Expression,
    Kind,
    Meaning,
    Number,
    Text,
    Unary,
    Variable,
    Vocabulary,
    evaluate,
    printed,
)
from logyard_workflows_dsl import Unreadable
from logyard_workflows_dsl.expressions import TEXT_MAX, UnreadableExpression, parse, rendered
from logyard_workflows_dsl.expressions.parsing import read

POLICY = Vocabulary(
    {
        "definition.nodes": Meaning("number", "", "usable nodes", "time", 0),
        "user.name": Meaning("text", "", "name of the user", "owner"),
    }
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("user.priority", "user.priority"),
        ("account.priority+usage.account", "group.priority + usage.group"),
        ("1e3 + .5 + 1_000 + 1E+2", "1000 + 0.5 + 1000 + 100"),
        ("1e16 + 1e-7 + 0.1", "1e+16 + 1e-07 + 0.1"),
        ("1+2*3-(4-5)", "1 + 2 * 3 - (4 - 5)"),
        ("(1+2)*3 % (4/5)", "(1 + 2) * 3 % (4 / 5)"),
        ("((1))", "1"),
        ("-1 - -(2 + 3)", "-1 - -(2 + 3)"),
        ("- - 1", "--1"),
        ("true ? 1 : false ? 2 : 3", "true ? 1 : false ? 2 : 3"),
        ("(true ? false : true) ? 2 : 3", "(true ? false : true) ? 2 : 3"),
        (
            "user.name == 'a' && !request.preemptible || user.name != \"b\" ? 1 : 0",
            'user.name == "a" and not request.preemptible or user.name != "b" ? 1 : 0',
        ),
        (
            "(user.name == 'a' or true) and not (true and false) ? 1 : 0",
            '(user.name == "a" or true) and not (true and false) ? 1 : 0',
        ),
        ("not user.priority > 3 ? 1 : 0", "not user.priority > 3 ? 1 : 0"),
        ("!(user.priority > 3) ? 1 : 0", "not user.priority > 3 ? 1 : 0"),
        ("(not true) == false ? 1 : 0", "(not true) == false ? 1 : 0"),
        ("user.name not in ['a','b'] ? 1 : 0", 'user.name not in ["a", "b"] ? 1 : 0'),
        ("not user.name in ['a'] ? 1 : 0", 'user.name not in ["a"] ? 1 : 0'),
        ("user.priority in [] ? 1 : 0", "user.priority in [] ? 1 : 0"),
        ("min(1,2, 3)+clamp(1,2,3)", "min(1, 2, 3) + clamp(1, 2, 3)"),
        ("request.devices['nvidia.com/gpu'] * 2", 'request.devices["nvidia.com/gpu"] * 2'),
        ("\n  user.priority\r\n\t+ 1\n", "user.priority + 1"),
        (
            r"""user.name == "a\"\\\n\x41\u00e4\U0001f600'" ? 1 : 0""",
            'user.name == "a\\"\\\\\\u000aAä😀\'" ? 1 : 0',
        ),
    ],
)
def test_is_read_as(text: str, canonical: str) -> None:
    tree = parse(text)
    assert printed(tree) == canonical
    assert parse(canonical) == tree


def test_the_default_is_what_the_page_says() -> None:
    text = (
        "organization.priority + group.priority + user.priority + workflow.priority"
        " + queue.age_hours / 24"
    )
    assert parse(text) == DEFAULT_PRIORITY


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7 - 2 - 1", 4.0),
        ("8 / 2 / 2", 2.0),
        ("2 + 3 * 4", 14.0),
        ("-2 * -3", 6.0),
        ("1 < 2 and 2 < 3 ? 10 : 20", 10.0),
        ("true or true and false ? 1 : 0", 1.0),
        ("not false and false ? 1 : 0", 0.0),
        ("'a' in ['b', 'a'] ? 1 : 0", 1.0),
        ("false ? 1 : true ? 2 : 3", 2.0),
    ],
)
def test_binds_as_expected(text: str, value: float) -> None:
    assert evaluate(parse(text), {}) == value


@given(any_trees())
def test_any_tree_is_printed_and_read_back(tree: Expression) -> None:
    assert read(printed(tree), PRIORITY).tree == tree


@pytest.mark.parametrize(
    ("kind", "trees"),
    [("number", number_trees(4)), ("truth", truth_trees(4)), ("text", text_trees(3))],
)
def test_a_checked_tree_is_printed_and_parsed_back(
    kind: Kind, trees: st.SearchStrategy[Expression]
) -> None:
    @settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
    @given(trees)
    def back(tree: Expression) -> None:
        assert parse(printed(tree), wanted=kind) == tree

    back()


def wrong(text: str, **options: str) -> str:
    with pytest.raises(UnreadableExpression) as found:
        parse(text, name=options.get("name", "p"))
    return rendered(found.value.faults, text)


def test_an_unknown_name_has_a_caret_under_what_is_wrong() -> None:
    text = "organization.priority + grup.priority"
    assert wrong(text, name="scheduler.priority") == (
        "scheduler.priority:1:25  grup.priority is not a variable; did you mean group.priority?\n"
        "    organization.priority + grup.priority\n"
        "                            ^^^^"
    )


def test_all_that_is_wrong_is_said_at_once() -> None:
    assert wrong("user.prio *\n  'x' + mn(1, request.memory) + (user.name == 3 ? 1 : 0)") == (
        "p:1:6  user.prio is not a variable; did you mean user.priority?\n"
        "    user.prio *\n"
        "         ^^^^\n"
        'p:2:3  * takes numbers; "x" is text\n'
        "      'x' + mn(1, request.memory) + (user.name == 3 ? 1 : 0)\n"
        "      ^^^\n"
        "p:2:9  mn is not a function; did you mean min?\n"
        "      'x' + mn(1, request.memory) + (user.name == 3 ? 1 : 0)\n"
        "            ^^\n"
        "p:2:23  request.memory is not a variable; did you mean request.memory_gib?\n"
        "      'x' + mn(1, request.memory) + (user.name == 3 ? 1 : 0)\n"
        "                          ^^^^^^\n"
        "p:2:34  == compares what is of one type; here is text on the left, a number on the right\n"
        "      'x' + mn(1, request.memory) + (user.name == 3 ? 1 : 0)\n"
        "                                     ^^^^^^^^^^^^^^"
    )


def test_it_is_an_error_of_the_room_like_any_other() -> None:
    with pytest.raises(Unreadable) as found:
        parse("1 +", name="scheduler.priority")
    (problem,) = found.value.problems
    assert str(problem) == "scheduler.priority:1:4  the expression ends where a value must follow"


FORMS = {
    "": "1:1 +1  nothing is written; write for instance queue.age_hours",
    "  \n ": "1:1 +1  nothing is written; write for instance queue.age_hours",
    "1 +  ": "1:4 +1  the expression ends where a value must follow",
    "(1 + 2": "1:1 +1  ( is not closed; a ) is missing",
    "min(1, [2)": "1:10 +1  [ is closed by ], not by )",
    "1)": "1:2 +1  ) closes nothing; leave it out",
    "2 ** 3": "1:4 +1  there is no power operator; multiply, or use sqrt or log",
    "2 ^ 3": "1:3 +1  there is no power operator; multiply, or use sqrt or log",
    "1 +* 2": "1:4 +1  a value is missing before *",
    "1 + +2": "1:5 +1  + stands where a value is expected; leave it out",
    "min()": "1:1 +3  min takes at least 2 arguments, not 0: min(a, b, ...)",
    "min(1,)": "1:7 +1  a value is missing before )",
    "sqrt(1, 2)": "1:1 +4  sqrt takes 1 argument, not 2: sqrt(x)",
    "clamp(1, 2)": "1:1 +5  clamp takes 3 arguments, not 2: clamp(x, low, high)",
    "user.name = 'a'": "1:11 +1  = has no meaning here; write == to compare",
    "true & false": "1:6 +1  write and, or &&",
    "true | false": "1:6 +1  write or, or ||",
    "true AND false": "1:6 +3  AND cannot stand here; did you mean and?",
    "if true then 1": "1:4 +4  true cannot stand here; write `condition ? a : b`",
    "user.name is 'a'": "1:11 +2  is cannot stand here; write == to compare",
    "user.name matches 'a'": (
        "1:11 +7  matches cannot stand here; text is compared by ==, != and in only"
    ),
    "true ? 1": "1:9 +1  the expression ends within `condition ? a : b`; : is missing",
    "(true ? 1)": "1:10 +1  ) comes within `condition ? a : b`; : is missing",
    "1 : 2": "1:3 +1  : has no ? before it; write `condition ? a : b`",
    "1, 2": "1:2 +1  a comma can only stand between arguments, or in a list",
    "1 2": "1:3 +1  an operator is missing before 2",
    "3h": "1:2 +1  an operator is missing before h",
    "user.name not 3": "1:15 +1  3 cannot follow not here; write `a not in [b, c]`",
    "user . name": "1:6 +1  a point joins names without blanks, as in user.priority",
    "1 # one": "1:3 +1  # has no meaning here; there are no comments",
    "1 \x00": "1:3 +1  \\x00 has no meaning in an expression",
    "'abc": "1:1 +1  this text has no end; close it with ' on the same line",
    "\"a\nb\"": '1:1 +1  this text has no end; close it with " on the same line',
    "\u201ca\u201d": '1:1 +1  text stands in straight quotes, "like this"',
    r"'a\q'": r"1:3 +2  \q has no meaning in a text; write \\ for " + "\\",
    r"'\U00110000'": r"1:2 +10  there is no character \U00110000; the last is \U0010ffff",
    r"'\ud800'": "1:1 +8  half of a surrogate pair is no character; write the whole",
    "1e999": "1:1 +5  this number is too large; the largest is about 1.7e308",
    "request.devices": (
        "1:1 +15  request.devices takes a name in brackets,"
        ' for instance request.devices["nvidia.com/gpu"]'
    ),
    "request.devices.gpu": '1:1 +19  a name stands in brackets: request.devices["gpu"]',
    "request.devices[1]": (
        '1:17 +1  in brackets stands a name in quotes, for instance ["nvidia.com/gpu"]'
    ),
    "request.devices['']": "1:17 +2  the name in brackets is empty",
    "user.priority['a']": "1:1 +18  user.priority takes no brackets; leave them out",
    "max + 1": "1:1 +3  max is a function, not a variable; write max(a, b, ...)",
    "age_hours": "1:1 +9  age_hours is not a variable; did you mean queue.age_hours?",
    "True ? 1 : 0": "1:1 +4  True is not a variable; did you mean true?",
    "queue": "1:1 +5  queue is not a variable; there are queue.age_seconds, queue.age_hours",
    "queue.length": (
        "1:7 +6  queue.length is not a variable; there are queue.age_seconds, queue.age_hours"
    ),
    "request.preemptible": (
        "1:1 +19  the result must be a number; request.preemptible is true or false;"
        " write `request.preemptible ? 1 : 0`"
    ),
    "1 + (2 > 1)": "1:5 +7  + takes numbers; 2 > 1 is true or false; write `2 > 1 ? 1 : 0`",
    "user.priority ? 1 : 0": (
        "1:1 +13  ? follows what is true or false; user.priority is a number;"
        " compare it, for instance `user.priority != 0`"
    ),
    "not user.name ? 1 : 0": (
        "1:5 +9  not takes true or false; user.name is text;"
        ' compare it, for instance `user.name == "a"`'
    ),
    "1 < 2 < 3 ? 1 : 0": "1:1 +9  comparisons do not chain; write `a < b and b < c`",
    "'a' < 'b' ? 1 : 0": '1:1 +3  < compares numbers; "a" is text',
    "true ? 1 : 'a'": (
        "1:1 +14  both sides of : must be of one type;"
        " here is a number on the left, text on the right"
    ),
    "user.name in 'ab' ? 1 : 0": (
        '1:14 +4  in needs a list on the right, for instance `in ["a", "b"]`'
    ),
    "user.name in [1] ? 1 : 0": "1:14 +3  the list holds a number, and text can never be in it",
    "1 in [1, 'a'] ? 1 : 0": "1:10 +3  a list begun with a number cannot hold text too",
    "1 in [true] ? 1 : 0": "1:7 +4  a list holds numbers or texts; this is true or false",
    "true in [1] ? 1 : 0": "1:1 +4  in looks for a number or a text; this is true or false",
    "[1]": "1:1 +3  the result must be a number; a list can only stand to the right of in",
    "[1] == [1] ? 1 : 0": "1:1 +10  == does not compare lists; write `x in [a, b]`",
}  # fmt: skip


@pytest.mark.parametrize("text", FORMS)
def test_says_what_is_wrong_and_where(text: str) -> None:
    with pytest.raises(UnreadableExpression) as found:
        parse(text)
    first = found.value.faults[0]
    assert f"{first.line}:{first.column} +{first.length}  {first.message}" == FORMS[text]


def test_the_line_of_a_caret_is_shown_as_a_terminal_shows_it() -> None:
    assert wrong("1 + '日本'\r\n") == (
        "p:1:5  + takes numbers; \"日本\" is text\n    1 + '日本'\n        ^^^^^^"
    )
    assert (
        wrong("1\t+ '\x07' \x01")
        == "p:1:9  \\x01 has no meaning in an expression\n    1 + '�' �\n            ^"
    )


def test_a_long_line_is_shown_around_the_caret() -> None:
    text = " + ".join(["user.priority"] * 9 + ["grup.priority"] + ["user.priority"] * 9)
    message, line, caret = wrong(text).split("\n")
    assert message.startswith("p:1:145  grup.priority")
    assert len(line) <= 110
    assert line.startswith("    ...")
    assert line.endswith("...")
    assert line[caret.index("^") : caret.rindex("^") + 1] == "grup"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(" * 8_000 + "1" + ")" * 8_000, "parentheses and brackets go at most 64 deep"),
        (
            "(" * 10_000 + "1" + ")" * 10_000,
            "an expression has at most 16,384 characters; this has",
        ),
        ("min(" * 4_000, "parentheses and brackets go at most 64 deep"),
        ("-" * 10_000 + "1", "this is nested more than 64 deep"),
        ("!" * 10_000 + "true", "this is nested more than 64 deep"),
        ("not " * 4_000 + "true", "this is nested more than 64 deep"),
        ("1+" * 8_000 + "1", "this is nested more than 64 deep"),
        ("true?1:" * 2_000 + "1", "this is nested more than 64 deep"),
        ("true?" * 2_000 + "1" + ":1" * 2_000, "this is nested more than 64 deep"),
        (
            "min(" + "1," * 1_000 + "1)",
            "an expression has at most 1000 numbers, names and operators",
        ),
        ("1" * 10_000, "this number is too large"),
    ],
)
def test_what_is_too_deep_or_too_large_is_refused(text: str, message: str) -> None:
    with pytest.raises(UnreadableExpression) as found:
        parse(text)
    (fault,) = found.value.faults
    assert fault.message.startswith(message)
    assert len(rendered([fault], text).split("\n")) == 3


def test_what_is_just_small_enough_is_read() -> None:
    assert parse("(" * 64 + "1" + ")" * 64) == Number(1.0)
    assert parse("1" + " " * (TEXT_MAX - 1)) == Number(1.0)
    assert printed(parse("-" * 63 + "1")) == "-" * 63 + "1"
    assert parse("+".join(["user.priority"] * 64))


def test_another_vocabulary_and_another_type() -> None:
    tree = parse("definition.nodes < 10 and user.name != 'eve'", POLICY, wanted="truth")
    assert evaluate(tree, {"definition.nodes": 3.0, "user.name": "ana"}) is True
    assert parse("'a'", wanted="text") == Text("a")
    unaliased = Vocabulary({"account.priority": POLICY.variables["user.name"]})
    assert parse("account.priority", unaliased, wanted="text") == Variable("account.priority")
    with pytest.raises(UnreadableExpression) as found:
        parse("queue.age_hours > 1", POLICY, wanted="truth")
    assert found.value.faults[0].message == (
        "queue.age_hours is not a variable; there are definition.nodes, user.name"
    )
    with pytest.raises(UnreadableExpression) as found:
        parse("definition.nodes", POLICY, wanted="truth")
    assert found.value.faults[0].message == (
        "the result must be true or false; definition.nodes is a number;"
        " compare it, for instance `definition.nodes != 0`"
    )


PIECES = [
    "user.priority", "grup.x", "queue.age_hours", "request.devices", "min", "clamp", "1", ".5",
    "1e", "1e999", "'a'", '"', "'", "\\", "(", ")", "[", "]", ",", "?", ":", "+", "-", "*", "/",
    "%", "==", "=", "!", "!=", "<", ">=", "in", "not", "and", "or", "&&", "||", "&", "true",
    "false", " ", "\n", "\r", "\t", "\0", ".", "\ud800", "\u2028", "日", "é", "\U0001f600",
    "if", "AND",
]  # fmt: skip


def survives(text: str) -> None:
    try:
        tree = parse(text)
    except UnreadableExpression as trouble:
        assert trouble.faults
        shown = rendered(trouble.faults, text)
        assert shown.count("^") >= len(trouble.faults)
        lines = text.count("\n") + 1
        assert all(1 <= one.line <= lines and one.column >= 1 for one in trouble.faults)
    else:
        assert parse(printed(tree)) == tree


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
@example("\r\n'\\\n'")
def test_pieces_in_any_order_are_read_or_refused(text: str) -> None:
    survives(text)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(), max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    survives(text)


@settings(max_examples=200, deadline=None)
@given(number_trees(3), st.integers(0, 200), st.integers(0, 3), st.sampled_from(PIECES))
def test_a_damaged_expression_is_read_or_refused(
    tree: Expression, place: int, cut: int, piece: str
) -> None:
    text = printed(tree)
    survives(text[:place] + piece + text[place + cut :])


def test_a_sign_before_a_number_is_kept_as_written() -> None:
    assert parse("-1") == Unary("-", Number(1.0))
