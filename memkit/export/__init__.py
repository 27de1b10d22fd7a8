"""The days of a memory as one Markdown file, as JSON lines, or as one self-contained HTML page.

Text from conversations stays text: markdown-it-py renders it with HTML off, and the page's own policy forbids
everything that is not in the page, and every script but the one of its search field.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Container, Iterator
from html import escape
from importlib import resources
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from memkit import anchors
from memkit.journal.day_file import DayFile
from memkit.journal.day_overview import slug
from memkit.journal.journal import Journal
from memkit.projects.project import Project

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
    title = escape(readable(f"The memory of {days.name}"))
    style, script = _resource("page.css"), _resource("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = f"{_POLICY}; script-src 'sha256-{digest}'"
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        '<p id="search" hidden><input id="find" type="search" placeholder="Search" aria-label="Search"> '
        '<a href="#days">All days</a> <span id="found"></span></p>\n'
        '<table id="days">\n<thead><tr><th>Day</th><th>Turns</th><th>Sessions</th></tr></thead>\n<tbody>\n'
    )
    for date in days.dates:
        yield _PageDay(days, date, markdown).row()
    yield "</tbody>\n</table>\n"
    for date in days.dates:
        yield from _PageDay(days, date, markdown).section()
    yield f"<script>{script}</script>\n</body>\n</html>\n"


def _resource(name: str) -> str:
    return resources.files("memkit.export").joinpath(name).read_text(encoding="utf-8")


class _PageDay:
    """One day of the page. `names` are the IDs of its entries, which links lead to."""

    def __init__(self, days: Days, date: str, markdown: MarkdownIt) -> None:
        self.date = date[:10]
        self.entries = days.entries(date)
        self.titles = [_plain(entry.heading, markdown) for entry in self.entries]
        self.markdown = markdown
        self.names: list[str] = []
        self._by_slug: dict[str, str] = {}
        for number, entry in enumerate(self.entries):
            base = f"{self.date}-{_NAME.sub('-', entry.turn or entry.session or 'notes')}"
            name = _first_free(base, self.names)  # a session can have several headings
            self.names.append(name)
            if not self._repeats(number):
                self._by_slug[_first_free(slug(entry.heading), self._by_slug, first=1)] = name

    def row(self) -> str:
        turns = sum(bool(entry.turn) for entry in self.entries)
        sessions = [
            f'<a href="#{name}">{escape(title)}</a>'
            for entry, title, name in zip(self.entries, self.titles, self.names, strict=True)
            if entry.session and not entry.turn
        ]
        day = f'<a href="#{self.date}">{self.date}</a>'
        return f"<tr><td>{day}</td><td>{turns}</td><td>{'<br>'.join(sessions)}</td></tr>\n"

    def section(self) -> Iterator[str]:
        yield f'<section id="{self.date}">\n<h2><a href="#{self.date}">{self.date}</a></h2>\n'
        for number, entry in enumerate(self.entries):
            name, title = self.names[number], escape(self.titles[number])
            level = "h4" if entry.turn else "h3"
            heading = f'<{level}><a href="#{name}">{title}</a></{level}>\n'
            if not title or self._repeats(number):
                heading = ""
            kind = "turn" if entry.turn else "session"
            yield f'<article class="{kind}" id="{name}">\n{heading}{self._body(entry)}</article>\n'
        yield '<p class="top"><a href="#days">All days</a></p>\n</section>\n'

    def _repeats(self, number: int) -> bool:
        if not number or not self.entries[number].turn:
            return False
        above = self.entries[number - 1]
        return not above.turn and not above.text and above.heading == self.entries[number].heading

    def _body(self, entry: ExportedEntry) -> str:
        environment: dict[str, Any] = {}
        tokens = self.markdown.parse(readable(entry.text), environment)
        for token in tokens:
            children = [one for one in token.children or () if one.type != "text" or one.content]
            for child, following in pairwise(children):
                if (child.type, following.type) == ("softbreak", "strong_open"):
                    child.type = "hardbreak"  # answers list things like this, one a line
            for child in children:
                target = unquote(str(child.attrGet("href") or ""))
                if target.startswith("#"):
                    child.attrSet("href", f"#{self._by_slug.get(target[1:], self.date)}")
        return str(self.markdown.renderer.render(tokens, self.markdown.options, environment))


def _first_free(name: str, taken: Container[str], first: int = 2) -> str:
    numbers = count(first)
    found = name
    while found in taken:
        found = f"{name}-{next(numbers)}"
    return found


def _plain(heading: str, markdown: MarkdownIt) -> str:
    (inline,) = markdown.parseInline(readable(heading))
    return "".join(child.content or " " * child.type.endswith("break") for child in inline.children or ())
