"""Random yards from one seed: nodes of several classes, three resources, annotations, arrays,
retries, aging, preemption, nodes that are lost and drained, jobs on several nodes, crashes.
"""

from collections.abc import Callable
from random import Random

from logyard_domain.commands import (
    AnyCommand,
    CordonNode,
    DrainNode,
    PreemptAllocation,
    Refused,
    RegisterNode,
    SetConfig,
    UncordonNode,
    UpdateGroup,
    UpdateOrganization,
    UpdateUser,
)
from logyard_domain.configuration import Value
from logyard_domain.definition import (
    Cpu,
    Job,
    Memory,
    Multinode,
    Policy,
    Resource,
    Retry,
    TaskArray,
    Workflow,
)
from logyard_domain.resources import Capacity
from logyard_engine.log.opening import open_log
from logyard_engine.simulation.nodes import Run, SimulatedNode
from logyard_engine.simulation.yard import Yard
from tests.engine.work import flow, job, staged

GIB = 1 << 30
GROUPS = ("chem", "bio", "geo")
USERS = ("ana", "bob", "eve")


def script(seed: int) -> Callable[[str], Run]:
    """How attempts go, by their name alone. Nobody outlives the limits of `_job`."""

    def run(allocation: str) -> Run:
        pace = Random(f"{seed}/{allocation.rpartition('/')[0]}")
        dice = Random(f"{seed}/{allocation}")
        if pace.random() < 0.2:
            ms = dice.choice([0, 5, 20, 60])
        else:
            ms = dice.choice([0, 500, 3_000, 20_000, 60_000])
        return Run(
            ms=ms,
            exit_code=int(dice.random() < 0.1),
            stubborn=dice.random() < 0.05,
        )

    return run


def play(
    seed: int,
    *,
    steps: int = 200,
    preemption: str = "",
    values: dict[str, Value] | None = None,
    crashes: bool = False,
    one_core: bool = False,
    exclusive: bool = True,
    staging: bool = True,
) -> Yard:
    """So many random steps, then everything runs out.

    `preemption` is empty, ``single`` or ``multi``. `values` are more settings. With `one_core` all
    nodes are alike and have one core each.
    """
    dice = Random(seed)
    yard = Yard(open_log("memory:", "test"), {}, script(seed))
    settings: dict[str, Value] = {"workflow.killGrace": dice.choice([0, 5_000, 30_000])}
    if preemption:
        settings |= {
            "scheduler.preemption.enabled": True,
            "scheduler.preemption.minRuntime": dice.choice([0, 1_000, 10_000]),
            "scheduler.preemption.utilizationThreshold": dice.choice([0.0, 0.5, 0.9]),
            "scheduler.preemption.multiVictim.enabled": preemption == "multi",
            "scheduler.preemption.maxEvictionsPerTick": dice.choice([2, 5]),
        }
    yard.ask(SetConfig(values=settings | (values or {})), "server")
    for group in GROUPS:
        yard.ask(UpdateGroup(group=group, priority=dice.choice([0, 1, 3])))
    if preemption:
        yard.ask(UpdateGroup(group="bio", priority=5, preempt=("chem", "geo")))
        yard.ask(UpdateGroup(group="geo", preempt=("chem",)))
    names = _nodes(yard, dice, one_core)
    for step in range(steps):
        try:
            _step(yard, dice, step, names, bool(preemption), one_core, exclusive, staging)
        except Refused:
            pass
        if crashes and dice.random() < 0.03:
            yard.crash(yard.engine.log)
    for name in names:
        try:
            yard.ask(UncordonNode(node=name))
        except Refused:
            pass
    yard.run()
    return yard


def _nodes(yard: Yard, dice: Random, one_core: bool) -> list[str]:
    names: list[str] = []
    for number in range(dice.randint(3, 8)):
        name = f"n{number}"
        names.append(name)
        facts = RegisterNode(
            node=name,
            capacity=Capacity(
                cores=1 if one_core else dice.choice([2, 4, 4, 8]),
                memory=(8 if one_core else dice.choice([4, 8, 16])) * GIB,
                devices={"gpu": 2} if not one_core and dice.random() < 0.3 else {},
            ),
            incarnation=f"{name}.1",
            annotations={"rack": "a"} if not one_core and dice.random() < 0.4 else {},
            storage="shared",
            features=("mounts", "multinode"),
            limits="simulated",
        )
        yard.add(SimulatedNode(facts, yard.script))
    return names


