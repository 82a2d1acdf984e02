"""Answers about workflows, stages, nodes, the queue and numbers, over every runner."""

import msgspec
import pytest

from logyard_domain.commands import DrainNode, StopWorkflow
from logyard_domain.definition import Workflow
from logyard_projections.answers.asking import conditions, ordering, page_size
from logyard_projections.answers.nodes import get_node, list_nodes
from logyard_projections.answers.queue import Asked, queue_page, sections_of
from logyard_projections.answers.stages import allocations_of, describe_stage
from logyard_projections.answers.stats import stats
from logyard_projections.answers.workflows import (
    get_workflow,
    list_workflows,
    statuses,
    workflow_facts,
    workflow_status,
)
from logyard_projections.runners.runner import Runner
from logyard_projections.spread import BUCKETS, percentile, slot, slot_most
from logyard_projections.view import BadToken
from tests.projections.conftest import Open
from tests.projections.story import GIB, Story, job, simple_flow


def told(open_runner: Open, story: Story) -> Runner:
    """The story in rows."""
    runner = open_runner()
    runner.apply(story.records)
    return runner


def mixed() -> Story:
    """Workflows in every status, of two users and groups."""
    story = Story()
    story.node("n1", 2)
    for number in range(4):
        story.pass_time(1_000)
        user, group = ("ana", "chem") if number % 2 else ("bo", "bio")
        story.submit(f"k{number}", simple_flow(), user=user, group=group)
    story.begin(*story.placed())
    one, two = story.running()
    story.end(one)
    story.end(two, outcome="failed")
    story.begin(story.placed()[0])
    story.turn(StopWorkflow(workflow=list(story.world.workflows)[1]))
    story.submit("wide", Workflow(jobs={"wide": job(cores=64)}), user="ana", group="chem")
    return story


def test_workflows_are_listed_by_every_condition_at_once(open_runner: Open) -> None:
    runner = told(open_runner, mixed())
    with runner.read() as view:
        everything = list_workflows(view, cluster="c").workflows
        assert len(everything) == 5
        created = [one.create_time or "" for one in everything]
        assert created == sorted(created, reverse=True)
        failed = list_workflows(view, cluster="c", requested=["STAGE_STATUS_FAILED"]).workflows
        assert [one.status for one in failed] == ["STAGE_STATUS_FAILED"]
        assert failed[0].error == "only exited with code 1"
        either = list_workflows(view, cluster="c", requested=["FINISHED", "FAILED"]).workflows
        assert {one.status for one in either} == {"STAGE_STATUS_FAILED", "STAGE_STATUS_FINISHED"}
        mine = list_workflows(view, cluster="c", user="ana", filter='name="flow wide"').workflows
        assert [one.name for one in mine] == ["flow wide"]
        assert not list_workflows(view, cluster="c", user="bo", filter="user=ana").workflows
        none = list_workflows(view, cluster="c", requested=["FAILED"], filter="status=FINISHED")
        assert not none.workflows
        first = list_workflows(view, cluster="c", size=2, order_by="name")
        rest = list_workflows(view, cluster="c", size=3, order_by="name", token=first.page_token)
        names = [one.name for one in (*first.workflows, *rest.workflows)]
        assert names == sorted(one.name for one in everything)
        assert rest.page_token == ""


def test_a_workflow_is_told_whole(open_runner: Open) -> None:
    story = Story()
    story.node("n1", 4)
    jobs = {"render": job(ranks=3, at_once=2), "join": job("render")}
    id = story.submit("a", Workflow(jobs=jobs), priority=-2)
    story.begin(*story.placed())
    story.end(story.running()[0])
    runner = told(open_runner, story)
    with runner.read() as view:
        flow = get_workflow(
            view, id, cluster="main", specification=lambda found: msgspec.json.encode(found.version)
        )
        assert flow is not None
        assert flow.specification == b'"v4"'
        assert (flow.raw_specification, flow.cluster_id) == ("# a", "main")
        assert (flow.total_jobs, flow.priority, flow.status) == (2, -2, "STAGE_STATUS_STARTED")
        wire = msgspec.json.decode(msgspec.json.encode(flow))
        assert wire["createTime"] == "2027-01-15T08:00:00.000Z"
        assert wire["specification"] == "InY0Ig=="
        status = workflow_status(view, id)
        assert status is not None
        render, join = status.status.stages
        assert (render.status, join.status) == ("STAGE_STATUS_STARTED", "STAGE_STATUS_UNSPECIFIED")
        ranks = render.details["ranks"]
        assert (ranks["total"], ranks["finished"], ranks["running"], ranks["placed"]) == (
            3,
            1,
            1,
            1,
        )
        assert join.details["needs"] == ["render"]
        facts = workflow_facts(view, id)
        assert facts is not None
        assert (facts.running_stages, facts.ranks, facts.position) == (1, 4, view.mark.position)
        assert get_workflow(view, "no", cluster="", specification=lambda _: b"") is None
        assert workflow_status(view, "no") is None


