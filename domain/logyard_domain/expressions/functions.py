"""The functions of expressions. All take numbers and give a number."""

import msgspec


class Function(msgspec.Struct, frozen=True):
    """How a function is called and what for. `least` and `most` count arguments; None: no end."""

    form: str
    meaning: str
    least: int = 1
    most: int | None = 1


FUNCTIONS: dict[str, Function] = {
    "min": Function("min(a, b, ...)", "the smallest; nan if one of them is nan", 2, None),
    "max": Function("max(a, b, ...)", "the largest; nan if one of them is nan", 2, None),
    "abs": Function("abs(x)", "x without its sign"),
    "floor": Function("floor(x)", "the next whole number at or below x"),
    "ceil": Function("ceil(x)", "the next whole number at or above x"),
    "round": Function("round(x)", "the nearest whole number; a half goes to the even one"),
    "log": Function("log(x)", "natural logarithm of x, read to 40 bits"),
    "sqrt": Function("sqrt(x)", "square root of x"),
    "clamp": Function("clamp(x, low, high)", "x, but at least low and at most high", 3, 3),
}
