"""The variables that an expression may name: their types, units and meaning."""

from typing import Literal

import msgspec

from logyard_domain.expressions.tree import Variable

Kind = Literal["number", "truth", "text", "list"]
Change = Literal["time", "owner", "request"]


class Meaning(msgspec.Struct, frozen=True):
    """One variable.

    `changes` tells what its value depends on: it moves with *time*, belongs to an *owner*
    (organization, group, user, workflow) or to the *request*. A number lies between `least` and
    `most`. `rate` is how much it grows with each second of queue age. A `keyed` variable takes a
    name in brackets, and is 0 for a name that is absent.
    """

    kind: Kind
    unit: str
    meaning: str
    changes: Change
    least: float = -1e15
    most: float = 1e15
    rate: float = 0.0
    keyed: bool = False


class Vocabulary(msgspec.Struct, frozen=True):
    """What one kind of expression may name. `aliases` are other words for the same variable."""

    variables: dict[str, Meaning]
    aliases: dict[str, str] = {}


PRIORITY = Vocabulary(
    variables={
        "organization.priority": Meaning(
            "number", "", "priority of the organization, set by a cluster admin", "owner"
        ),
        "group.priority": Meaning(
            "number", "", "priority of the group, set by an owner of the organization", "owner"
        ),
        "user.priority": Meaning(
            "number", "", "priority of the user, set by an owner of the organization", "owner"
        ),
        "workflow.priority": Meaning(
            "number", "", "priority of the workflow, 0 or less, set by who starts it", "owner"
        ),
        "queue.age_seconds": Meaning(
            "number", "s", "time since submission, also while running", "time", 0, 1e12, 1.0
        ),
        "queue.age_hours": Meaning("number", "h", "the same in hours", "time", 0, 1e9, 1.0 / 3600),
        "request.nodes": Meaning("number", "", "nodes asked for", "request", 0),
        "request.cores": Meaning("number", "", "cores asked for on each node", "request", 0),
        "request.memory_gib": Meaning(
            "number", "GiB", "memory asked for on each node", "request", 0
        ),
        "request.devices": Meaning(
            "number", "", "devices of that name asked for on each node", "request", 0, keyed=True
        ),
        "request.limit_seconds": Meaning(
            "number", "s", "the execute timeout; 0 where there is none", "request", 0
        ),
        "request.preemptible": Meaning("truth", "", "whether it may be evicted", "request"),
        "usage.group": Meaning("number", "core-hours", "decayed use of the group", "time", 0, 1e18),
        "usage.user": Meaning("number", "core-hours", "decayed use of the user", "time", 0, 1e18),
        "organization.name": Meaning("text", "", "name of the organization", "owner"),
        "group.name": Meaning("text", "", "name of the group", "owner"),
        "user.name": Meaning("text", "", "name of the user", "owner"),
    },
    aliases={
        "account.priority": "group.priority",
        "account.name": "group.name",
        "usage.account": "usage.group",
    },
)
"""The variables of `scheduler.priority`."""


def column_of(variable: Variable) -> str:
    """Under which name the value of a variable is given: ``request.devices[nvidia.com/gpu]``."""
    return f"{variable.name}[{variable.key}]" if variable.key else variable.name
