"""Show what was understood of a question, and the overview that answers it."""

from __future__ import annotations

import click

from memkit.cli.output import echo, plain, styled
from memkit.cli.screen import fit, pad, width
from memkit.cli.sessions import session_rows
from memkit.recall.overview import Line, Overview
from memkit.recall.results import Answer

_ID_CHARACTERS = 8
_TIME_COLUMNS = len("2026-11-20 14:02")


def show_overview(answer: Answer, root: str) -> None:
    """Print the period of a question, and sessions and lines of the overview if there is one.

    If a session is of another project than the one at `root`, each one names its project.
    """
    overview = answer.overview
    if overview is None:
        if answer.period is not None and answer.period.text:
            about = f": {answer.words.strip()}" if answer.words.strip() else ""
            echo(fit(plain(f"{answer.period}{about}"), width()), dim=True)
        return
    heading = overview.heading(str(answer.period) if answer.period else "")
    if answer.is_outside:
        echo(f"Nothing on that for {answer.days}.")
    echo(click.wrap_text(plain(heading), width()))
    if overview.kind == "open":
        _show_lines(overview)
        _show_sessions(overview, root)
    else:
        _show_sessions(overview, root)
        _show_lines(overview)
    if answer.results:
        echo()
        echo("From other days:")


def _show_sessions(overview: Overview, root: str) -> None:
    if overview.sessions:
        echo()
        is_many = any(one.root != root for one in overview.sessions)
        for line in session_rows(overview.sessions, is_many):
            click.echo(line)


def _show_lines(overview: Overview) -> None:
    if overview.lines:
        echo()
    for one in overview.lines:
        show_line(one)


def show_line(one: Line) -> None:
    """Print the time, the text, and the ID of a line on one line of the screen."""
    time, name = pad(plain(one.time), _TIME_COLUMNS), plain((one.id or one.session)[:_ID_CHARACTERS])
    room = width() - _TIME_COLUMNS - _ID_CHARACTERS - 4
    text = pad(plain(one.text), room)
    click.echo(f"{styled(time, dim=True)}  {text}  {styled(name, dim=True)}".rstrip())
