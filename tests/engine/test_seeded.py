"""Random work, faults and crashes from one seed, over the real engine in virtual time.

Whatever happens: nothing acknowledged is lost, no attempt runs twice, every workflow ends exactly
once, no node is given more than it has, and the world is a fold of the log.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random

import pytest

from logyard_domain.commands import (
    AnyCommand,
    CordonNode,
    DrainNode,
    Refused,
    StopWorkflow,
    SubmitWorkflow,
    UncordonNode,
)
from logyard_domain.definition import Workflow
from logyard_domain.events import (
    AllocationEnded,
    AllocationPlaced,
    AllocationStarted,
    NodeRegistered,
    ShapeDeclared,
    StageReady,
    WorkflowCanceled,
    WorkflowFailed,
    WorkflowFinished,
    WorkflowSubmitted,
)
from logyard_domain.records import Entry, Record
from logyard_domain.resources import Request
from logyard_domain.world import World
from logyard_engine.log.log import Log
from logyard_engine.log.opening import open_log
from logyard_engine.scheduler.memory import Memory
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import Yard, log_bytes
from logyard_engine.turn import Asked
from tests.engine.lives import follow_lives
from tests.engine.work import flow, job, staged

SEEDS = range(40)


class Killed(Exception):
    """The server dies here."""


class Forgetful(Memory):
    """Looks at every node every time."""

    def refresh(self, world: World) -> None:
        self.fleet = -1
        super().refresh(world)


class MortalLog:
    """A log whose process can be killed before, during or after an append."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.kill = ""

    @property
    def cluster(self) -> str:
        return self.log.cluster

    @property
    def position(self) -> int:
        return self.log.position

    @property
    def chain(self) -> str:
        return self.log.chain

    def append(self, entries: Sequence[Entry]) -> list[Record]:
        kill, self.kill = self.kill, ""
        if kill == "before":
            raise Killed
        records = self.log.append(entries)
        # A transaction is atomic: dying in it is dying before or after it.
        if kill:
            raise Killed
        return records

    def read(self, after: int, limit: int) -> list[Record]:
        return self.log.read(after, limit)

    def read_states(self, after: int = 0, upto: int | None = None) -> Iterator[tuple[int, bytes]]:
        return self.log.read_states(after, upto)

    def take(self, states: Sequence[bytes]) -> None:
        self.log.take(states)

    def close(self) -> None:
        self.log.close()


def script(seed: int) -> Callable[[str], Run]:
    """How attempts go, by their name alone, so that a crash changes nothing about it."""

    def run(allocation: str) -> Run:
        # Stages differ in how long they take; short ones are queued ahead on nodes.
        pace = Random(f"{seed}/{allocation.rpartition('/')[0]}")
        dice = Random(f"{seed}/{allocation}")
        short = pace.random() < 0.5
        return Run(
            ms=dice.choice([0, 1, 10, 50] if short else [0, 50, 900, 5_000, 30_000]),
            exit_code=dice.choice([0, 0, 0, 0, 0, 1]),
            stubborn=dice.random() < 0.1,
        )

    return run


def play(seed: int, crashes: bool, memory: Callable[[], Memory] = Memory) -> Yard:
    """250 random steps, then everything runs out."""
    dice = Random(seed)
    log = MortalLog(open_log("memory:", "test"))
    y = Yard(log, {}, script(seed), memory)
    for number in range(dice.randint(1, 4)):
        devices = {"gpu": 2} if dice.random() < 0.4 else {}
        y.node(f"n{number}", dice.choice([1, 2, 4, 8]), devices=devices)
    nodes = list(y.nodes)
    acknowledged: dict[str, str] = {}
    for step in range(250):
        if crashes and dice.random() < 0.05:
            log.kill = dice.choice(["before", "after"])
        try:
            _step(y, dice, step, acknowledged, nodes)
        except Killed:
            y.crash(log)
        except Refused:
            pass
    log.kill = ""
    for node in y.nodes.values():
        y.ask(UncordonNode(node=node.facts.node))
    y.run()
    for id in list(y.world.workflows):
        y.ask(StopWorkflow(workflow=id))
    y.run()
    _judge(y, acknowledged)
    return y


