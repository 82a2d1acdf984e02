"""A priority expression for all candidates at once, to the last bit what `plain` says of each.

The tree is compiled to steps over whole columns. Only operations that IEEE 754 defines exactly are
used, in the order of the tree, so the same log gives the same order on any machine. Smaller and
larger are chosen by comparisons, because machines differ in which zero they take of 0 and -0.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, assert_never

import numpy as np
import numpy.typing as npt

from logyard_domain.expressions import (
    PRIORITY,
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
    Vocabulary,
    column_of,
    evaluate,
    timely,
    variables_of,
)
from logyard_domain.expressions.arithmetic import FRACTION_STEPS, HALF_ROOT, log_series

Array = npt.NDArray[Any]
Columns = Mapping[str, npt.ArrayLike]
_BLOCK: Final = 8192
"""Rows that are looked at together: few enough that all that lies between stays in the cache."""


class _Block(NamedTuple):
    """Some rows of the columns, and what is kept of them from one evaluation to the next."""

    columns: dict[str, Array]
    kept: dict[int, Array]


class _Source(NamedTuple):
    """How a column is read; an `optional` one that is absent is 0."""

    dtype: npt.DTypeLike
    optional: bool

    def read(self, columns: Columns, name: str, count: int) -> Array:
        if self.optional and name not in columns:
            return np.zeros((), np.float64)
        found: Array = np.asarray(columns[name], self.dtype)
        if found.shape not in ((), (count,)):
            raise ValueError(f"column {name} has shape {found.shape}; {count} rows are asked for")
        return found


_Step = Callable[[_Block], Array]


class Formula:
    """A checked tree whose value is a number. Not for several threads at once."""

    def __init__(self, tree: Expression, vocabulary: Vocabulary = PRIORITY) -> None:
        self.tree = tree
        self.columns = variables_of(tree)
        """The columns that `values` reads."""
        self.unsound = 0
        """How many of the last values were not finite and so count as the lowest."""
        self._vocabulary = vocabulary
        self._kept: dict[int, dict[int, Array]] = {}
        self._kept_for: tuple[int, int] | None = None
        self._sources: dict[str, _Source] = {}
        self._step = self._compiled(tree, still=False)

    def values(
        self, columns: Columns, count: int, version: int | None = None
    ) -> npt.NDArray[np.float64]:
        """The priorities of `count` candidates; ``-inf`` where the value is not finite.

        `columns` has an array of that length, or one value for all, for each of `self.columns`:
        numbers, truths, or texts (dtype object). A device that it does not have is 0 for all. What
        depends on no column that changes with time is kept, and used again for the same `version`
        and `count`: the caller promises that those columns are the same then. The array is new.
        """
        if version is None or self._kept_for != (version, count):
            self._kept = {}
            self._kept_for = None if version is None else (version, count)
        whole = {name: how.read(columns, name, count) for name, how in self._sources.items()}
        values = np.empty(count, np.float64)
        with np.errstate(all="ignore"):
            for start in range(0, count, _BLOCK):
                kept = {} if version is None else self._kept.setdefault(start, {})
                rows = slice(start, start + _BLOCK)
                part = {name: held[rows] if held.ndim else held for name, held in whole.items()}
                values[rows] = self._step(_Block(part, kept))
        finite = np.isfinite(values)
        self.unsound = count - int(np.count_nonzero(finite))
        if self.unsound:
            values[~finite] = -np.inf
        return values

    def _compiled(self, node: Expression, still: bool) -> _Step:
        """The step for a node; `still` when the node above it is kept already."""
        if not variables_of(node) and not isinstance(node, Listing):
            value = evaluate(node, {})
            constant: Array = np.array(value, object if isinstance(value, str) else None)
            return lambda block: constant
        if isinstance(node, Variable):
            return self._looked_up(node)
        if still or timely(node, self._vocabulary):
            return self._operation(node, still)
        step, slot = self._operation(node, True), id(node)

        def keeping(block: _Block) -> Array:
            found = block.kept.get(slot)
            if found is None:
                found = block.kept[slot] = step(block)
            return found

        return keeping

    def _looked_up(self, node: Variable) -> _Step:
        name = column_of(node)
        self._sources[name] = _Source(
            _DTYPES[self._vocabulary.variables[node.name].kind], optional=bool(node.key)
        )
        return lambda block: block.columns[name]

    def _operation(self, node: Expression, still: bool) -> _Step:
        match node:
            case Unary(sign=sign, operand=operand):
                step = self._compiled(operand, still)
                change = np.negative if sign == "-" else np.logical_not
                return lambda block: change(step(block))
            case Binary(operator="in", left=left, right=Listing(items=items)):
                return self._membership(left, items, still)
            case Binary(operator=operator, left=left, right=right):
                first, second = self._compiled(left, still), self._compiled(right, still)
                pair = _PAIRS[operator]
                if operator in _IN_PLACE and self._is_fresh(left, still):
                    return lambda block: _in_place(pair, first(block), second(block))
                return lambda block: pair(first(block), second(block))
            case Choice(condition=condition, yes=yes, no=no):
                switch = self._compiled(condition, still)
                first, second = self._compiled(yes, still), self._compiled(no, still)
                return lambda block: np.where(switch(block), first(block), second(block))
            case Call(function=function, arguments=arguments):
                steps = [self._compiled(one, still) for one in arguments]
                call = _CALLS[function]
                return lambda block: call(*(step(block) for step in steps))
            case Number() | Text() | Truth() | Variable() | Listing():
                raise TypeError(f"{node} is no operation")
            case _:
                assert_never(node)

    def _is_fresh(self, node: Expression, still: bool) -> bool:
        """Whether nobody else has the array that the node's step returns."""
        operation = isinstance(node, Unary | Binary | Choice) and variables_of(node)
        return bool(operation) and (still or timely(node, self._vocabulary))

    def _membership(self, left: Expression, items: tuple[Expression, ...], still: bool) -> _Step:
        sought = self._compiled(left, still)
        steps = [self._compiled(one, still) for one in items]

        def found(block: _Block) -> Array:
            value = sought(block)
            matches = [_equal(value, step(block)) for step in steps]
            return functools.reduce(np.logical_or, matches, np.zeros((), bool))

        return found


