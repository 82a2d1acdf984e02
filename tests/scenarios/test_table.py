"""The table of scenarios is complete, and says the truth about their tests."""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
GROUPS = {
    "A": (1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26),
    "B": (27, 29, 30, 31, 33, 34, 35, 37, 38, 39, 41, 42, 43, 45, 46, 47),
    "C": (48, 49, 50, 51, 53, 54, 55, 57, 58),
    "D": (62, 66, 79),
    "E": (87, 89, 90, 91, 93, 94, 95, 97, 98, 99),
    "F": (101, 102, 103, 105, 106, 107),
}
ROW = re.compile(r"^\| S(\d+) \| (.+) \| (.+) \|$", re.MULTILINE)
NAME = re.compile(r"`(test_s\d+_\w+)`")


def rows() -> dict[int, tuple[str, str]]:
    """Number -> what peers did, and the test or the reason why there is none."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    found = [(int(number), did, said) for number, did, said in ROW.findall(text)]
    assert len(found) == len({number for number, _, _ in found}), "a scenario has two rows"
    return {number: (did, said) for number, did, said in found}


def written() -> dict[str, str]:
    """Every test of a scenario -> its docstring."""
    return {
        node.name: ast.get_docstring(node) or ""
        for path in sorted(HERE.glob("test_*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and re.match(r"test_s\d", node.name)
    }


def test_every_scenario_has_its_row() -> None:
    assert sorted(rows()) == sorted(number for group in GROUPS.values() for number in group)


def test_every_row_names_a_test_of_its_number_or_says_why_there_is_none() -> None:
    found = written()
    for number, (did, said) in rows().items():
        assert len(did) > 20, f"S{number}: what did peers do?"
        names = NAME.findall(said)
        if not names:
            assert said.startswith("does not apply yet: ") and len(said) > 40, f"S{number}"
        for name in names:
            assert name in found, f"S{number}: there is no {name}"
            assert re.match(rf"test_s{number:02}_", name), f"S{number} names {name}"


def test_every_test_stands_in_the_table_and_says_what_must_hold() -> None:
    named = {name for _, said in rows().values() for name in NAME.findall(said)}
    found = written()
    assert named == set(found)
    assert not [name for name, says in found.items() if len(says) < 30]
