"""`memkit completion`."""

from __future__ import annotations

import click

from memkit.cli.context import Context, command

VARIABLE = "_MEMKIT_COMPLETE"
"""The variable with which a shell asks click for completions; click derives it from the program's name."""


@command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(context: Context, shell: str) -> None:
    """Print the script with which your shell completes commands, options, and settings.

    Your shell must read the script each time it starts. For zsh, its directory must be in `fpath`.

    \b
      memkit completion bash > ~/.local/share/bash-completion/completions/memkit
      memkit completion zsh > ~/.zfunc/_memkit
      memkit completion fish > ~/.config/fish/completions/memkit.fish
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None  # click knows all three shells
    root = click.get_current_context().find_root().command
    script = made(root, {}, "memkit", VARIABLE).source()
    if context.as_json:
        context.print_json({"shell": shell, "script": script})
    else:
        click.echo(script)
