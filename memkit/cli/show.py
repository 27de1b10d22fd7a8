"""`memkit show`."""

from __future__ import annotations

import os
import sys
from shlex import quote
from typing import TYPE_CHECKING

import click

from memkit.cli.context import Context, command
from memkit.cli.output import styled
from memkit.cli.screen import page, width

if TYPE_CHECKING:
    from memkit.recall.names import Entry

MOST_COLUMNS = 100
"""The widest text; longer lines are hard to read."""


@command("show")
@click.argument("name")
def show_command(context: Context, name: str) -> None:
    """Show a day, a session, a turn, or anything else with an ID.

    NAME is a day (2026-11-20, today, yesterday), a week, month, or year (2026-W47, 2026-11, 2026), or an ID:
    of a session, turn, result, citation, note, or fact. The first characters of an ID are enough. A terminal
    shows rendered Markdown, in $PAGER if it is long; a pipe gets the Markdown.

    \b
      memkit show yesterday
      memkit show 8b52f4fb
    """
    entry = context.memory().show(name)
    if context.as_json:
        context.print_json(entry.as_dict())
        return
    from memkit.cli.markdown import render, with_ids

    if sys.stdout.isatty():
        color = not os.environ.get("NO_COLOR")
        text = render(entry.markdown, min(width(), MOST_COLUMNS), color=color)
    else:
        text = with_ids(entry.markdown).rstrip("\n")
    page("\n".join([text, "", *_origin(entry, context.project.root)]))


def _origin(entry: Entry, root: str) -> list[str]:
    if not entry.path:
        return ["The rest of its file and its transcript are on the colleague's machine."]
    place = os.path.relpath(entry.path, root)
    lines = [f"{place}:{entry.line}" if entry.line else place]  # a period has no line of its own
    if entry.session and entry.kind == "session":
        lines.append(f"original exchange: memkit transcript {quote(entry.session)}")
    elif entry.session and entry.turns:
        lines.append(
            "original exchange: memkit transcript "
            f"{quote(entry.session)} --turn {quote(entry.turns[0])}"
        )
    if entry.kind == "citation":
        lines.append(f"proof: memkit cite {quote(entry.id)}")
    return [styled(line, dim=True) for line in lines]
