"""What a file that reads well may still have wrong: rules between its parts."""

from collections.abc import Iterator

from logyard_domain.definition import Workflow
from logyard_workflows_dsl.checks import order, programs, services, volumes
from logyard_workflows_dsl.checks.findings import Finding

__all__ = ["Finding", "findings"]


def findings(workflow: Workflow) -> Iterator[Finding]:
    """All that is wrong or doubtful in `workflow`."""
    yield from order.findings(workflow)
    yield from programs.findings(workflow)
    yield from services.findings(workflow)
    yield from volumes.findings(workflow)
