"""Show the results of a search: by session, each in two lines, or three if there are few, or whole."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from memkit.cli.output import echo, plain, styled
from memkit.cli.screen import ID_CHARACTERS, MOST_COLUMNS, cells, fit, link, pad, width
from memkit.index.chunk import LEADING_HEADINGS
from memkit.recall.results import Answer, Excerpt, Result
from memkit.text import shorten

SHOWN_CHARACTERS = 600
FEW = 5
"""The text below a hit has two lines if there are no more hits than this."""

_BULLETS = ("summary", "unverified", "fact")

_INDENT = " " * 9  # a hit's title begins here, after its time or line
_WORD = re.compile(r"\w+")


def show_short(answer: Answer, root: str) -> None:
    """Print the results in groups: the sessions and files in the order of their best hits.

    Inside a group the hits are in the order of the text, which is that of time. A project elsewhere than at
    `root` is named.
    """
    columns = min(width(), MOST_COLUMNS)
    best: dict[tuple[str, str, str], int] = {}
    for rank, result in enumerate(answer.results):
        best.setdefault(_group(result), rank)
    ordered = sorted(answer.results, key=lambda one: (best[_group(one)], one.chunk.start_line))
    lines = 2 if len(ordered) <= FEW else 1
    for number, (_, group) in enumerate(groupby(ordered, _group)):
        hits = [(one, one.excerpt or Excerpt(title=one.chunk.heading)) for one in group]
        if number:
            echo()
        _show_heading(hits, root, columns)
        for result, excerpt in hits:
            _show_hit(result, excerpt, columns, lines)


def _group(result: Result) -> tuple[str, str, str]:
    return f"{result.root}\0{result.author}", result.chunk.source, result.chunk.session


def _show_heading(hits: list[tuple[Result, Excerpt]], root: str, columns: int) -> None:
    result, excerpt = hits[0]
    chunk = result.chunk
    project = f"{result.project}: " if result.root != root else ""
    project += f"{result.author}: " if result.author else ""
    if not chunk.session:
        echo(fit(plain(project + chunk.source), columns), bold=True)
        return
    is_repeated = any(one.title == excerpt.session for _, one in hits)
    words = project + ("" if is_repeated else excerpt.session)
    session = f"session {plain(chunk.session)[:ID_CHARACTERS]}"
    day = plain(chunk.date)
    title = pad(plain(words), columns - len(day) - len(session) - 4)
    click.echo(f"{styled(f'{day}  {title}', bold=True)}  {styled(session, dim=True)}")


def _show_hit(result: Result, excerpt: Excerpt, columns: int, lines: int) -> None:
    chunk = result.chunk
    number = chunk.start_line
    if chunk.kind in _BULLETS and (headings := LEADING_HEADINGS.match(chunk.content)):
        # Counted from the end: the overview above the first session is not in its chunk.
        number = chunk.end_line - chunk.content[headings.end() :].rstrip("\n").count("\n")
    label, title = (excerpt.time, excerpt.title) if chunk.session else (str(number), excerpt.heading)
    mark = " (unverified)" if chunk.kind == "unverified" else ""
    title = title.replace(mark.strip(), "") if mark else title
    room = columns - len(_INDENT) - 2 - ID_CHARACTERS - len(mark)
    below, arrow = plain(excerpt.match), ""
    if not below:
        below, arrow = plain(excerpt.outcome), "→ "
    first = fit(plain(title), room)
    if not below:
        arrow, (first, below) = "", _wrapped(plain(title), room)
    words = frozenset(excerpt.words)
    place = Path(result.root, chunk.source)
    shown = _marked(first, words)
    if place.is_absolute() and not result.author:
        shown = link(shown, place, number)
    fill = styled(mark, fg="magenta") + " " * (room - cells(first))
    identifier = styled(result.id[:ID_CHARACTERS], fg="cyan")
    click.echo(f"{styled(f'  {label:>5}  ', dim=True)}{shown}{fill}  {identifier}")
    if below and not result.mark:
        room = columns - len(_INDENT) - len(arrow)
        text = _around(below, words, room * lines)
        for line in _wrapped(text, room) if lines > 1 else (text,):
            if line:
                click.echo(f"{_INDENT}{styled(arrow, dim=True)}{_marked(fit(line, room), words)}")
            arrow = " " * len(arrow)
    for line in _remarks(result):
        echo(_INDENT + fit(plain(line), columns - len(_INDENT)), fg="magenta")


def _remarks(result: Result) -> list[str]:
    git = f"git: {result.git_line}" if result.git_line else ""
    return [line for line in (result.mark, result.team_line, git) if line]


def _wrapped(text: str, columns: int) -> tuple[str, str]:
    line = " ".join(text.split())
    first = fit(line, columns)
    end = line.rfind(" ", 0, len(first)) if first != line else -1
    return (line[:end], line[end + 1 :]) if end > 0 else (first, "")


def _around(text: str, words: frozenset[str], columns: int) -> str:
    line = " ".join(text.split())
    if cells(line) > columns:
        starts = (match.start() for match in _WORD.finditer(line) if match[0].lower() in words)
        start = next(starts, 0)
        if start > columns // 2:
            begin = line.find(" ", min(start - columns // 3, len(line) - columns)) + 1
            line = f"…{line[begin:]}" if begin else line
    return fit(line, columns)


def _marked(text: str, words: frozenset[str]) -> str:
    def mark(match: re.Match[str]) -> str:
        word = match[0]
        return styled(word, bold=True, fg="green") if word.lower() in words else word

    return _WORD.sub(mark, text)


def show_full(answer: Answer, root: str) -> None:
    """Print the results in the order of their ranks, each with its place, scores, and text."""
    for result in answer.results:
        chunk = result.chunk
        heading = chunk.breadcrumb or chunk.source
        if result.root != root:
            heading = f"{result.project}: {heading}"
        if result.author:
            heading = f"{result.author}: {heading}"
        click.echo(f"{styled(result.id, fg='cyan')}  {styled(heading, bold=True)}")
        place = f"{chunk.source}:{chunk.start_line}-{chunk.end_line}"
        echo(f"{place}  relevance {result.relevance:.2f}  score {result.score:.3f}", dim=True)
        for line in _remarks(result):
            echo(line, fg="magenta")
        if result.turn_entries:
            echo(f"the whole turn: memkit expand {' '.join(result.turn_entries)}", dim=True)
        for name, value in result.explanation.items():
            echo(f"  {name}: {_explained(value)}", dim=True)
        echo(f"{shorten(chunk.content.strip(), SHOWN_CHARACTERS)}\n")


def _explained(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_explained(inner)}" for name, inner in value.items())
    return f"{value:.3f}" if isinstance(value, float) else str(value)
