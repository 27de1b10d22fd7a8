"""`memkit config` and `memkit completion`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from memkit.cli.context import Context, command
from memkit.cli.output import echo, json_line, short_path
from memkit.cli.screen import width
from memkit.errors import MemkitError
from memkit.ipc import client
from memkit.projects.trust import in_session
from memkit.settings import load, validate
from memkit.settings.load import Key

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

ACTIONS = {"list": (), "get": ("SECTION.NAME",), "set": ("SECTION.NAME", "VALUE"), "path": ()}
"""The actions with their arguments."""

IMPORTANT = (
    ("memory", "shared"), ("memory", "keep_days"), ("capture", "redact"), ("capture", "exclude"),
    ("archive", "enabled"), ("embedding", "provider"), ("search", "k"), ("recall", "inject"),
    ("recall", "other_projects"), ("service", "enabled"), ("summarize", "provider"),
    ("summarize", "daily_tokens"),
)  # fmt: skip
"""The settings that most people ask for first. `list` shows them, and what was changed."""

PLACES = {
    ("embedding", "base_url"), ("index", "uri"), ("summarize", "base_url"), ("sync", "place"),
    ("recall", "other_projects"),
}  # fmt: skip
"""The settings that say where text may go. In a session, the words of a repository may ask for a change."""

NOTIFY_SECONDS = 1.0
"""The time limit for notifying the service of a change."""

COMPLETION_VARIABLE = "_MEMKIT_COMPLETE"
"""The variable with which a shell asks click for completions; click derives it from the program's name."""


def _complete_setting(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [
        CompletionItem(".".join(key), help=validate.describe(key))
        for key in validate.every_key()
        if ".".join(key).startswith(incomplete)
    ]


@command("config")
@click.argument("action", type=click.Choice(list(ACTIONS)), default="list")
@click.argument("name", required=False, metavar="[SECTION.NAME]", shell_complete=_complete_setting)
@click.argument("value", required=False)
@click.option("--all", "everything", is_flag=True, help="List every setting.")
def config_command(
    context: Context, action: str, name: str | None, value: str | None, everything: bool
) -> None:
    """Show and change settings.

    `list` shows what you changed, and the settings that matter most; --all adds the rest.
    `set` asks for a key without showing it, or reads it from stdin if that is not a terminal. Keys are never
    printed.

    \b
      memkit config list --all
      memkit config get search.k
      memkit config set search.k 10
      memkit config set keys.openai
      memkit config path
    """
    section, _, rest = (name or "").partition(".")
    if action == "set" and validate.is_secret((section, rest)):
        validate.check_known((section, rest))
        value = _read_key(str(name), value)
    given = [one for one in (name, value) if one is not None]
    if len(given) != len(ACTIONS[action]):
        raise click.UsageError(f"`memkit config {action}` takes {' and '.join(ACTIONS[action]) or 'nothing'}")
    if everything and action != "list":
        raise click.UsageError("--all is for `memkit config list`")
    if action == "list":
        _list(context, everything)
    elif action == "path":
        context.report({"path": context.home.config_file}, context.home.config_file)
    elif action == "set":
        _set(context, (section, rest), str(value))
    else:
        validate.check_known((section, rest))
        found = getattr(getattr(load.load(context.home, context.project).settings, section), rest)
        found = validate.masked((section, rest), found)
        context.report({"key": name, "value": found}, _text(found))


def _read_key(name: str, given: str | None) -> str:
    """Return a secret from a prompt or stdin. The command line may only give "", which removes it."""
    if given:
        raise click.UsageError(
            f"leave the key out: the shell's history keeps it; `memkit config set {name}` asks for it"
        )
    if given is None:
        ask = f"{name} (what you type is not shown)"
        if sys.stdin.isatty():
            given = click.prompt(ask, "", hide_input=True, show_default=False, err=True)
        else:
            given = sys.stdin.read()
        given = given.strip()
        if not given:
            raise MemkitError(f'no key was given; `memkit config set {name} ""` removes the key')
    return given


def _list(context: Context, everything: bool) -> None:
    loaded = load.load(context.home, context.project)
    rows = {
        f"{section}.{name}": {
            "value": validate.masked((section, name), getattr(getattr(loaded.settings, section), name)),
            "origin": loaded.origins.get((section, name), "default"),
            "description": validate.describe((section, name)),
        }
        for section, name in validate.every_key()
    }
    if context.as_json:
        context.print_json({"settings": rows, "refused": loaded.refused})
        return
    changed = {name: row for name, row in rows.items() if row["origin"] != "default"}
    shown = {name: rows[name] for name in map(".".join, IMPORTANT) if name not in changed}
    if everything:
        _show(rows)
    else:
        if changed:
            echo("Changed", bold=True)
            _show(changed)
            echo()
            echo("Most used", bold=True)
        _show(shown)
        rest = len(rows) - len(changed) - len(shown)
        echo()
        echo(f"{rest} more settings have their default; `memkit config list --all` shows them.")
    for line in loaded.refused:
        context.say(line)


def _show(rows: Mapping[str, Mapping[str, Any]]) -> None:
    for name, row in rows.items():
        origin = "" if row["origin"] == "default" else f"  [{short_path(row['origin'])}]"
        echo(f"{name} = {_text(row['value'])}{origin}")
        for line in wrap(row["description"], width() - 4, break_on_hyphens=False, break_long_words=False):
            echo(f"    {line}", dim=True)


def _set(context: Context, key: Key, text: str) -> None:
    file, name = context.home.config_file, ".".join(key)
    if key in PLACES and in_session():
        raise MemkitError(f"a session may not change {name}; set it in a terminal of your own")
    stored, origin = store(context, key, text)
    value = validate.masked(key, stored)
    context.report({"key": name, "value": value, "path": file}, f"{name} = {_text(value)} in {file}")
    if origin != file:
        context.say(f"{origin} is also set and overrides it")


def store(context: Context, key: Key, text: str) -> tuple[Any, str]:
    """Save a setting, and tell the service. Return its value there, and the origin of the one that counts."""
    value = load.save(context.home, key, text)
    load.publish_hook_settings(context.home)
    try:
        client.notify(context.home, "reload", {}, NOTIFY_SECONDS)
    except client.ServiceUnavailable:  # the next one reads the new settings
        pass
    return value, load.load(context.home).origins[key]


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
    context.report({"shell": shell, "script": script}, script)
