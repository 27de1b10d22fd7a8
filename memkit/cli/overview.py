"""Show what was understood of a question, and the overview that answers it."""

from __future__ import annotations

import os

import click

from memkit.cli.output import echo, plain, styled
from memkit.cli.screen import ID_CHARACTERS, cells, fit, pad, width
from memkit.cli.sessions import NAME_COLUMNS, session_rows
from memkit.recall.overview import Line, Overview
from memkit.recall.results import Answer

_TIME_COLUMNS = len("2026-11-20 14:02")


def show_overview(answer: Answer, root: str) -> None:
    """Print the period of a question, and sessions and lines of the overview if there is one.

    If one of them is of another project than the one at `root`, each one names its project.
    """
    overview = answer.overview
    if overview is None:
        if answer.period is not None and answer.period.text:
            about = f": {answer.words.strip()}" if answer.words.strip() else ""
            echo(fit(plain(f"{answer.period}{about}"), width()), dim=True)
        return
    heading = overview.heading(str(answer.period) if answer.period else "")
    if answer.is_outside:
        echo(f"Nothing matches in {answer.days}.")
    echo(click.wrap_text(plain(heading), width()))
    roots = {one.root for one in overview.sessions} | {one.root for one in overview.lines}
    is_many = bool(roots - {root})
    if overview.kind == "open":
        _show_lines(overview, is_many)
        _show_sessions(overview, is_many)
    else:
        _show_sessions(overview, is_many)
        _show_lines(overview, is_many)
    if answer.results:
        echo()
        echo("From other days:")


def _show_sessions(overview: Overview, is_many: bool) -> None:
    if overview.sessions:
        echo()
        for line in session_rows(overview.sessions, is_many):
            click.echo(line)


def _show_lines(overview: Overview, is_many: bool) -> None:
    if overview.lines:
        echo()
    names = [plain(os.path.basename(one.root)) if is_many else "" for one in overview.lines]
    columns = min(NAME_COLUMNS, max(map(cells, names), default=0))
    for one, name in zip(overview.lines, names, strict=True):
        show_line(one, pad(name, columns) if is_many else "")


def show_line(one: Line, project: str = "") -> None:
    """Print the time, the project if given, the text, and the ID of a line on one line of the screen."""
    time, name = pad(plain(one.time), _TIME_COLUMNS), plain((one.id or one.session)[:ID_CHARACTERS])
    time += f"  {project}" if project else ""
    room = width() - cells(time) - ID_CHARACTERS - 4
    text = pad(plain(one.text), room)
    click.echo(f"{styled(time, dim=True)}  {text}  {styled(name, dim=True)}".rstrip())