def _step(y: Yard, dice: Random, step: int, acknowledged: dict[str, str], nodes: list[str]) -> None:
    match dice.randrange(10):
        case 0 | 1 | 2:
            key = f"w{step}" if dice.random() < 0.9 else f"w{dice.randrange(step + 1)}"
            command = SubmitWorkflow(
                key=key,
                name=key,
                user="ana",
                definition=_definition(dice),
                priority=dice.choice([0, 0, -1, -7]),
            )
            id = y.ask(command).workflow
            assert acknowledged.setdefault(key, id) == id
        case 3:
            if y.world.workflows and dice.random() < 0.3:
                y.ask(StopWorkflow(workflow=dice.choice(list(y.world.workflows))))
        case 4:
            node = dice.choice(nodes)
            choices: list[AnyCommand] = [
                CordonNode(node=node),
                UncordonNode(node=node),
                DrainNode(node=node, evict=dice.random() < 0.5),
            ]
            y.ask(dice.choice(choices))
        case 5:
            y.turn(
                [
                    Asked(y.nodes[name].facts, "node", "again")
                    for name in nodes
                    if dice.random() < 0.2
                ]
            )
        case 6:
            node = dice.choice(nodes)
            if dice.random() < 0.2:
                y.nodes[node].restart(f"{node}.r{step}")
                y.join(y.nodes[node])
        case _:
            y.advance(dice.choice([1, 100, 1_000, 20_000, 90_000]))


def _definition(dice: Random) -> Workflow:
    if dice.random() < 0.1:
        return staged()
    return flow(
        a=job(
            dice.choice([1, 1, 2, 4, 16]),
            array=(1, dice.choice([3, 12, 40])) if dice.random() < 0.4 else None,
            concurrency=dice.choice([0, 2]),
            retries=dice.choice([0, 0, 2]),
            devices={"gpu": dice.choice([1, 2, 3])} if dice.random() < 0.3 else {},
            exclusive=dice.random() < 0.1,
        ),
        b=job(after=("a",), memory=1 << 30),
        c=job(),
    )


def _judge(y: Yard, acknowledged: dict[str, str]) -> None:
    y.check()
    world = y.world
    assert not world.workflows and not world.allocations and not world.definitions
    assert all(lane.head() is None for lane in world.lanes.values())
    assert not world.held and not world.reservations
    submitted = [e.event.workflow for e in y.records if isinstance(e.event, WorkflowSubmitted)]
    ends = Counter(
        e.event.workflow
        for e in y.records
        if isinstance(e.event, WorkflowFinished | WorkflowFailed | WorkflowCanceled)
    )
    assert set(acknowledged.values()) <= set(submitted)
    assert ends == Counter(submitted)
    placed = Counter(e.event.allocation for e in y.records if isinstance(e.event, AllocationPlaced))
    ended = Counter(e.event.allocation for e in y.records if isinstance(e.event, AllocationEnded))
    assert placed == ended and set(placed.values()) <= {1}
    for node in y.nodes.values():
        assert set(node.runs.values()) <= {1}, "an attempt ran twice"
    _judge_room(y)
    follow_lives(y.records)


def _judge_room(y: Yard) -> None:
    """No node ever holds more than it has, counted from the log alone."""
    requests: dict[int, Request] = {}
    shape_of: dict[str, int] = {}
    capacity: dict[str, int] = {}
    used: Counter[str] = Counter()
    where: dict[str, tuple[str, int]] = {}
    waits: dict[str, str] = {}
    for record in y.records:
        match record.event:
            case NodeRegistered(node=node, capacity=has):
                capacity[node] = has.cores
            case ShapeDeclared(shape=shape, request=request):
                requests[shape] = request
            case StageReady(workflow=workflow, stage=stage, shape=shape):
                shape_of[f"{workflow}/{stage}"] = shape
            case AllocationPlaced(allocation=name, node=node, behind=behind):
                cores = requests[shape_of[name.rpartition("/")[0]]].cores
                where[name] = (node, cores)
                if behind:
                    assert where[behind] == where[name]
                    waits[name] = behind
                else:
                    used[node] += cores
                assert used[node] <= capacity[node]
            case AllocationStarted(allocation=name):
                assert name not in waits, "it began while the one before it still ran"
            case AllocationEnded(allocation=name):
                node, cores = where[name]
                before = waits.pop(name, "")
                followers = [one for one, behind in waits.items() if behind == name]
                assert len(followers) <= 1
                if followers and before:
                    waits[followers[0]] = before
                elif followers:
                    del waits[followers[0]]
                elif not before:
                    used[node] -= cores
            case _:
                pass


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_yard_keeps_its_promises(seed: int) -> None:
    play(seed, crashes=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_yard_that_crashes_keeps_them_too(seed: int) -> None:
    play(seed, crashes=True)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_same_seed_gives_the_same_bytes(seed: int) -> None:
    assert log_bytes(play(seed, True).records) == log_bytes(play(seed, True).records)


@pytest.mark.parametrize("seed", range(100, 110))
def test_what_a_tick_remembers_changes_no_decision(seed: int) -> None:
    remembered = log_bytes(play(seed, True).records)
    assert log_bytes(play(seed, True, Forgetful).records) == remembered
