"""`memkit sync`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command
from memkit.cli.output import confirm, echo, short_path
from memkit.errors import MemkitError
from memkit.projects.trust import in_session
from memkit.text import plural

if TYPE_CHECKING:
    from memkit.maintenance.sync import SyncReport

_KEY = ("sync", "place")
_SHOWN_PROJECTS = 5


@command("sync")
@click.argument("action", type=click.Choice(["now", "folder", "git", "ssh", "off"]), default="now")
@click.argument("where", required=False, metavar="[PATH|URL|HOST]")
@click.option("--encrypt", is_flag=True, help="Encrypt all files with a key that only your machines have.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def sync_command(context: Context, action: str, where: str | None, encrypt: bool, yes: bool) -> None:
    """Keep the memories on your machines the same, through a place that you have.

    The place is a folder that another program syncs or shares, a private git repository, or a host that ssh
    reaches without a password. The first time, the command says what goes there, and asks. Then the service
    syncs every hour; without an argument, this command does it now. `off` ends that and deletes nothing.

    Each machine sends its own days, notes, and archive, redacted again, and takes those of the others. What
    you forget on one is erased on each at its next sync.

    \b
      memkit sync git git@example.com:me/memory.git
      memkit sync folder ~/Sync/memkit --encrypt
      memkit sync
    """
    from memkit.maintenance.sync import sync

    context.stay_in_project(leaves=True)
    if (action in ("folder", "git", "ssh")) != (where is not None):
        raise click.UsageError("write `memkit sync folder PATH`, `… git URL`, or `… ssh HOST`")
    if where is not None:
        _choose(context, action, where, encrypt, yes)
    elif action == "off":
        _store(context, "")
        context.report({"place": None}, "Nothing is synced from now on. What is in the place stays there.")
        return
    with context.progress("syncing", is_counted=False):
        report = sync(context.home, context.settings_of, context.say, [context.project])
    context.memory().index_soon()
    _print(context, report)


def _choose(context: Context, kind: str, where: str, encrypt: bool, yes: bool) -> None:
    from memkit.capture.project_list import projects_with_memory
    from memkit.maintenance.places import open_place
    from memkit.maintenance.sync import has_key, machine_name, make_key, projects_by_key

    if in_session():
        raise MemkitError("run `memkit sync` with a place in a terminal of your own, outside of Claude Code")
    if kind == "folder":
        where = os.path.abspath(os.path.expanduser(where))
    address = f"{kind}{'+age' if encrypt else ''} {where}"
    open_place(address, context.home)
    known = projects_with_memory(context.home, [context.project])
    projects = sorted(projects_by_key(known, context.home))
    if not context.as_json:
        rest = len(projects) - _SHOWN_PROJECTS
        names = ", ".join([*projects[:_SHOWN_PROJECTS], *([f"{rest} more"] if rest > 0 else [])])
        seen = "encrypted with your key" if encrypt else "readable for everybody who can read the place"
        echo(f"This machine, {machine_name(context.home)}, sends to {where}, now and every hour, {seen}:")
        echo(f"  the days, notes, and archive of {plural(len(projects), 'project')} ({names}),")
        echo("  and IDs of what you had forgotten.")
        echo("It takes the same from your other machines, and erases what you forgot there.")
    confirm("Sync?", yes)
    if encrypt and not has_key(context.home):
        ask = "The age key of your other machine, in sync/key.txt of its memory home (empty: make one)"
        given = ""
        if sys.stdin.isatty():
            given = click.prompt(ask, "", hide_input=True, show_default=False, err=True)
        path = make_key(context.home, given)
        context.say(f"keep a copy of {short_path(path)}: without it, nobody can read the place")
    _store(context, address)


def _store(context: Context, address: str) -> None:
    from memkit.cli.config import store

    (_, origin), file = store(context, _KEY, address), context.home.config_file
    if origin != file:
        raise MemkitError(f"{origin} sets sync.place, too, and overrides {file}; remove it there")


def _print(context: Context, report: SyncReport) -> None:
    value = {"sent": report.sent, "taken": report.taken, "machines": report.machines,
             "elsewhere": report.elsewhere, "problems": report.problems}  # fmt: skip
    others = plural(len(report.machines), "other machine")
    context.report(value, f"{plural(report.sent, 'file')} sent, {report.taken} taken; {others}.")
    if report.elsewhere and not context.as_json:
        names = ", ".join(report.elsewhere[:_SHOWN_PROJECTS])
        count = plural(len(report.elsewhere), "project")
        context.say(f"{count} of other machines, taken once memkit knows them here: {names}")
    context.check(report.problems, "not everything was synced")
