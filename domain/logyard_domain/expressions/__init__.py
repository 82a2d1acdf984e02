"""Expressions: their trees, what they may name, what is wrong with them, and what they mean."""

from logyard_domain.expressions.analysis import moving, rising, terms_of, timely, variables_of
from logyard_domain.expressions.checking import DEPTH_MAX, NODES_MAX, check
from logyard_domain.expressions.default import DEFAULT_PRIORITY
from logyard_domain.expressions.functions import FUNCTIONS, Function
from logyard_domain.expressions.mistakes import Mistake
from logyard_domain.expressions.plain import (
    Scalar,
    Value,
    compiled,
    evaluate,
    finite,
    looked_up,
    priority,
)
from logyard_domain.expressions.printing import printed
from logyard_domain.expressions.tree import (
    Binary,
    Call,
    Choice,
    Expression,
    Listing,
    Number,
    Operator,
    Sign,
    Text,
    Truth,
    Unary,
    Variable,
    children,
    measure,
    walk,
)
from logyard_domain.expressions.variables import (
    PRIORITY,
    Change,
    Kind,
    Meaning,
    Vocabulary,
    column_of,
)

__all__ = [
    "DEFAULT_PRIORITY",
    "DEPTH_MAX",
    "FUNCTIONS",
    "NODES_MAX",
    "PRIORITY",
    "Binary",
    "Call",
    "Change",
    "Choice",
    "Expression",
    "Function",
    "Kind",
    "Listing",
    "Meaning",
    "Mistake",
    "Number",
    "Operator",
    "Scalar",
    "Sign",
    "Text",
    "Truth",
    "Unary",
    "Value",
    "Variable",
    "Vocabulary",
    "check",
    "children",
    "column_of",
    "compiled",
    "evaluate",
    "finite",
    "looked_up",
    "measure",
    "moving",
    "printed",
    "priority",
    "rising",
    "terms_of",
    "timely",
    "variables_of",
    "walk",
]
