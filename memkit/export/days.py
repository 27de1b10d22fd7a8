"""The days of a memory, cut into what stands below each heading of the journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memkit import anchors
from memkit.hook.project import Project
from memkit.journal.day_file import DayFile
from memkit.journal.journal import Journal


@dataclass(frozen=True, slots=True)
class ExportedEntry:
    """What stands below one heading, without anchors.

    `session` is the one it belongs to, `turn` the turn it is; "" for what is none, as a session's heading
    with its bullets, or text that a person wrote before all of them (then `heading` is "" too).
    """

    heading: str
    text: str
    session: str = ""
    branch: str = ""
    turn: str = ""


@dataclass(frozen=True, slots=True)
class ExportedDay:
    """One day: its date (ISO), the file as it is, and its entries in order."""

    date: str
    content: DayFile
    entries: Sequence[ExportedEntry]

    @property
    def turns(self) -> int:
        """How many turns it holds."""
        return sum(bool(entry.turn) for entry in self.entries)

    @property
    def titles(self) -> list[str]:
        """The headings of its sessions."""
        return [one.heading for one in self.entries if one.session and not one.turn]


class Days:
    """The days of a project in a period, both ends inclusive; read anew whenever they are gone through."""

    def __init__(self, project: Project, since: str = "", until: str = "") -> None:
        """`since` and `until` are ISO dates; "" is no bound."""
        self.name = Path(project.root).name
        self._journal = Journal(project)
        known = self._journal.days()
        self.dates = [
            day for day in known if since <= day and (not until or day[:10] <= until)
        ]

    def day(self, date: str) -> ExportedDay:
        """One of the dates. Raises `JournalError`."""
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