def test_stages_are_described_with_their_attempts(open_runner: Open) -> None:
    story = Story()
    story.node("n1", 1)
    id = story.submit("a", Workflow(jobs={"flaky": job(ranks=2, retries=1)}))
    story.begin(*story.placed())
    story.end(*story.running(), outcome="failed", run_ms=700)
    story.pass_time(10_000)
    story.begin(*story.placed())
    story.end(*story.running())
    runner = told(open_runner, story)
    with runner.read() as view:
        whole = describe_stage(view, id, "flaky")
        assert whole is not None
        assert whole.stages[0].details["attempts"] == 3
        assert [one.id for one in whole.stages[1:]] == [
            f"{id}/flaky/1#1",
            f"{id}/flaky/1#2",
            f"{id}/flaky/2#1",
        ]
        assert whole.priority is not None
        assert whole.priority.priority_expression
        rank = describe_stage(view, id, "flaky", rank=1)
        assert rank is not None
        first, second = rank.stages[1:]
        assert (first.status, second.details["requeued"]) == ("STAGE_STATUS_FAILED", "retry")
        assert (first.details["exitCode"], first.details["runMs"]) == (1, 700)
        assert describe_stage(view, id, "none") is None
        token, seen = "", list[str]()
        while True:
            page = allocations_of(view, id, token=token, limit=2)
            seen += [one.id for one in page.rows]
            token = page.token
            if not token:
                break
        assert seen == [one.id for one in whole.stages[1:]]


def test_nodes_tell_what_they_have_and_who_uses_it(open_runner: Open) -> None:
    story = Story()
    story.node("n2", 8, memory=16 * GIB, gpus=2)
    story.node("n1", 1)
    id = story.submit("a", Workflow(jobs={"train": job(cores=3, memory=4 * GIB, gpus=1)}))
    story.turn(DrainNode(node="n2", reason="firmware"))
    runner = told(open_runner, story)
    with runner.read() as view:
        nodes = list_nodes(view, cluster="main").nodes
        assert [(one.id, one.running_jobs, one.state) for one in nodes] == [
            ("n1", 0, "up"),
            ("n2", 1, "draining"),
        ]
        node = get_node(view, "n2", cluster="main")
        assert node is not None
        assert isinstance(node.running_jobs, tuple)
        assert [one.id for one in node.running_jobs] == [f"{id}/train/0#1"]
        assert (node.free.cores, node.free.memory_bytes) == (5, str(12 * GIB))
        assert (node.allocated.devices, node.free.devices) == (
            {"nvidia.com/gpu": 1},
            {"nvidia.com/gpu": 1},
        )
        assert node.reason == "firmware"
        assert [one.id for one in list_nodes(view, cluster="", filter="state=up").nodes] == ["n1"]
        assert get_node(view, "n9", cluster="") is None


def crowded() -> Story:
    """Two run, many wait: an array, single jobs, one that fits nowhere, one that needs another."""
    story = Story()
    story.node("n1", 2)
    story.submit("array", Workflow(jobs={"render": job(ranks=7), "join": job("render")}))
    for number in range(5):
        story.pass_time(1_000)
        user = "bo" if number == 2 else "ana"
        story.submit(f"k{number}", simple_flow(), user=user, priority=-(number % 2))
    story.submit("wide", Workflow(jobs={"wide": job(cores=64)}))
    story.begin(story.placed()[0])
    return story


def test_the_queue_is_told_in_sections(open_runner: Open) -> None:
    runner = told(open_runner, crowded())
    with runner.read() as view:
        page = queue_page(view, Asked())
        lines = [(one.section, one.stage, one.count) for one in page.allocations]
        assert lines == [
            ("running", "render", 1),
            ("running", "render", 1),
            ("ready", "render", 5),
            *[("ready", "only", 1)] * 5,
            ("parked", "wide", 1),
            ("pending", "join", 1),
        ]
        assert (page.shown, page.page_token) == (14, "")
        assert (page.totals.ready, page.totals.parked, page.totals.pending) == (10, 1, 1)
        ready = page.allocations[2]
        assert ready.promised is not None
        assert (ready.why, ready.kind) == (f"head: starts by {ready.promised}", "capacity")
        assert page.allocations[3].why == "no cpu free"
        assert ready.rank == 3
        assert page.allocations[0].why == "started by order"
        assert page.allocations[-1].why == "waits for render (0 of 7 done)"
        assert page.allocations[-2].why == "never: no node has 64 cpu"
        ready_ones = [one for one in page.allocations if one.section == "ready"]
        places = [(-(one.priority or 0.0), one.position, one.index) for one in ready_ones]
        assert places == sorted(places)
        assert (page.nodes, page.free_devices, page.bounded) == (1, (), False)


