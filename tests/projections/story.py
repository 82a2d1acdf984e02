"""Logs for tests: the real rules and the real scheduler, driven by a seed."""

from collections.abc import Iterable
from random import Random

from logyard_domain.codec import GENESIS, encode
from logyard_domain.commands import (
    AnyCommand,
    Began,
    CordonNode,
    DeclareLost,
    DeleteGroup,
    DrainNode,
    Ended,
    PreemptAllocation,
    Refused,
    RegisterNode,
    Report,
    SetConfig,
    StartServer,
    StopWorkflow,
    SubmitWorkflow,
    UncordonNode,
    UpdateGroup,
    UpdateOrganization,
    UpdateUser,
)
from logyard_domain.configuration import DEFAULTS, Value
from logyard_domain.decide import decide
from logyard_domain.definition import (
    Cpu,
    Dependency,
    Job,
    Memory,
    Mount,
    Multinode,
    Policy,
    Resource,
    Retry,
    TaskArray,
    Transfer,
    Uri,
    Volume,
    Workflow,
)
from logyard_domain.events import AnyEvent, Outcome
from logyard_domain.evolve import evolve
from logyard_domain.identifiers import Millis
from logyard_domain.records import Entry, Record
from logyard_domain.resources import Capacity
from logyard_domain.settle import settle
from logyard_domain.world import World
from logyard_engine.scheduler.memory import Memory as TickMemory
from logyard_engine.scheduler.tick import tick
from logyard_workflows_dsl.expressions import parse

FORMULAS = (
    "organization.priority + group.priority + user.priority + workflow.priority"
    " + queue.age_hours / 24",
    "group.priority * 10 + workflow.priority - request.cores / 100",
    "user.priority - usage.group + queue.age_seconds / 60",
    "log(1 + queue.age_seconds) * (1 + group.priority) - request.memory_gib / 1000",
    "-queue.age_hours + (request.preemptible ? 1 : 2)",
    "1 / (queue.age_seconds - 1)",
)
"""Priorities that grow alike with age, that stand still, that move, that fall, that are nothing."""
START_MS = 1_800_000_000_000
GIB = 1 << 30


