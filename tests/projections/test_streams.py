"""Records as CloudEvents, and what they belong to."""

from datetime import UTC, datetime

import msgspec
import pytest

from logyard_domain import codec
from logyard_domain.commands import UpdateGroup, UpdateOrganization, UpdateUser
from logyard_domain.resources import Request
from logyard_projections.answers.streams import Belongings, cloud_event, positions_of, subject_of
from logyard_projections.answers.words import size, wants
from logyard_projections.instants import lasting, rfc3339
from logyard_projections.streams import workflow_of
from tests.projections.conftest import Open
from tests.projections.story import Story, random_story, simple


def test_a_record_as_a_cloud_event() -> None:
    story = simple()
    record = next(r for r in story.records if codec.tag_of(r.event) == "allocation.placed")
    told = msgspec.json.decode(msgspec.json.encode(cloud_event(record)))
    name = getattr(record.event, "allocation", "")
    assert told == {
        "specversion": "1.0",
        "id": str(record.position),
        "source": "/clusters/test",
        "type": "logyard.allocation.placed",
        "subject": name,
        "time": "2027-01-15T08:00:00.000Z",
        "datacontenttype": "application/json",
        "data": {"type": "allocation.placed", "allocation": name, "node": "n1"},
        "logyardposition": record.position,
        "logyardactor": record.actor,
        "logyardcause": record.cause,
        "logyardchain": record.chain,
    }
    worded = msgspec.json.decode(msgspec.json.encode(cloud_event(record, "only", "placed")))
    assert worded == told | {"logyardabout": "only", "logyardmessage": "placed"}


@pytest.mark.parametrize("seed", range(4))
def test_every_record_knows_its_workflow_group_and_node(open_runner: Open, seed: int) -> None:
    story = random_story(seed)
    runner = open_runner()
    runner.apply(story.records)
    learned, late = Belongings(), Belongings()
    groups = {
        getattr(r.event, "workflow", ""): getattr(r.event, "group", "")
        for r in story.records
        if codec.tag_of(r.event) == "workflow.submitted"
    }
    placed: set[str] = set()
    with runner.read() as view:
        for record in story.records:
            belonging = learned.of(record, view)
            if belonging.workflow:
                assert belonging.group == groups[belonging.workflow]
            if codec.tag_of(record.event) == "allocation.placed":
                placed.add(subject_of(record.event))
            if codec.tag_of(record.event) == "allocation.ended":
                assert belonging.node
        # Somebody who comes late asks the view for what he did not see.
        for record in story.records[len(story.records) // 2 :]:
            belonging = late.of(record, view)
            assert belonging.group == groups.get(belonging.workflow, "")


@pytest.mark.parametrize("seed", range(4))
def test_the_records_of_a_workflow_are_found(open_runner: Open, seed: int) -> None:
    story = random_story(seed, 90)
    runner = open_runner()
    for start in range(0, len(story.records), 17):
        runner.apply(story.records[start : start + 17])
    mine: dict[str, list[int]] = {}
    for record in story.records:
        workflow = workflow_of(record.event)
        if workflow:
            mine.setdefault(workflow, []).append(record.position)
    with runner.read() as view:
        for workflow, positions in mine.items():
            assert positions_of(view, workflow) == positions
            assert positions_of(view, workflow, newest_first=True) == positions[::-1]
            middle = positions[len(positions) // 2]
            later = [position for position in positions if position > middle]
            assert positions_of(view, workflow, middle, 2) == later[:2]
            earlier = [position for position in positions if position < middle][::-1]
            assert positions_of(view, workflow, middle, 3, newest_first=True) == earlier[:3]
        assert positions_of(view, "wf-none") == []


def test_every_event_is_about_something() -> None:
    tags: set[str] = set()
    for seed in range(12):
        for record in random_story(seed, 80).records:
            assert subject_of(record.event)
            tags.add(codec.tag_of(record.event))
    assert len(tags) > 25
    ours = UpdateGroup(group="chem", priority=1), UpdateUser(user="ana", priority=1)
    story = Story()
    story.turn(UpdateOrganization(organization="uni", priority=1), *ours)
    subjects = [subject_of(record.event) for record in story.records]
    assert subjects == ["cluster", "organization/uni", "group/default/chem", "user/ana"]


@pytest.mark.parametrize(
    "at",
    [
        0,
        1,
        951_782_399_999,
        951_782_400_000,
        1_709_164_800_000,
        1_800_000_000_123,
        4_107_542_400_000,
    ],
)
def test_instants_are_those_of_the_calendar(at: int) -> None:
    moment = datetime.fromtimestamp(at // 1000, UTC)
    assert rfc3339(at) == f"{moment:%Y-%m-%dT%H:%M:%S}.{at % 1000:03d}Z"


def test_every_day_of_a_leap_cycle() -> None:
    for day in range(0, 4 * 366, 1):
        at = day * 86_400_000 + 1_672_531_200_000
        assert rfc3339(at)[:10] == datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m-%d")


def test_sizes_and_lengths_for_people() -> None:
    found = [lasting(ms) for ms in (0, 340, 1_200, 12_345, 192_000, 7_800_000, 273_600_000)]
    assert found == ["0ms", "340ms", "1.2s", "12s", "3m 12s", "2h 10m", "3d 4h"]
    assert [size(n) for n in (60 << 30, 3 << 29, 1536, 10**9)] == ["60GiB", "1.5GiB", "1536", "1GB"]
    request = Request(cores=8, memory=60 << 30, devices=(("nvidia.com/gpu", 1),))
    assert wants(request) == "8 cpu, 60GiB, 1 gpu"
    assert wants(Request(cores=32, nodes=4)) == "4 x (32 cpu)"
    assert wants(Request(cores=0)) == "no resources"
