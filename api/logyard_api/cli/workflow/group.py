"""The verbs of `logyard workflow`."""

import click

from logyard_api.cli.verbs import Verb, Verbs

_HERE = "logyard_api.cli.workflow."


@click.group(
    cls=Verbs,
    verbs={
        "start": Verb(f"{_HERE}start:start", "Start a workflow file."),
        "list": Verb(f"{_HERE}asking:list_", "List workflows, newest first."),
        "describe": Verb(f"{_HERE}asking:describe", "A workflow and its stages, or one stage."),
        "status": Verb(f"{_HERE}asking:status", "Where a workflow stands, in one line."),
        "why": Verb(f"{_HERE}why:why", "Why something waits, runs or ended."),
        "events": Verb(f"{_HERE}asking:events", "What happened in a workflow."),
        "log": Verb(f"{_HERE}log:log", "The output of a job."),
        "logs": Verb(f"{_HERE}log:log", "The output of a job.", hidden=True),
        "results": Verb(f"{_HERE}results:results", "List and fetch what it kept."),
        "stop": Verb(f"{_HERE}stop:stop", "Stop workflows."),
        "get": Verb(f"{_HERE}asking:get", "The workflow file as it was started."),
        "validate": Verb(f"{_HERE}language:validate", "Check a workflow file, without a server."),
        "upgrade": Verb(f"{_HERE}language:upgrade", "Rewrite an old file as version v4."),
        "schema": Verb(f"{_HERE}language:schema", "The JSON Schema of workflow files."),
    },
)
def workflow() -> None:
    """Start, watch, explain and stop workflows."""
