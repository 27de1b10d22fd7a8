"""`memkit share` and `memkit unshare`."""

from __future__ import annotations

import click

from memkit.cli.context import Context, command
from memkit.cli.output import echo
from memkit.cli.screen import width
from memkit.text import plural


@command("share")
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@click.option("--dry-run", is_flag=True, help="Only show what would be written.")
def share_command(context: Context, ids: tuple[str, ...], dry_run: bool) -> None:
    """Share entries with everybody who has the repository.

    Each ID names a session, a turn, a bullet, a note, a fact, or a search result. The entries go to the end
    of `.memkit/team/YOU/YYYY-MM-DD.md`. Commit that file like code; memkit never commits or pushes. An entry
    with a secret, an e-mail address, a path in somebody's home, a private host, or a long random string is
    refused.

    Colleagues find the entries when they have pulled them and, once for each clone, run
    `memkit projects trust`. `memkit unshare ID` takes back what you shared.

    \b
      memkit share 82c57f55 --dry-run
      memkit share 8bb06550 8b52f4fb
    """
    report = context.memory().share(*ids, dry_run=dry_run)
    value = {"shared": not dry_run, **report.as_dict()}
    known = f"{plural(report.known, 'entry', 'entries')} shared already"
    if context.as_json:
        context.print_json(value)
    elif not report.entries:
        echo(f"Nothing new: {known}.")
    elif dry_run:
        echo(f"To be added to {report.path}:\n", width())
        echo(report.text.strip("\n"), width())
    else:
        count = plural(len(report.entries), "entry", "entries")
        rest = f"; {known}" if report.known else ""
        echo(f"{count} added to {report.path}{rest}. Commit the file to share it.", width())
    if report.is_ignored:
        context.say(f"git ignores {report.path}; take .memkit out of the repository's ignore files")
    if not dry_run:
        context.memory().index_soon()


@command("unshare")
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
def unshare_command(context: Context, ids: tuple[str, ...], dry_run: bool) -> None:
    """Take back what you shared: remove it from the working tree.

    Each ID is one that `memkit share` takes, or one that a search shows for the shared entry. Only your own
    entries are removed. Git's history keeps what was committed, and so does every clone that has it.

    \b
      memkit unshare 82c57f55
    """
    memory = context.memory()
    report = memory.unshare(*ids, dry_run=dry_run)
    if not dry_run:
        memory.index_soon()
    if context.as_json:
        context.print_json({"removed": not dry_run, **report.as_dict()})
        return
    for entry in report.entries:
        echo(f"{entry.path}:{entry.start}  {entry.heading}", width())
    count = plural(len(report.entries), "entry", "entries")
    echo(f"{count} {'to be removed' if dry_run else 'removed from the working tree'}.")
    if report.committed:
        echo("Git's history keeps them: commit the removal, and change any secret that was in them.", width())