def _step(
    yard: Yard,
    dice: Random,
    step: int,
    names: list[str],
    preemption: bool,
    one_core: bool,
    exclusive: bool,
    staging: bool,
) -> None:
    match dice.randrange(20):
        case 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7:
            definition = (
                staged()
                if staging and dice.random() < 0.07
                else _flow(dice, preemption, one_core, exclusive)
            )
            yard.submit(
                definition,
                f"w{step}",
                group=dice.choice(GROUPS),
                user=dice.choice(USERS),
                priority=dice.choice([0, 0, 0, -1, -5]),
            )
        case 8 if dice.random() < 0.4 and not one_core:
            node = dice.choice(names)
            choices: list[AnyCommand] = [
                CordonNode(node=node),
                UncordonNode(node=node),
                DrainNode(node=node, evict=dice.random() < 0.5),
            ]
            yard.ask(dice.choice(choices))
        case 9 if dice.random() < 0.3:
            node = dice.choice(names)
            if node in yard.nodes:
                yard.nodes[node].restart(f"{node}.r{step}")
                yard.join(yard.nodes[node])
        case 10 if dice.random() < 0.3:
            commands: list[AnyCommand] = [
                UpdateUser(user=dice.choice(USERS), priority=dice.choice([0, 2])),
                UpdateOrganization(organization="default", priority=dice.choice([0, 1])),
                UpdateGroup(group="geo", priority=dice.choice([0, 4])),
            ]
            yard.ask(dice.choice(commands))
        case 11 if dice.random() < 0.2 and not one_core:
            node = dice.choice(names)
            if node in yard.nodes:
                lost = yard.nodes[node]
                yard.leave(node)
                yard.advance(70_000)
                yard.add(lost)
        case 12 if preemption and yard.world.allocations and dice.random() < 0.3:
            yard.ask(PreemptAllocation(allocation=dice.choice(list(yard.world.allocations))))
        case _:
            yard.advance(dice.choice([1, 50, 1_000, 5_000, 20_000]))


def _flow(dice: Random, preemption: bool, one_core: bool, exclusive: bool) -> Workflow:
    jobs = {"a": _job(dice, preemption, one_core, exclusive)}
    if dice.random() < 0.3:
        jobs["b"] = _job(dice, preemption, one_core, exclusive)
    return Workflow(jobs=jobs)


def _job(dice: Random, preemption: bool, one_core: bool, exclusive: bool) -> Job:
    nodes = dice.choice([2, 2, 3, 5]) if dice.random() < (0.5 if one_core else 0.2) else 1
    array = nodes == 1 and dice.random() < 0.3
    memory = 0 if one_core else dice.choice([0, 0, 1, 4])
    return Job(
        command=("true",),
        task_array=TaskArray(
            start=1, end=dice.choice([3, 8, 30]), concurrency=dice.choice([0, 0, 2])
        )
        if array
        else None,
        policy=Policy(
            timeout_ms=dice.choice([60_000, 70_000, 120_000, 600_000]),
            retry=Retry(attempts=2) if dice.random() < 0.3 else None,
        ),
        resource=Resource(
            cpu=Cpu(cores=1 if one_core else dice.choice([1, 1, 2, 4, 8])),
            memory=Memory(size_bytes=memory * GIB) if memory else None,
            devices={"gpu": dice.choice([1, 2])} if not one_core and dice.random() < 0.15 else {},
            annotations={"rack": "a"} if not one_core and dice.random() < 0.15 else {},
            exclusive=(exclusive and dice.random() < 0.07) or None,
        ),
        multinode=Multinode(nodes=nodes, implementation="generic") if nodes > 1 else None,
        preemptible=(preemption and dice.random() < 0.6) or None,
    )


def contended(seed: int) -> Yard:
    """Four nodes full of preemptible work, from which more urgent work of another group evicts."""
    dice = Random(seed)
    yard = Yard(
        open_log("memory:", "test"), {}, lambda name: Run(ms=7_000 if "/u/" in name else 90_000)
    )
    settings: dict[str, Value] = {
        "workflow.killGrace": 1_000,
        "scheduler.preemption.enabled": True,
        "scheduler.preemption.minRuntime": 1_000,
        "scheduler.preemption.utilizationThreshold": 0.25,
        "scheduler.preemption.multiVictim.enabled": True,
        "scheduler.preemption.maxEvictionsPerTick": 4,
    }
    yard.ask(SetConfig(values=settings), "server")
    for group in GROUPS:
        yard.ask(UpdateGroup(group=group))
    yard.ask(UpdateGroup(group="bio", priority=5, preempt=("chem",)))
    for number in range(4):
        yard.node(f"n{number}", 4)
    for _ in range(14):
        for _ in range(dice.choice([2, 3, 4])):
            group = dice.choice(["chem", "chem", "geo"])
            yard.submit(
                flow(a=job(dice.choice([1, 2]), timeout_ms=200_000)), group=group, preemptible=True
            )
        yard.advance(dice.choice([4_000, 9_000]))
        yard.submit(flow(u=job(dice.choice([1, 2, 3, 4]), timeout_ms=100_000)), group="bio")
        yard.advance(dice.choice([2_000, 10_000]))
    return yard
