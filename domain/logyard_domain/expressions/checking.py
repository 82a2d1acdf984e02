"""What is wrong with a tree: names, types, number of arguments, depth and size. All at once."""

from typing import Final, assert_never

from logyard_domain.expressions.functions import FUNCTIONS
from logyard_domain.expressions.mistakes import Mistake, guess, unknown_variable
from logyard_domain.expressions.printing import printed
from logyard_domain.expressions.tree import (
    Binary,
    Call,
    Choice,
    Expression,
    Listing,
    Number,
    Text,
    Truth,
    Unary,
    Variable,
    measure,
)
from logyard_domain.expressions.variables import PRIORITY, Kind, Vocabulary

DEPTH_MAX: Final = 64
NODES_MAX: Final = 1000
_SHOWN_MAX: Final = 40


def check(
    tree: Expression, vocabulary: Vocabulary = PRIORITY, wanted: Kind = "number"
) -> tuple[Mistake, ...]:
    """Everything that is wrong with `tree`, in the order of its text. `wanted` is its own type."""
    depth, size = measure(tree)
    if depth > DEPTH_MAX:
        return (Mistake((), too_deep()),)
    if size > NODES_MAX:
        return (Mistake((), too_large()),)
    checker = _Checker(vocabulary)
    checker.want(tree, (), wanted, "the result must be " + _KINDS[wanted])
    return tuple(sorted(checker.mistakes, key=lambda mistake: mistake.path))


def too_deep() -> str:
    """The message about a tree that is deeper than `DEPTH_MAX`."""
    return f"this is nested more than {DEPTH_MAX} deep; a sum of n terms counts as n"


def too_large() -> str:
    """The message about a tree of more than `NODES_MAX` nodes."""
    return f"an expression has at most {NODES_MAX} numbers, names and operators; this has more"


_ORDERS: Final = ("<", "<=", ">", ">=")
_KINDS: Final[dict[Kind, str]] = {
    "number": "a number", "truth": "true or false", "text": "text", "list": "a list",
}  # fmt: skip


