"""Priorities as the rows tell them: what the expression in force gives for an allocation."""

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Protocol, TypeVar

import msgspec

from logyard_domain.configuration import DEFAULTS, Value
from logyard_domain.expressions import (
    DEFAULT_PRIORITY,
    Expression,
    Scalar,
    compiled,
    finite,
    looked_up,
    moving,
    rising,
    variables_of,
)
from logyard_domain.resources import Request
from logyard_domain.rules.priorities import request_variables
from logyard_domain.usage import Usage, decayed
from logyard_projections.configuration import LATEST, LATEST_KEY
from logyard_projections.entities import ENTITIES, USED, Kind, entity_key
from logyard_projections.tables import Table

R = TypeVar("R", bound=msgspec.Struct)
SETTING = "scheduler.priority"


class Reader(Protocol):
    """Rows by key: of a fold or of a view."""

    def get(self, table: Table[R], key: str) -> R | None:
        """The row with that key."""
        ...


class Owned(Protocol):
    """Whose it is."""

    organization: str
    group: str
    user: str
    priority: int


class Formula(msgspec.Struct, frozen=True):
    """The expression in force. `moving` tells that the order may change by time alone, `rising`
    that of two which differ in age alone the older comes first. `value` gives what the expression
    is for values of its `variables`. It holds from `position` on, as revision `revision` of the
    configuration; both 0 for the default that nobody has set.
    """

    tree: Expression
    value: Callable[[Mapping[str, Scalar]], Scalar]
    moving: bool
    rising: bool
    variables: frozenset[str]
    revision: int = 0
    position: int = 0


def formula_in_force(rows: Reader) -> Formula:
    """The priority expression that decisions use."""
    latest = rows.get(LATEST, LATEST_KEY)
    if latest is None:
        return _analysed(DEFAULT_PRIORITY)
    found = _analysed(latest.formulas.get(SETTING, DEFAULT_PRIORITY))
    return msgspec.structs.replace(found, revision=latest.revision, position=latest.position)


def setting(rows: Reader, key: str) -> Value:
    """The value of a setting that is in force."""
    latest = rows.get(LATEST, LATEST_KEY)
    return DEFAULTS[key] if latest is None else latest.values.get(key, DEFAULTS[key])


def value_of(
    rows: Reader,
    formula: Formula,
    owned: Owned,
    request: Request,
    limit_ms: int,
    submitted_at: int,
    now: int,
) -> float:
    """The priority at `now` (ms); -inf where the expression gives no finite number."""
    values = values_for(rows, formula.variables, owned, request, limit_ms, submitted_at, now)
    return finite(formula.value(values))


def values_for(
    rows: Reader,
    variables: Collection[str],
    owned: Owned,
    request: Request,
    limit_ms: int,
    submitted_at: int,
    now: int,
) -> dict[str, Scalar]:
    """Values of variables of expressions. Age counts from submission, also while it runs."""
    values: dict[str, Scalar] = {}
    for name in variables:
        match name:
            case "queue.age_seconds":
                values[name] = (now - submitted_at) / 1000
            case "queue.age_hours":
                values[name] = (now - submitted_at) / 1000 / 3600
            case "workflow.priority":
                values[name] = float(owned.priority)
            case "organization.priority":
                values[name] = _standing(rows, "organization", owned.organization)
            case "group.priority":
                values[name] = _standing(rows, "group", owned.group, owned.organization)
            case "user.priority":
                values[name] = _standing(rows, "user", owned.user)
            case "usage.group":
                key = entity_key("group", owned.group, owned.organization)
                values[name] = used(rows, key, now)
            case "usage.user":
                values[name] = used(rows, entity_key("user", owned.user), now)
            case "organization.name":
                values[name] = owned.organization
            case "group.name":
                values[name] = owned.group
            case "user.name":
                values[name] = owned.user
            case _:
                # A device that it does not ask for is 0.
                values[name] = request_variables(request, limit_ms).get(name, 0.0)
    return values


def _standing(rows: Reader, kind: Kind, name: str, organization: str = "") -> float:
    entity = rows.get(ENTITIES, entity_key(kind, name, organization))
    return float(entity.priority) if entity is not None else 0.0


def used(rows: Reader, key: str, now: int) -> float:
    """Decayed core-hours of a group or user at an instant."""
    found = rows.get(USED, key)
    if found is None:
        return 0.0
    half_life = int(setting(rows, "usage.halfLife"))
    return decayed(Usage(found.core_hours, found.at), now, half_life)


@lru_cache(maxsize=64)
def _analysed(tree: Expression) -> Formula:
    value, variables = compiled(tree, looked_up), frozenset(variables_of(tree))
    return Formula(tree, value, moving(tree), rising(tree), variables)
