"""Advice: what it says would happen does, a step less does not do, nothing is made up."""

import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest

from logyard_domain import snapshot
from logyard_domain.commands import SetConfig, UpdateGroup
from logyard_domain.events import AllocationPlaced
from logyard_domain.evolve import replay
from logyard_domain.identifiers import allocation_id
from logyard_domain.records import Record
from logyard_domain.world import Stage, World
from logyard_engine.advice import inquiry
from logyard_engine.advice.advising import Advice, Piece, advise
from logyard_engine.advice.changes import OWNERS, Change, Scale, command_of, memory_step, scales
from logyard_engine.advice.trials import Outcome, attempt, followed, outcome
from logyard_engine.log.opening import open_log
from logyard_engine.scheduler.memory import Memory
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import Yard
from logyard_workflows_dsl.expressions import parse
from tests.advice.past import is_fresh, moments, replaced, turn, waiting
from tests.audit.yards import contended, play
from tests.engine.work import flow, job

GIB = 1 << 30
MINUTE = 60_000
HOUR = 60 * MINUTE
KINDS = ("", "single", "multi")


def records(seed: int) -> Sequence[Record]:
    """A random log: every fourth of a yard in which much is evicted."""
    if seed % 4 == 3:
        return contended(seed).records
    return play(seed, steps=70, preemption=KINDS[seed % 3]).records


def name_of(stage: Stage) -> str:
    """The allocation of a stage that would be placed next."""
    return allocation_id(stage.workflow.id, stage.plan.name, *stage.first_waiting())


def asked(data: bytes, most: int) -> Iterator[tuple[Stage, Advice]]:
    """Some of what waits in a world, and advice for it a second later."""
    world = snapshot.restore(data)
    for stage in waiting(world)[:most]:
        told = advise(snapshot.restore(data), name_of(stage), world.at + 1_000)
        assert told.position == world.position
        yield stage, told


def done(data: bytes, stage: Stage, change: Change, now: int) -> Outcome:
    """What comes of the change, by the commands that people would give."""
    world = snapshot.restore(data)
    turn(world, (), now)
    same = world.workflows[stage.workflow.id].stages[stage.plan.name]
    held = set(same.holding)
    if change.what in OWNERS:
        turn(world, [command_of(same, change)], now)
    else:
        before = set(world.workflows)
        turn(world, replaced(same, change), now)
        (new,) = set(world.workflows) - before
        same = world.workflows[new].stages[stage.plan.name]
    placed = [name for name in same.holding if name not in held]
    if placed:
        first = world.allocations[placed[0]]
        nodes = {node.name: count for node, count in first.chunks}
        return Outcome(placed=len(placed), nodes=nodes, victims=tuple(first.after))
    return outcome(world, same, ())


def scale_of(data: bytes, stage: Stage, piece: Piece, now: int) -> Scale:
    """The steps of which the piece is one."""
    world = snapshot.restore(data)
    same = world.workflows[stage.workflow.id].stages[stage.plan.name]
    followed(world, Memory(), now)
    change = piece.change
    (found,) = [
        scale
        for scale in scales(world, same, now)
        if (scale.what, scale.name) == (change.what, change.name)
    ]
    return found


@pytest.mark.parametrize("seed", range(8))
def test_what_is_advised_happens_and_a_step_less_does_not_do(seed: int) -> None:
    verified = 0
    for data in moments(records(seed), 8):
        for stage, told in asked(data, 5):
            for piece in told.pieces:
                owned = piece.change.what in OWNERS
                if not (owned or is_fresh(stage)):
                    continue
                found = done(data, stage, piece.change, told.now)
                assert found.at == piece.outcome.at < told.unchanged.at
                if found.placed:
                    assert (found.nodes, found.victims) == (
                        piece.outcome.nodes,
                        piece.outcome.victims,
                    )
                verified += 1
                steps = scale_of(data, stage, piece, told.now)
                place = steps.values.index(piece.change.value)
                assert piece.least
                if place:
                    less = done(data, stage, steps.change(place - 1), told.now)
                    assert less.at > piece.outcome.at
    assert verified


@pytest.mark.parametrize("seed", [20, 23])
def test_every_change_that_was_not_advised_was_seen_to_do_no_better(seed: int) -> None:
    compared = 0
    for data in moments(records(seed), 4):
        for stage, told in asked(data, 2):
            if not told.tried:
                continue
            best = {(one.change.what, one.change.name): one for one in told.pieces}
            bound = min((one.outcome.at for one in told.pieces), default=told.unchanged.at)
            world = snapshot.restore(data)
            followed(world, Memory(), told.now)
            same = world.workflows[stage.workflow.id].stages[stage.plan.name]
            base = snapshot.dump(world)
            for scale in scales(world, same, told.now):
                for place in range(len(scale.values)):
                    found = tried(base, stage, scale.change(place), told.now)
                    assert found.at >= bound, scale
                    piece = best.get((scale.what, scale.name))
                    if piece is None:
                        # Whatever does as well as what was advised was advised too.
                        assert found.at > bound or not told.pieces, scale
                        continue
                    if scale.values[place] == piece.change.value:
                        break
                    assert found.at > bound
                compared += 1
    assert compared


