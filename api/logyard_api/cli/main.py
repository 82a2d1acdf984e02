"""The command `logyard`: its verbs, and how each way of ending becomes an exit code."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from logyard_api.cli.outcomes import FAILED, INTERRUPTED, OK, Trouble
from logyard_api.cli.verbs import Verb, Verbs
from logyard_api.release import VERSION

_HERE = "logyard_api.cli."
VERBS = {
    "serve": Verb(f"{_HERE}serve:serve", "Run a server: log, scheduler, views and API in one."),
    "run": Verb(f"{_HERE}run:run", "Run one command as a job and stream its output."),
    "workflow": Verb(f"{_HERE}workflow.group:workflow", "Start, watch, explain, stop workflows."),
    "queue": Verb(f"{_HERE}queue:queue", "What runs, what waits, and why."),
    "priority": Verb(f"{_HERE}priority:priority", "Try priority expressions on what waits."),
    "allocation": Verb(f"{_HERE}allocation:allocation", "Evict allocations by name."),
    "config": Verb(f"{_HERE}config:config", "The configuration that decisions use."),
    "organization": Verb(f"{_HERE}organization:organization", "Organizations, their priorities."),
    "group": Verb(f"{_HERE}group:group", "Groups, their priorities, who may preempt whom."),
    "user": Verb(f"{_HERE}user:user", "Users, their priorities."),
    "node": Verb(f"{_HERE}node:node", "List, cordon, drain and remove nodes."),
    "events": Verb(f"{_HERE}events:events", "The stream of everything that happens."),
    "log": Verb(f"{_HERE}log:log", "Read, verify, export and import the log itself."),
    "audit": Verb(f"{_HERE}audit:audit", "Hold a log against the rules of scheduling."),
    "simulate": Verb(f"{_HERE}simulate:simulate", "Run a recorded workload in virtual time."),
    "report": Verb(f"{_HERE}report:report", "Draw a log as one page to look at."),
    "substrate": Verb(f"{_HERE}substrate:substrate", "Offer this machine to a server as a node."),
    "replay": Verb(f"{_HERE}replay:replay", "Replay a log under another policy."),
    "context": Verb(f"{_HERE}context:context", "Remember servers by name."),
    "version": Verb(f"{_HERE}version:version", "Versions of this program and of the server."),
    "completion": Verb(f"{_HERE}completion:completion", "Print the completion of a shell."),
}


@click.command(
    cls=Verbs,
    verbs=VERBS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=(
        "Exit codes: 0 well; 1 failed or refused; 2 wrong usage; 3 no server answers;"
        " 130 after Ctrl-C."
    ),
)
@click.version_option(VERSION, prog_name="logyard", message="%(prog)s %(version)s")
@click.option("--server", metavar="URL", help="Server to ask (also LOGYARD_SERVER).")
@click.pass_context
def root(ctx: click.Context, server: str | None) -> None:
    """An event-sourced workflow engine and scheduler for HPC and AI clusters."""
    ctx.obj = server


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit code."""
    sys.exit(ending(arguments))


def ending(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code it ends with."""
    try:
        code = root.main(
            args=None if arguments is None else list(arguments),
            prog_name="logyard",
            standalone_mode=False,
        )
        sys.stdout.flush()
    except click.ClickException as trouble:
        trouble.show()
        return trouble.exit_code
    except Trouble as trouble:
        click.echo(trouble.message, err=True)
        return trouble.code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`| head`) with what it wanted. Python must not flush again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except OSError as trouble:
        click.echo(str(trouble), err=True)
        return FAILED
    return code if isinstance(code, int) else OK
