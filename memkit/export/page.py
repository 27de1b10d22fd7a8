"""The memory as one self-contained HTML page, without scripts.

Text from conversations stays text: markdown-it-py renders it with HTML off, and the page's own policy
forbids scripts and everything that is not in the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from importlib import resources

from markdown_it import MarkdownIt

from memkit.export.days import Days, ExportedDay, ExportedEntry, readable

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_NAME = re.compile(r"[^A-Za-z0-9_-]+")


def as_page(days: Days) -> Iterator[str]:
    """Yield the page in pieces. Reads each day twice, because the table of days comes first."""
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
        yield _row(days.day(date))
    yield "</tbody>\n</table>\n"
    for date in days.dates:
        yield from _day(days.day(date), markdown)
    yield "</body>\n</html>\n"


def _row(day: ExportedDay) -> str:
    titles = "<br>".join(_text(title) for title in day.titles)
    return f'<tr><td><a href="#{day.date}">{day.date}</a></td><td>{day.turns}</td><td>{titles}</td></tr>\n'


def _day(day: ExportedDay, markdown: MarkdownIt) -> Iterator[str]:
    yield f'<section id="{day.date}">\n<h2><a href="#{day.date}">{day.date}</a></h2>\n'
    seen: set[str] = set()
    for entry in day.entries:
        yield _entry(entry, day.date, seen, markdown)
    yield '<p class="top"><a href="#days">All days</a></p>\n</section>\n'


def _entry(entry: ExportedEntry, date: str, seen: set[str], markdown: MarkdownIt) -> str:
    name = f"{date}-{_NAME.sub('-', entry.turn or entry.session or 'notes')}"
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
