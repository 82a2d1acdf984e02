"""`logyard completion`: the script that makes a shell complete this command."""

import click

from logyard_api.cli import output

_HOW = {
    "bash": 'eval "$(logyard completion bash)"    # in ~/.bashrc',
    "zsh": 'eval "$(logyard completion zsh)"    # in ~/.zshrc',
    "fish": "logyard completion fish | source    # in ~/.config/fish/config.fish",
}


@click.command(
    epilog="\b\nTo have it in every shell:\n" + "\n".join(f"  {line}" for line in _HOW.values())
)
@click.argument("shell", type=click.Choice(sorted(_HOW)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of SHELL."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    root = ctx.find_root().command
    source = kind(root, {}, "logyard", "_LOGYARD_COMPLETE")
    # click's own `source` for bash starts bash only to read its version: the script itself tells.
    output.answer(source.source_template % source.source_vars())
