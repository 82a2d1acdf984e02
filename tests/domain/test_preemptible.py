"""Who may be evicted: said for the workflow, for a job, or when it is started."""

import pytest

from logyard_domain.definition import (
    Defaults,
    Dependency,
    Job,
    JobDefaults,
    Policy,
    Workflow,
    resolved,
)
from logyard_domain.plan import plan
from logyard_domain.rules.workflows import known_definition
from logyard_domain.world import World


@pytest.mark.parametrize(
    ("flow", "flag", "job", "wanted"),
    [
        (False, False, None, False),
        (True, False, None, True),
        (False, True, None, True),
        (True, False, False, False),
        (False, True, False, False),
        (False, False, True, True),
        (True, True, True, True),
    ],
)
def test_the_job_counts_before_the_workflow_and_the_flag(
    flow: bool, flag: bool, job: bool | None, wanted: bool
) -> None:
    defaults = Defaults(job=JobDefaults(policy=Policy(timeout_ms=1_000)))
    definition = Workflow(
        preemptible=flow,
        defaults=defaults,
        jobs={
            "one": Job(command=("true",), preemptible=job),
            "other": Job(command=("true",), depends_on=(Dependency(name="one"),)),
        },
    )
    stages = {stage.name: stage for stage in known_definition(World("t"), definition, flag).stages}
    assert stages["one"].request.preemptible is wanted
    assert stages["other"].request.preemptible is (flow or flag)
    without_flag = {stage.name: stage for stage in plan(resolved(definition))}
    assert without_flag["other"].request.preemptible is flow
