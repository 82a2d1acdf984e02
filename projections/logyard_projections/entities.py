"""Organizations, groups and users: their priorities, now and before, and what they used.

One that was never set up is known all the same as soon as a workflow names it.
"""

from functools import lru_cache
from typing import Literal

import msgspec

from logyard_domain.configuration import DEFAULTS
from logyard_domain.events import (
    AllocationEnded,
    GroupDeleted,
    GroupUpdated,
    OrganizationUpdated,
    ServerStarted,
    UserUpdated,
    WorkflowSubmitted,
)
from logyard_domain.records import Record
from logyard_domain.usage import Usage, charged
from logyard_projections.configuration import in_force
from logyard_projections.fold import Projection
from logyard_projections.rows import Rows
from logyard_projections.shapes import SHAPES, shape_key
from logyard_projections.stages import ALLOCATIONS, Allocation, place_of
from logyard_projections.tables import Table
from logyard_projections.workflows import WORKFLOWS, Workflow

Kind = Literal["organization", "group", "user"]
DEFAULT = "default"
"""Organization and group of who belongs to none; always known."""


class Entity(msgspec.Struct, array_like=True, kw_only=True, gc=False):
    """One of the three kinds. `organization` is that of a group, and empty for the others.

    `declared` tells that somebody set it up; else it was only named by workflows. It was first
    known at `created`, its priority or list last changed at `updated` (instants) and `position`.
    `preempts` are the groups that a group may preempt. `deleted` groups are kept while their use is
    remembered; they come back when somebody names them again.
    """

    kind: Kind
    name: str
    organization: str = ""
    priority: int = 0
    preempts: tuple[str, ...] = ()
    declared: bool = False
    deleted: bool = False
    created: int
    updated: int
    position: int
    workflows: int = 0
    last_active: int = 0

    @property
    def listed(self) -> str | None:
        """The list that it belongs to: its kind, and for groups the organization."""
        return None if self.deleted else listed(self.kind, self.organization)


