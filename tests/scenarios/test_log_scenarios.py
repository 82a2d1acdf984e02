"""The log and what is read from it: nothing lost, nothing twice, nothing silently skipped."""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random
from threading import Event as Flag
from threading import Thread

import msgspec
import pytest

from logyard_domain import codec, snapshot
from logyard_domain.commands import Refused, SetConfig, SubmitWorkflow
from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationStarted,
    ConfigSet,
    ReservationHeld,
    ReservationMoved,
    ReservationReleased,
    ServerStarted,
    ShapeHeld,
    ShapeReleased,
)
from logyard_domain.evolve import replay
from logyard_domain.records import Record
from logyard_domain.usage import decayed
from logyard_domain.world import World
from logyard_engine.log.log import AppendFailed, Fenced
from logyard_engine.log.opening import open_for_reading, open_log
from logyard_engine.log.sqlite import TABLE
from logyard_engine.log.verify import verify
from logyard_engine.recovery import recover, save
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import Yard, log_bytes
from logyard_engine.snapshots import Snapshots
from logyard_projections.answers.stats import stats
from logyard_projections.catalog import PROJECTIONS
from logyard_projections.feed import Unread
from logyard_projections.feed import read as fed
from logyard_projections.runners.memory import MemoryRunner
from logyard_projections.runners.runner import Gap
from logyard_workflows_dsl.expressions import parse
from tests.engine.work import flow, job
from tests.log.entries import CLUSTER, some
from tests.scenarios import rooms
from tests.scenarios.yards import (
    HOUR_MS,
    SECOND_MS,
    SIEGES,
    brim,
    events,
    finished,
    logs,
    siege,
    walk,
    yard,
)
from tests.simulation.test_replay import again
from tests.simulation.test_replay import decided as decisions


def states_of(records: list[Record]) -> list[bytes]:
    """The bytes of each record."""
    return log_bytes(records).split(b"\n")


def test_s62_a_reader_beside_many_writers_skips_nothing(tmp_path: Path) -> None:
    """While writers race for one log, whoever reads on from where he is sees every position once
    and in order, and in the end just what a reader sees who begins at the first.
    """
    path = tmp_path / "log.sqlite"
    open_log(path, CLUSTER).append(some(1))
    over = Flag()
    fenced: list[int] = []

    def write(seed: int) -> None:
        dice = Random(f"writer/{seed}")
        for turn in range(4):
            log = open_log(path, CLUSTER)
            try:
                log.append(some(dice.randint(1, 9), 10 * seed + turn + 1))
            except Fenced:
                fenced.append(seed)
            log.close()

    seen: list[Record] = []

    def follow() -> None:
        reader = open_for_reading(path)
        last = False
        while not last:
            last = over.is_set()
            while batch := reader.read(len(seen), 7):
                seen.extend(batch)
        reader.close()

    follower = Thread(target=follow)
    follower.start()
    writers = [Thread(target=write, args=(seed,)) for seed in range(12)]
    for thread in writers:
        thread.start()
    for thread in writers:
        thread.join()
    over.set()
    follower.join()
    rescan = open_for_reading(path)
    assert [one.position for one in seen] == list(range(1, len(seen) + 1))
    assert seen == rescan.read(0, 10_000)
    assert verify(rescan.read_states()).count == len(seen) > 12
    rescan.close()


@pytest.mark.parametrize("skew_ms", [-HOUR_MS, 0, HOUR_MS])
def test_s66_of_two_servers_on_one_log_the_old_one_can_start_nothing(
    tmp_path: Path, skew_ms: int
) -> None:
    """Once another server has taken the log, the old one's next write fails whole, whatever its
    clock says: nothing is started or finished by it, and no attempt twice.
    """
    path = tmp_path / "log.sqlite"
    old = Yard(open_log(path, "test"), {"n1": 2}, lambda _: Run(ms=10 * SECOND_MS))
    old.submit(flow(it=job(array=(1, 6))))
    new = Yard(open_log(path, "test"), {}, lambda _: Run(ms=10 * SECOND_MS))
    new.clock.ms += skew_ms
    position = new.engine.log.position
    with pytest.raises(Fenced):
        old.advance(10 * SECOND_MS)
    with pytest.raises(AppendFailed):
        old.submit(flow(late=job()))
    assert open_for_reading(path).position == position
    node = old.nodes["n1"]
    new.add(node)
    new.clock.ms = max(new.clock.ms, old.clock.ms)
    finished(new)
    assert [one.term for one in events(new, ServerStarted)] == [1, 2]
    assert set(Counter(one.allocation for one in events(new, AllocationStarted)).values()) == {1}
    assert set(node.runs.values()) == {1}
    assert not [one for one in events(new, AllocationEnded) if one.outcome != "finished"]


