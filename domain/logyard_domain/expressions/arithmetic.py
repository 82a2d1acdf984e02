"""The operations of expressions on numbers: total, and the same to the last bit on any machine.

Numbers are IEEE 754 doubles. Nothing raises: what has no value is nan, what is too large is
infinite. Everything here is made of operations that IEEE defines exactly, so that a decision can be
replayed anywhere; `formula` in the engine does the same to whole columns.
"""

import math
from typing import Any, Final

_LN2_HIGH: Final = float.fromhex("0x1.62e42feep-1")
"""The first 33 bits of the logarithm of 2: its product with an exponent is exact."""

_LN2_LOW: Final = float.fromhex("0x1.a39ef35793c76p-33")
_SERIES: Final = tuple(2.0 / (2 * n + 1) for n in range(1, 10))
FRACTION_STEPS: Final = float(1 << 40)
"""The logarithm reads this many steps between one power of 2 and the next."""

HALF_ROOT: Final = math.sqrt(0.5)


def divided(left: float, right: float) -> float:
    """``left / right``; by zero it is infinite with the signs of both, and nan for 0/0."""
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def remainder(left: float, right: float) -> float:
    """``left % right`` with the sign of `right`; nan for an infinite `left` and a zero `right`."""
    if right == 0 or math.isinf(left):
        return math.nan
    rest = math.fmod(left, right)
    if rest == 0:
        return math.copysign(0.0, right)
    return rest + right if (rest < 0) != (right < 0) else rest


def smaller(left: float, right: float) -> float:
    """The smaller one, `left` where they are equal; nan if one is nan."""
    return right if right < left or math.isnan(right) else left


def larger(left: float, right: float) -> float:
    """The larger one, `left` where they are equal; nan if one is nan."""
    return right if right > left or math.isnan(right) else left


def clamped(value: float, low: float, high: float) -> float:
    """``min(max(value, low), high)``: `high` where the limits cross."""
    return smaller(larger(value, low), high)


def floored(value: float) -> float:
    """The next whole number at or below; what is not finite, and the sign of zero, stays."""
    return math.copysign(float(math.floor(value)), value) if math.isfinite(value) else value


def ceiled(value: float) -> float:
    """The next whole number at or above; what is not finite, and the sign of zero, stays."""
    return math.copysign(float(math.ceil(value)), value) if math.isfinite(value) else value


def rounded(value: float) -> float:
    """The nearest whole number, the even one of two; what is not finite stays."""
    return math.copysign(float(round(value)), value) if math.isfinite(value) else value


def rooted(value: float) -> float:
    """Square root; nan below zero."""
    return math.nan if value < 0 else math.sqrt(value)


def logarithm(value: float) -> float:
    """Natural logarithm; ``-inf`` of zero, nan below zero.

    `value` is first rounded to 40 binary digits. So neighbours are further apart than the error of
    the series, and the function provably never falls; the libraries of C do not promise that, nor
    that two of them agree in the last bit.
    """
    if not value > 0:
        return -math.inf if value == 0 else math.nan
    if value == math.inf:
        return value
    fraction, exponent = math.frexp(value)
    fraction = round(fraction * FRACTION_STEPS) / FRACTION_STEPS
    if fraction < HALF_ROOT:
        fraction, exponent = fraction * 2.0, exponent - 1
    found: float = log_series(fraction - 1.0, float(exponent))
    return found


def log_series(excess: Any, exponent: Any) -> Any:
    """Logarithm of ``(1 + excess) * 2**exponent``, for floats as for arrays of them.

    ``|excess|`` is less than 0.42. With ``s = x / (2 + x)`` the logarithm of ``1 + x`` is ``2 s +
    2/3 s^3 + 2/5 s^5 + ...``, put so that the large part, `excess` itself, is added last.
    """
    s = excess / (2.0 + excess)
    z = s * s
    rest = _SERIES[-1] * z
    for factor in _SERIES[-2::-1]:
        # In place, which for an array saves most of the time, and for a float is the same.
        rest += factor
        rest *= z
    half = 0.5 * excess * excess
    rest += half
    rest *= s
    rest += exponent * _LN2_LOW
    half -= rest
    half -= excess
    return exponent * _LN2_HIGH - half