class _Checker:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.mistakes: list[Mistake] = []

    def want(self, node: Expression, path: tuple[int, ...], kind: Kind, need: str) -> None:
        """Check a node that must be of a kind; `need` says why."""
        found = self.kind(node, path)
        if found is not None and found != kind:
            self.mistakes.append(Mistake(path, f"{need}; {_advice(node, found, kind)}"))

    def kind(self, node: Expression, path: tuple[int, ...]) -> Kind | None:
        """The type of a node; None where it has a mistake that was noted."""
        match node:
            case Number():
                return "number"
            case Text():
                return "text"
            case Truth():
                return "truth"
            case Variable():
                return self._variable(node, path)
            case Listing(items=items):
                return self._listing(items, path)
            case Unary(sign="-", operand=operand):
                self.want(operand, (*path, 0), "number", "- takes a number")
                return "number"
            case Unary(operand=operand):
                self.want(operand, (*path, 0), "truth", "not takes true or false")
                return "truth"
            case Binary():
                return self._binary(node, path)
            case Choice():
                return self._choice(node, path)
            case Call():
                return self._call(node, path)
            case _:
                assert_never(node)

    def _variable(self, node: Variable, path: tuple[int, ...]) -> Kind | None:
        name, key = node.name, node.key
        meaning = self.vocabulary.variables.get(name)
        if meaning is None:
            self.mistakes.append(unknown_variable(name, path, self.vocabulary))
            return None
        if meaning.keyed and not key:
            message = f'{name} takes a name in brackets, for instance {name}["nvidia.com/gpu"]'
            self.mistakes.append(Mistake(path, message))
            return None
        if key and not meaning.keyed:
            self.mistakes.append(Mistake(path, f"{name} takes no brackets; leave them out"))
            return None
        return meaning.kind

    def _listing(self, items: tuple[Expression, ...], path: tuple[int, ...]) -> Kind | None:
        kinds: list[Kind | None] = [
            self.kind(item, (*path, index)) for index, item in enumerate(items)
        ]
        for index, kind in enumerate(kinds):
            place = (*path, index)
            if kind == "list" or kind == "truth":
                message = f"a list holds numbers or texts; this is {_KINDS[kind]}"
                self.mistakes.append(Mistake(place, message))
            elif kind and kinds[0] and kind != kinds[0]:
                message = f"a list begun with {_KINDS[kinds[0]]} cannot hold {_KINDS[kind]} too"
                self.mistakes.append(Mistake(place, message))
        return "list"

    def _binary(self, node: Binary, path: tuple[int, ...]) -> Kind | None:
        left, right, operator = (*path, 0), (*path, 1), node.operator
        match operator:
            case "+" | "-" | "*" | "/" | "%":
                self.want(node.left, left, "number", f"{operator} takes numbers")
                self.want(node.right, right, "number", f"{operator} takes numbers")
                return "number"
            case "<" | "<=" | ">" | ">=":
                if isinstance(node.left, Binary) and node.left.operator in _ORDERS:
                    self.kind(node.left, left)
                    message = "comparisons do not chain; write `a < b and b < c`"
                    self.mistakes.append(Mistake(path, message))
                else:
                    self.want(node.left, left, "number", f"{operator} compares numbers")
                self.want(node.right, right, "number", f"{operator} compares numbers")
            case "and" | "or":
                self.want(node.left, left, "truth", f"{operator} takes true or false")
                self.want(node.right, right, "truth", f"{operator} takes true or false")
            case "==" | "!=":
                self._alike(node, path)
            case "in":
                self._membership(node, path)
            case _:
                assert_never(operator)
        return "truth"

    def _alike(self, node: Binary, path: tuple[int, ...]) -> None:
        left, right = self.kind(node.left, (*path, 0)), self.kind(node.right, (*path, 1))
        if "list" in (left, right):
            message = f"{node.operator} does not compare lists; write `x in [a, b]`"
            self.mistakes.append(Mistake(path, message))
        elif left and right and left != right:
            message = (
                f"{node.operator} compares what is of one type; here is {_KINDS[left]} on the "
                f"left, {_KINDS[right]} on the right"
            )
            self.mistakes.append(Mistake(path, message))

    def _membership(self, node: Binary, path: tuple[int, ...]) -> None:
        left, right = self.kind(node.left, (*path, 0)), self.kind(node.right, (*path, 1))
        if left in ("truth", "list"):
            message = f"in looks for a number or a text; this is {_KINDS[left]}"
            self.mistakes.append(Mistake((*path, 0), message))
        if not isinstance(node.right, Listing):
            if right:
                message = 'in needs a list on the right, for instance `in ["a", "b"]`'
                self.mistakes.append(Mistake((*path, 1), message))
            return
        items = node.right.items
        first = _Checker(self.vocabulary).kind(items[0], ()) if items else None
        if left and first and left != first and {left, first} == {"number", "text"}:
            message = f"the list holds {_KINDS[first]}, and {_KINDS[left]} can never be in it"
            self.mistakes.append(Mistake((*path, 1), message))

    def _choice(self, node: Choice, path: tuple[int, ...]) -> Kind | None:
        self.want(node.condition, (*path, 0), "truth", "? follows what is true or false")
        yes, no = self.kind(node.yes, (*path, 1)), self.kind(node.no, (*path, 2))
        for place, kind in ((1, yes), (2, no)):
            if kind == "list":
                self.mistakes.append(Mistake((*path, place), _LONE_LIST))
        if "list" in (yes, no):
            return None
        if yes and no and yes != no:
            message = (
                f"both sides of : must be of one type; here is {_KINDS[yes]} on the left, "
                f"{_KINDS[no]} on the right"
            )
            self.mistakes.append(Mistake(path, message))
            return None
        return yes or no

    def _call(self, node: Call, path: tuple[int, ...]) -> Kind | None:
        name, count = node.function, len(node.arguments)
        function = FUNCTIONS.get(name)
        for index, argument in enumerate(node.arguments):
            if function is None:
                self.kind(argument, (*path, index))
            else:
                self.want(argument, (*path, index), "number", f"{name} takes numbers")
        if function is None:
            message = f"{name[:80]} is not a function; {guess(name, list(FUNCTIONS))}"
            self.mistakes.append(Mistake(path, message, 0, len(name)))
            return None
        least, most = function.least, function.most
        if count < least or (most is not None and count > most):
            number = f"{least}" if most == least else f"at least {least}"
            plural = "" if number == "1" else "s"
            message = f"{name} takes {number} argument{plural}, not {count}: {function.form}"
            self.mistakes.append(Mistake(path, message, 0, len(name)))
        return "number"


_LONE_LIST: Final = "a list can only stand to the right of in"


def _advice(node: Expression, found: Kind, wanted: Kind) -> str:
    """What a node is instead of what is wanted, and how it could be made that."""
    text = printed(node)
    short = len(text) <= _SHOWN_MAX
    what = f"{text if short else 'this'} is {_KINDS[found]}"
    if found == "list":
        return _LONE_LIST
    if found == "truth" and wanted == "number":
        made = printed(Choice(node, Number(1.0), Number(0.0))) if short else "cond ? 1 : 0"
        return f"{what}; write `{made}`"
    if found == "number" and wanted == "truth":
        made = printed(Binary("!=", node, Number(0.0))) if short else "... != 0"
        return f"{what}; compare it, for instance `{made}`"
    if found == "text" and wanted == "truth":
        return f'{what}; compare it, for instance `{text if short else "..."} == "a"`'
    return what