def tried(base: bytes, stage: Stage, change: Change, now: int) -> Outcome:
    """What comes of a change in the world after the turn."""
    world = snapshot.restore(base)
    return attempt(world, Memory(), stage.workflow.id, stage.plan.name, change, now)


def yard(**nodes: int) -> Yard:
    """Nodes on which work lasts for its whole limit of an hour."""
    return Yard(open_log("memory:", "test"), nodes, lambda _: Run(ms=HOUR))


def ask(one: Yard, workflow: str, name: str = "a") -> Advice:
    """Advice on the first rank of a workflow's job."""
    data = snapshot.dump(one.world)
    return advise(snapshot.restore(data), f"{workflow}/{name}/0#1", one.clock.ms)


def helps(told: Advice) -> dict[str, int]:
    """What to change, to what."""
    return {piece.change.what: piece.change.value for piece in told.pieces}


def test_fewer_cores_fit_beside_what_runs() -> None:
    one = yard(n1=8)
    one.submit(flow(a=job(5, timeout_ms=HOUR)))
    wide = one.submit(flow(a=job(6, timeout_ms=HOUR)))
    told = ask(one, wide)
    assert helps(told) == {"cores": 3}
    (piece,) = told.pieces
    assert piece.before == 6
    assert piece.outcome.nodes == {"n1": 1}
    assert told.unchanged.promised_at > one.clock.ms


def test_less_memory_is_asked_for_in_round_steps() -> None:
    one = yard()
    one.node("n1", 8, memory=16 * GIB)
    one.submit(flow(a=job(1, memory=5 * GIB, timeout_ms=HOUR)))
    large = one.submit(flow(a=job(1, memory=12 * GIB, timeout_ms=HOUR)))
    step = memory_step(12 * GIB)
    (piece,) = ask(one, large).pieces
    assert piece.change == Change("memory", 11 * GIB)
    assert step == 256 << 20


def test_a_shorter_limit_fits_into_the_gap_before_a_promise() -> None:
    one = yard(n1=4)
    one.submit(flow(a=job(3, timeout_ms=HOUR)))
    one.advance(10 * MINUTE)
    one.submit(flow(a=job(4, timeout_ms=HOUR)))
    late = one.submit(flow(a=job(1, timeout_ms=3 * HOUR)))
    told = ask(one, late)
    assert helps(told) == {"limit": 50 * MINUTE}
    assert told.pieces[0].outcome.kind == "backfilled"


def test_fewer_nodes_devices_annotations_and_a_shared_node_are_found() -> None:
    one = yard()
    for name in ("n1", "n2"):
        one.node(name, 4, devices={"gpu": 2}, annotations={"rack": "a"} if name == "n1" else {})
    one.submit(flow(a=job(1, devices={"gpu": 1}, annotations={"rack": "a"}, timeout_ms=HOUR)))
    one.submit(flow(a=job(1, devices={"gpu": 2}, timeout_ms=HOUR)))
    gpus = one.submit(flow(a=job(1, devices={"gpu": 2}, timeout_ms=HOUR)))
    assert helps(ask(one, gpus)) == {"device": 1}
    racked = one.submit(flow(a=job(4, annotations={"rack": "b"}, timeout_ms=HOUR)))
    assert "annotation" in helps(ask(one, racked))
    alone = one.submit(flow(a=job(1, exclusive=True, timeout_ms=MINUTE)))
    assert helps(ask(one, alone))["exclusive"] == 0


def test_one_node_instead_of_two_needs_no_feature_of_many() -> None:
    one = yard(n1=4, n2=4)
    one.submit(flow(a=job(2, timeout_ms=HOUR)))
    two = one.submit(flow(a=job(4, nodes=2, timeout_ms=HOUR)))
    told = ask(one, two)
    assert helps(told) == {"nodes": 1, "cores": 2}


def test_a_priority_helps_by_as_much_as_is_needed_and_says_whose() -> None:
    one = yard(n1=4)
    one.ask(UpdateGroup(group="chem", priority=3))
    one.submit(flow(a=job(4, timeout_ms=HOUR)))
    one.submit(flow(a=job(4, timeout_ms=HOUR)), group="chem")
    low = one.submit(flow(a=job(4, timeout_ms=HOUR)), priority=-2)
    told = ask(one, low)
    assert told.unchanged.promised_at == 0
    # Its own priority can only come up to 0, which is below that of group chem. Both are of the
    # same user.
    assert helps(told) == {"group": 6}
    assert {piece.outcome.placed for piece in told.pieces} == {0}
    assert all(piece.outcome.promised_at for piece in told.pieces)