_Operation = Callable[..., Array]
_DTYPES: Final[dict[str, npt.DTypeLike]] = {"number": np.float64, "truth": np.bool_, "text": object}


def _equal(left: Array, right: Array) -> Array:
    return np.asarray(np.equal(left, right), bool)


def _unequal(left: Array, right: Array) -> Array:
    return np.asarray(np.not_equal(left, right), bool)


def _remainder(left: Array, right: Array) -> Array:
    rest = np.fmod(left, right)
    rest = np.where((rest != 0) & ((rest < 0) != (right < 0)), rest + right, rest)
    return np.where(rest == 0, np.copysign(0.0, right), rest)


def _in_place(operation: _Operation, left: Array, right: Array) -> Array:
    """The result in the memory of the left operand: less to fetch, and nothing to be found anew."""
    if left.ndim < right.ndim or left.dtype != np.float64:
        return operation(left, right)
    return operation(left, right, out=left if left.ndim else None)


def _is_mark(array: Array) -> bool:
    """Whether it is one number for all, of which another one that is equal has the same bits."""
    return array.ndim == 0 and bool(array != 0) and not bool(np.isnan(array))


def _smaller(left: Array, right: Array) -> Array:
    if _is_mark(right):
        return np.asarray(np.minimum(left, right))
    return np.where((right < left) | np.isnan(right), right, left)


def _larger(left: Array, right: Array) -> Array:
    if _is_mark(right):
        return np.asarray(np.maximum(left, right))
    return np.where((right > left) | np.isnan(right), right, left)


def _clamped(value: Array, low: Array, high: Array) -> Array:
    return _smaller(_larger(value, low), high)


def _logarithm(value: Array) -> Array:
    fraction, exponent = np.frexp(value)
    fraction = np.rint(fraction * FRACTION_STEPS) * (1.0 / FRACTION_STEPS)
    low = fraction < HALF_ROOT
    found: Array = log_series(fraction * (low + 1.0) - 1.0, exponent - low.astype(np.float64))
    if np.min(value) > 0 and np.max(value) < np.inf:
        return found
    found = np.where(value == np.inf, value, found)
    return np.where(value > 0, found, np.where(value == 0, -np.inf, np.nan))


_IN_PLACE: Final = frozenset("+-*/")
_PAIRS: Final[dict[str, _Operation]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": _remainder,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": _equal,
    "!=": _unequal,
    "and": np.logical_and,
    "or": np.logical_or,
}
_CALLS: Final[dict[str, _Operation]] = {
    "min": lambda *arrays: functools.reduce(_smaller, arrays),
    "max": lambda *arrays: functools.reduce(_larger, arrays),
    "abs": np.absolute,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "log": _logarithm,
    "sqrt": np.sqrt,
    "clamp": _clamped,
}
