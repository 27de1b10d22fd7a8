"""`memkit remember`."""

from __future__ import annotations

import os
import sys
from datetime import datetime, timezone

import click

from memkit.capture.hook import DISABLE_VARIABLE
from memkit.cli.context import Context, command
from memkit.errors import MemkitError


@command("remember")
@click.argument("text")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A word to find it by; may be given again.")
@click.option("--user", is_flag=True, help="Into your own memory, which every project's searches find.")
def remember_command(context: Context, text: str, tags: tuple[str, ...], user: bool) -> None:
    """Write a note into today's memory, and have it found from now on.

    TEXT may be `-`: then it is read from standard input. Secrets are redacted, as everywhere.

    \b
      memkit remember "The staging gateway moves to 7444 on Monday" --tag gateway
      memkit remember --user "I prefer tabs"
    """
    from memkit import pending
    from memkit.capture.journal import Journal
    from memkit.capture.note import make_note
    from memkit.capture.redact import redact, without_private
    from memkit.cli.index import index_project

    if os.environ.get(DISABLE_VARIABLE):
        raise MemkitError(f"{DISABLE_VARIABLE} is set, so nothing is remembered; unset it first")
    if user:
        context.turn_to_user_memory()
    project, settings = context.project, context.settings()
    if project.is_off:
        raise MemkitError(f"memkit is off for {project.root}; `memkit on` has it remember again")
    if text == "-":
        text = sys.stdin.read()
    patterns = settings.capture.compiled_patterns()
    now = datetime.now(timezone.utc)
    note = make_note(without_private(text), tags, now, lambda said: redact(said, patterns))
    journal = Journal(project, shared=settings.memory.shared)
    pending.mark(context.home, project.root)
    is_new = journal.add_note(note)
    index_project(context)
    path = journal.path(note.day)
    if context.as_json:
        context.print_json({"id": note.id, "path": str(path), "new": is_new})
    else:
        click.echo(f"Remembered as {note.id} in {path}")
