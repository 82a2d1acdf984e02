"""A click group whose commands are loaded only when they are used.

The table says for each name where the command is and what its line of help says, so that `--help`
and completion load nothing.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem


class Verb(NamedTuple):
    """Where a command is (``module:attribute``), its line of help, and whether help lists it."""

    target: str
    summary: str
    hidden: bool = False


class Verbs(click.Group):
    """A group over a table of verbs."""

    def __init__(self, *args: Any, verbs: Mapping[str, Verb], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = self.verbs.get(cmd_name)
        if verb is None:
            return None
        module, _, attribute = verb.target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, verb.summary) for name, verb in self.verbs.items() if not verb.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        items = [
            CompletionItem(name, help=verb.summary)
            for name, verb in self.verbs.items()
            if name.startswith(incomplete) and not verb.hidden
        ]
        return items + click.Command.shell_complete(self, ctx, incomplete)
