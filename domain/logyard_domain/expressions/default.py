"""The priority of a cluster that has set no other."""

from logyard_domain.expressions.tree import Binary, Expression, Number, Variable

DEFAULT_PRIORITY: Expression = Binary(
    "+",
    Binary(
        "+",
        Binary(
            "+",
            Binary("+", Variable("organization.priority"), Variable("group.priority")),
            Variable("user.priority"),
        ),
        Variable("workflow.priority"),
    ),
    Binary("/", Variable("queue.age_hours"), Number(24.0)),
)
"""``organization.priority + group.priority + user.priority + workflow.priority + queue.age_hours /
24``: a day of waiting weighs as much as one point of anybody's priority."""