def test_s79_what_is_held_is_what_was_taken_less_what_was_given_back() -> None:
    """Of every resource of every node: what is free is the capacity less what placements took and
    ends did not give back; and each placement ends once.
    """
    for name, records in logs():
        for record, world in walk(records):
            if record.position % 5:
                continue
            for node in world.nodes.values():
                cores, memory = node.capacity.cores, node.capacity.memory
                devices = dict(node.capacity.devices)
                for _, request, count in rooms.holders(world, node):
                    cores -= request.cores * count
                    memory -= request.memory * count
                    for device, number in request.devices:
                        devices[device] = devices.get(device, 0) - number * count
                assert (node.free_cores, node.free_memory) == (cores, memory), (name, record)
                assert {k: v for k, v in node.free_devices.items() if v or k in devices} == devices
        taken, given = Counter[str](), Counter[str]()
        for record in records:
            taken.update(
                [record.event.allocation] if isinstance(record.event, AllocationPlaced) else []
            )
            given.update(
                [record.event.allocation] if isinstance(record.event, AllocationEnded) else []
            )
        assert taken == given, name


def test_s79_use_is_charged_once_for_each_attempt() -> None:
    """What groups have used is the sum over all ends of cores times the time for which room was
    held, through evictions, losses, requeues and restarts.
    """
    for seed, several in SIEGES:
        records = siege(seed, several).records
        used: Counter[str] = Counter()
        last = World(records[0].cluster)
        for record, world in walk(records):
            last = world
            if isinstance(record.event, AllocationEnded):
                one = world.allocations[record.event.allocation]
                if one.since:
                    cores = world.shapes[one.stage.shape].request.cores
                    chunks = sum(count for _, count in one.chunks)
                    used[one.stage.workflow.group] += cores * chunks * (record.at - one.since)
        half_life = int(last.config["usage.halfLife"])
        for group, core_ms in used.items():
            kept = decayed(last.usage[f"group:default/{group}"], last.at, half_life)
            assert kept == pytest.approx(core_ms / HOUR_MS, rel=1e-3)
        assert len(used) == 3


def test_s87_a_history_has_no_limit_and_a_restart_reads_but_its_end(tmp_path: Path) -> None:
    """From a snapshot at any position the log goes on to the very same world; and a start through
    snapshots reads only what came after.
    """
    for seed, several in SIEGES[:4]:
        records = siege(seed, several).records
        dice = Random(f"snapshot/{seed}")
        kept = {dice.randrange(1, len(records)): b"" for _ in range(6)}
        last = World(records[0].cluster)
        for record, world in walk(records):
            last = world
            if record.position in kept:
                kept[record.position] = snapshot.dump(world)
        for position, data in kept.items():
            restored = snapshot.restore(data)
            for record in records[position - 1 :]:
                replay(restored, record)
            assert snapshot.dump(restored) == snapshot.dump(last)
    y = yard(lambda _: Run(ms=SECOND_MS), {"n1": 4})
    y.submit(flow(many=job(array=(1, 400))))
    y.advance(50 * SECOND_MS)
    snapshots = Snapshots(tmp_path)
    save(y.world, y.engine.log, snapshots)
    taken = y.world.position
    y.advance(SECOND_MS)
    read: list[int] = []
    log = y.engine.log
    whole = log.read_states

    class Counting:
        """The log, noting from where it is read."""

        def __getattr__(self, name: str) -> object:
            return getattr(log, name)

        def read_states(self, after: int = 0, upto: int | None = None) -> object:
            read.append(after)
            return whole(after, upto)

    again_there = recover(Counting(), snapshots)  # type: ignore[arg-type]
    assert read == [taken] and taken > 400
    assert snapshot.dump(again_there) == snapshot.dump(y.world)


