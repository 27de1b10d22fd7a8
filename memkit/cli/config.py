"""`memkit config`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memkit.cli.context import Context, command
from memkit.cli.output import echo, json_line

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from memkit.settings.load import Key

ARGUMENTS = {
    "list": "no argument",
    "get": "SECTION.NAME",
    "set": "SECTION.NAME and a value",
    "path": "no argument",
}

NOTIFY_SECONDS = 1.0
"""The time limit for notifying the service of a change."""


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
@click.argument("action", type=click.Choice(list(ARGUMENTS)), default="list")
@click.argument(
    "name", required=False, metavar="[SECTION.NAME]", shell_complete=_complete_setting
)
@click.argument("value", required=False)
def config_command(context: Context, action: str, name: str | None, value: str | None) -> None:
    """Show and change settings.

    \b
      memkit config list
      memkit config get search.k
      memkit config set search.k 10
      memkit config path
    """
    needed = {"list": 0, "path": 0, "get": 1, "set": 2}[action]
    if sum(given is not None for given in (name, value)) != needed:
        raise click.UsageError(f"`memkit config {action}` takes {ARGUMENTS[action]}")
    if action == "list":
        _list(context)
    elif action == "path":
        context.report({"path": context.home.config_file}, context.home.config_file)
    else:
        section, _, rest = str(name).partition(".")
        if action == "get":
            _get(context, (section, rest))
        else:
            _set(context, (section, rest), str(value))


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
    width = max(map(len, rows))
    for name, row in rows.items():
        origin = "" if row["origin"] == "default" else f"  [{row['origin']}]"
        echo(f"{name:<{width}}  {_text(row['value']):<24}  {row['description']}{origin}")
    for line in loaded.refused:
        context.say(line)


def _get(context: Context, key: Key) -> None:
    from memkit.settings import load, validate

    validate.check_known(key)
    section, name = key
    value = getattr(getattr(load.load(context.home, context.project).settings, section), name)
    context.report({"key": ".".join(key), "value": value}, _text(value))


def _set(context: Context, key: Key, text: str) -> None:
    from memkit.ipc import client
    from memkit.settings import load

    file, name = context.home.config_file, ".".join(key)
    value = load.save(context.home, key, text)
    context.report(
        {"key": name, "value": value, "path": file}, f"{name} = {_text(value)} in {file}"
    )
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
