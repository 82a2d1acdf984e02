"""Events as sentences, alone and with what a view and earlier records add."""

import pytest

from logyard_domain import codec
from logyard_domain.commands import SetConfig, UpdateGroup, UpdateOrganization, UpdateUser
from logyard_domain.definition import Cpu, Job, Policy, Resource, Workflow
from logyard_domain.events import AllocationPlaced, AllocationStopping, AnyEvent, ReservationMoved
from logyard_domain.identifiers import Millis, Position
from logyard_domain.records import Record
from logyard_projections.answers.sentences import about, text, text_for
from logyard_projections.catalog import PROJECTIONS
from logyard_projections.runners.memory import MemoryRunner
from logyard_projections.workflows import WORKFLOWS
from tests.projections.story import Story, job, random_story, simple, simple_flow


def record_of(event: AnyEvent, position: int = 1) -> Record:
    """The event as it stands on a log."""
    return Record(Position(position), Millis(1_800_000_000_000), "main", "user:ana", "k", event, "")


def read(event: str) -> AnyEvent:
    """The event in a text of JSON."""
    return codec.decode_event(event.encode())


def told(story: Story) -> list[str]:
    """Every record of a story as `about: sentence`, with all that can be known."""
    by_position = {int(record.position): record for record in story.records}
    runner = MemoryRunner(PROJECTIONS)
    runner.apply(story.records)
    with runner.read() as view:
        return [
            f"{about(record.event)}: {text(record, view, by_position.get)}"
            for record in story.records
        ]


def test_every_event_has_a_sentence() -> None:
    for seed in range(4):
        for record in random_story(seed, 90).records:
            for sentence in (text(record), about(record.event)):
                assert sentence.strip() and "None" not in sentence and "Struct" not in sentence


def test_a_simple_life() -> None:
    lines = told(simple())
    assert lines[2:] == [
        "workflow: flow k started by ana (group chem), "
        "priority set (workflow: 0, organization: 0, group: 0, user: 0)",
        "shape 1: declared: 1 cpu, 1GiB",
        "only: priority set (workflow: 0, organization: 0, group: 0, user: 0)",
        "only: placed on n1",
        "only: runs",
        "workflow: its first stage began",
        "only: began",
        "only: finished (ran 1.0s)",
        "only: finished",
        "workflow: finished",
    ]


@pytest.mark.parametrize(
    ("event", "whom", "sentence"),
    [
        (
            '{"type":"allocation.ended","allocation":"wf-a/b/1#2","outcome":"failed","exit_code":3,'
            '"run_ms":61000,"peak_bytes":1073741824,"error":"no such file"}',
            "b 1, attempt 2",
            "failed (exit code 3, ran 1m 1s, peak 1GiB): no such file",
        ),
        (
            '{"type":"allocation.ended","allocation":"wf-a/b/0#1","outcome":"failed","signal":9,'
            '"error":"no memory"}',
            "b",
            "failed (signal 9): no memory",
        ),
        ('{"type":"node.lost","node":"n1","silent_ms":61000}', "node n1", "lost: silent for 1m 1s"),
        (
            '{"type":"allocation.requeued","allocation":"wf-a/b/1#2","not_before":1,"reason":"lost"}',
            "b 1, attempt 2",
            "queues again: its node was lost",
        ),
        (
            '{"type":"workflow.failed","workflow":"w","stage":"b","error":"b[1] timed out"}',
            "workflow",
            "failed at b: b[1] timed out",
        ),
        (
            '{"type":"allocation.placed","allocation":"wf-a/b/0#1","node":"n1","chunks":{"n1":2,'
            '"n2":1}}',
            "b",
            "placed on n1 (2), n2",
        ),
        (
            '{"type":"allocation.placed","allocation":"wf-a/b/3#1","node":"n1",'
            '"behind":"wf-a/b/2#1"}',
            "b 3",
            "placed on n1 behind b 2",
        ),
        (
            '{"type":"allocation.placed","allocation":"wf-a/b/0#1","node":"n1","kind":"backfilled"}',
            "b",
            "backfilled on n1, which delays nothing that was promised",
        ),
        (
            '{"type":"allocation.stopping","allocation":"wf-a/b/0#1","reason":"preempted",'
            '"by":"wf-x/job/0#1","gap":6.4,"ran_ms":720000}',
            "b",
            "preempted by wf-x/job (ran 12m, priority gap 6.4)",
        ),
        (
            '{"type":"allocation.stopping","allocation":"wf-a/b/0#1","reason":"preempted",'
            '"ran_ms":1000}',
            "b",
            "preempted by an administrator (ran 1.0s)",
        ),
        (
            '{"type":"reservation.held","allocation":"wf-a/b/0#1","at":1800000000000,'
            '"chunks":{"n01":1}}',
            "b",
            "head of the queue: promised at 2027-01-15T08:00:00.000Z on n01",
        ),
        (
            '{"type":"reservation.moved","allocation":"wf-a/b/0#1","at":1800000000000,'
            '"chunks":{"n01":1,"n02":1},"cause":"overrun"}',
            "b",
            "promise moved to 2027-01-15T08:00:00.000Z on 2 nodes: "
            "what runs there takes longer than it may",
        ),
        (
            '{"type":"reservation.released","allocation":"wf-a/b/0#1","cause":"withdrawn"}',
            "b",
            "promise taken back: it waits no longer",
        ),
        (
            '{"type":"group.updated","organization":"o","group":"chem","priority":2,'
            '"preempts":["bio","phys"]}',
            "group chem",
            "priority 2; may preempt bio, phys",
        ),
        (
            '{"type":"group.deleted","organization":"o","group":"chem"}',
            "group chem",
            "deleted, and gone from the preempt lists of all others",
        ),
        ('{"type":"user.updated","user":"ana","priority":-1}', "user ana", "priority -1"),
        (
            '{"type":"organization.updated","organization":"o","priority":5}',
            "organization o",
            "priority 5",
        ),
        (
            '{"type":"config.set","revision":4,"values":{"node.lostAfter":1}}',
            "cluster",
            "configuration r4: 1 setting",
        ),
    ],
)
def test_sentences(event: str, whom: str, sentence: str) -> None:
    found = read(event)
    assert (about(found), text(record_of(found))) == (whom, sentence)


