"""`memkit config` and `memkit completion`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memkit.cli.context import Context, command
from memkit.cli.output import echo, json_line

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from memkit.settings.load import Key

ACTIONS = {"list": (), "get": ("SECTION.NAME",), "set": ("SECTION.NAME", "VALUE"), "path": ()}
"""The actions with their arguments."""

NOTIFY_SECONDS = 1.0
"""The time limit for notifying the service of a change."""

COMPLETION_VARIABLE = "_MEMKIT_COMPLETE"
"""The variable with which a shell asks click for completions; click derives it from the program's name."""


def _complete_setting(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from memkit.settings import validate

    return [
        CompletionItem(".".join(key), help=validate.describe(key))
        for key in validate.every_key()
        if ".".join(key).startswith(incomplete)
    ]


@command("config")
@click.argument("action", type=click.Choice(list(ACTIONS)), default="list")
@click.argument("name", required=False, metavar="[SECTION.NAME]", shell_complete=_complete_setting)
@click.argument("value", required=False)
def config_command(context: Context, action: str, name: str | None, value: str | None) -> None:
    """Show and change settings.

    \b
      memkit config list
      memkit config get search.k
      memkit config set search.k 10
      memkit config path
    """
    from memkit.settings import load, validate

    given = [one for one in (name, value) if one is not None]
    if len(given) != len(ACTIONS[action]):
        raise click.UsageError(f"`memkit config {action}` takes {' and '.join(ACTIONS[action]) or 'nothing'}")
    section, _, rest = (name or "").partition(".")
    if action == "list":
        _list(context)
    elif action == "path":
        context.report({"path": context.home.config_file}, context.home.config_file)
    elif action == "set":
        _set(context, (section, rest), str(value))
    else:
        validate.check_known((section, rest))
        found = getattr(getattr(load.load(context.home, context.project).settings, section), rest)
        context.report({"key": name, "value": found}, _text(found))


def _list(context: Context) -> None:
    from memkit.settings import load, validate

    loaded = load.load(context.home, context.project)
    rows = {
        f"{section}.{name}": {
            "value": getattr(getattr(loaded.settings, section), name),
            "origin": loaded.origins.get((section, name), "default"),
            "description": validate.describe((section, name)),
        }
        for section, name in validate.every_key()
    }
    if context.as_json:
        context.print_json({"settings": rows, "refused": loaded.refused})
        return
    for name, row in rows.items():
        origin = "" if row["origin"] == "default" else f"  [{row['origin']}]"
        echo(f"{name} = {_text(row['value'])}{origin}")
        echo(f"    {row['description']}", dim=True)
    for line in loaded.refused:
        context.say(line)


def _set(context: Context, key: Key, text: str) -> None:
    from memkit.ipc import client
    from memkit.settings import load

    file, name = context.home.config_file, ".".join(key)
    value = load.save(context.home, key, text)
    context.report({"key": name, "value": value, "path": file}, f"{name} = {_text(value)} in {file}")
    origin = load.load(context.home).origins[key]
    load.publish_hook_settings(context.home)
    try:
        client.notify(context.home, "reload", {}, NOTIFY_SECONDS)
    except client.ServiceUnavailable:  # the next one reads the new settings
        pass
    if origin != file:
        context.say(f"{origin} is also set and overrides it")


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value else json_line(value)


@command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(context: Context, shell: str) -> None:
    """Print the script that lets your shell complete commands, options, and settings.

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
    script = made(root, {}, "memkit", COMPLETION_VARIABLE).source()
    if context.as_json:
        context.print_json({"shell": shell, "script": script})
    else:
        click.echo(script)