def test_s90_an_event_of_a_newer_release_is_kept_and_stops_only_who_needs_it(
    tmp_path: Path,
) -> None:
    """A record of an unknown type stays on the log as it is and keeps its chain; decisions refuse
    to go on without it, and say which; views go on, and say that they are stale.
    """
    records = brim(0, False).records
    body = b'{"at":%d,"cluster":"test","actor":"a","cause":"c","event":{"type":"comet.seen"}' % (
        records[-1].at
    )
    chain = codec.link(records[-1].chain.encode(), body)
    unknown = b'%b,"chain":"%b"}' % (body, chain)
    path = tmp_path / "log.sqlite"
    written = open_log(path, "test")
    written.take(states_of(records))
    written.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            f"INSERT INTO {TABLE} SELECT originator_id, originator_version + 1, topic, ?"
            f" FROM {TABLE} ORDER BY originator_version DESC LIMIT 1",
            (unknown,),
        )
    log = open_log(path, "test")
    assert verify(log.read_states()).count == len(records) + 1
    with pytest.raises(codec.UnknownEvent, match=r"'comet\.seen' is not known") as found:
        recover(log)
    assert found.value.position == len(records) + 1
    runner = MemoryRunner(PROJECTIONS)
    read = fed(len(records) + 1, unknown)
    assert isinstance(read, Unread)
    runner.apply([*records, read])
    with runner.read() as view:
        assert [one.tag for one in view.mark.stale] == ["comet.seen"]


def test_s91_what_is_refused_leaves_nothing_behind_to_recover() -> None:
    """A bad submission is refused before anything is recorded: a restart never meets it, and the
    work of others goes on.
    """
    y = yard(lambda _: Run(ms=SECOND_MS), {"n1": 1})
    y.submit(flow(it=job(array=(1, 5))))
    count = len(y.records)
    good = SubmitWorkflow(key="k", name="n", user="ana", definition=flow(bad=job()))
    for bad in (
        msgspec.structs.replace(good, priority=3),
        msgspec.structs.replace(good, key=""),
        msgspec.structs.replace(good, name=""),
    ):
        with pytest.raises(Refused):
            y.ask(bad)
    assert len(y.records) == count
    y.crash(y.engine.log)
    finished(y)
    assert len([one for one in events(y, AllocationEnded) if one.outcome == "finished"]) == 5


@pytest.mark.parametrize("seed", range(20))
def test_s93_a_flipped_bit_and_a_torn_tail_are_found_where_they_are(seed: int) -> None:
    """Any single bit that is changed in a real log is found at its record, and so are records that
    are cut off or missing at the end, given a head that is known from elsewhere.
    """
    records = siege(seed % 3, bool(seed % 2)).records
    states = states_of(records)
    head = (len(states), records[-1].chain)
    dice = Random(f"bit/{seed}")
    place = dice.randrange(len(states))
    flipped = bytearray(states[place])
    flipped[dice.randrange(len(flipped))] ^= 1 << dice.randrange(8)
    wrong = [*states[:place], bytes(flipped), *states[place + 1 :]]
    with pytest.raises(codec.Damaged) as found:
        verify(iter(enumerate(wrong, 1)), head=head)
    assert found.value.position == place + 1
    torn = [*states[:-1], states[-1][: dice.randrange(len(states[-1]))]]
    with pytest.raises(codec.Damaged) as found:
        verify(iter(enumerate(torn, 1)))
    assert found.value.position == len(states)
    with pytest.raises(codec.Damaged):
        verify(iter(enumerate(states[: dice.randrange(1, len(states))], 1)), head=head)


@pytest.mark.parametrize("seed", range(6))
def test_s94_who_comes_back_too_late_is_told_of_the_gap(seed: int) -> None:
    """A view that is given records beyond the next one refuses them, names both positions, and
    takes what it lacks afterwards, to the same rows.
    """
    records = siege(seed % 3, False).records
    dice = Random(f"gap/{seed}")
    upto = dice.randrange(1, len(records) - 2)
    beyond = dice.randrange(upto + 1, len(records))
    runner, whole = MemoryRunner(PROJECTIONS), MemoryRunner(PROJECTIONS)
    runner.apply(records[:upto])
    with pytest.raises(Gap, match=f"{upto}.*{beyond + 1}.*{upto + 1}"):
        runner.apply(records[beyond:])
    assert runner.position == upto
    runner.apply(records[upto:])
    whole.apply(records)
    with runner.read() as one, whole.read() as other:
        assert stats(one) == stats(other)


