"""What `why` says in the situations that people ask about."""

import pytest

from logyard_domain.commands import CordonNode, StopWorkflow, SubmitWorkflow
from logyard_domain.definition import Transfer, Uri, Volume, Workflow
from logyard_projections.answers.explanation import Explanation
from logyard_projections.answers.stats import stats
from logyard_projections.answers.why import explain
from logyard_projections.catalog import PROJECTIONS
from logyard_projections.runners.memory import MemoryRunner
from tests.projections.story import GIB, Story, job, simple_flow


def why(story: Story, name: str, now: int = 0) -> Explanation:
    """The explanation as of the end of the story."""
    runner = MemoryRunner(PROJECTIONS)
    runner.apply(story.records)
    with runner.read() as view:
        told = explain(view, name, now)
    assert told is not None
    return told


def line(told: Explanation, label: str) -> str:
    """The text of one line."""
    return next(one.text for one in told.lines if one.label == label)


def waited(told: Explanation) -> dict[str, int]:
    """Milliseconds by reason."""
    return {one.reason: one.ms for one in told.waited}


def busy_yard() -> tuple[Story, str, str]:
    """Two nodes, one big enough and full; the workflow that fills it and the one that waits."""
    story = Story()
    story.node("big", 8, memory=32 * GIB)
    story.node("small", 2, memory=32 * GIB)
    first = story.submit("a", Workflow(jobs={"fill": job(cores=6)}), user="bo", group="bio")
    story.begin(*story.placed())
    story.pass_time(60_000)
    second = story.submit("b", Workflow(jobs={"big": job(cores=4)}))
    story.pass_time(30_000)
    story.turn(StopWorkflow(workflow="wf-none"))
    return story, first, second


def test_capacity_is_quantified_and_names_who_holds_it() -> None:
    story, first, second = busy_yard()
    told = why(story, f"{second}/big", now=story.at)
    assert (told.kind, told.reason) == (
        "capacity",
        "EXPLAIN_ALLOCATION_REASON_INSUFFICIENT_RESOURCES",
    )
    assert told.forecast is not None
    assert told.summary == (
        f"{second}/big/0#1 waits for capacity: no node has 4 cpu free; it is the head, "
        f"promised big by {told.forecast.start}"
    )
    assert {one.cause: one.nodes for one in told.pool} == {"less than 4 cpu": 1, "busy": 1}
    assert (told.pool_nodes, told.could_hold, told.nearest_node_id) == (2, 1, "big")
    need = {one.dimension: (one.need, one.free, one.short) for one in told.needs}
    assert need == {"cores": (4, 2, 2), "memory": (GIB, 31 * GIB, 0)}
    assert [one.allocation_id for one in told.holders] == [f"{first}/fill/0#1"]
    assert (told.holders[0].group, told.holders[0].cores) == ("bio", 6)
    assert told.blocking_jobs[0].est_finish == told.holders[0].est_finish
    assert line(told, "nearest") == "big: 2 cpu short (2 cpu free of 4 cpu)"
    assert waited(told) == {"capacity": 30_000}
    assert told.head_shape is not None
    assert told.head_shape.cores == 4


def test_every_cited_position_is_of_the_thing_that_is_told() -> None:
    story, first, second = busy_yard()
    told = why(story, second)
    tags = {int(record.position): record.event for record in story.records}
    held, promised = told.blockers[0].positions
    assert type(tags[held]).__name__ == "ShapeHeld"
    assert type(tags[promised]).__name__ == "ReservationHeld"
    (placed,) = told.holders[0].positions
    assert getattr(tags[placed], "allocation", "") == f"{first}/fill/0#1"
    order = next(one for one in told.lines if one.label == "order")
    assert [type(tags[at]).__name__ for at in order.positions] == ["WorkflowSubmitted"]


def test_what_no_node_could_ever_hold_is_told_so() -> None:
    story = Story()
    story.node("n1", 4)
    flow = story.submit("a", Workflow(jobs={"train": job(gpus=8), "wide": job(cores=9)}))
    told = why(story, f"{flow}/train")
    assert (told.kind, told.could_hold) == ("never", 0)
    assert told.detail == "never: no node has a gpu"
    assert {one.cause: one.nodes for one in told.pool} == {"no gpu": 1}
    assert "no node has 9 cpu" in why(story, f"{flow}/wide").summary


def test_without_nodes_and_with_closed_ones_somebody_has_to_act() -> None:
    story = Story()
    flow = story.submit("a", simple_flow())
    told = why(story, flow)
    assert (told.kind, told.detail) == (
        "until-someone-acts",
        "the cluster has no node that is up",
    )
    closed = Story()
    closed.node("n1", 4)
    closed.turn(CordonNode(node="n1", reason="disk"))
    other = closed.submit("b", simple_flow())
    told = why(closed, other)
    assert told.kind == "until-someone-acts"
    assert {one.cause: one.nodes for one in told.pool} == {"cordoned": 1}


