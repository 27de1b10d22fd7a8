"""Show what was understood of a question, and the overview that answers it."""

from __future__ import annotations

import os

import click

from memkit.cli.output import NAME_COLUMNS, column, echo, labels_below, lines_between, plain, styled
from memkit.cli.screen import ID_CHARACTERS, cells, fit, pad, to_edge, width, wrapped
from memkit.cli.sessions import session_rows
from memkit.search.overview import Line, Overview, PeriodNode
from memkit.search.results import Answer

_TIME_COLUMNS = len("2026-11-20 14:02")
_LABEL_COLUMNS = len("decided  ")
_MOST_LINES = 3
_FEW_SESSIONS = 10


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
    if overview.hint:
        echo(click.wrap_text(overview.hint, width()), dim=True)
    is_many = bool(overview.roots - {root})
    for node in overview.nodes:
        _show_node(node, is_many)
    _show_topics(overview, is_many)
    if overview.kind == "open":
        _show_lines(overview, is_many)
        _show_sessions(overview, is_many)
    else:
        _show_sessions(overview, is_many)
        _show_lines(overview, is_many)
    if answer.results:
        echo()
        echo("From other days:")


def _show_node(node: PeriodNode, is_many: bool) -> None:
    columns = width()
    echo()
    name = f"{node.id} {os.path.basename(node.root) if is_many else ''}".strip()
    command = f"memkit timeline {node.id}"
    head = plain(f"{name} {node.title}").strip()
    room = columns - cells(command) - 2
    click.echo(f"{styled(to_edge(head, room), bold=True)}  {styled(command, dim=True)}")
    parts = [("words", ", ".join(node.words), "")] if node.words else []
    label = ""
    for kind, line in node.parts():
        parts.append((kind if kind != label else "", line.text, line.id))
        label = kind
    for label, text, identifier in parts:
        for shown in labeled_lines(label, _LABEL_COLUMNS, text, identifier, _MOST_LINES):
            click.echo(shown)
    if node.omitted:
        click.echo(styled(f"{' ' * _LABEL_COLUMNS}and {node.omitted} more", dim=True))


def labeled_lines(label: str, columns: int, text: str, name: str, most: int) -> list[str]:
    """Return a text on up to `most` lines, behind a label, and with an ID at the end of the first one."""
    shown = plain(name[:ID_CHARACTERS])
    room = width() - columns - (cells(shown) + 2 if shown else 0)
    first, *others = wrapped(plain(text), room, most)
    start = styled(pad(label, columns), dim=True)
    head = f"{start}{to_edge(first, room)}  {styled(shown, dim=True)}" if shown else f"{start}{first}"
    return [head, *(f"{' ' * columns}{line}" for line in others)]


def _show_topics(overview: Overview, is_many: bool) -> None:
    if not overview.topics:
        return
    echo()
    topics = overview.topics
    names = [os.path.basename(one.root) for one in topics]
    left = [column("project", names, NAME_COLUMNS)] if is_many else []
    right = [
        ["entries", *(f"{one.entries:>7}" for one in topics)],
        column("first", [one.first for one in topics], 10),
        column("last", [one.last for one in topics], 10),
        column("id", [one.id[:ID_CHARACTERS] for one in topics], ID_CHARACTERS),
    ]
    for line in lines_between(left, right, width(), labels_below("topic", [one.label for one in topics])):
        click.echo(line)


def _show_sessions(overview: Overview, is_many: bool) -> None:
    if overview.sessions:
        echo()
        for line in session_rows(overview.sessions, is_many, _FEW_SESSIONS):
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
    text = to_edge(plain(one.text), room)
    click.echo(f"{styled(time, dim=True)}  {text}  {styled(name, dim=True)}".rstrip())
