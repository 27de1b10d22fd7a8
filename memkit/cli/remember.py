"""`memkit remember`."""

from __future__ import annotations

import os
import sys
from datetime import datetime, timezone

import click

from memkit.cli.context import Context, command
from memkit.errors import IndexBusyError, MemkitError
from memkit.hook.events import DISABLE_VARIABLE

INDEX_SECONDS = 1.0
"""The longest wait for the service to index the note. It usually takes 0.3 s."""


@command("remember")
@click.argument("text")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A word to find it by; repeatable.")
@click.option("--user", is_flag=True, help="Add it to your own memory, which every project searches.")
def remember_command(context: Context, text: str, tags: tuple[str, ...], user: bool) -> None:
    """Add a note to today's memory and index it.

    With `-` as TEXT, the note is read from standard input. Secrets are redacted.

    \b
      memkit remember "The staging gateway moves to 7444 on Monday" --tag gateway
      memkit remember --user "I prefer tabs"
    """
    from memkit.ipc import unindexed
    from memkit.journal.digest import make_note
    from memkit.privacy.redact import redact, without_private

    if os.environ.get(DISABLE_VARIABLE):
        raise MemkitError(f"{DISABLE_VARIABLE} is set, so nothing is remembered")
    if user:
        context.turn_to_user_memory()
    project = context.project
    if project.is_off:
        raise MemkitError(f"memkit is off for {project.root}; the user can turn it on with `memkit on`")
    if text == "-":
        text = sys.stdin.read()
    patterns = context.settings().capture.compiled_patterns()
    now = datetime.now(timezone.utc)
    note = make_note(without_private(text), tags, now, lambda part: redact(part, patterns))
    journal = context.journal()
    unindexed.mark(context.home, project.root)
    is_new = journal.add_note(note)
    _index(context)
    path = str(journal.path(journal.day_for(note.day)))
    context.report(
        {"id": note.id, "path": path, "new": is_new}, f"Remembered as {note.id} in {path}"
    )


def _index(context: Context) -> None:
    """Index the note if that takes no waiting. The note is durable, so nothing here is an error."""
    from memkit.cli.index import index_here
    from memkit.ipc import launch
    from memkit.ipc.client import ServiceUnavailable

    try:
        try:
            context.ask_service("index", {}, INDEX_SECONDS)
        except ServiceUnavailable as unavailable:
            if unavailable.reason == "late":  # the service finishes later
                return
            if context.settings().service.enabled and launch.start_service(context.home):
                return  # a new service starts with what is not indexed
            index_here(context, wait_seconds=0)
    except IndexBusyError:  # the process that holds the lock, or the next search, does it
        return
    except (MemkitError, OSError) as error:
        context.say(f"the note is saved, but not indexed yet: {error}")
