"""`memkit sync`."""

from __future__ import annotations

import os

import click

from memkit.cli.config import store
from memkit.cli.context import Context, command
from memkit.cli.jobs import run_now
from memkit.cli.output import confirm, echo
from memkit.errors import MemkitError
from memkit.projects.trust import in_session
from memkit.text import plural


@command("sync")
@click.argument("action", type=click.Choice(["now", "folder", "git", "ssh", "off"]), default="now")
@click.argument("where", required=False, metavar="[PATH|URL|HOST]")
@click.option("--encrypt", is_flag=True, help="Encrypt all files with a key that only your machines have.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def sync_command(context: Context, action: str, where: str | None, encrypt: bool, yes: bool) -> None:
    """Keep the memories on your machines the same, through a place that you have.

    The place is a folder that another program syncs, a private git repository, or a host with git and ssh.
    With a place, the command says what goes there, and asks. Then the service syncs every hour; without an
    argument, the command does it now. `off` ends that and deletes nothing.

    \b
      memkit sync git git@example.com:me/memory.git
      memkit sync folder ~/Sync/memkit --encrypt
      memkit sync
    """
    context.stay_in_project(leaves=True)
    if (action in ("folder", "git", "ssh")) != (where is not None):
        raise click.UsageError("write `memkit sync folder PATH`, `… git URL`, or `… ssh HOST`")
    if where is not None:
        store(context, ("sync", "place"), _choose(context, action, where, encrypt, yes))
    elif action == "off":
        store(context, ("sync", "place"), "")
        context.report({"place": None}, "Nothing is synced from now on. What is in the place stays there.")
        return
    found = run_now(context, "sync")
    context.report({"result": found["result"]}, found["result"])


def _choose(context: Context, kind: str, where: str, encrypt: bool, yes: bool) -> str:
    """Return the address, after the user agreed to what goes there."""
    from memkit.capture.project_list import projects_with_memory
    from memkit.maintenance.places import key_file, make_key, make_repository, open_place
    from memkit.maintenance.sync import machine_name, projects_by_key

    if in_session():
        raise MemkitError("run `memkit sync` with a place in a terminal of your own, outside of Claude Code")
    if kind == "folder":
        where = os.path.abspath(os.path.expanduser(where))
    address = f"{kind}{'+age' if encrypt else ''} {where}"
    open_place(address, context.home)
    if not context.as_json:
        names = sorted(projects_by_key(projects_with_memory(context.home), context.home))
        seen = "encrypted with your key" if encrypt else "readable for all who can read the place"
        echo(f"From now on, this machine, {machine_name(context.home)}, sends to {where}, {seen},")
        echo(f"days, notes, archive, and IDs of what was forgotten, of {plural(len(names), 'project')}:")
        echo(f"  {', '.join(names)}")
        echo("It takes the same from your other machines, and erases here what you forgot there.")
    confirm("Sync?", yes)
    if encrypt:
        make_key(context.home)
        context.say(f"the key is in {key_file(context.home)}; copy that file to your other machines first")
    if kind == "ssh":
        make_repository(where)
    return address
