"""Logs worth looking at, made by the real engine in virtual time."""

from logyard_domain.commands import CordonNode, SetConfig, UncordonNode, UpdateGroup
from logyard_domain.configuration import Value
from logyard_engine.log.log import Log
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import Yard
from tests.engine.work import flow, job

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
RUNS_MIN = {
    "load": 25,
    "shards": 12,
    "merge": 20,
    "fold": 70,
    "wide": 30,
    "quick": 15,
    "urgent": 20,
}
"""How long the jobs of a stage run, in minutes."""


def _script(allocation: str) -> Run:
    stage = allocation.split("/")[1]
    if stage == "broken":
        return Run(ms=9 * MINUTE_MS, exit_code=3)
    return Run(ms=RUNS_MIN.get(stage, 40) * MINUTE_MS)


def eventful(log: Log) -> Yard:
    """Three nodes and about twenty allocations: a pipeline, an array at its own limit, backfill
    before a promise, preemption, a failure, a job on two nodes, a node that is closed and one that
    is lost with what it ran.
    """
    y = Yard(log, {}, _script)
    values: dict[str, Value] = {
        "workflow.killGrace": 2 * MINUTE_MS,
        "scheduler.lookahead": 0,
        "scheduler.preemption.enabled": True,
        "scheduler.preemption.minRuntime": 5 * MINUTE_MS,
        "node.lostAfter": 3 * MINUTE_MS,
    }
    y.ask(SetConfig(values=values), "server")
    y.ask(UpdateGroup(group="chem"))
    y.ask(UpdateGroup(group="physics"))
    y.ask(UpdateGroup(group="clinic", priority=10, preempt=("physics",)))
    for name, cores in (("n1", 8), ("n2", 8), ("n3", 4)):
        y.node(name, cores)
    pipeline = flow(
        load=job(2, timeout_ms=HOUR_MS),
        shards=job(1, after=("load",), array=(0, 5), concurrency=3, timeout_ms=HOUR_MS),
        merge=job(4, after=("shards",), timeout_ms=HOUR_MS),
    )
    y.submit(pipeline, "climate", group="chem", user="ana")
    _physics(y, "folding", "ben", 6)
    _physics(y, "docking", "dee", 5)
    y.submit(flow(broken=job(2, timeout_ms=HOUR_MS)), "mesh", group="physics", user="ben")
    y.advance(10 * MINUTE_MS)
    y.submit(flow(wide=job(6, nodes=2, timeout_ms=HOUR_MS)), "train", group="chem", user="cy")
    y.submit(flow(quick=job(2, timeout_ms=20 * MINUTE_MS)), "probe", group="physics", user="dee")
    y.submit(flow(quick=job(1, timeout_ms=25 * MINUTE_MS)), "probe", group="physics", user="dee")
    y.advance(35 * MINUTE_MS)
    y.submit(flow(urgent=job(8, timeout_ms=HOUR_MS)), "triage", group="clinic", user="eve")
    y.advance(10 * MINUTE_MS)
    _physics(y, "refold", "ben", 3)
    y.advance(5 * MINUTE_MS)
    lost = y.nodes["n3"]
    y.leave("n3")
    y.advance(15 * MINUTE_MS)
    y.ask(CordonNode(node="n2", reason="a fan is loud"))
    y.submit(flow(fold=job(4, timeout_ms=2 * HOUR_MS)), "again", group="chem", user="ana")
    y.advance(12 * MINUTE_MS)
    lost.restart("second")
    y.add(lost)
    y.run()
    y.ask(UncordonNode(node="n2"))
    y.run()
    return y


def _physics(y: Yard, name: str, user: str, cores: int) -> None:
    definition = flow(fold=job(cores, timeout_ms=2 * HOUR_MS))
    y.submit(definition, name, group="physics", user=user, preemptible=True)
