"""`memkit remember`, `memkit edit`, `memkit share`, and `memkit unshare`."""

from __future__ import annotations

import os
import sys
from datetime import date

import click

from memkit.cli.context import Context, command, iso_day_named
from memkit.cli.output import echo
from memkit.cli.screen import width
from memkit.errors import MemkitError, NotFoundError
from memkit.processes import find_program
from memkit.text import plural


@command("remember")
@click.argument("text")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A word to find the note by; repeatable.")
@click.option("--user", is_flag=True, help="Add it to your own memory, which every project searches.")
def remember_command(context: Context, text: str, tags: tuple[str, ...], user: bool) -> None:
    """Add a note to today's memory. Searches find it within seconds.

    With `-` as TEXT, the note is read from standard input. Secrets are redacted.

    \b
      memkit remember "The staging gateway moves to 7444 on Monday" --tag gateway
      memkit remember --user "I prefer tabs"
    """
    if user:
        context.turn_to_user_memory()
    memory = context.memory()
    note = memory.remember(sys.stdin.read() if text == "-" else text, *tags)
    try:
        memory.index_soon()
    except (MemkitError, OSError) as error:  # the note is durable
        context.say(f"the note is saved, but not indexed yet: {error}")
    path = str(memory.journal.path(memory.journal.day_for(note.day)))
    context.report({"id": note.id, "path": path}, f"Remembered as {note.id} in {path}")


@command("edit")
@click.argument("day", required=False, metavar="[DATE]")
def edit_command(context: Context, day: str | None) -> None:
    """Open a day of the memory (default: today) in your editor, which is $VISUAL or $EDITOR.

    memkit keeps your changes and finds them from then on. It also keeps what it adds to the day while you
    edit.

    \b
      memkit edit yesterday
    """
    from memkit.ipc import unindexed

    today = date.today().isoformat()
    chosen = iso_day_named(day) or today
    memory = context.memory()
    journal = memory.journal
    # memkit adds to the .local file of a day whose own file is in git, but users edit that one, too.
    present = {name for name in journal.days() if name[:10] == chosen and journal.text(f"{name}.md")}
    in_order = (journal.day_for(chosen), f"{chosen}.local", chosen, *sorted(present))
    name = next((one for one in in_order if one in present), in_order[0])
    before = journal.data(f"{name}.md")
    if not before and chosen != today:
        raise NotFoundError(f"{context.project.root} has no memory of {chosen}")
    shown = before or f"# {chosen}\n".encode()
    edited = _edit(shown)
    is_changed = edited != shown
    if is_changed:
        unindexed.mark(context.home, context.project.root)
        journal.edit(name, before, edited)
        memory.index()
    path = str(journal.path(name))
    state = "changed and indexed" if is_changed else "unchanged"
    context.report({"path": path, "changed": is_changed}, f"{path} is {state}.")


def _edit(data: bytes) -> bytes:
    editor = None
    if os.name == "nt" and not (os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        # Windows would look up a bare name in the working directory, a stranger's repository perhaps.
        editor = find_program("notepad")
    try:
        edited = click.edit(data, editor=editor, extension=".md", require_save=False)
    except (click.ClickException, ValueError) as error:  # the latter: a quote in $EDITOR that never ends
        raise MemkitError(
            f"the editor failed: {error}; the memory is unchanged; set $EDITOR to an editor that works"
        ) from error
    return data if edited is None else edited


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
