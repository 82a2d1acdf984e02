"""The order of the queue under any policy, over every runner; and what its lines say."""

import pytest

from logyard_domain.commands import (
    PreemptAllocation,
    RegisterNode,
    UpdateGroup,
    UpdateOrganization,
    UpdateUser,
)
from logyard_domain.definition import Workflow
from logyard_domain.resources import Capacity
from logyard_projections.answers import order
from logyard_projections.answers.queue import Asked, QueueEntry, queue_page, sort_of
from logyard_projections.answers.stages import describe_stage
from logyard_projections.answers.stats import stats
from logyard_projections.answers.why import explain
from logyard_projections.catalog import PROJECTIONS
from logyard_projections.runners.memory import MemoryRunner
from logyard_projections.runners.runner import Runner
from logyard_projections.view import BadToken
from tests.projections.conftest import Open
from tests.projections.story import FORMULAS, GIB, Story, job, simple_flow

MOVING = "log(1 + queue.age_seconds) * (1 + group.priority)"


def told(open_runner: Open, story: Story) -> Runner:
    """The story in rows."""
    runner = open_runner()
    runner.apply(story.records)
    return runner


def ready(runner: Runner, story: Story, asked: Asked | None = None) -> list[QueueEntry]:
    """What could be placed, in order."""
    with runner.read() as view:
        asked = asked or Asked(sections=("ready",))
        return list(queue_page(view, asked, size=1000, now=story.at).allocations)


def names(entries: list[QueueEntry]) -> list[str]:
    """Of which workflows they are, by key."""
    return [one.workflow_name.removeprefix("flow ") for one in entries]


def three() -> Story:
    """A full node, and three workflows of different owners that wait, a minute apart."""
    story = Story()
    story.node("n1", 1)
    story.submit("fills", simple_flow())
    for key, user, group in (("a", "ana", "chem"), ("b", "bo", "bio"), ("c", "ana", "bio")):
        story.pass_time(60_000)
        story.submit(key, simple_flow(), user=user, group=group)
    return story


def test_priorities_that_change_reach_what_waits_already(open_runner: Open) -> None:
    story = three()
    runner = told(open_runner, story)
    assert names(ready(runner, story)) == ["a", "b", "c"]
    story.turn(UpdateUser(user="bo", priority=3))
    runner.apply(story.records)
    assert names(ready(runner, story)) == ["b", "a", "c"]
    story.turn(UpdateGroup(group="bio", priority=2))
    runner.apply(story.records)
    assert names(ready(runner, story)) == ["b", "c", "a"]
    story.configure("-queue.age_hours")
    runner.apply(story.records)
    assert names(ready(runner, story)) == ["c", "b", "a"]
    story.configure(MOVING)
    runner.apply(story.records)
    assert names(ready(runner, story)) == ["b", "a", "c"]
    story.turn(UpdateOrganization(organization="default", priority=9))
    story.configure()
    runner.apply(story.records)
    entries = ready(runner, story)
    assert names(entries) == ["b", "c", "a"]
    assert entries[0].priority == pytest.approx(9 + 2 + 3 + 2 / 24 / 60, abs=1e-3)