@pytest.mark.parametrize(
    ("cause", "because", "why"),
    [
        ("node", '{"type":"node.lost","node":"n07","silent_ms":1}', "node n07 was lost"),
        ("node", '{"type":"node.cordoned","node":"n07"}', "node n07 was cordoned"),
        (
            "earlier",
            '{"type":"allocation.ended","allocation":"wf-x/job/3#1","outcome":"finished"}',
            "wf-x/job/3 ended before it had to",
        ),
        (
            "outranked",
            '{"type":"allocation.placed","allocation":"wf-x/job/0#1","node":"n"}',
            "wf-x/job, of higher priority, was placed",
        ),
        (
            "policy",
            '{"type":"config.set","revision":3,"values":{}}',
            "configuration r3 is in force",
        ),
        ("policy", '{"type":"user.updated","user":"ana","priority":3}', "user ana has priority 3"),
    ],
)
def test_a_promise_that_moves_says_what_moved_it(cause: str, because: str, why: str) -> None:
    moved = read(
        f'{{"type":"reservation.moved","allocation":"wf-a/b/0#1","at":1800000000000,'
        f'"chunks":{{"n1":1}},"cause":"{cause}","because":7}}'
    )
    assert isinstance(moved, ReservationMoved)
    found = text(record_of(moved), recall={7: record_of(read(because), 7)}.get)
    assert found == f"promise moved to 2027-01-15T08:00:00.000Z on n1: {why}"
    assert text(record_of(moved)).startswith("promise moved to 2027-01-15T08:00:00.000Z on n1: ")


def evicting() -> Story:
    """Somebody of a group that may evict others does so, after priorities were set."""
    story = Story()
    story.turn(
        SetConfig(
            values={
                "scheduler.preemption.enabled": True,
                "scheduler.preemption.minRuntime": 0,
            }
        )
    )
    story.turn(UpdateOrganization(organization="default", priority=5))
    story.turn(UpdateGroup(group="bio"), UpdateGroup(group="chem", priority=7, preempt=("bio",)))
    story.turn(UpdateUser(user="ana", priority=1))
    story.node("n1", 1)
    victim = Workflow(jobs={"only": job()}, preemptible=True)
    story.submit("low", victim, user="bo", group="bio")
    story.begin(*story.placed())
    story.pass_time(720_000)
    story.submit("high", simple_flow(), user="ana", group="chem")
    return story


def test_an_eviction_is_told_on_both_sides() -> None:
    story = evicting()
    (victim,) = [one.event for one in story.records if isinstance(one.event, AllocationStopping)]
    preemptor = next(
        one.event
        for one in story.records
        if isinstance(one.event, AllocationPlaced) and one.event.after
    )
    lines = told(story)
    high, low = (one.allocation.partition("/")[0] for one in (preemptor, victim))
    assert f"only: preempted by {high}/only (ran 12m, priority gap 8.0)" in lines
    assert (
        f"only: preempted {low}/only (ran 12m, priority gap 8.0); starts on n1 once there is room"
        in lines
    )
    story.end(victim.allocation, outcome="preempted")
    assert "only: all that it preempted has ended: it may start" in told(story)


def test_priorities_are_told_as_they_were_and_when_they_change() -> None:
    story = evicting()
    flow = story.world.keys["ana/high"][0]
    story.turn(UpdateGroup(group="chem", priority=9))
    story.turn(UpdateGroup(group="chem", preempt=("default",)))
    runner = MemoryRunner(PROJECTIONS)
    runner.apply(story.records)
    with runner.read() as view:
        row = view.get(WORKFLOWS, flow)
        lines = [text_for(row, record, view) for record in story.records]
    assert (
        "flow high started by ana (group chem), priority set (workflow: 0, organization: 5, "
        "group: 7, user: 1)" in lines
    )
    assert lines[-2:] == [
        "priority set (workflow: 0, organization: 5, group: 9, user: 1)",
        "priority 9; may preempt bio, default",
    ]


def test_a_configuration_says_what_changed() -> None:
    story = Story()
    story.turn(SetConfig(values={"workflow.killGrace": 45_000}))
    assert told(story)[-1] == "cluster: configuration r1: workflow.killGrace 30s -> 45s"


def test_backfilled_work_says_whom_it_does_not_delay() -> None:
    story = Story()
    story.turn(SetConfig(values={"scheduler.lookahead": 0}))
    story.node("n1", 2)
    story.submit("runs", Workflow(jobs={"only": timed(3_600_000)}))
    wide = story.submit("wide", Workflow(jobs={"only": timed(3_600_000, cores=2)}))
    story.submit("short", Workflow(jobs={"only": timed(600_000)}))
    (line,) = [one for one in told(story) if "backfilled" in one]
    # It may run for ten minutes, and then has half a minute to end.
    assert line == (
        "only: backfilled on n1: ends by 2027-01-15T08:10:30.000Z, "
        f"before the promise to {wide}/only"
    )


def timed(limit_ms: int, cores: int = 1) -> Job:
    """A job that may run so long."""
    return Job(
        command=("true",),
        resource=Resource(cpu=Cpu(cores=cores)),
        policy=Policy(timeout_ms=limit_ms),
    )
