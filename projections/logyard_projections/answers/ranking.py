"""Priorities for people: the value at an instant, and the terms that it is the sum of."""

import math
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from logyard_domain.expressions import Expression, evaluate, printed, terms_of
from logyard_domain.resources import Request
from logyard_projections.answers.sums import Sums
from logyard_projections.configuration import LATEST, LATEST_KEY
from logyard_projections.entities import ENTITIES, USED, entity_key
from logyard_projections.plans import planned
from logyard_projections.priorities import Owned, formula_in_force, values_for
from logyard_projections.queue import Owner, Waiting
from logyard_projections.shapes import SHAPES, shape_key
from logyard_projections.stages import Stage
from logyard_projections.tables import Table
from logyard_projections.view import View
from logyard_projections.workflows import SOURCES, WORKFLOWS

R = TypeVar("R", bound=msgspec.Struct)
_SHORT = {
    "organization.priority": "organization",
    "group.priority": "group",
    "user.priority": "user",
    "workflow.priority": "workflow",
    "queue.age_hours / 24": "age",
}


class Term(msgspec.Struct, frozen=True, rename="camel"):
    """A summand of the priority, by a short name and as written. The values, added from the first
    to the last, give the priority to the last bit. None stands for what is no finite number.
    """

    name: str
    expression: str
    value: float | None


class Ranker:
    """Evaluates the expression in force over the rows of a view. One for each question.

    `at` is the instant that priorities are of.
    """

    def __init__(self, view: View, at: int) -> None:
        self.view = view
        self.at = at
        self._rows: dict[Table[Any], dict[str, Any]] = {}
        self._requests: dict[str, dict[str, Request]] = {}
        self.formula = formula_in_force(self)
        self._sums = Sums(self, self.formula)

    def get(self, table: Table[R], key: str) -> R | None:
        """The row with that key, asked for once."""
        rows = self._known(table)
        if key not in rows:
            rows[key] = self.view.get(table, key)
        found: R | None = rows[key]
        return found

    def expect(self, table: Table[Any], keys: Iterable[str]) -> None:
        """Ask for many rows at once that are going to be asked for one by one."""
        rows = self._known(table)
        missing = {key for key in keys if key not in rows}
        if missing:
            found = self.view.get_many(table, missing)
            rows.update((key, found.get(key)) for key in missing)

    def expect_priorities(self, lines: Iterable[Waiting]) -> None:
        """The same, for what the priorities of lines of the queue are made of."""
        lines = tuple(lines)
        variables = self.formula.variables
        groups = {entity_key("group", one.group, one.organization) for one in lines}
        users = {entity_key("user", one.user) for one in lines}
        self.expect(SHAPES, {shape_key(one.shape) for one in lines if one.shape})
        entities: set[str] = set()
        if "organization.priority" in variables:
            entities |= {entity_key("organization", one.organization) for one in lines}
        if "group.priority" in variables:
            entities |= groups
        if "user.priority" in variables:
            entities |= users
        self.expect(ENTITIES, entities)
        used = groups if "usage.group" in variables else set[str]()
        self.expect(USED, used | users if "usage.user" in variables else used)

    def _known(self, table: Table[Any]) -> dict[str, Any]:
        rows = self._rows.get(table)
        if rows is None:
            rows = self._rows[table] = {}
        return rows

    def of(self, owned: Owned, request: Request, limit_ms: int, submitted_at: int) -> float:
        """The priority; -inf where the expression gives no finite number."""
        return self._sums.of(owned, request, limit_ms, submitted_at, self.at)

    def of_row(self, row: Waiting, request: Request | None = None) -> float:
        """The priority of what a line of the queue is about."""
        if request is None:
            request = self.request_of(row.shape, row.workflow, row.stage)
        return self.of(row, request, row.limit_ms, row.submitted_at)

    def of_stage(self, stage: Stage, owned: Owned) -> float:
        """The priority of the ranks of a stage."""
        request = self.request_of(stage.shape, stage.workflow, stage.name)
        return self.of(owned, request, stage.limit_ms, stage.submitted_at)

    def terms(self, stage: Stage, owned: Owned) -> tuple[Term, ...]:
        """What the priority of the ranks of a stage is the sum of."""
        request = self.request_of(stage.shape, stage.workflow, stage.name)
        limit, since = stage.limit_ms, stage.submitted_at
        given = values_for(self, self.formula.variables, owned, request, limit, since, self.at)
        return tuple(
            Term(short(one), printed(one), finite(evaluate(one, given)))
            for one in terms_of(self.formula.tree)
        )

    def basis(self, stage: Stage, owned: Owned) -> tuple[int, ...]:
        """Positions that a priority rests on: submission, policy, and what owners were given."""
        found = {stage.submitted_position, self.formula.position}
        for key in (
            entity_key("organization", owned.organization),
            entity_key("group", owned.group, owned.organization),
            entity_key("user", owned.user),
        ):
            entity = self.get(ENTITIES, key)
            if entity is not None and entity.declared:
                found.add(entity.position)
        return tuple(sorted(found - {0}))

    def request_of(self, shape: int, workflow: str, stage: str) -> Request:
        """What a rank asks for; before its stage is ready, as it is planned."""
        found = self.get(SHAPES, shape_key(shape)) if shape else None
        if found is not None:
            return found.request
        if workflow not in self._requests:
            source, row = self.view.get(SOURCES, workflow), self.view.get(WORKFLOWS, workflow)
            self._requests[workflow] = (
                {one.name: one.request for one in planned(source.definition, row.preemptible)}
                if source is not None and row is not None
                else {}
            )
        return self._requests[workflow].get(stage, Request(cores=0))

    def owner_of(self, workflow: str) -> Owner | None:
        """Whose a workflow is or was."""
        row = self.get(WORKFLOWS, workflow)
        if row is None:
            return None
        return Owner(row.name, row.organization, row.group, row.user, row.priority)


def policy_text(ranker: Ranker) -> str:
    """The revision under which the order is what it is."""
    revision = ranker.formula.revision
    return f"policy r{revision}" if revision else "the default policy"


def settings_revision(ranker: Ranker) -> int:
    """Position of the configuration in force; 0 where none was set."""
    latest = ranker.get(LATEST, LATEST_KEY)
    return latest.position if latest is not None else 0


def short(term: Expression) -> str:
    """A name for a term, or its text."""
    text = printed(term)
    return _SHORT.get(text, text)


def finite(value: object) -> float | None:
    """The number, where it is a finite one."""
    number = value if isinstance(value, float) and math.isfinite(value) else None
    return number


def sum_text(terms: tuple[Term, ...]) -> str:
    """``organization 5 + group 4 - user 1``; what is 0 in all is left out where others are not."""
    shown = [one for one in terms if one.value != 0] or list(terms[:1])
    text = ""
    for one in shown:
        number = "?" if one.value is None else plain(abs(one.value))
        sign = "-" if one.value is not None and one.value < 0 else "+"
        if text:
            text += f" {sign} {one.name} {number}"
        else:
            text = f"{one.name} {'-' if sign == '-' else ''}{number}"
    return text


def plain(value: float | None) -> str:
    """A priority in few digits; ``lowest`` for what is no finite number."""
    if value is None or not math.isfinite(value):
        return "lowest"
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