def test_dependencies_are_named_with_their_progress() -> None:
    story = Story()
    story.node("n1", 1)
    flow = story.submit("a", Workflow(jobs={"render": job(ranks=3), "join": job("render")}))
    story.begin(*story.placed())
    story.end(*story.running())
    story.begin(*story.placed())
    told = why(story, f"{flow}/join")
    assert told.kind == "dependency"
    assert told.waiting_dependency_names == ("render",)
    assert told.summary == f"{flow}/join/0#1 waits for render (1 of 3 done)"
    assert told.reason == "EXPLAIN_ALLOCATION_REASON_WAITING_DEPENDENCY"


def test_work_behind_others_names_the_head() -> None:
    story, _, second = busy_yard()
    third = story.submit("c", Workflow(jobs={"also": job(cores=5)}))
    told = why(story, third)
    assert [one.kind for one in told.blockers] == ["capacity", "turn"]
    assert told.blocking_head_allocation_id == f"{second}/big/0#1"
    assert told.reason == "EXPLAIN_ALLOCATION_REASON_BACKFILL_NO_FIT"
    assert told.head_shape is not None
    assert told.head_shape.cores == 4
    assert told.head is not None
    assert told.head_est_start == told.head.start


def promised_yard() -> tuple[Story, str, str]:
    """A node that one workflow fills in part, and all of which is promised to another."""
    story = Story()
    story.node("n1", 8)
    first = story.submit("a", Workflow(jobs={"fill": job(cores=6)}), user="bo", group="bio")
    story.begin(*story.placed())
    story.pass_time(60_000)
    second = story.submit("b", Workflow(jobs={"whole": job(cores=8)}))
    return story, first, second


def test_what_fits_but_would_delay_the_head_names_it() -> None:
    story, _, head = promised_yard()
    late = story.submit("c", Workflow(jobs={"late": job(cores=2, limit_ms=3_600_000)}))
    told = why(story, late)
    assert (told.kind, told.reason) == (
        "turn",
        "EXPLAIN_ALLOCATION_REASON_BACKFILL_INELIGIBLE_WOULD_DELAY_HEAD",
    )
    assert told.head is not None
    assert told.free_now == 1
    assert told.detail == f"would delay {head}/whole, promised {told.head.start}"
    assert told.blocking_head_allocation_id == f"{head}/whole/0#1"
    assert line(told, "behind") == f"{head}/whole, promised {told.head.start} on n1"
    story.configure(scheduler_backfill_enabled=False)
    off = why(story, late)
    assert off.detail == f"waits behind {head}/whole: backfill is off"
    assert off.reason == "EXPLAIN_ALLOCATION_REASON_BLOCKED_BY_RESERVATION"


def test_what_was_let_through_names_whom_it_did_not_delay() -> None:
    story, _, head = promised_yard()
    brief = story.submit("c", Workflow(jobs={"brief": job(cores=2, limit_ms=30_000)}))
    told = why(story, brief)
    assert told.here is not None
    assert (told.here.kind, told.here.before) == ("backfilled", f"{head}/whole/0#1")
    assert line(told, "here") == f"n1: backfilled before {head}/whole"
    promised = why(story, head).forecast
    assert promised is not None
    assert promised.in_force


def test_what_is_let_through_as_the_promise_is_made_names_it_too() -> None:
    story = Story()
    story.node("n1", 8)
    story.submit("a", Workflow(jobs={"fill": job(cores=6)}))
    # Both come in one turn: the promise is on the log after what was placed in front of it.
    wide, brief = (
        SubmitWorkflow(key=key, name=key, user="ana", definition=Workflow(jobs={"it": one}))
        for key, one in (("wide", job(cores=8)), ("brief", job(cores=2, limit_ms=30_000)))
    )
    story.turn(wide, brief)
    names = {flow.name: id for id, flow in story.world.workflows.items()}
    told = why(story, names["brief"])
    assert told.here is not None
    assert told.here.before == f"{names['wide']}/it/0#1"


