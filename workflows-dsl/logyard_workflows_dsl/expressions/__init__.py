"""Text in, trees out: the language of priorities and policies."""

from logyard_workflows_dsl.expressions.faults import Fault, UnreadableExpression, rendered
from logyard_workflows_dsl.expressions.parsing import TEXT_MAX, parse

__all__ = ["TEXT_MAX", "Fault", "UnreadableExpression", "parse", "rendered"]
