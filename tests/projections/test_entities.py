"""Organizations, groups, users and the configuration, as the world has them at any position."""

from random import Random

import pytest

from logyard_domain.commands import (
    AnyCommand,
    DeleteGroup,
    SetConfig,
    UpdateGroup,
    UpdateOrganization,
    UpdateUser,
)
from logyard_domain.configuration import DEFAULTS
from logyard_domain.definition import Workflow
from logyard_domain.events import StageReady
from logyard_domain.rules.priorities import used as used_in_world
from logyard_domain.world import World
from logyard_projections.answers import configuration, entities
from logyard_projections.catalog import PROJECTIONS
from logyard_projections.configuration import REVISIONS
from logyard_projections.entities import ENTITIES, USED
from logyard_projections.priorities import used
from logyard_projections.runners.memory import MemoryRunner
from logyard_projections.view import View
from logyard_projections.workflows import WORKFLOWS
from tests.projections.conftest import Open
from tests.projections.story import Story, job, random_story, simple_flow

GROUPS = ("chem", "bio", "phys")
HOUR_MS = 3_600_000


def folded(story: Story) -> MemoryRunner:
    """The story in rows."""
    runner = MemoryRunner(PROJECTIONS)
    runner.apply(story.records)
    return runner


def settled_story(seed: int, turns: int = 60) -> Story:
    """Groups that come, change and go while their work runs, evicts and is evicted."""
    dice = Random(seed)
    story = Story()
    story.turn(
        SetConfig(
            values={
                "scheduler.preemption.enabled": True,
                "scheduler.preemption.minRuntime": 0,
                "scheduler.preemption.utilizationThreshold": 0.1,
                "usage.halfLife": 60_000,
            }
        )
    )
    for number in range(2):
        story.node(f"n{number}", dice.choice((2, 4)))
    for turn in range(turns):
        story.pass_time(dice.choice((0, 1, 900, 5_000, 70_000)))
        if dice.random() < 0.4:
            story.turn(_change(dice))
        elif dice.random() < 0.5:
            flow = Workflow(
                jobs={"only": job(cores=dice.choice((1, 2)), ranks=dice.choice((0, 6)))},
                preemptible=dice.random() < 0.5,
            )
            story.submit(
                f"k{turn}", flow, user=dice.choice(("ana", "bo")), group=dice.choice(GROUPS)
            )
        elif story.placed() and dice.random() < 0.6:
            story.begin(dice.choice(story.placed()))
        elif story.endable():
            name = dice.choice(story.endable())
            stopping = story.world.allocations[name].stopping
            story.end(name, outcome="preempted" if stopping == "preempted" else "finished")
    return story


def _change(dice: Random) -> AnyCommand:
    group = dice.choice(GROUPS)
    other = dice.choice([one for one in GROUPS if one != group])
    return dice.choice(
        (
            UpdateOrganization(organization="default", priority=dice.randint(0, 3)),
            UpdateGroup(group=group, priority=dice.randint(-3, 9)),
            UpdateGroup(group=group, preempt=(other,)),
            UpdateGroup(group=group, no_preempt=(other,)),
            DeleteGroup(group=group),
            UpdateUser(user="ana", priority=dice.randint(-3, 3)),
            SetConfig(values={"usage.halfLife": dice.choice((60_000, 3_600_000))}),
        )
    )


def _agrees(view: View, world: World, at: int) -> None:
    rows = {(row.kind, row.name): row for row in view.scan(ENTITIES).rows}
    for name, priority in world.organizations.items():
        assert rows["organization", name].priority == priority
    for (organization, name), group in world.groups.items():
        found = entities.account(view, name, organization, at)
        assert found is not None and found.declared
        assert (found.priority, found.preempt_ids) == (group.priority, group.preempts)
    for user, priority in world.users.items():
        assert rows["user", user].priority == priority
    for row in rows.values():
        if row.kind == "group" and (row.organization, row.name) not in world.groups:
            assert (row.priority, row.preempts, row.declared) == (0, (), False)
    for key in world.usage:
        assert used(view, key, at) == used_in_world(world, key, at)
    assert len(view.scan(USED).rows) == len(world.usage)
    revision = configuration.latest(view)
    assert (revision.revision if revision else 0) == world.revision
    assert DEFAULTS | (revision.values if revision else {}) == world.config


@pytest.mark.parametrize("seed", range(20))
def test_entities_agree_with_the_world(seed: int) -> None:
    story = settled_story(seed)
    kinds = {record.event.__struct_config__.tag for record in story.records}
    assert {"group.updated", "allocation.ended", "config.set"} <= kinds
    with folded(story).read() as view:
        _agrees(view, story.world, story.at + 12_345)


