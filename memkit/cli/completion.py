"""`memkit completion`."""

from __future__ import annotations

import click

from memkit.cli.context import Context, command

SHELLS = ("bash", "zsh", "fish")

PROGRAM = "memkit"

VARIABLE = "_MEMKIT_COMPLETE"
"""Where click looks for what it is asked to complete; it derives this name from the program's."""


@command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def completion_command(context: Context, shell: str) -> None:
    """Print what makes a shell complete commands, options and settings at the Tab key.

    The shell has to read it each time it starts. zsh looks only into the directories of its `fpath`.

    \b
      memkit completion bash > ~/.local/share/bash-completion/completions/memkit
      memkit completion zsh > ~/.zfunc/_memkit
      memkit completion fish > ~/.config/fish/completions/memkit.fish
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None  # click knows the three
    script = made(click.get_current_context().find_root().command, {}, PROGRAM, VARIABLE).source()
    if context.as_json:
        context.print_json({"shell": shell, "script": script})
    else:
        click.echo(script)
