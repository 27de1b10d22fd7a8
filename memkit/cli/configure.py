"""`memkit config`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command, plain
from memkit.errors import ConfigError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

ACTIONS = ("list", "get", "set", "path")

NOTIFY_SECONDS = 1.0
"""How long telling the service may take."""


def _complete_key(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The settings whose names begin so, for the shell."""
    from click.shell_completion import CompletionItem

    from memkit.settings import load

    named = {f"{section}.{name}": (section, name) for section, name in load.every_key()}
    return [
        CompletionItem(shown, help=load.describe(key))
        for shown, key in named.items()
        if shown.startswith(incomplete)
    ]


@command("config")
@click.argument("action", type=click.Choice(ACTIONS), default="list")
@click.argument("key", required=False, metavar="[SECTION.FIELD]", shell_complete=_complete_key)
@click.argument("value", required=False)
def config_command(context: Context, action: str, key: str | None, value: str | None) -> None:
    """Show and change settings.

    \b
      memkit config list
      memkit config get search.k
      memkit config set search.k 10
      memkit config path
    """
    needed = {"list": 0, "path": 0, "get": 1, "set": 2}[action]
    if sum(given is not None for given in (key, value)) != needed:
        words = ("nothing", "SECTION.FIELD", "SECTION.FIELD and a value")[needed]
        raise click.UsageError(f"`memkit config {action}` takes {words}")
    {"list": _list, "path": _path, "get": _get, "set": _set}[action](
        context, key or "", value or ""
    )


def _path(context: Context, key: str, value: str) -> None:
    if context.as_json:
        context.print_json({"path": context.home.config_file})
    else:
        click.echo(plain(context.home.config_file))


def _list(context: Context, key: str, value: str) -> None:
    from memkit.settings import load

    loaded = load.load(context.home, context.project)
    rows = {
        f"{section}.{name}": {
            "value": getattr(getattr(loaded.settings, section), name),
            "origin": loaded.origins.get((section, name), "default"),
            "description": load.describe((section, name)),
        }
        for section, name in load.every_key()
    }
    if context.as_json:
        context.print_json({"settings": rows, "refused": loaded.refused})
        return
    width = max(map(len, rows))
    for shown, row in rows.items():
        click.echo(f"{shown:<{width}}  {_text(row['value']):<24}  {row['description']}", nl=False)
        click.echo("" if row["origin"] == "default" else f"  [{row['origin']}]")
    for line in loaded.refused:
        context.say(line)


def _get(context: Context, key: str, value: str) -> None:
    from memkit.settings import load

    section, name = _known(key)
    found = getattr(getattr(load.load(context.home, context.project).settings, section), name)
    if context.as_json:
        context.print_json({"key": key, "value": found})
    else:
        click.echo(_text(found))


def _set(context: Context, key: str, value: str) -> None:
    from memkit.ipc import client
    from memkit.settings import load

    known = _known(key)
    new = load.save(context.home, known, value)
    if context.as_json:
        context.print_json({"key": key, "value": new, "path": context.home.config_file})
    else:
        click.echo(plain(f"{key} = {_text(new)} in {context.home.config_file}"))
    loaded = load.load(context.home)
    load.publish_hook_settings(context.home)
    try:
        client.notify(context.home, "reload", {}, NOTIFY_SECONDS)
    except client.ServiceUnavailable:  # none runs: the next one reads the new settings
        pass
    origin = loaded.origins[known]
    if not origin.startswith(context.home.config_file):
        context.say(f"{origin} is set too and overrides it")


def _known(key: str) -> tuple[str, str]:
    from memkit.settings import load

    section, _, name = key.partition(".")
    if (section, name) not in set(load.every_key()):
        raise ConfigError(f"unknown setting {key}; `memkit config list` shows those there are")
    return section, name


def _text(value: object) -> str:
    from memkit.cli.output import json_line

    return plain(value) if isinstance(value, str) and value else json_line(value)
