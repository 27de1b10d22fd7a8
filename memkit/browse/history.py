"""List what a memory holds by time: sessions, notes, and open questions."""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import dropwhile, islice
from typing import TYPE_CHECKING, TypedDict

from memkit.agents.registry import is_by
from memkit.bullets import OPEN
from memkit.errors import JournalError, MemkitError
from memkit.journal.day_file import DayFile, Section, heading_title
from memkit.journal.journal import Journal
from memkit.journal.sessions import DaySession, main_outcome, open_lines, sessions, shown_line
from memkit.journal.turn_parts import read_parts
from memkit.projects.project import Project
from memkit.search.overview import Line, PastSession
from memkit.timeline.nodes import day_of
from memkit.timeline.view import TimedLine

if TYPE_CHECKING:
    from memkit.timeline.tree import Timeline

_SEPARATOR = "~"
LAST_DAY = "9999-12-31"

MOST_NOTES = 500
"""The most notes of a page of sessions."""


@dataclass(frozen=True, slots=True)
class SessionFilters:
    """The sessions to list; "" means any.

    `since` is an ISO day, the earliest last day. With `until`, the latest day, a session has only its days in
    that period. `branch` and `file` are those of any turn; `file` is a path relative to the project, or its
    last parts. `session` is an id or its first characters, `agent` the name of an agent.
    """

    since: str = ""
    branch: str = ""
    file: str = ""
    until: str = ""
    session: str = ""
    agent: str = ""

    def includes(self, session: str) -> bool:
        """Return whether a session with this id may be wanted."""
        return session.startswith(self.session) and is_by(session, self.agent)


def past_sessions(
    timelines: Iterable[Timeline], filters: SessionFilters, before: str = ""
) -> Iterator[PastSession]:
    """Yield the sessions of projects, the last active first. `before` is the day (ISO) to begin with."""
    found = [_History(one, filters).sessions(before) for one in timelines]
    return heapq.merge(*found, key=activity, reverse=True)


def whole_session(timeline: Timeline, session: str) -> PastSession | None:
    """Return a session by its id, with all its days."""
    return _History(timeline, SessionFilters()).joined(session, timeline.days_of(session))


def activity(session: PastSession) -> tuple[str, str, str]:
    """Return the key by which sessions are ordered."""
    return session.ends, session.begins, session.id


class _History:
    def __init__(self, timeline: Timeline, filters: SessionFilters) -> None:
        self._timeline = timeline
        self._journal = timeline.journal
        self._filters = filters
        self._lines = functools.lru_cache(16)(self._read)
        self._first: dict[str, str] = {}

    def sessions(self, before: str) -> Iterator[PastSession]:
        for date, days_of in self._ending(before):
            if date < self._filters.since:
                return
            known = (
                self.joined(name, days) for name, days in days_of.items() if self._filters.includes(name)
            )
            yield from sorted((one for one in known if one), key=activity, reverse=True)

    def _ending(self, before: str) -> Iterable[tuple[str, Mapping[str, list[str]]]]:
        """Return days (ISO), newest first, with the sessions that were last active then, and their days."""
        since, until = self._filters.since, self._filters.until
        if not until:
            return self._timeline.sessions_ending(before)
        ending: dict[str, dict[str, list[str]]] = {}
        for session, days in self._timeline.session_days(since, until).items():
            self._first[session] = days[0]
            inside = [day for day in days if day[:10] >= since]
            ending.setdefault(inside[-1][:10], {})[session] = inside
        return sorted(ending.items(), reverse=True)

    def _read(self, day: str) -> tuple[DayFile, dict[str, DaySession]]:
        content = self._journal.day(day)
        return content, {one.session: one for one in sessions(day, content)}

    def joined(self, session: str, days: list[str]) -> PastSession | None:
        read = [(self._lines(day), day) for day in days]
        lines = [(content, known[session], day) for (content, known), day in read if session in known]
        if not lines or not any(self._is_wanted(content, line) for content, line, _ in lines):
            return None
        (_, first, day), (_, last, _) = lines[0], lines[-1]
        _, known = self._lines(self._first.get(session, day))
        named = known.get(session, first)  # what it was about was said on its first day
        return PastSession(
            id=session, root=self._journal.project.root, begins=f"{first.day} {first.begins}".strip(),
            ends=f"{last.day} {last.ends}".strip(), title=unescape(named.title),
            outcome=unescape(main_outcome([line for _, line, _ in lines])),
            turns=tuple(dict.fromkeys(turn for _, line, _ in lines for turn in line.turns)),
            branch=next((line.branch for _, line, _ in reversed(lines) if line.branch), ""),
            path=str(self._journal.path(day)),
            line=first.line,
        )

    def _is_wanted(self, content: DayFile, line: DaySession) -> bool:
        turns = [one for turn in line.turns if (one := content.find_turn(turn)) is not None]
        return _is_wanted(content, line.branch, turns, self._filters)


def _is_wanted(content: DayFile, named: str, turns: list[Section], filters: SessionFilters) -> bool:
    branch, file = filters.branch, filters.file
    if branch and branch != named and all(one.pairs.get("branch") != branch for one in turns):
        return False
    if not file:
        return True
    calls = (call for one in turns for call in read_parts(content.text(one)).file_calls)
    return any(call.is_at([file], by_end=True) for call in calls)