def test_what_runs_is_reordered_too(open_runner: Open) -> None:
    story = Story()
    story.node("n1", 2)
    first = story.submit("a", simple_flow(), group="chem")
    second = story.submit("b", simple_flow(), group="bio")
    runner = told(open_runner, story)
    running = Asked(sections=("running",))
    assert [one.workflow_id for one in ready(runner, story, running)] == [first, second]
    story.turn(UpdateGroup(group="bio", priority=1))
    runner.apply(story.records)
    assert [one.workflow_id for one in ready(runner, story, running)] == [second, first]


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("lanes", [0, 2_000])
def test_pages_follow_each_other_in_any_order(
    open_runner: Open, monkeypatch: pytest.MonkeyPatch, formula: str, lanes: int
) -> None:
    monkeypatch.setattr(order, "LANES_MOST", lanes)
    story = Story()
    story.node("n1", 1)
    story.configure(formula)
    for number in range(12):
        story.pass_time(1_000)
        group, memory = ("bio", GIB) if number % 3 else ("chem", 2 * GIB)
        work = Workflow(jobs={"it": job(memory=memory)})
        story.submit(f"k{number}", work, group=group, priority=-(number % 2))
    story.turn(UpdateGroup(group="chem", priority=2))
    runner = told(open_runner, story)
    whole = [one.id for one in ready(runner, story)]
    assert len(whole) == 11
    seen: list[str] = []
    token = ""
    with runner.read() as view:
        while True:
            asked = Asked(sections=("ready",))
            page = queue_page(view, asked, size=4, token=token, now=story.at)
            seen += [one.id for one in page.allocations]
            assert not page.bounded
            token = page.page_token
            if not token:
                break
        with pytest.raises(BadToken):
            queue_page(view, Asked(sections=("ready",)), token="ready:0:p~x~y")
    assert seen == whole


def test_where_too_much_moves_the_oldest_are_in_order(
    open_runner: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order, "LANES_MOST", 0)
    monkeypatch.setattr(order, "ROWS_MOST", 1)
    story = three()
    story.turn(UpdateGroup(group="bio", priority=5))
    story.configure(MOVING)
    runner = told(open_runner, story)
    seen: list[str] = []
    token = ""
    with runner.read() as view:
        # A page of rows is the least that is put in order.
        whole = queue_page(view, Asked(sections=("ready",)), now=story.at)
        while True:
            page = queue_page(view, Asked(sections=("ready",)), size=1, token=token, now=story.at)
            seen += names(list(page.allocations))
            token = page.page_token
            if not token:
                break
    assert names(list(whole.allocations)) == seen
    assert sorted(seen) == ["a", "b", "c"]


def test_lines_are_sorted_as_asked(open_runner: Open) -> None:
    story = three()
    story.turn(UpdateGroup(group="bio", priority=5))
    runner = told(open_runner, story)
    for sort, want in (("age", "abc"), ("user", "acb"), ("group", "bca"), ("priority", "bca")):
        asked = Asked(sections=("ready",), sort=sort_of(sort))
        assert "".join(names(ready(runner, story, asked))) == want
    with pytest.raises(ValueError, match="there are priority, age, user, group"):
        sort_of("size")


def test_what_has_no_finite_priority_comes_last(open_runner: Open) -> None:
    story = three()
    story.configure("1 / (group.priority - 1)")
    story.turn(UpdateGroup(group="chem", priority=1))
    runner = told(open_runner, story)
    entries = ready(runner, story)
    assert names(entries) == ["b", "c", "a"]
    assert [one.priority for one in entries] == [-1.0, -1.0, None]
    with runner.read() as view:
        why = explain(view, entries[-1].id)
        stage = describe_stage(view, entries[-1].workflow_id, "only")
    assert why is not None
    assert (why.priority, why.terms[0].value) == (None, None)
    assert stage is not None
    assert stage.priority is not None
    assert not stage.priority.computed


