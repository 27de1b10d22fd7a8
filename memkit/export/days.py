"""The days of a memory as entries, as one Markdown file, and as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memkit import anchors
from memkit.hook.project import Project
from memkit.journal import Journal
from memkit.journal.day_file import DayFile


@dataclass(frozen=True, slots=True)
class ExportedEntry:
    """The text below one heading, without anchors.

    `session` is the session it belongs to, `turn` its turn. `turn` is "" for a session's heading with its
    bullets; all three are "" for text before the first heading.
    """

    heading: str
    text: str
    session: str = ""
    branch: str = ""
    turn: str = ""


@dataclass(frozen=True, slots=True)
class ExportedDay:
    """One day: its date (ISO), its file, and its entries in order."""

    date: str
    content: DayFile
    entries: Sequence[ExportedEntry]

    @property
    def turns(self) -> int:
        """The number of turns."""
        return sum(bool(entry.turn) for entry in self.entries)

    @property
    def titles(self) -> list[str]:
        """The headings of the sessions."""
        return [one.heading for one in self.entries if one.session and not one.turn]


class Days:
    """The days of a project in a period, both ends inclusive. Each access reads the file again."""

    def __init__(self, project: Project, since: str = "", until: str = "") -> None:
        """`since` and `until` are ISO dates, or "" for no bound."""
        self.name = Path(project.root).name
        self._journal = Journal(project)
        known = self._journal.days()
        self.dates = [
            day for day in known if since <= day and (not until or day[:10] <= until)
        ]

    def day(self, date: str) -> ExportedDay:
        """Return one of `dates`. Raise `JournalError`."""
        content = self._journal.day(date)
        sections = content.sections
        first = sections[0].start if sections else len(content.lines)
        date = date[:10]
        before = "\n".join(content.lines[:first]).strip()
        entries = []
        text = before.removeprefix(f"# {date}").strip()
        if text:
            entries.append(ExportedEntry("", anchors.strip(text)))
        session = branch = ""
        for section in sections:
            session = section.pairs.get("session", session)
            branch = section.pairs.get("branch", "" if "session" in section.pairs else branch)
            below = "\n".join(content.lines[section.start + 1 : section.end])
            heading = anchors.strip(section.heading).lstrip("#").strip()
            turn = section.pairs.get("turn", "")
            entries.append(
                ExportedEntry(heading, anchors.strip(below).strip(), session, branch, turn)
            )
        return ExportedDay(date, content, entries)


def as_markdown(days: Days, *, with_anchors: bool = False) -> Iterator[str]:
    """Yield the days, one after the other."""
    for number, date in enumerate(days.dates):
        text = readable(days.day(date).content.render().strip("\n") + "\n")
        yield ("\n" if number else "") + (text if with_anchors else anchors.strip(text))


def as_json_lines(days: Days) -> Iterator[str]:
    """Yield one JSON object per entry: `date`, `session`, `branch`, `turn`, `heading`, `text`."""
    for date in days.dates:
        for entry in days.day(date).entries:
            value = {
                "date": date,
                "session": entry.session,
                "branch": entry.branch,
                "turn": entry.turn,
                "heading": entry.heading,
                "text": entry.text,
            }
            yield json.dumps(value) + "\n"


def readable(text: str) -> str:
    """Return `text` with a replacement character for each byte that was not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
