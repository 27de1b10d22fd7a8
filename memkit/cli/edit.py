"""`memkit edit`."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from datetime import date
from pathlib import Path

import click

from memkit.cli.context import Context, command, plain
from memkit.errors import MemkitError, NotFoundError
from memkit.processes import find_program

USUAL_EDITORS = ("sensible-editor", "editor", "vi", "nano", "notepad")


@command("edit")
@click.argument("day", required=False, metavar="[DATE]")
def edit_command(context: Context, day: str | None) -> None:
    """Open a day of the memory in your editor ($VISUAL or $EDITOR), by default today's.

    What you change is kept by memkit and found from then on; what memkit writes into the day meanwhile
    is kept too.

    \b
      memkit edit yesterday
    """
    from memkit.cli.index import index_project
    from memkit.ipc import unindexed
    from memkit.journal.journal import Journal
    from memkit.recall.results import parse_day

    today = date.today()
    chosen = (parse_day(day, today) if day else today).isoformat()
    shared = context.settings().memory.shared
    journal = Journal(context.project, shared=shared, home=context.home)
    # A past day that git tracks is the person's to edit; memkit itself adds to the other file only.
    present = [day for day in (f"{chosen}.local", chosen) if journal.read(day)]
    chosen = present[0] if present else journal.day_for(chosen)
    before = journal.read(chosen)
    if not before and chosen[:10] != today.isoformat():
        raise NotFoundError(f"nothing is remembered of {chosen} in {context.project.root}")
    shown = before or f"# {chosen[:10]}\n".encode()
    edited = _edit(f"{chosen}.md", shown)
    is_changed = edited != shown
    if is_changed:
        unindexed.mark(context.home, context.project.root)
        journal.edit(chosen, before, edited)
        index_project(context)
    path = journal.path(chosen)
    if context.as_json:
        context.print_json({"path": str(path), "changed": is_changed})
    else:
        click.echo(plain(f"{path} is {'changed and indexed' if is_changed else 'as it was'}."))


def _edit(name: str, data: bytes) -> bytes:
    """What the person makes of `data`, in a copy that nobody else can read or writes to."""
    editor = _editor()
    with tempfile.TemporaryDirectory(prefix="memkit-") as directory:
        copy = Path(directory, name)
        copy.touch(0o600)
        copy.write_bytes(data)
        try:
            done = subprocess.run([*editor, str(copy)], check=False)
        except OSError as error:
            raise MemkitError(f"cannot start {editor[0]}: {error.strerror}; set $EDITOR") from error
        if done.returncode:
            raise MemkitError(
                f"{editor[0]} ended with status {done.returncode}, so the memory stays as it was"
            )
        return copy.read_bytes()


def _editor() -> list[str]:
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(chosen, posix=os.name != "nt")
    except ValueError as error:
        raise MemkitError(f"$VISUAL or $EDITOR cannot be read ({error}): {chosen}") from error
    if not words:
        words = [found for name in USUAL_EDITORS if (found := find_program(name))][:1]
    if not words:
        raise MemkitError("there is no editor; set $EDITOR to one")
    return words
