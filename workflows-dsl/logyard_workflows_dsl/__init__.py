"""Text in, domain values out: the workflow language."""

from logyard_workflows_dsl.loading import Loaded, load
from logyard_workflows_dsl.printing import dump
from logyard_workflows_dsl.problems import Problem, Unreadable, report
from logyard_workflows_dsl.schema import json_schema
from logyard_workflows_dsl.upgrading import Upgraded, upgrade

__all__ = [
    "Loaded",
    "Problem",
    "Unreadable",
    "Upgraded",
    "dump",
    "json_schema",
    "load",
    "report",
    "upgrade",
]