def test_a_promise_tells_what_moved_it_and_how_true_it_came() -> None:
    story, first, head = promised_yard()
    made = why(story, head).forecast
    assert made is not None
    assert [one.cause for one in made.slips] == ["held"]
    # The job runs longer than its limit and the grace of a kill.
    story.pass_time(700_000)
    story.turn(StopWorkflow(workflow="wf-none"))
    late = why(story, head)
    assert late.forecast is not None
    assert late.forecast.first_start == made.start
    (slip,) = late.forecast.slips[1:]
    assert (slip.cause, slip.because, slip.by_ms > 0) == ("overrun", 0, True)
    assert slip.text.endswith("something runs longer than it may")
    assert line(late, "forecast").endswith(f"promised {made.start} at first")
    assert late.forecast.early is None
    story.end(f"{first}/fill/0#1")
    kept = why(story, head)
    assert kept.forecast is not None
    assert (kept.kind, kept.forecast.in_force) == ("running", False)
    assert kept.forecast.actual is not None
    assert line(kept, "forecast").startswith(f"started {kept.forecast.actual}; promised")


def test_forecasts_are_scored_by_how_far_they_look_ahead() -> None:
    story = Story()
    story.node("n1", 1)
    runs: list[str] = [story.submit("k0", simple_flow())]
    for number in range(1, 9):
        # What waits is never all alike, so the first of it is promised its start.
        runs.append(story.submit(f"k{number}", Workflow(jobs={"a": job(memory=number * GIB)})))
    for _ in runs[:7]:
        story.begin(*story.placed())
        story.pass_time(100_000)
        story.end(*story.running())
    runner = MemoryRunner(PROJECTIONS)
    runner.apply(story.records)
    with runner.read() as view:
        errors = {one.ahead_ms: one for one in stats(view).forecasts}
        held = explain(view, runs[8], story.at)
    # Each looked 630 s ahead (the limit and the grace) and came true after 100 s.
    assert [*errors] == [3_600_000]
    found = errors[3_600_000]
    assert (found.count, found.kept) == (7, 7)
    assert -660_000 <= found.p10_ms <= found.p90_ms <= -400_000
    assert held is not None
    assert held.forecast is not None
    assert held.forecast.samples == 7
    assert held.forecast.early is not None
    assert (held.forecast.early, held.forecast.late) < (held.forecast.start,) * 2


def test_who_may_not_be_named_is_counted() -> None:
    story, _, head = promised_yard()
    runner = MemoryRunner(PROJECTIONS)
    runner.apply(story.records)
    with runner.read() as view:
        whole = explain(view, head)
        hidden = explain(view, head, sees=lambda owner: owner.group != "bio")
    assert whole is not None
    assert hidden is not None
    assert [one.group for one in whole.holders] == ["bio"]
    assert hidden.holders == ()
    assert hidden.others is not None
    assert (hidden.others.allocations, hidden.others.cores) == (1, 6)
    assert (hidden.held_by, hidden.needs, hidden.pool) == (whole.held_by, whole.needs, whole.pool)
    assert line(hidden, "held by") == "1 allocation of other groups (6 cpu)"


def test_the_history_tells_the_reasons_in_order() -> None:
    story = Story()
    story.node("n1", 1)
    volume = Volume(
        ingress=(Transfer(source=Uri(uri="file://note"), destination=Uri(uri="file://in/note")),)
    )
    staged = Workflow(
        jobs={"first": job(), "work": job("first", mounts=("data",))},
        volumes={"data": volume},
        files={"note": "hello"},
    )
    flow = story.submit("a", staged)
    story.pass_time(2_000)
    story.end(f"{flow}/first/0#1")
    story.pass_time(3_000)
    story.end(f"{flow}/volume:data/0#1")
    story.pass_time(1_000)
    rival = story.submit("b", simple_flow(), priority=0)
    story.end(f"{flow}/ingress:data:0/0#1")
    story.pass_time(5_000)
    story.turn(CordonNode(node="n1"))
    story.end(f"{rival}/only/0#1")
    story.pass_time(500)
    told = why(story, f"{flow}/work", now=story.at)
    assert [(one.reason, one.ms) for one in told.history] == [
        ("dependency", 2_000),
        ("data", 4_000),
        ("capacity", 5_000),
        ("closed-nodes", 500),
    ]
    assert {one.reason: one.ms for one in told.history} == waited(told)
    tags = {int(record.position): type(record.event).__name__ for record in story.records}
    assert tags[told.history[-1].position] == "ShapeHeld"
    ends = [one.until for one in told.history]
    assert [one.since for one in told.history[1:]] == ends[:-1]