@pytest.mark.parametrize("expand", [False, True])
def test_pages_of_the_queue_are_complete(open_runner: Open, expand: bool) -> None:
    runner = told(open_runner, crowded())
    with runner.read() as view:
        asked = Asked(expand=expand)
        whole = queue_page(view, asked, size=100)
        assert whole.shown == 14
        assert len(whole.allocations) == (14 if expand else 10)
        for size in (1, 2, 3, 6):
            seen: list[str] = []
            token = ""
            while True:
                page = queue_page(view, asked, size=size, token=token)
                assert len(page.allocations) <= size
                seen += [one.id for one in page.allocations]
                token = page.page_token
                if not token:
                    break
            assert seen == [one.id for one in whole.allocations]


def test_the_queue_is_asked_by_owner_and_priority(open_runner: Open) -> None:
    runner = told(open_runner, crowded())
    with runner.read() as view:
        mine = queue_page(view, Asked(user="bo")).allocations
        assert [(one.user, one.section) for one in mine] == [("bo", "ready")]
        high = queue_page(view, Asked(priority_min=-0.5)).allocations
        assert high
        assert all((one.priority or 0.0) >= -0.5 for one in high)
        low = [one for one in queue_page(view, Asked()).allocations if (one.priority or 0.0) < -0.5]
        assert len(low) == 2
        assert not queue_page(view, Asked(group="none")).allocations
        finished = queue_page(view, Asked(sections=("finished",))).allocations
        assert not finished
        with pytest.raises(BadToken):
            queue_page(view, Asked(sections=("ready",)), token="running:0:")


def test_names_of_sections() -> None:
    assert sections_of("") == ()
    assert sections_of("ALLOCATION_QUEUE_READY") == ("ready", "parked")
    assert sections_of("parked") == ("parked",)
    with pytest.raises(ValueError, match="there are running, ready"):
        sections_of("fast")


def test_numbers_of_the_queue(open_runner: Open) -> None:
    story = Story()
    story.node("n1", 1)
    for number in range(10):
        story.submit(f"k{number}", simple_flow(), group="chem" if number % 2 else "bio")
    for _ in range(6):
        story.begin(*story.placed())
        story.pass_time(1_000)
        story.end(*story.running(), run_ms=1_000)
    runner = told(open_runner, story)
    with runner.read() as view:
        found = stats(view, 600_000)
        assert (found.totals.finished, found.totals.placed, found.totals.ready) == (6, 1, 3)
        assert found.waiting_by_reason == {"nodes_busy": 3}
        assert {one.name: one.counts.finished for one in found.by_group} == {"bio": 3, "chem": 3}
        assert found.runs.count == 6
        assert 1_000 <= found.runs.p50_ms < 1_250
        # Waits are 0 to 6 seconds; the middle one is 3.
        assert 3_000 <= found.waits.p50_ms < 3_750
        assert 6_000 <= found.waits.p99_ms < 7_500
        assert (found.submitted, found.placed, found.finished) == (10, 7, 6)
        assert found.ended_per_second == 0.01


def test_lengths_are_counted_within_a_quarter() -> None:
    for ms in [*range(70), 999, 1_000, 59_999, 86_400_000, 10**10]:
        most = slot_most(slot(ms))
        assert ms <= most <= ms * 1.25
        assert slot(most) == slot(ms)
        assert slot(most + 1) == slot(ms) + 1
    assert slot(10**15) == BUCKETS - 1
    assert slot(-5) == 0
    assert percentile({}, 0.5) == percentile({7: 0}, 0.5) == 0
    assert [percentile({1: 1, 3: 2, 2: 7}, share) for share in (0.1, 0.8, 0.9)] == [1, 2, 3]


def test_old_windows_are_dropped(open_runner: Open) -> None:
    story = Story()
    for number in range(300):
        story.pass_time(300_000)
        story.submit(f"k{number}", simple_flow())
    runner = told(open_runner, story)
    with runner.read() as view:
        assert stats(view, 365 * 86_400_000).submitted == 288
        assert stats(view, 300_000).submitted == 1


def test_order_filter_and_size_as_text() -> None:
    columns = {"name": "name", "userId": "user"}
    assert ordering("", columns, "name desc") == ("name", True)
    assert ordering("userId", columns, "name") == ("user", False)
    with pytest.raises(ValueError, match="did you mean userId"):
        ordering("userID", columns, "name")
    with pytest.raises(ValueError, match="write for instance `name`"):
        ordering("name up", columns, "name")
    assert conditions('name="a b" AND userId=x', columns) == {"name": "a b", "user": "x"}
    assert conditions("  ", columns) == {}
    for bad in ("name", "name=a AND", "name=a userId=b", "name=a OR userId=b"):
        with pytest.raises(ValueError, match="filter"):
            conditions(bad, columns)
    with pytest.raises(ValueError, match="two values of name"):
        conditions("name=a AND name=b", columns)
    assert (page_size(0), page_size(7), page_size(9_999)) == (25, 7, 1000)
    with pytest.raises(ValueError, match="the least is 1"):
        page_size(-1)
    assert statuses(["STAGE_STATUS_CANCELED", "pending"]) == ("canceled", "pending")
    with pytest.raises(ValueError, match="status 'done' is not known"):
        statuses(["done"])