class Story:
    """A cluster that is told what to do; `records` is its log, `world` what rules make of it."""

    def __init__(self) -> None:
        self.world = World("test")
        self.at = START_MS
        self.records: list[Record] = []
        self._memory = TickMemory()
        self._entries: list[Entry] = []
        self._chain = GENESIS
        self.turn(StartServer(version="test"))

    def pass_time(self, ms: int) -> None:
        """Let the clock go on."""
        self.at += ms

    def turn(self, *commands: AnyCommand) -> None:
        """One turn of the engine: commands, what follows, one tick."""
        before = self.world.position
        for command in commands:
            try:
                events = decide(self.world, command, self.at)
            except Refused:
                continue
            self._apply(events, "user:ana")
        self._apply(settle(self.world, self.at), "engine")
        self._apply(tick(self.world, self._memory, self.at), "scheduler")
        _, records = encode(self._entries, "test", before, self._chain)
        self._entries.clear()
        if records:
            self._chain = records[-1].chain
            self.records += records

    def node(
        self,
        name: str,
        cores: int,
        *,
        memory: int = 64 * GIB,
        gpus: int = 0,
        incarnation: str = "1",
        features: tuple[str, ...] = ("mounts",),
    ) -> None:
        """A node registers."""
        devices = {"nvidia.com/gpu": gpus} if gpus else {}
        capacity = Capacity(cores=cores, memory=memory, devices=devices)
        self.turn(
            RegisterNode(
                node=name,
                capacity=capacity,
                incarnation=incarnation,
                storage="shared",
                features=features,
                annotations={"arch": "x86"},
            )
        )

    def submit(
        self,
        key: str,
        definition: Workflow,
        *,
        user: str = "ana",
        group: str = "chem",
        priority: int = 0,
        preemptible: bool = False,
    ) -> str:
        """A user starts a workflow; its id."""
        command = SubmitWorkflow(
            key=key,
            name=f"flow {key}",
            definition=definition,
            source=f"# {key}",
            user=user,
            group=group,
            priority=priority,
            preemptible=preemptible,
        )
        self.turn(command)
        return self.world.keys[f"{user}/{key}"][0]

    def configure(self, formula: str = "", **values: Value) -> None:
        """Set the configuration, whole: keys with `_` for each dot."""
        known = {key.replace(".", "_"): key for key in DEFAULTS}
        settings = {known[key]: value for key, value in values.items()}
        if not formula:
            self.turn(SetConfig(values=settings))
            return
        settings["scheduler.priority"] = formula
        trees = {"scheduler.priority": parse(formula)}
        self.turn(SetConfig(values=settings, formulas=trees))

    def running(self) -> list[str]:
        """Allocations that run."""
        return [name for name, one in self.world.allocations.items() if one.status != "placed"]

    def placed(self) -> list[str]:
        """Allocations that did not begin yet, and may."""
        found = self.world.allocations.items()
        return [
            name
            for name, one in found
            if one.status == "placed" and one.behind is None and not one.after
        ]

    def endable(self) -> list[str]:
        """Allocations that have room, and those that are stopped before they get any."""
        found = self.world.allocations.items()
        return [
            name
            for name, one in found
            if (one.behind is None and not one.after) or one.status == "stopping"
        ]

    def begin(self, *names: str) -> None:
        """Nodes report that these run."""
        for name in names:
            node = self.world.allocations[name].node.name
            self.turn(Report(node=node, began=(Began(name, self.at),)))

    def end(self, *names: str, outcome: Outcome = "finished", run_ms: int = 1000) -> None:
        """Nodes report that these are over."""
        for name in names:
            code = 0 if outcome == "finished" else 1 if outcome == "failed" else None
            ended = Ended(name, outcome, exit_code=code, run_ms=run_ms, cpu_ms=run_ms // 2)
            self.turn(Report(node=self.world.allocations[name].node.name, ended=(ended,)))

    def _apply(self, events: Iterable[AnyEvent], actor: str) -> None:
        for event in events:
            evolve(self.world, event, self.at, self.world.position + 1)
            self._entries.append(Entry(event, Millis(self.at), actor, f"@{self.world.position}"))


def job(
    *needs: str,
    cores: int = 1,
    memory: int = GIB,
    gpus: int = 0,
    ranks: int = 0,
    at_once: int = 0,
    retries: int = 0,
    mounts: tuple[str, ...] = (),
    nodes: int = 1,
    limit_ms: int = 600_000,
    preemptible: bool | None = None,
) -> Job:
    """A job that needs others."""
    return Job(
        command=("true",),
        depends_on=tuple(Dependency(name=name) for name in needs),
        resource=Resource(
            cpu=Cpu(cores=cores),
            memory=Memory(size_bytes=memory),
            devices={"nvidia.com/gpu": gpus} if gpus else {},
        ),
        task_array=TaskArray(start=1, end=ranks, concurrency=at_once) if ranks else None,
        policy=Policy(
            timeout_ms=limit_ms,
            retry=Retry(attempts=retries, backoff_ms=2_000) if retries else None,
        ),
        mounts={f"/{key}": Mount(volume=key) for key in mounts},
        multinode=Multinode(nodes=nodes, implementation="generic") if nodes > 1 else None,
        preemptible=preemptible,
    )


def simple_flow() -> Workflow:
    """One job that needs a core."""
    return Workflow(jobs={"only": job()})


def simple() -> Story:
    """One node runs one job to its end."""
    story = Story()
    story.node("n1", 1)
    story.submit("k", simple_flow())
    story.begin(*story.placed())
    story.pass_time(1_000)
    story.end(*story.running())
    return story


def random_story(seed: int, turns: int = 60) -> Story:
    """A log in which everything happens that can, in an order that the seed decides."""
    dice = Random(seed)
    story = Story()
    _policy(dice, story)
    for number in range(dice.randint(0, 3)):
        features = dice.choice((("mounts",), ("mounts", "multinode")))
        gpus = dice.choice((0, 0, 1))
        story.node(f"n{number}", dice.choice((1, 2, 4)), gpus=gpus, features=features)
    for turn in range(turns):
        story.pass_time(dice.choice((0, 1, 40, 900, 5_000, 70_000)))
        _happening(dice, story, turn)
    return story


def flood_story(seed: int, turns: int = 90) -> Story:
    """Many equal short workflows, some of which are stopped, fail or lose their node."""
    dice = Random(seed)
    story = Story()
    story.configure(workflow_lostRetries=2)
    for number in range(dice.randint(1, 3)):
        story.node(f"n{number}", dice.choice((1, 2)))
    kinds = (
        Workflow(jobs={"render": job()}),
        Workflow(jobs={"render": job(ranks=3)}),
        Workflow(jobs={"render": job(ranks=4, at_once=2), "after": job("render")}),
        Workflow(jobs={"render": job(limit_ms=60_000, retries=1)}),
    )
    for turn in range(turns):
        story.pass_time(dice.choice((0, 1, 10, 40)))
        chance = dice.random()
        if chance < 0.45:
            user = dice.choice(("ana", "ana", "bo"))
            story.submit(f"f{turn}", dice.choice(kinds), user=user)
        elif chance < 0.9 and (free := story.endable()):
            name = dice.choice(free)
            if story.world.allocations[name].status != "stopping":
                story.begin(name)
                story.end(name, run_ms=10)
        else:
            _happening(dice, story, turn + 1_000)
    return story


def _happening(dice: Random, story: Story, turn: int) -> None:
    world = story.world
    chance = dice.random()
    if chance < 0.2:
        story.submit(
            f"k{turn}",
            _definition(dice, any("multinode" in one.features for one in world.nodes.values())),
            user=dice.choice(("ana", "bo")),
            group=dice.choice(("chem", "bio")),
            priority=dice.choice((0, 0, -1)),
            preemptible=dice.random() < 0.5,
        )
    elif chance < 0.24:
        _ranked(dice, story)
    elif chance < 0.5 and world.allocations:
        _reports(dice, story)
    elif chance < 0.85 and world.allocations:
        name = dice.choice(story.endable())
        outcomes: tuple[Outcome, ...] = ("finished", "finished", "finished", "failed", "timeout")
        stopping = world.allocations[name].status == "stopping"
        outcome = "canceled" if stopping else dice.choice(outcomes)
        if dice.random() < 0.1:
            story.turn(PreemptAllocation(allocation=name))
            return
        story.end(name, outcome=outcome, run_ms=30 if "/render/" in name else 1_000)
    elif chance < 0.88 and world.workflows:
        story.turn(StopWorkflow(workflow=dice.choice(list(world.workflows)), reason="enough"))
    elif chance < 0.97 and world.nodes:
        name = dice.choice(list(world.nodes))
        story.turn(
            dice.choice(
                (
                    CordonNode(node=name, reason="disk"),
                    UncordonNode(node=name),
                    DrainNode(node=name, reason="firmware", evict=dice.random() < 0.5),
                    DeclareLost(node=name, silent_ms=60_000),
                )
            )
        )
    else:
        name = f"n{dice.randint(0, 4)}"
        story.node(name, dice.choice((1, 2, 4)), incarnation=str(dice.randint(1, 2)))


def _policy(dice: Random, story: Story) -> None:
    """A configuration under which all there is happens."""
    story.configure(
        dice.choice(("", *FORMULAS)),
        workflow_lostRetries=2,
        scheduler_preemption_enabled=dice.random() < 0.7,
        scheduler_preemption_minRuntime=dice.choice((0, 1_000)),
        scheduler_preemption_priorityGap=dice.choice((0.0, 1.0)),
        scheduler_preemption_utilizationThreshold=dice.choice((0.0, 0.5)),
        scheduler_preemption_multiVictim_enabled=dice.random() < 0.5,
        scheduler_backfill_enabled=dice.random() < 0.8,
        scheduler_backfill_depth=dice.choice((1, 1_000)),
        scheduler_placementsPerTick=dice.choice((1, 3, 1_000)),
    )


def _ranked(dice: Random, story: Story) -> None:
    """Somebody's priority changes, or the policy does."""
    if dice.random() < 0.3:
        _policy(dice, story)
        return
    story.turn(
        dice.choice(
            (
                UpdateOrganization(organization="default", priority=dice.randint(0, 3)),
                UpdateUser(user=dice.choice(("ana", "bo")), priority=dice.randint(0, 3)),
                UpdateGroup(group="chem", priority=dice.randint(0, 3)),
                UpdateGroup(group="bio", priority=dice.randint(0, 5), preempt=("chem",)),
                DeleteGroup(group="chem"),
            )
        )
    )


def _reports(dice: Random, story: Story) -> None:
    for name in [one for one in story.placed() if dice.random() < 0.6]:
        if name in story.world.allocations:
            story.begin(name)


def _definition(dice: Random, multinode: bool) -> Workflow:
    jobs = {
        "prepare": job(mounts=("data",) if dice.random() < 0.3 else ()),
        "render": job(
            "prepare",
            ranks=dice.choice((1, 3, 6, 20)),
            at_once=dice.choice((0, 0, 1, 2)),
            retries=dice.choice((0, 1)),
        ),
        "assemble": job(
            "render",
            cores=dice.choice((1, 2, 3)),
            gpus=dice.choice((0, 0, 1, 4)),
            limit_ms=dice.choice((60_000, 600_000)),
            nodes=dice.choice((1, 2)) if multinode else 1,
        ),
    }
    volume = Volume(
        ingress=(Transfer(source=Uri(uri="file://note"), destination=Uri(uri="file://in/note")),)
    )
    mounted = bool(jobs["prepare"].mounts)
    return Workflow(
        jobs=jobs,
        volumes={"data": volume} if mounted else {},
        files={"note": "hello"} if mounted else {},
    )


def busy_story(seed: int, turns: int = 60) -> Story:
    """A full yard of several kinds of nodes: promises, work let through, evictions, jobs on several
    nodes, priorities that change.
    """
    dice = Random(seed)
    story = Story()
    _policy(dice, story)
    story.turn(UpdateGroup(group="chem"), UpdateGroup(group="bio", priority=5, preempt=("chem",)))
    for number in range(4):
        cores, gpus = dice.choice(((2, 0), (4, 0), (4, 2), (8, 1)))
        story.node(f"n{number}", cores, gpus=gpus, features=("mounts", "multinode"))
    for turn in range(turns):
        story.pass_time(dice.choice((100, 3_000, 40_000)))
        chance = dice.random()
        if chance < 0.6:
            group = dice.choice(("chem", "chem", "bio"))
            definition = Workflow(jobs={"work": _work(dice)})
            story.submit(f"k{turn}", definition, user=dice.choice(("ana", "bo")), group=group)
        elif chance < 0.85 and story.endable():
            name = dice.choice(story.endable())
            stopping = story.world.allocations[name].status == "stopping"
            story.end(name, outcome="canceled" if stopping else "finished")
        elif chance < 0.92:
            _ranked(dice, story)
        elif chance < 0.95:
            story.turn(DeclareLost(node=f"n{dice.randint(0, 3)}", silent_ms=60_000))
        _reports(dice, story)
    return story


def _work(dice: Random) -> Job:
    cores, gpus, nodes = dice.choice(
        ((1, 0, 1), (1, 0, 1), (2, 1, 1), (4, 0, 1), (2, 0, 2), (1, 0, 3), (8, 0, 1), (2, 2, 2))
    )
    return job(
        cores=cores,
        gpus=gpus,
        nodes=nodes,
        ranks=dice.choice((0, 0, 3)) if nodes == 1 else 0,
        limit_ms=dice.choice((30_000, 120_000, 600_000)),
        preemptible=dice.random() < 0.7,
    )
