"""`memkit edit`."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from datetime import date
from pathlib import Path

import click

from memkit.cli.context import Context, command, iso_day_named
from memkit.errors import MemkitError, NotFoundError
from memkit.processes import find_program

DEFAULT_EDITORS = ("sensible-editor", "editor", "vi", "nano", "notepad")


@command("edit")
@click.argument("day", required=False, metavar="[DATE]")
def edit_command(context: Context, day: str | None) -> None:
    """Open a day of the memory (default: today) in your editor, which is $VISUAL or $EDITOR.

    memkit keeps your changes and finds them from then on. It also keeps what it adds to the day while you
    edit.

    \b
      memkit edit yesterday
    """
    from memkit.cli.index import index_project
    from memkit.ipc import unindexed

    today = date.today().isoformat()
    chosen = iso_day_named(day) or today
    journal = context.journal()
    # memkit adds to the .local file of a day whose own file is in git, but users edit that one, too.
    present = [name for name in (f"{chosen}.local", chosen) if journal.text(f"{name}.md")]
    name = present[0] if present else journal.day_for(chosen)
    before = journal.data(f"{name}.md")
    if not before and chosen != today:
        raise NotFoundError(f"{context.project.root} has no memory of {chosen}")
    shown = before or f"# {chosen}\n".encode()
    edited = _edit(f"{name}.md", shown)
    is_changed = edited != shown
    if is_changed:
        unindexed.mark(context.home, context.project.root)
        journal.edit(name, before, edited)
        index_project(context)
    path = str(journal.path(name))
    state = "changed and indexed" if is_changed else "unchanged"
    context.report({"path": path, "changed": is_changed}, f"{path} is {state}.")


def _edit(name: str, data: bytes) -> bytes:
    """Have the user edit a private copy of `data`; return the result."""
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
                f"{editor[0]} exited with status {done.returncode}, so the memory is unchanged"
            )
        return copy.read_bytes()


def _editor() -> list[str]:
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(chosen, posix=os.name != "nt")
    except ValueError as error:
        raise MemkitError(f"$VISUAL or $EDITOR is not a valid command ({error}): {chosen}") from error
    if not words:
        words = [found for name in DEFAULT_EDITORS if (found := find_program(name))][:1]
    if not words:
        raise MemkitError("no editor was found; set $EDITOR")
    return words