def remarks(
    projects: Iterable[Project], since: str, until: str, announce: Callable[[str], None]
) -> Iterator[Line]:
    """Yield what the days of a period (ISO, inclusive) hold outside of sessions, by project, in order.

    That is notes and turns above all sessions, or the first line of a day that memkit did not write.
    """
    for root, day, content in _read_days(projects, since, until, announce):
        date, found = day[:10], False
        for heading, turns in content.groups():
            if heading is not None and "session" in heading.pairs:
                found = True
                continue
            for section in turns if heading is None else [heading]:
                found = True
                name = section.pairs.get("note") or section.pairs.get("turn", "")
                title = heading_title(section).removeprefix("Note: ")
                yield Line(f"{date} {section.minute}".strip(), unescape(title), name, "", root)
        if not found:
            lines = (shown_line(line.lstrip("#>*- ")) for line in content.lines)
            text = next((line for line in lines if line and line != date), "")
            if text:
                yield Line(date, text, "", "", root)


def open_questions(
    projects: Iterable[Project], filters: SessionFilters, announce: Callable[[str], None]
) -> Iterator[Line]:
    """Yield what sessions left open at their end, and notes that begin with "Open:", newest first, each once.

    One after which its session went on is left out: it was answered, or it no longer mattered.
    Branch and file are those of the last day of a session.
    """
    seen: set[str] = set()
    ended: set[str] = set()
    found = list(_read_days(projects, filters.since, "", announce))
    for root, day, content in sorted(found, key=lambda one: one[1], reverse=True):
        for heading, turns in reversed(list(content.groups())):
            pairs = {} if heading is None else heading.pairs
            title = heading_title(heading).removeprefix("Note: ") if heading and "note" in pairs else ""
            session = pairs.get("session", "")
            if heading is None or session in ended or not (session or title.startswith(OPEN)):
                continue
            ended |= {session} - {""}
            is_later = filters.until and day[:10] > filters.until
            if is_later or not filters.includes(session):
                continue
            if not _is_wanted(content, heading.pairs.get("branch", ""), turns, filters):
                continue
            minute = max((one.minute for one in turns or [heading]), default="")
            noted = [(pairs["note"], title.removeprefix(OPEN))] if title else []
            for name, text in noted or open_lines(content, heading, turns):
                if text and text not in seen:
                    seen.add(text)
                    yield Line(f"{day[:10]} {minute}".strip(), unescape(text), name, session, root)


def _read_days(
    projects: Iterable[Project], since: str, until: str, announce: Callable[[str], None]
) -> Iterator[tuple[str, str, DayFile]]:
    """Yield root, name, and content of each day in a period ("" is open), by project, the oldest first."""
    for project in projects:
        journal = Journal(project)
        for day in journal.days():
            if since <= day[:10] and (not until or day[:10] <= until):
                try:
                    yield project.root, day, journal.day(day)
                except JournalError as error:
                    announce(str(error))


class SessionPage(TypedDict):
    """A page of sessions, and the notes of the same time, newest first; with a branch or a file, no notes."""

    sessions: list[PastSession]
    notes: list[TimedLine]
    next: str | None


def list_sessions(
    timelines: Sequence[Timeline], filters: SessionFilters, limit: int, after: str
) -> SessionPage:
    """Return at most `limit` sessions, the last active first, and `next`: `after` of the next page, or None.

    `notes` has at most the newest `MOST_NOTES` of the page. Raise `MemkitError` if `after` is none.
    """
    begin = tuple(after.split(_SEPARATOR, 2)) if after else ()
    if begin and (len(begin) != 3 or day_of(begin[0]) is None):
        raise MemkitError("`after` is the `next` of the page before")
    found = past_sessions(timelines, filters, begin[0][:10] if begin else "")
    if begin:
        found = dropwhile(lambda one: activity(one) >= begin, found)
    page = list(islice(found, limit + 1))
    is_last = len(page) <= limit
    since = filters.since if is_last else page[limit - 1].ends
    until = begin[0] if begin else f"{filters.until or LAST_DAY}~"
    noted = () if filters.branch or filters.file else timelines
    notes = [note for one in noted for note in _notes(one, since, until)]
    return {
        "sessions": page[:limit],
        "notes": sorted(notes, key=lambda one: one["time"], reverse=True)[:MOST_NOTES],
        "next": None if is_last else _SEPARATOR.join(activity(page[limit - 1])),
    }


def _notes(timeline: Timeline, since: str, until: str) -> list[TimedLine]:
    """Return the notes from one local time (included) to another. A day is its first minute."""
    found: list[TimedLine] = []
    for name in reversed(timeline.names):
        if name[:10] < since[:10] or len(found) >= MOST_NOTES:
            break
        if name[:10] <= until[:10]:
            for note in timeline.notes_of(name):
                time = f"{name[:10]} {note.begins}".strip()
                if since <= time < until:
                    found.append({"time": time, "text": note.title, "id": note.id})
    return found
