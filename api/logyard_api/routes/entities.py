"""Organizations, groups (on the wire: accounts) and users: priorities, and who may preempt whom."""

from typing import Annotated, Literal

from msgspec import Meta

from logyard_api.bodies import Answer, Body, Count, Reply
from logyard_api.errors import Code, Failure, invalid
from logyard_api.operations import Routes, ViewQuery
from logyard_api.yard import Yard
from logyard_domain.commands import (
    AnyCommand,
    DeleteGroup,
    UpdateGroup,
    UpdateOrganization,
    UpdateUser,
)
from logyard_domain.rules.entities import MOST, known_groups
from logyard_projections.answers import entities
from logyard_projections.answers.entities import (
    Account,
    AccountList,
    Organization,
    OrganizationList,
    User,
    UserList,
)
from logyard_projections.entities import DEFAULT
from logyard_projections.view import View

Priority = Annotated[int, Meta(ge=-MOST, le=MOST)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]

routes = Routes("organizations, groups and users")


class EntitiesQuery(ViewQuery, frozen=True):
    """Which part of a list.

    pageSize: rows of a page; 25 when absent, at most 1000
    pageToken: `pageToken` of the page before
    orderBy: `name` or `priority`, and `asc` or `desc`
    """

    page_size: Count = 0
    page_token: str = ""
    order_by: str = ""


class AccountsQuery(EntitiesQuery, frozen=True):
    """Which groups.

    organization: whose groups
    showUserAccounts: accepted for other clients; no group is made for each user
    """

    organization: str = DEFAULT
    show_user_accounts: bool = False


class AccountQuery(ViewQuery, frozen=True):
    """Which group.

    organization: the one that the group belongs to
    """

    organization: str = DEFAULT


class OfOrganization(Body, frozen=True):
    """Which group.

    organization: the one that the group belongs to
    """

    organization: str = DEFAULT


class MembersQuery(EntitiesQuery, frozen=True):
    """Which users.

    relationship: every user is a member and none an owner, until people have identities
    """

    relationship: Literal["ORGANIZATION_MEMBER", "ORGANIZATION_OWNER", "ORGANIZATION_ALL"] = (
        "ORGANIZATION_ALL"
    )


class PriorityBody(Body, frozen=True):
    """What counts from now on.

    priority: the higher, the sooner
    """

    priority: Priority


class PriorityQuery(Body, frozen=True):
    """What counts from now on.

    priority: the higher, the sooner
    """

    priority: Priority


class NewAccount(Body, frozen=True):
    """A group to set up.

    name: up to 200 letters, digits, dots and dashes
    """

    name: Name


class AccountBody(Body, frozen=True):
    """What to change of a group. A priority counts only with `updatePriority`.

    name: a group keeps its name
    updateName: must be false
    priority: the higher, the sooner
    updatePriority: whether `priority` is to be set
    addPreemptIds: groups of the same organization that it may preempt from now on
    removePreemptIds: groups that it may not preempt any more
    """

    name: str | None = None
    update_name: bool | None = None
    priority: Priority | None = None
    update_priority: bool | None = None
    add_preempt_ids: tuple[Name, ...] = ()
    remove_preempt_ids: tuple[Name, ...] = ()


class Gone(Reply, frozen=True):
    """What was deleted.

    id: of the group
    position: of the log, at which it is gone
    """

    id: str
    position: int


@routes.add("GET", "/v4/admin/organizations")
async def list_organizations(yard: Yard, query: EntitiesQuery) -> Answer[OrganizationList]:
    """List the organizations that were set up or named by a workflow."""
    return await yard.look(
        lambda view: entities.organizations(
            view, size=query.page_size, token=query.page_token, order=query.order_by
        )
    )


@routes.add("PATCH", "/v4/admin/organizations/{id}/priority")
async def update_organization_priority(
    yard: Yard, id: str, body: PriorityBody
) -> Answer[Organization]:
    """Set the priority of an organization; one that is not known is set up."""
    await _act(yard, UpdateOrganization(organization=id, priority=body.priority))
    return await _organization(yard, id)


@routes.add("GET", "/v4/admin/organizations/{id}")
async def get_one_organization(yard: Yard, id: str, query: ViewQuery) -> Answer[Organization]:
    """One organization."""
    return await _organization(yard, id)


@routes.add("GET", "/v4/organization")
async def get_organization(yard: Yard, query: ViewQuery) -> Answer[Organization]:
    """The organization that the caller acts for."""
    return await _organization(yard, DEFAULT)


@routes.add("GET", "/v4/organization/members")
async def list_members(yard: Yard, query: MembersQuery) -> Answer[UserList]:
    """List the users that were set up or started a workflow."""
    if query.relationship == "ORGANIZATION_OWNER":
        return Answer(UserList((), ""), yard.views.position)
    return await yard.look(
        lambda view: entities.users(
            view,
            yard.now(),
            size=query.page_size,
            token=query.page_token,
            order=query.order_by,
        )
    )


