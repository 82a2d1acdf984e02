"""Organizations, groups and users: their priorities, whom they may preempt, what they used."""

from collections.abc import Callable
from typing import Any

from logyard_domain.commands import (
    DeleteGroup,
    Refused,
    UpdateGroup,
    UpdateOrganization,
    UpdateUser,
)
from logyard_domain.events import (
    AnyEvent,
    GroupDeleted,
    GroupUpdated,
    OrganizationUpdated,
    UserUpdated,
)
from logyard_domain.usage import charged
from logyard_domain.world import Allocation, Group, Workflow, World

MOST = 1_000_000
"""Bounds of priorities, either way: a sum of a few of them stays exact."""


def update_organization(world: World, command: UpdateOrganization) -> list[AnyEvent]:
    """Make it known, or change its priority."""
    _name("organization", command.organization)
    before = world.organizations.get(command.organization)
    after = _priority(command.priority, before or 0)
    if after == before:
        return []
    return [OrganizationUpdated(organization=command.organization, priority=after)]


def update_group(world: World, command: UpdateGroup) -> list[AnyEvent]:
    """Make it known, or change its priority or its preempt list."""
    _name("organization", command.organization)
    _name("group", command.group)
    before = world.groups.get((command.organization, command.group)) or Group(0, ())
    both = sorted({*command.preempt} & {*command.no_preempt})
    if both:
        raise Refused(f"group {both[0]} is to be preempted and not to be; name it once", "invalid")
    preempts = set(before.preempts)
    for other in command.preempt:
        if other == command.group:
            raise Refused(
                f"group {other} may not preempt itself; within a group, priority alone decides "
                "who waits",
                "invalid",
            )
        if (command.organization, other) not in known_groups(world):
            raise Refused(_unknown(world, command.organization, other), "missing")
        preempts.add(other)
    preempts -= {*command.no_preempt}
    after = GroupUpdated(
        organization=command.organization,
        group=command.group,
        priority=_priority(command.priority, before.priority),
        preempts=tuple(sorted(preempts)),
    )
    known = (command.organization, command.group) in world.groups
    if known and (after.priority, after.preempts) == (before.priority, before.preempts):
        return []
    return [after]


def delete_group(world: World, command: DeleteGroup) -> list[AnyEvent]:
    """Forget it."""
    key = (command.organization, command.group)
    if key not in world.groups:
        raise Refused(_unknown(world, *key), "missing")
    alive = sum((w.organization, w.group) == key for w in world.workflows.values())
    if alive:
        raise Refused(
            f"{alive} workflows of group {command.group} are alive; stop them, or wait for them"
        )
    return [GroupDeleted(organization=command.organization, group=command.group)]


def update_user(world: World, command: UpdateUser) -> list[AnyEvent]:
    """Make the user known, or change their priority."""
    _name("user", command.user)
    before = world.users.get(command.user)
    after = _priority(command.priority, before or 0)
    return [] if after == before else [UserUpdated(user=command.user, priority=after)]


def known_groups(world: World) -> set[tuple[str, str]]:
    """(organization, group) of all that were named by anybody."""
    live = {(workflow.organization, workflow.group) for workflow in world.workflows.values()}
    return live | set(world.groups) | {("default", "default")}


def group_key(workflow: Workflow) -> str:
    """Under which key of `World.usage` the use of its group is kept."""
    return f"group:{workflow.organization}/{workflow.group}"


def user_key(workflow: Workflow) -> str:
    """The same for its user."""
    return f"user:{workflow.user}"


def charge(world: World, allocation: Allocation) -> None:
    """An allocation gives its room back: whoever owned it has used it."""
    if not allocation.since:
        return
    workflow = allocation.stage.workflow
    cores = world.shapes[allocation.stage.shape].request.cores
    core_ms = cores * (world.at - allocation.since)
    if not core_ms:
        return
    core_ms *= sum([count for _, count in allocation.chunks])
    half_life = int(world.config["usage.halfLife"])
    for key in (group_key(workflow), user_key(workflow)):
        world.usage[key] = charged(world.usage.get(key), core_ms, world.at, half_life)


def _name(kind: str, name: str) -> None:
    if not name or len(name) > 200 or any(c in name for c in "/# \t\n"):
        raise Refused(
            f"{name!r} is no name for {'an' if kind[0] in 'aeio' else 'a'} {kind}; use up to 200 "
            "letters, digits, dots and dashes",
            "invalid",
        )


def _priority(wanted: int | None, before: int) -> int:
    if wanted is None:
        return before
    if not -MOST <= wanted <= MOST:
        raise Refused(f"priority {wanted}: it lies between -{MOST} and {MOST}", "invalid")
    return wanted


def _unknown(world: World, organization: str, group: str) -> str:
    names = sorted(name for where, name in known_groups(world) if where == organization)
    return (
        f"organization {organization} has no group {group!r}; there are: "
        f"{', '.join(names[:10]) or 'none yet'}"
    )


def _ranked(world: World) -> None:
    world.ranked_at = world.position


def _organization(world: World, event: OrganizationUpdated) -> None:
    world.organizations[event.organization] = event.priority
    _ranked(world)


def _group(world: World, event: GroupUpdated) -> None:
    key = (event.organization, event.group)
    world.groups[key] = Group(event.priority, event.preempts)
    _ranked(world)


def _deleted(world: World, event: GroupDeleted) -> None:
    del world.groups[event.organization, event.group]
    for (organization, _), group in world.groups.items():
        if organization == event.organization:
            group.preempts = tuple(one for one in group.preempts if one != event.group)
    _ranked(world)


def _user(world: World, event: UserUpdated) -> None:
    world.users[event.user] = event.priority
    _ranked(world)


APPLY: dict[type, Callable[[World, Any], None]] = {
    OrganizationUpdated: _organization,
    GroupUpdated: _group,
    GroupDeleted: _deleted,
    UserUpdated: _user,
}