@pytest.mark.parametrize("seed", range(10))
def test_use_is_conserved_where_room_changes_hands(seed: int) -> None:
    story = random_story(seed, 90)
    with folded(story).read() as view:
        _agrees(view, story.world, story.at)


def test_runners_agree(open_runner: Open) -> None:
    story = settled_story(101)
    runner = open_runner(kept=3)
    for start in range(0, len(story.records), 7):
        runner.apply(story.records[start : start + 7])
    with runner.read() as view, folded(story).read() as other:
        assert _all(view, story.at) == _all(other, story.at)
        _agrees(view, story.world, story.at)


def _all(view: View, at: int) -> list[object]:
    return [
        entities.organizations(view, size=10, token="", order=""),
        entities.accounts(view, "default", at, size=10, token="", order="priority desc"),
        entities.users(view, at, size=10, token="", order=""),
        configuration.revisions(view, size=100, token=""),
    ]


def test_lists_are_paged_and_sorted() -> None:
    story = Story()
    for number, name in enumerate(("c", "a", "b")):
        story.turn(UpdateGroup(group=name, priority=-number))
    with folded(story).read() as view:

        def names(order: str, size: int, token: str = "") -> tuple[list[str], str]:
            page = entities.accounts(view, "default", story.at, size=size, token=token, order=order)
            return [one.id for one in page.accounts], page.page_token

        assert names("", 10) == (["a", "b", "c", "default"], "")
        first, token = names("priority desc", 3)
        assert first[0] in ("c", "default")
        assert names("priority desc", 3, token) == (["b"], "")
        with pytest.raises(ValueError, match="'prio' is not known"):
            names("prio", 3)


def test_a_deleted_group_is_gone_from_all_lists_and_comes_back_when_named() -> None:
    story = Story()
    story.turn(UpdateGroup(group="chem"), UpdateGroup(group="bio", priority=4))
    story.turn(UpdateGroup(group="chem", preempt=("bio",)))
    story.turn(DeleteGroup(group="bio"))
    with folded(story).read() as view:
        chem = entities.account(view, "chem", "default", story.at)
        assert chem is not None and chem.preempt_ids == ()
        assert entities.account(view, "bio", "default", story.at) is None
    story.node("n", 1)
    story.submit("k", simple_flow(), group="bio")
    with folded(story).read() as view:
        bio = entities.account(view, "bio", "default", story.at)
        assert bio is not None
        assert (bio.priority, bio.declared, bio.workflows) == (0, False, 1)


def test_priorities_are_known_as_of_a_position() -> None:
    story = Story()
    story.turn(UpdateOrganization(organization="default", priority=5))
    story.turn(UpdateGroup(group="chem", priority=2), UpdateUser(user="ana", priority=1))
    flow = story.submit("k", simple_flow(), priority=-3)
    story.turn(UpdateGroup(group="chem", priority=7))
    ready = next(one.position for one in story.records if isinstance(one.event, StageReady))
    with folded(story).read() as view:
        row = view.get(WORKFLOWS, flow)
        assert row is not None
        before = {"workflow": -3, "organization": 5, "group": 2, "user": 1}
        assert entities.priorities_of(view, row, ready) == before
        end = view.mark.position
        assert entities.priorities_of(view, row, end) == before | {"group": 7}
        assert entities.changes_for(view, row) == [end]


def test_revisions_tell_what_changed() -> None:
    story = Story()
    story.turn(SetConfig(values={"node.lostAfter": 30_000}))
    story.turn(SetConfig(values={"scheduler.backfill.enabled": False}))
    with folded(story).read() as view:
        newest, oldest = configuration.revisions(view, size=10, token="").revisions
        assert (newest.revision, newest.actor) == ("2", "user:ana")
        changed = [(one.key, one.before_text, one.after_text) for one in newest.changes]
        assert changed == [
            ("node.lostAfter", "30s", "1m"),
            ("scheduler.backfill.enabled", "true", "false"),
        ]
        assert [one.key for one in oldest.changes] == ["node.lostAfter"]
        assert len(view.scan(REVISIONS).rows) == 2
        first = configuration.revision_of(view, 1)
        assert first is not None
        shown = {one.key: one for one in configuration.settings(first.values)}
        assert (shown["node.lostAfter"].text, shown["node.lostAfter"].changed) == ("30s", True)
        assert shown["usage.halfLife"].text == "168h"
        assert set(shown) == set(DEFAULTS)