def test_a_job_on_several_nodes_counts_chunks() -> None:
    story = Story()
    for name in ("n1", "n2", "n3"):
        story.node(name, 4, features=("mounts", "multinode"))
    story.submit("a", Workflow(jobs={"fill": job(cores=4, nodes=2)}))
    story.begin(*story.placed())
    waiting = story.submit("b", Workflow(jobs={"wide": job(cores=4, nodes=2)}))
    told = why(story, waiting, now=story.at)
    assert (told.chunks, told.free_now, told.could_hold, told.held_by) == (2, 1, 3, 1)
    assert line(told, "needs") == "2 x (4 cpu, 1GiB)"
    assert line(told, "free now") == "room for 1 of 2 chunks; short by 1"
    assert told.forecast is not None
    assert sum(told.forecast.nodes.values()) == 2
    assert told.holders[0].chunks in (1, 2)


def test_a_stage_at_its_own_limit_says_so_and_counts_the_time() -> None:
    story = Story()
    story.node("n1", 8)
    flow = story.submit("a", Workflow(jobs={"render": job(ranks=9, at_once=2)}))
    assert len(story.placed()) == 2
    story.begin(*story.placed())
    story.pass_time(5_000)
    # One rank ends and the next takes its place in the same turn: the stage stays at its limit.
    story.end(story.running()[0])
    story.pass_time(3_000)
    told = why(story, f"{flow}/render", now=story.at)
    assert told.kind == "limit"
    assert told.detail == "the stage runs at most 2 ranks at once"
    assert waited(told) == {"limit": 8_000}
    placed = why(story, f"{flow}/render/3")
    assert placed.kind == "running"
    assert waited(placed) == {"limit": 5_000}


def test_a_limit_and_a_full_yard_share_the_wait_without_overlap() -> None:
    story = Story()
    story.node("n1", 2)
    flow = story.submit("a", Workflow(jobs={"render": job(ranks=9, at_once=2)}))
    story.begin(*story.placed())
    story.pass_time(5_000)
    one, two = story.running()
    story.turn(CordonNode(node="n1"))
    story.end(one)
    story.pass_time(2_000)
    story.end(two)
    story.pass_time(1_000)
    told = why(story, f"{flow}/render", now=story.at)
    assert waited(told) == {"closed-nodes": 3_000, "limit": 5_000}
    assert told.waited_ms == 8_000


def test_a_back_off_is_told_with_the_attempt() -> None:
    story = Story()
    story.node("n1", 1)
    flow = story.submit("a", Workflow(jobs={"flaky": job(retries=2)}))
    story.begin(*story.placed())
    story.end(*story.running(), outcome="failed")
    story.pass_time(500)
    told = why(story, f"{flow}/flaky", now=story.at)
    assert told.kind == "back-off"
    assert told.summary == f"{flow}/flaky/0#2 backs off for another 1.5s before attempt 2"
    assert waited(told) == {"back-off": 500}
    first = why(story, f"{flow}/flaky/0#1")
    assert (first.kind, first.detail) == ("ended", "failed")
    story.pass_time(1_500)
    story.turn(StopWorkflow(workflow="wf-none"))
    again = why(story, f"{flow}/flaky/0")
    assert (again.allocation_id, again.kind) == (f"{flow}/flaky/0#2", "running")
    assert waited(again) == {"back-off": 2_000}


def test_endings_have_their_word_on_the_wire() -> None:
    story = Story()
    story.node("n1", 1)
    flow = story.submit("a", simple_flow())
    story.begin(*story.placed())
    assert why(story, flow).reason.endswith("_RUNNING")
    story.end(*story.running())
    assert why(story, flow).reason.endswith("_FINISHED")
    other = story.submit("b", Workflow(jobs={"one": job(gpus=1)}))
    story.turn(StopWorkflow(workflow=other))
    told = why(story, other)
    assert told.reason.endswith("_CANCELLED")
    assert told.detail == "the stage was canceled: the workflow was stopped"


def test_priority_terms_sum() -> None:
    story = Story()
    flow = story.submit("a", simple_flow(), priority=-3)
    told = why(story, flow, now=story.at + 86_400_000 // 2)
    assert {one.name: one.value for one in told.terms} == {
        "organization": 0,
        "group": 0,
        "user": 0,
        "workflow": -3,
        "age": 0.5,
    }
    assert told.priority == -2.5
    assert line(told, "order").startswith("priority -2.5 = ")


def test_names_that_are_nothing() -> None:
    story = Story()
    flow = story.submit("a", simple_flow())
    runner = MemoryRunner(PROJECTIONS)
    runner.apply(story.records)
    with runner.read() as view:
        for name in ("wf-none", f"{flow}/other", f"{flow}/only/1", f"{flow}/only/0#2"):
            assert explain(view, name) is None
        for name in ("a/b/c/d", "/x", f"{flow}/only/first"):
            with pytest.raises(ValueError, match="write "):
                explain(view, name)
        with pytest.raises(ValueError, match="names no allocation"):
            explain(view, "x#1")