def test_s95_counts_of_the_queue_are_those_of_the_world_at_the_same_position() -> None:
    """At random positions the numbers that a view gives, with the position that it carries, are
    those of the world there, and those of a view that is built anew.
    """
    waited = 0
    for seed, several in SIEGES:
        records = siege(seed, several).records
        dice = Random(f"counts/{seed}")
        places = sorted(dice.sample(range(20, len(records)), 5))
        runner = MemoryRunner(PROJECTIONS)
        for record, world in walk(records):
            if not places or record.position != places[0] + 1:
                continue
            position = places.pop(0)
            runner.apply(records[int(runner.position) : position])
            fresh = MemoryRunner(PROJECTIONS)
            fresh.apply(records[:position])
            with runner.read() as view, fresh.read() as anew:
                found = stats(view)
                assert found == stats(anew) and found.position == position
            stages = [s for w in world.workflows.values() for s in w.stages.values()]
            ready = sum(s.waiting for s in stages if s.status in ("ready", "started"))
            waited += ready
            assert found.totals.ready + found.totals.parked == ready, (seed, position)
            began = sum(one.began for one in world.allocations.values())
            assert found.totals.running == began
            assert found.totals.placed == len(world.allocations) - began
    assert waited > 50


def test_s97_a_reason_is_recorded_when_it_changes_and_not_again() -> None:
    """No shape is held twice with the same reason in a row, no promise is repeated as it was, and
    looking at a stuck queue writes nothing, however often.
    """
    for name, records in logs():
        holds: dict[int, object] = {}
        promises: dict[str, object] = {}
        for record in records:
            match record.event:
                case ShapeHeld(shape=shape, hold=hold):
                    assert holds.get(shape) != hold, (name, record)
                    holds[shape] = hold
                case ShapeReleased(shape=shape):
                    assert holds.pop(shape, None) is not None, (name, record)
                case ReservationHeld() | ReservationMoved() as one:
                    assert promises.get(one.allocation) != (one.at, one.chunks), (name, record)
                    promises[one.allocation] = (one.at, one.chunks)
                case (
                    AllocationPlaced(allocation=allocation)
                    | ReservationReleased(allocation=allocation)
                ):
                    promises.pop(allocation, None)
                case _:
                    pass
    y = yard(lambda _: Run(ms=HOUR_MS), {"n1": 2})
    for cores in (2, 2, 1, 64):
        y.submit(flow(it=job(cores, timeout_ms=2 * HOUR_MS)))
    y.advance(0)
    count = len(y.records)
    for _ in range(500):
        y.advance(SECOND_MS)
        y.turn()
    assert len(y.records) == count


def test_s98_every_decision_names_the_policy_that_made_it() -> None:
    """Placements and promises carry the revision of the configuration in force, which is on the log
    whole, with the meaning of its formulas.
    """
    revisions = 0
    for name, records in logs():
        for record, world in walk(records):
            event = record.event
            if isinstance(event, AllocationPlaced | ReservationHeld | ReservationMoved):
                assert event.revision == world.revision, (name, record)
            elif isinstance(event, ConfigSet):
                revisions += 1
                assert event.values.keys() == world.config.keys()
    assert revisions > len(list(logs()))


@pytest.mark.parametrize(("seed", "several"), SIEGES[::2])
def test_s98_old_decisions_come_out_again_under_the_recorded_policy(
    seed: int, several: bool
) -> None:
    """A replay of the log, with the policies that are on it, decides the same."""
    records = brim(seed, several).records
    assert decisions(again(records)) == decisions(records)


def test_s99_a_formula_that_cannot_be_used_changes_nothing() -> None:
    """A setting that is wrong, or that gives what waits no number, is refused; the last good one
    goes on to decide, also after a restart.
    """

    y = yard(lambda _: Run(ms=SECOND_MS), {"n1": 1}, scheduler__priority="0 - request.cores")
    for cores in (1, 1, 1):
        y.submit(flow(it=job(cores)))
    good = (y.world.revision, y.world.priority)
    bad = "1 / (request.cores - 1)"
    values = y.world.config | {"scheduler.priority": bad}
    for command in (
        SetConfig(values=values, formulas={"scheduler.priority": parse(bad)}),
        SetConfig(values=values),
        SetConfig(values={"scheduler.priorty": 1}),
    ):
        with pytest.raises(Refused):
            y.ask(command)
    y.crash(y.engine.log)
    assert (y.world.revision, y.world.priority) == good
    finished(y)
