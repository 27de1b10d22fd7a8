"""The days of a memory as one Markdown file, as JSON lines, or as one self-contained HTML page.

The page has no scripts. Text from conversations stays text: markdown-it-py renders it with HTML off, and the
page's own policy forbids scripts and everything that is not in the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memkit import anchors
from memkit.hook.project import Project
from memkit.journal import Journal
from memkit.journal.day_file import DayFile

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class ExportedEntry(NamedTuple):
    """The text below one heading, without anchors, of the day `date` (ISO).

    `turn` is "" for a session's heading with its bullets. Text before the first heading has no `session`
    either.
    """

    date: str
    session: str
    branch: str
    turn: str
    heading: str
    text: str


class Days:
    """The days of a project in a period, both ends inclusive. Each access reads the file again."""

    def __init__(self, project: Project, since: str = "", until: str = "") -> None:
        """`since` and `until` are ISO dates, or "" for no bound."""
        self.name = Path(project.root).name
        self._journal = Journal(project)
        known = self._journal.days()
        self.dates = [day for day in known if since <= day and (not until or day[:10] <= until)]

    def day(self, date: str) -> DayFile:
        """Return one of `dates`. Raise `JournalError`."""
        return self._journal.day(date)

    def entries(self, date: str) -> list[ExportedEntry]:
        """Return the entries of one of `dates`, in order. Raise `JournalError`."""
        content = self.day(date)
        date = date[:10]
        sections = content.sections
        before = content.lines[: sections[0].start if sections else None]
        text = "\n".join(before).strip().removeprefix(f"# {date}").strip()
        entries = [ExportedEntry(date, "", "", "", "", anchors.strip(text))] if text else []
        session = branch = ""
        for section in sections:
            session = section.pairs.get("session", session)
            branch = section.pairs.get("branch", "" if "session" in section.pairs else branch)
            turn = section.pairs.get("turn", "")
            heading = anchors.strip(section.heading).lstrip("#").strip()
            text = anchors.strip("\n".join(content.lines[section.start + 1 : section.end])).strip()
            entries.append(ExportedEntry(date, session, branch, turn, heading, text))
        return entries


def as_markdown(days: Days, *, with_anchors: bool = False) -> Iterator[str]:
    """Yield the days, one after the other."""
    for number, date in enumerate(days.dates):
        text = readable(days.day(date).render().strip("\n") + "\n")
        yield ("\n" if number else "") + (text if with_anchors else anchors.strip(text))


def as_json_lines(days: Days) -> Iterator[str]:
    """Yield one JSON object per entry: `date`, `session`, `branch`, `turn`, `heading`, `text`."""
    for date in days.dates:
        for entry in days.entries(date):
            yield json.dumps(entry._asdict()) + "\n"


def readable(text: str) -> str:
    """Return `text` with a replacement character for each byte that was not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def as_page(days: Days) -> Iterator[str]:
    """Yield the page in pieces. Reads each day twice, because the table of days comes first."""
    from markdown_it import MarkdownIt

    # An image would be fetched from any server that the memory names, which would learn of the reader.
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    title = escape(f"The memory of {days.name}")
    style = resources.files("memkit.export").joinpath("page.css").read_text(encoding="utf-8")
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        '<table id="days">\n<thead><tr><th>Day</th><th>Turns</th><th>Sessions</th></tr></thead>\n<tbody>\n'
    )
    for date in days.dates:
        yield _row(date[:10], days.entries(date))
    yield "</tbody>\n</table>\n"
    for date in days.dates:
        yield from _day(date[:10], days.entries(date), markdown)
    yield "</body>\n</html>\n"


def _row(date: str, entries: list[ExportedEntry]) -> str:
    turns = sum(bool(entry.turn) for entry in entries)
    headings = [entry.heading for entry in entries if entry.session and not entry.turn]
    titles = "<br>".join(_text(heading) for heading in headings)
    return f'<tr><td><a href="#{date}">{date}</a></td><td>{turns}</td><td>{titles}</td></tr>\n'


def _day(date: str, entries: list[ExportedEntry], markdown: MarkdownIt) -> Iterator[str]:
    yield f'<section id="{date}">\n<h2><a href="#{date}">{date}</a></h2>\n'
    seen: set[str] = set()
    for entry in entries:
        yield _entry(entry, seen, markdown)
    yield '<p class="top"><a href="#days">All days</a></p>\n</section>\n'


def _entry(entry: ExportedEntry, seen: set[str], markdown: MarkdownIt) -> str:
    name = f"{entry.date}-{_NAME.sub('-', entry.turn or entry.session or 'notes')}"
    anchor = "" if name in seen else f' id="{name}"'  # a session can have several headings
    seen.add(name)
    level = "h4" if entry.turn else "h3"
    heading = ""
    if entry.heading:
        heading = f'<{level}><a href="#{name}">{_text(entry.heading)}</a></{level}>\n'
    kind = "turn" if entry.turn else "session"
    body = markdown.render(readable(entry.text))
    return f'<article class="{kind}"{anchor}>\n{heading}{body}</article>\n'


def _text(text: str) -> str:
    return escape(readable(text))