@routes.add("GET", "/v4/organization/users/{id}")
async def get_user(yard: Yard, id: str, query: ViewQuery) -> Answer[User]:
    """One user, and what they used."""
    return await _user(yard, id)


@routes.add("PUT", "/v4/organization/users/{id}/priority")
async def update_user_priority(yard: Yard, id: str, query: PriorityQuery) -> Answer[User]:
    """Set the priority of a user; one that is not known is set up."""
    await _act(yard, UpdateUser(user=id, priority=query.priority))
    return await _user(yard, id)


@routes.add("GET", "/v4/accounts")
async def list_accounts(yard: Yard, query: AccountsQuery) -> Answer[AccountList]:
    """List the groups that were set up or named by a workflow."""
    return await yard.look(
        lambda view: entities.accounts(
            view,
            query.organization,
            yard.now(),
            size=query.page_size,
            token=query.page_token,
            order=query.order_by,
        )
    )


@routes.add("POST", "/v4/accounts")
async def create_account(yard: Yard, query: OfOrganization, body: NewAccount) -> Answer[Account]:
    """Set up a group."""
    there = await yard.look(
        lambda view: entities.account(view, body.name, query.organization, yard.now())
    )
    if there.value is not None and there.value.declared:
        raise Failure(Code.EXISTS, f"there is a group {body.name!r} already; change that one")
    await _act(yard, UpdateGroup(organization=query.organization, group=body.name))
    return await _account(yard, body.name, query.organization)


@routes.add("GET", "/v4/accounts/{id}")
async def get_account(yard: Yard, id: str, query: AccountQuery) -> Answer[Account]:
    """One group, whom it may preempt, and what it used."""
    return await _account(yard, id, query.organization)


@routes.add("PATCH", "/v4/accounts/{id}")
async def update_account(
    yard: Yard, id: str, query: OfOrganization, body: AccountBody
) -> Answer[Account]:
    """Change a group's priority, or whom it may preempt; one that is not known is set up."""
    if body.update_name and body.name != id:
        raise invalid("body: name: a group keeps its name, which is its id; leave it out")
    if body.update_priority and body.priority is None:
        raise invalid("body: priority: updatePriority is true and no priority is given")
    await _make_known(yard, query.organization, body.add_preempt_ids)
    command = UpdateGroup(
        organization=query.organization,
        group=id,
        priority=body.priority if body.update_priority else None,
        preempt=body.add_preempt_ids,
        no_preempt=body.remove_preempt_ids,
    )
    await _act(yard, command)
    return await _account(yard, id, query.organization)


@routes.add("DELETE", "/v4/accounts/{id}")
async def delete_account(yard: Yard, id: str, query: OfOrganization) -> Answer[Gone]:
    """Forget a group of which no workflow is alive; it leaves all preempt lists."""
    row = await _account(yard, id, query.organization)
    if not row.value.declared:
        raise Failure(
            Code.CONFLICT,
            f"group {id} was never set up, only named by workflows: there is nothing to delete",
        )
    position = await _act(yard, DeleteGroup(organization=query.organization, group=id))
    return Answer(Gone(id=id, position=position), position)


async def _act(yard: Yard, command: AnyCommand) -> int:
    """Carry it out, and wait until the views have seen it; the position at which it is there."""
    receipt = await yard.ask(command, str(command.__struct_config__.tag))
    await yard.seen(receipt.position)
    return receipt.position


async def _make_known(yard: Yard, organization: str, groups: tuple[str, ...]) -> None:
    """A group that only workflows of the past named is as good as any other."""
    alive = await yard.peek(known_groups)
    for group in groups:
        if (organization, group) not in alive:

            def known(view: View, name: str = group) -> bool:
                return entities.known(view, "group", name, organization) is not None

            if (await yard.look(known)).value:
                await _act(yard, UpdateGroup(organization=organization, group=group))


async def _organization(yard: Yard, id: str) -> Answer[Organization]:
    return await yard.find(
        lambda view: entities.organization(view, id),
        f"there is no organization {id!r}; `logyard organization list` shows those that there are",
    )


async def _account(yard: Yard, id: str, organization: str) -> Answer[Account]:
    return await yard.find(
        lambda view: entities.account(view, id, organization, yard.now()),
        f"there is no group {id!r} in organization {organization!r}; `logyard group list` shows "
        "those that there are",
    )


async def _user(yard: Yard, id: str) -> Answer[User]:
    return await yard.find(
        lambda view: entities.user(view, id, yard.now()),
        f"there is no user {id!r}; `logyard user list` shows those that there are",
    )
