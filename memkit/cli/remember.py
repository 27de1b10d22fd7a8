"""`memkit remember`."""

from __future__ import annotations

import os
import sys
from datetime import datetime, timezone

import click

from memkit.cli.context import Context, command, plain
from memkit.errors import IndexBusyError, MemkitError
from memkit.hook.events import DISABLE_VARIABLE

INDEX_SECONDS = 1.0
"""How long the service may take to index the note before this command returns; usually it takes 0.3 s."""


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
    from memkit.ipc import unindexed
    from memkit.journal.journal import Journal
    from memkit.journal.note import make_note
    from memkit.privacy.redact import redact, without_private

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
    journal = Journal(project, shared=settings.memory.shared, home=context.home)
    unindexed.mark(context.home, project.root)
    is_new = journal.add_note(note)
    _have_indexed(context)
    path = journal.path(journal.day_for(note.day))
    if context.as_json:
        context.print_json({"id": note.id, "path": str(path), "new": is_new})
    else:
        click.echo(plain(f"Remembered as {note.id} in {path}"))


def _have_indexed(context: Context) -> None:
    """Have the note indexed. It is durable already, so this waits for nobody and fails for nothing."""
    from memkit.cli.index import index_here
    from memkit.ipc import launch
    from memkit.ipc.client import ServiceUnavailable
    from memkit.recall.ask import ask_service

    try:
        settings = context.settings()
        try:
            ask_service(
                context.project, context.home, settings, "index", {}, INDEX_SECONDS, context.say
            )
        except ServiceUnavailable as unavailable:
            if unavailable.reason == "late":  # the service does it later
                return
            if settings.service.enabled and launch.start_service(context.home):
                return  # it begins with what waits
            index_here(context, wait_seconds=0)
    except IndexBusyError:  # whoever has the lock, or the next search, finds the mark
        return
    except (MemkitError, OSError) as error:
        context.say(f"the note is kept, but not indexed yet: {error}")