def test_the_terms_of_a_priority_are_told(open_runner: Open) -> None:
    story = three()
    story.turn(UpdateGroup(group="chem", priority=4), UpdateUser(user="ana", priority=1))
    story.configure("group.priority * 2 - request.cores + user.priority + queue.age_hours / 24")
    runner = told(open_runner, story)
    (entry,) = [one for one in ready(runner, story) if one.group == "chem"]
    with runner.read() as view:
        why = explain(view, entry.id, story.at)
        stage = describe_stage(view, entry.workflow_id, "only", now=story.at)
    assert why is not None
    assert [(one.name, one.value) for one in why.terms[:3]] == [
        ("group.priority * 2", 8.0),
        ("-request.cores", -1.0),
        ("user", 1.0),
    ]
    line = next(one for one in why.lines if one.label == "order")
    assert line.text.startswith("priority 8.001 = group.priority * 2 8 - -request.cores 1 + user 1")
    assert line.text.endswith(f"; policy r{why.policy_revision}")
    tags = {int(record.position): type(record.event).__name__ for record in story.records}
    cited = {tags[at] for at in line.positions}
    assert cited == {"WorkflowSubmitted", "GroupUpdated", "UserUpdated", "ConfigSet"}
    assert stage is not None
    assert stage.priority is not None
    assert stage.priority.terms == why.terms
    assert (stage.priority.account_priority, stage.priority.user_priority) == (4, 1)
    assert stage.priority.effective_priority == entry.priority == why.priority


def test_free_devices_are_counted(open_runner: Open) -> None:
    story = Story()
    story.node("n1", 4, gpus=1)
    story.node("n2", 4, gpus=2)
    story.node("n3", 4)
    story.submit("a", Workflow(jobs={"it": job(gpus=1)}))
    runner = told(open_runner, story)
    with runner.read() as view:
        page = queue_page(view, Asked())
    assert page.nodes == 3
    assert [(one.name, one.nodes) for one in page.free_devices] == [("nvidia.com/gpu", 1)]


def test_what_is_scarce_is_named() -> None:
    story = Story()
    story.node("n1", 8, memory=16 * GIB, gpus=2)
    story.submit("fill", Workflow(jobs={"it": job(cores=6, memory=10 * GIB, gpus=2)}))
    head = story.submit("head", Workflow(jobs={"it": job(cores=8, gpus=2)}))
    for key, wanted in (
        ("gpu", job(gpus=1)),
        ("cpu", job(cores=4)),
        ("memory", job(memory=8 * GIB)),
        ("late", job(cores=2, limit_ms=3_600_000)),
    ):
        story.submit(key, Workflow(jobs={"it": wanted}))
    runner = MemoryRunner(PROJECTIONS)
    runner.apply(story.records)
    lines = {one.workflow_name.removeprefix("flow "): one for one in ready(runner, story)}
    promised = lines["head"].promised
    assert {key: one.why for key, one in lines.items()} == {
        "head": f"head: starts by {promised}",
        "gpu": "no gpu free",
        "cpu": "no node has 4 cpu free",
        "memory": "no node has 8GiB free",
        "late": f"would delay {head}/it, promised {promised}",
    }


def preempting() -> tuple[Story, str, str]:
    """A victim that runs, and one of higher priority that takes its room."""
    story = Story()
    story.configure(
        scheduler_preemption_enabled=True,
        scheduler_preemption_minRuntime=60_000,
        scheduler_preemption_utilizationThreshold=0.5,
    )
    story.turn(UpdateGroup(group="chem"), UpdateGroup(group="bio", priority=5, preempt=("chem",)))
    story.node("n1", 4)
    low = story.submit("low", Workflow(jobs={"it": job(cores=4)}), preemptible=True)
    story.begin(*story.placed())
    story.pass_time(30_000)
    high = story.submit("high", Workflow(jobs={"it": job(cores=4)}), group="bio")
    return story, low, high


def test_an_equal_is_protected_where_no_gap_is_asked_for() -> None:
    story = Story()
    story.configure(
        scheduler_preemption_enabled=True,
        scheduler_preemption_minRuntime=0,
        scheduler_preemption_priorityGap=0.0,
        scheduler_preemption_utilizationThreshold=0.0,
    )
    story.turn(UpdateGroup(group="chem"), UpdateGroup(group="bio", preempt=("chem",)))
    story.node("n1", 4)
    story.submit("runs", Workflow(jobs={"it": job(cores=4)}), preemptible=True)
    waits = story.submit("waits", Workflow(jobs={"it": job(cores=4)}), group="bio")
    assert waits not in {one.stage.workflow.id for one in story.world.allocations.values()}
    runner = MemoryRunner(PROJECTIONS)
    runner.apply(story.records)
    with runner.read() as view:
        found = explain(view, waits, story.at)
    assert found is not None
    assert [(one.rule, one.allocations) for one in found.protected] == [
        ("not below in priority", 1)
    ]