class Priority(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The priority of an entity from a position on."""

    position: int
    at: int
    priority: int


class Preempters(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The groups that may preempt a group."""

    groups: tuple[str, ...]


class Used(msgspec.Struct, array_like=True, gc=False):
    """Decayed core-hours as they counted at instant `at` (ms), by `group:O/G` or `user:U`."""

    core_hours: float
    at: int


ENTITIES = Table(
    "entities", Entity, columns={"listed": str, "priority": int}, indexes=[("listed", "priority")]
)
PRIORITIES = Table("entity_priorities", Priority)
PREEMPTERS = Table("preempters", Preempters)
USED = Table("used", Used)


@lru_cache(maxsize=4096)
def entity_key(kind: Kind, name: str, organization: str = "") -> str:
    """Key of an entity: names hold no `/`."""
    key = f"{kind}:{organization}/{name}" if kind == "group" else f"{kind}:{name}"
    return key.replace("\0", "\ufffd")


OF_ENTITY = (OrganizationUpdated, GroupUpdated, GroupDeleted, UserUpdated)


def entity_of(event: OrganizationUpdated | GroupUpdated | GroupDeleted | UserUpdated) -> str:
    """Key of the entity that an event is about."""
    match event:
        case OrganizationUpdated():
            return entity_key("organization", event.organization)
        case UserUpdated():
            return entity_key("user", event.user)
        case _:
            return entity_key("group", event.group, event.organization)


def listed(kind: Kind, organization: str = "") -> str:
    """What the column `listed` holds for the entities of a kind (groups: of one organization)."""
    return f"group:{organization}/" if kind == "group" else f"{kind}:"


def priority_prefix(entity: str) -> str:
    """Keys of all priorities of an entity begin so: no name holds a `#`."""
    return f"{entity}#"


def priority_key(entity: str, position: int) -> str:
    """Key of the priority that an entity has from a position on."""
    return f"{priority_prefix(entity)}{position:016d}"


def owners_of(workflow: Workflow) -> tuple[str, str, str]:
    """Keys of the organization, the group and the user of a workflow."""
    return (
        entity_key("organization", workflow.organization),
        entity_key("group", workflow.group, workflow.organization),
        entity_key("user", workflow.user),
    )


def _server_started(rows: Rows, record: Record, _: ServerStarted) -> None:
    _known(rows, record, "organization", DEFAULT)
    _known(rows, record, "group", DEFAULT, DEFAULT)


def _submitted(rows: Rows, record: Record, event: WorkflowSubmitted) -> None:
    for entity in (
        _known(rows, record, "organization", event.organization),
        _known(rows, record, "group", event.group, event.organization),
        _known(rows, record, "user", event.user),
    ):
        entity.workflows += 1
        entity.last_active = record.at


def _organization(rows: Rows, record: Record, event: OrganizationUpdated) -> None:
    _changed(rows, record, _known(rows, record, "organization", event.organization), event.priority)


def _group(rows: Rows, record: Record, event: GroupUpdated) -> None:
    group = _known(rows, record, "group", event.group, event.organization)
    _known(rows, record, "organization", event.organization)
    _may_preempt(rows, group, event.preempts)
    _changed(rows, record, group, event.priority)


def _user(rows: Rows, record: Record, event: UserUpdated) -> None:
    _changed(rows, record, _known(rows, record, "user", event.user), event.priority)


def _deleted(rows: Rows, record: Record, event: GroupDeleted) -> None:
    group = _known(rows, record, "group", event.group, event.organization)
    _may_preempt(rows, group, ())
    _changed(rows, record, group, 0)
    group.declared = False
    group.deleted = (event.organization, event.group) != (DEFAULT, DEFAULT)
    preempters = rows.get(PREEMPTERS, entity_key("group", event.group, event.organization))
    for name in preempters.groups if preempters is not None else ():
        other = _known(rows, record, "group", name, event.organization)
        fewer = tuple(one for one in other.preempts if one != event.group)
        _may_preempt(rows, other, fewer)
        other.updated, other.position = record.at, record.position


def _may_preempt(rows: Rows, group: Entity, preempts: tuple[str, ...]) -> None:
    for name in {*group.preempts} ^ {*preempts}:
        key = entity_key("group", name, group.organization)
        row = rows.get(PREEMPTERS, key)
        groups = {*row.groups} if row is not None else set[str]()
        groups.symmetric_difference_update((group.name,))
        if groups:
            rows.put(PREEMPTERS, key, Preempters(tuple(sorted(groups))))
        else:
            rows.delete(PREEMPTERS, key)
    group.preempts = preempts


def _changed(rows: Rows, record: Record, entity: Entity, priority: int) -> None:
    key = entity_key(entity.kind, entity.name, entity.organization)
    if priority != entity.priority:
        row = Priority(record.position, record.at, priority)
        rows.put(PRIORITIES, priority_key(key, record.position), row)
    entity.priority = priority
    entity.declared = True
    entity.updated, entity.position = record.at, record.position


def _known(rows: Rows, record: Record, kind: Kind, name: str, organization: str = "") -> Entity:
    """The entity, to be changed; made where it was not known, or had been deleted."""
    key = entity_key(kind, name, organization)
    entity = rows.edit(ENTITIES, key)
    if entity is None:
        entity = Entity(
            kind=kind,
            name=name,
            organization=organization,
            created=record.at,
            updated=record.at,
            position=record.position,
        )
        rows.put(ENTITIES, key, entity)
    entity.deleted = False
    return entity


def _ended(rows: Rows, record: Record, event: AllocationEnded) -> None:
    allocation = rows.get(ALLOCATIONS, place_of(event.allocation).key)
    if allocation is not None and allocation.since:
        _charge(rows, record, allocation)


def _charge(rows: Rows, record: Record, allocation: Allocation) -> None:
    """It gave its room back: whoever owned it has used it."""
    workflow = rows.get(WORKFLOWS, allocation.workflow)
    shape = rows.get(SHAPES, shape_key(allocation.shape))
    if workflow is None or shape is None:
        return
    core_ms = shape.request.cores * shape.request.nodes * (record.at - allocation.since)
    if not core_ms:
        return
    half_life = int(in_force(rows).get("usage.halfLife", DEFAULTS["usage.halfLife"]))
    for key in owners_of(workflow)[1:]:
        used = rows.edit(USED, key)
        before = None if used is None else Usage(used.core_hours, used.at)
        usage = charged(before, core_ms, record.at, half_life)
        if used is None:
            rows.put(USED, key, Used(usage.core_hours, usage.at))
        else:
            used.core_hours, used.at = usage.core_hours, usage.at


PROJECTION = Projection(
    "entities",
    1,
    (ENTITIES, PRIORITIES, PREEMPTERS, USED),
    {
        ServerStarted: _server_started,
        WorkflowSubmitted: _submitted,
        OrganizationUpdated: _organization,
        GroupUpdated: _group,
        GroupDeleted: _deleted,
        UserUpdated: _user,
        AllocationEnded: _ended,
    },
)
