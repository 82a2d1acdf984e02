"""Answers about organizations, groups and users. On the wire a group is called account."""

import msgspec

from logyard_domain.events import AnyEvent
from logyard_projections.answers.asking import ordering, page_size
from logyard_projections.entities import (
    DEFAULT,
    ENTITIES,
    OF_ENTITY,
    PRIORITIES,
    Entity,
    Kind,
    entity_key,
    entity_of,
    listed,
    owners_of,
    priority_key,
    priority_prefix,
)
from logyard_projections.instants import rfc3339
from logyard_projections.priorities import used
from logyard_projections.view import View
from logyard_projections.workflows import Workflow

ORDER = {"name": "", "priority": "priority"}


class Organization(msgspec.Struct, frozen=True, rename="camel"):
    """An organization. `declared` tells that somebody set it up; else workflows named it only.

    `updateTime` and `position` are of the last change of what was set.
    """

    id: str
    name: str
    create_time: str
    update_time: str
    priority: int
    declared: bool
    workflows: int
    position: int


class Account(msgspec.Struct, frozen=True, rename="camel"):
    """A group of `organization_id`. It may preempt the groups `preempt_ids` and nobody else.

    `usage_core_hours` is what it used, the longer ago the less. `posix_gid` is 0: none.
    """

    id: str
    name: str
    create_time: str
    update_time: str
    posix_gid: int
    priority: int
    preempt_ids: tuple[str, ...]
    organization_id: str
    declared: bool
    workflows: int
    usage_core_hours: float
    position: int


class User(msgspec.Struct, frozen=True, rename="camel"):
    """A user. Names and addresses come with identity; until then the id is all there is.

    `usage_core_hours` is what they used, the longer ago the less.
    """

    id: str
    email: str
    name: str
    first_name: str
    last_name: str
    create_time: str
    update_time: str
    last_active_time: str | None
    priority: int
    declared: bool
    workflows: int
    usage_core_hours: float
    position: int


class OrganizationList(msgspec.Struct, frozen=True, rename="camel"):
    """A page of organizations."""

    organizations: tuple[Organization, ...]
    page_token: str


class AccountList(msgspec.Struct, frozen=True, rename="camel"):
    """A page of groups."""

    accounts: tuple[Account, ...]
    page_token: str


class UserList(msgspec.Struct, frozen=True, rename="camel"):
    """A page of users."""

    users: tuple[User, ...]
    page_token: str


def organizations(view: View, *, size: int, token: str, order: str) -> OrganizationList:
    """Organizations, by name where nothing else is asked. Raises ValueError."""
    rows, more = _page(view, "organization", "", size, token, order)
    return OrganizationList(tuple(map(_organization, rows)), more)


def accounts(
    view: View, organization: str, at: int, *, size: int, token: str, order: str
) -> AccountList:
    """The groups of an organization, their use as it counts at instant `at`. Raises ValueError."""
    rows, more = _page(view, "group", organization, size, token, order)
    return AccountList(tuple(_account(view, row, at) for row in rows), more)


def users(view: View, at: int, *, size: int, token: str, order: str) -> UserList:
    """Users, their use as it counts at instant `at`. Raises ValueError."""
    rows, more = _page(view, "user", "", size, token, order)
    return UserList(tuple(_user(view, row, at) for row in rows), more)


def organization(view: View, name: str) -> Organization | None:
    """One organization."""
    row = known(view, "organization", name)
    return None if row is None else _organization(row)


def account(view: View, name: str, organization: str, at: int) -> Account | None:
    """One group."""
    row = known(view, "group", name, organization)
    return None if row is None else _account(view, row, at)


def user(view: View, name: str, at: int) -> User | None:
    """One user."""
    row = known(view, "user", name)
    return None if row is None else _user(view, row, at)


def known(view: View, kind: Kind, name: str, organization: str = "") -> Entity | None:
    """The row of an entity, unless it is not known or was deleted."""
    row = view.get(ENTITIES, entity_key(kind, name, organization))
    return None if row is None or row.deleted else row


def priority_at(view: View, entity: str, position: int) -> int:
    """The priority that an entity had at a position."""
    page = view.scan(
        PRIORITIES,
        prefix=priority_prefix(entity),
        most=priority_key(entity, position),
        descending=True,
        limit=1,
    )
    return page.rows[0].priority if page.rows else 0


def priorities_of(view: View, workflow: Workflow, position: int) -> dict[str, int]:
    """What a workflow's order hung on at a position: workflow, organization, group, user."""
    organization, group, user = owners_of(workflow)
    return {
        "workflow": workflow.priority,
        "organization": priority_at(view, organization, position),
        "group": priority_at(view, group, position),
        "user": priority_at(view, user, position),
    }


def concerns(event: AnyEvent, at: int, workflow: Workflow) -> bool:
    """Whether an event (of instant `at`) changed whom a workflow belongs to while it was alive."""
    return (
        isinstance(event, OF_ENTITY)
        and entity_of(event) in owners_of(workflow)
        and workflow.created <= at
        and not (workflow.ended and workflow.ended < at)
    )


def changes_for(view: View, workflow: Workflow) -> list[int]:
    """Positions at which a priority of the workflow's owners changed while it was alive."""
    found: list[int] = []
    for entity in owners_of(workflow):
        page = view.scan(PRIORITIES, prefix=priority_prefix(entity), descending=True)
        found += [
            row.position
            for row in page.rows
            if row.position > workflow.submitted_position
            and not (workflow.ended and workflow.ended < row.at)
        ]
    return sorted(found)


def _page(
    view: View, kind: Kind, organization: str, size: int, token: str, order: str
) -> tuple[tuple[Entity, ...], str]:
    column, descending = ordering(order, ORDER, "name asc")
    page = view.scan(
        ENTITIES,
        where={"listed": listed(kind, organization)},
        order=column,
        descending=descending,
        after=token,
        limit=page_size(size),
    )
    return page.rows, page.token


def _organization(row: Entity) -> Organization:
    return Organization(
        id=row.name,
        name=row.name,
        create_time=rfc3339(row.created),
        update_time=rfc3339(row.updated),
        priority=row.priority,
        declared=row.declared or row.name == DEFAULT,
        workflows=row.workflows,
        position=row.position,
    )


def _account(view: View, row: Entity, at: int) -> Account:
    return Account(
        id=row.name,
        name=row.name,
        create_time=rfc3339(row.created),
        update_time=rfc3339(row.updated),
        posix_gid=0,
        priority=row.priority,
        preempt_ids=row.preempts,
        organization_id=row.organization,
        declared=row.declared or row.name == row.organization == DEFAULT,
        workflows=row.workflows,
        usage_core_hours=_used(view, entity_key("group", row.name, row.organization), at),
        position=row.position,
    )


def _user(view: View, row: Entity, at: int) -> User:
    return User(
        id=row.name,
        email="",
        name=row.name,
        first_name="",
        last_name="",
        create_time=rfc3339(row.created),
        update_time=rfc3339(row.updated),
        last_active_time=rfc3339(row.last_active) if row.last_active else None,
        priority=row.priority,
        declared=row.declared,
        workflows=row.workflows,
        usage_core_hours=_used(view, entity_key("user", row.name), at),
        position=row.position,
    )


def _used(view: View, key: str, at: int) -> float:
    # A clock that was set back does not make what was used grow.
    return used(view, key, max(at, view.mark.at))