def test_evictions_are_told_from_both_sides(open_runner: Open) -> None:
    story, low, high = preempting()
    runner = told(open_runner, story)
    with runner.read() as view:
        early = explain(view, high, story.at)
        spared = explain(view, low, story.at)
    assert early is not None
    assert [(one.rule, one.allocations) for one in early.protected] == [
        ("running for less than 1m", 1)
    ]
    assert spared is not None
    assert spared.spared == "it has run for 30s; nothing is evicted before 1m"
    story.pass_time(40_000)
    story.turn(UpdateUser(user="bo", priority=1))
    runner.apply(story.records)
    both = Asked(sections=("running",))
    lines = {one.workflow_id: one.why for one in ready(runner, story, both)}
    assert lines == {
        high: f"evicts {low}/it",
        low: f"being stopped: preempted by {high}/it",
    }
    story.pass_time(5_000)
    story.end(f"{low}/it/0#1", outcome="preempted")
    runner.apply(story.records)
    with runner.read() as view:
        preemptor, victim = explain(view, high, story.at), explain(view, f"{low}/it/0#1", story.at)
        again = explain(view, low, story.at)
        numbers = stats(view)
    assert preemptor is not None
    assert preemptor.here is not None
    assert (preemptor.here.kind, preemptor.here.evicts) == ("preempting", (f"{low}/it/0#1",))
    parts = {one.reason: one.ms for one in preemptor.waited}
    assert parts == {"capacity": 40_000, "eviction": 5_000}
    assert victim is not None
    assert victim.reason.endswith("_PREEMPTED")
    assert victim.evicted is not None
    assert (victim.evicted.by, victim.evicted.ran_ms) == (f"{high}/it/0#1", 70_000)
    assert 4.9 < victim.evicted.gap < 5
    assert victim.detail == f"was preempted by {high}/it"
    assert again is not None
    assert again.allocation_id == f"{low}/it/0#2"
    assert any(one.label == "evicted" and one.text.startswith("attempt 1") for one in again.lines)
    assert (numbers.preempting, numbers.evicted) == (1, 1)
    assert {one.name: one.preempted for one in numbers.by_group} == {"chem": 1, "bio": 0}


def test_an_administrator_evicts_too(open_runner: Open) -> None:
    story = Story()
    story.node("n1", 1)
    flow = story.submit("a", simple_flow())
    story.begin(*story.placed())
    story.turn(PreemptAllocation(allocation=f"{flow}/only/0#1"))
    runner = told(open_runner, story)
    with runner.read() as view:
        why = explain(view, flow, story.at)
    assert why is not None
    assert why.detail == "is being stopped on n1 (preempted by an administrator)"


def test_use_of_the_nodes_is_integrated(open_runner: Open) -> None:
    story = Story()
    four = Capacity(cores=4, memory=4 * GIB)
    story.turn(RegisterNode(node="n1", capacity=four, incarnation="1"))
    story.submit("a", Workflow(jobs={"it": job(cores=2, memory=GIB)}))
    story.pass_time(600_000)
    story.end(f"{next(iter(story.world.workflows))}/it/0#1")
    runner = told(open_runner, story)
    with runner.read() as view:
        found = stats(view, 1_800_000)
    assert [(one.ms, one.share["cores"], one.share["memory"]) for one in found.use] == [
        (300_000, 0.5, 0.25),
        (300_000, 0.5, 0.25),
    ]
    assert found.used_now == {"cores": 0.0, "memory": 0.0}
    assert [(one.name, one.waits.count) for one in found.by_organization] == [("default", 1)]