def test_its_own_priority_is_raised_up_to_nought_only() -> None:
    one = yard(n1=4)
    one.submit(flow(a=job(4, timeout_ms=HOUR)))
    one.submit(flow(a=job(4, timeout_ms=HOUR)), priority=-3)
    low = one.submit(flow(a=job(4, timeout_ms=HOUR)), priority=-5)
    assert helps(ask(one, low))["priority"] == -2


def test_what_can_never_run_is_told_what_could() -> None:
    one = yard(n1=4)
    huge = one.submit(flow(a=job(64, timeout_ms=HOUR)))
    assert helps(ask(one, huge)) == {"cores": 4}
    one.submit(flow(a=job(4, timeout_ms=HOUR)))
    one.submit(flow(a=job(3, timeout_ms=HOUR)))
    told = ask(one, huge)
    assert told.unchanged.parked
    (piece,) = told.pieces
    assert piece.change == Change("cores", 4)
    assert not piece.outcome.placed
    assert not piece.outcome.parked


def test_eviction_is_told_with_its_victims() -> None:
    one = yard(n1=4)
    one.ask(
        SetConfig(
            values={"scheduler.preemption.enabled": True, "scheduler.preemption.minRuntime": 0}
        )
    )
    one.ask(UpdateGroup(group="chem"))
    one.ask(UpdateGroup(group="bio", priority=2, preempt=("chem",)))
    one.submit(flow(a=job(2, timeout_ms=HOUR)), group="chem", preemptible=True)
    one.submit(flow(a=job(2, timeout_ms=HOUR)), group="bio")
    one.advance(1_000)
    wide = one.submit(flow(a=job(4, timeout_ms=HOUR)), group="bio")
    (piece,) = ask(one, wide).pieces
    assert piece.change == Change("cores", 2)
    assert piece.outcome.kind == "preempting"
    assert len(piece.outcome.victims) == 1


def test_what_waits_for_no_room_gets_no_advice() -> None:
    one = yard(n1=4)
    runs = one.submit(flow(a=job(4, timeout_ms=HOUR), b=job(1, after=("a",))))
    for name in ("a", "b"):
        told = ask(one, runs, name)
        assert (told.waiting, told.pieces, told.tries) == (0, (), 0)
    assert ask(one, "wf-nothing").waiting == 0
    with pytest.raises(ValueError, match="names no allocation"):
        advise(one.world, "nothing", 0)


def test_what_the_next_tick_places_needs_no_change() -> None:
    one = yard(n1=4)
    one.submit(flow(a=job(4, timeout_ms=HOUR)))
    after = one.submit(flow(a=job(4, timeout_ms=HOUR)))
    one.advance(HOUR)
    world = World("test")
    for record in one.records:
        if isinstance(record.event, AllocationPlaced) and record.event.allocation.startswith(after):
            break
        replay(world, record)
    told = advise(world, f"{after}/a/0#1", world.at)
    assert told.unchanged.placed == 1
    assert told.tries == 0


def test_the_rest_of_an_array_is_asked_for_anew() -> None:
    one = yard(n1=4)
    array = one.submit(flow(a=job(3, array=(1, 5), timeout_ms=HOUR)))
    data = snapshot.dump(one.world)
    runs, told = (
        advise(snapshot.restore(data), f"{array}/a/{rank}#1", one.clock.ms) for rank in (1, 3)
    )
    assert not runs.waiting
    assert told.waiting == 4
    assert helps(told) == {"cores": 1}
    assert told.pieces[0].outcome.placed == 1


def test_a_priority_that_is_not_in_the_formula_is_not_tried() -> None:
    one = yard(n1=4)
    text = "queue.age_hours"
    formulas = {"scheduler.priority": parse(text)}
    one.ask(SetConfig(values={"scheduler.priority": text}, formulas=formulas))
    for _ in range(2):
        one.submit(flow(a=job(4, timeout_ms=HOUR)))
    low = one.submit(flow(a=job(4, timeout_ms=HOUR)), priority=-5)
    told = ask(one, low)
    assert {scale.what for scale in told.tried} == {"cores", "limit"}
    assert not told.pieces


def test_the_process_that_forks_says_the_same() -> None:
    one = play(5, steps=70)
    data = next(iter([*moments(one.records, 5)][2:]))
    world = snapshot.restore(data)
    with subprocess.Popen(
        [sys.executable, "-m", "logyard_engine.advice.counsel"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        inquiry.send(process.stdin, inquiry.Begin("test", data))
        for stage in waiting(world):
            now = world.at + 1_000
            question = inquiry.AskAdvice(name_of(stage), now)
            inquiry.send(process.stdin, question)
            found = inquiry.told(process.stdout)
            assert found == inquiry.Advised(advise(snapshot.restore(data), name_of(stage), now))
        inquiry.send(process.stdin, inquiry.AskAdvice("nothing", 0))
        failed = inquiry.told(process.stdout)
        assert isinstance(failed, inquiry.Failed)
        assert "names no allocation" in failed.message
        process.stdin.close()
        assert process.wait(30) == 0
