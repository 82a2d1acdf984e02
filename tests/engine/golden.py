"""The scenario behind the golden logs: everything that can happen, once.

`python -m tests.engine.golden FILE` writes the log of the present release; it is kept for ever.
"""

import sys
from pathlib import Path

from logyard_domain.commands import (
    CordonNode,
    DeleteGroup,
    DrainNode,
    RemoveNode,
    SetConfig,
    StopServer,
    StopWorkflow,
    UncordonNode,
    UpdateGroup,
    UpdateOrganization,
    UpdateUser,
)
from logyard_domain.configuration import Value
from logyard_domain.expressions import Binary, Variable
from logyard_engine.log.opening import open_log
from logyard_engine.log.transfer import export_log
from logyard_engine.simulation.nodes import Run
from logyard_engine.simulation.yard import Yard
from tests.engine.work import flow, job, staged

BUSY_MS = 300_000


def everything() -> Yard:
    """A yard on which every type of event has happened."""

    def script(allocation: str) -> Run:
        if "/flaky/" in allocation:
            return Run(ms=100, exit_code=0 if allocation.endswith("#2") else 1)
        if "/broken/" in allocation:
            return Run(exit_code=2)
        if "/short/" in allocation:
            return Run(ms=20)
        return Run(ms=BUSY_MS if "/long/" in allocation else 1_000)

    yard = Yard(open_log("memory:", "golden"), {}, script)
    yard.ask(SetConfig(values={"node.lostAfter": 30_000}), "server")
    yard.ask(UpdateOrganization(organization="default", priority=1))
    yard.ask(UpdateUser(user="ana", priority=1))
    for group in ("chem", "bio", "old"):
        yard.ask(UpdateGroup(group=group))
    yard.ask(UpdateGroup(group="bio", priority=5, preempt=("chem", "old")))
    yard.ask(DeleteGroup(group="old"))
    yard.submit(flow(a=job()), "early")
    yard.node("n1", 4, devices={"nvidia.com/gpu": 1}, annotations={"rack": "a"})
    yard.node("n2", 4, storage="other")
    yard.submit(staged(), "staged")
    yard.submit(flow(array=job(2, array=(1, 6), concurrency=3), sum=job(after=("array",))), "fan")
    yard.submit(flow(short=job(array=(1, 12))), "short")
    yard.submit(flow(flaky=job(retries=3), broken=job(), after=job(after=("broken",))), "trouble")
    yard.submit(flow(never=job(64, annotations={"rack": "z"})), "never", priority=-3)
    yard.advance(20_000)
    stopped = yard.submit(flow(long=job(array=(1, 2))), "stopped", group="chem")
    yard.ask(StopWorkflow(workflow=stopped, reason="wrong input"))
    yard.advance(5_000)
    yard.submit(flow(long=job(4, memory=1 << 30)), "moved", preemptible=True)
    yard.ask(CordonNode(node="n2", reason="disk"))
    yard.ask(UncordonNode(node="n2"))
    yard.ask(DrainNode(node="n1", reason="upgrade", evict=True))
    yard.advance(5_000)
    node = yard.nodes["n2"]
    yard.leave("n2")
    yard.advance(40_000)
    yard.add(node)
    yard.ask(UncordonNode(node="n1"))
    yard.advance(400_000)
    yard.leave("n2")
    yard.advance(40_000)
    yard.ask(RemoveNode(node="n2"))
    _preempting(yard)
    yard.ask(StopServer(), "server")
    return yard


def _preempting(yard: Yard) -> None:
    """Promises that are made, moved and taken back; an eviction; a job that is let through."""
    formula = Binary("+", Variable("group.priority"), Variable("queue.age_hours"))
    values: dict[str, Value] = {
        "scheduler.priority": "group.priority + queue.age_hours",
        "scheduler.preemption.enabled": True,
        "scheduler.preemption.minRuntime": 0,
        "scheduler.preemption.utilizationThreshold": 0.5,
    }
    yard.ask(SetConfig(values=values, formulas={"scheduler.priority": formula}), "server")
    yard.submit(flow(long=job(3, timeout_ms=600_000)), "low", group="chem", preemptible=True)
    yard.advance(1_000)
    yard.submit(flow(wide=job(4, timeout_ms=300_000)), "wide", group="chem")
    yard.submit(flow(brief=job(1, timeout_ms=60_000)), "brief", group="chem")
    yard.advance(1_000)
    yard.submit(flow(urgent=job(4, timeout_ms=300_000)), "urgent", group="bio")
    yard.advance(700_000)
    yard.submit(flow(long=job(3, timeout_ms=100_000)), "over", group="chem")
    withdrawn = yard.submit(flow(wide=job(4)), "withdrawn", group="chem")
    yard.advance(50_000)
    yard.ask(StopWorkflow(workflow=withdrawn))
    yard.advance(400_000)


def main() -> None:
    """Write the log to the named file."""
    with Path(sys.argv[1]).open("wb") as out:
        export_log(everything().engine.log, out)


if __name__ == "__main__":
    main()
