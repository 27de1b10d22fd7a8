"""List what a memory holds by time: sessions, notes, and open questions. Reads the day files alone."""

from __future__ import annotations

import functools
import heapq
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from itertools import dropwhile, islice
from typing import TYPE_CHECKING, TypedDict

from memkit import anchors
from memkit.errors import JournalError, MemkitError
from memkit.journal.day_file import DayFile, Section, heading_title
from memkit.journal.journal import Journal
from memkit.journal.sessions import DaySession, open_lines, sessions, shown_line
from memkit.journal.turn_parts import read_parts
from memkit.projects.project import Project
from memkit.recall.overview import Line, PastSession
from memkit.timeline.nodes import day_of

if TYPE_CHECKING:
    from memkit.timeline.tree import Timeline

logger = logging.getLogger(__name__)

FindDays = Callable[[Project], Mapping[str, list[str]]]
"""Returns the sessions to list, each with its first day of all, and all its days in their period."""

FindEnding = Callable[[Project], Iterable[tuple[str, Mapping[str, list[str]]]]]
"""Returns days (ISO), newest first, with the sessions that were last active then, each with all its days."""

_SEPARATOR = "~"

_HEADING = re.compile(r"^## [^\n]*session:[^\n]*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SessionFilters:
    """The sessions to list; "" means any.

    `since` is an ISO day, the earliest last day. With `until`, the latest day, a session has only its days in
    that period. `branch` and `file` are those of any turn; `file` is a path relative to the project, or its
    last parts. `session` is an id or its first characters.
    """

    since: str = ""
    branch: str = ""
    file: str = ""
    until: str = ""
    session: str = ""


def past_sessions(
    projects: Iterable[Project],
    filters: SessionFilters | None = None,
    announce: Callable[[str], None] = logger.warning,
    find_days: FindDays | None = None,
    find_ending: FindEnding | None = None,
) -> Iterator[PastSession]:
    """Yield the sessions of `projects`, the last active first.

    A day that cannot be read is reported to `announce`, and left out. `find_days` saves reading all days, and
    `find_ending`, if no period is asked for, also listing all sessions.
    """
    wanted = filters or SessionFilters()
    found = [_History(one, wanted, announce, find_days, find_ending).sessions() for one in projects]
    return heapq.merge(*found, key=activity, reverse=True)


def activity(session: PastSession) -> tuple[str, str, str]:
    """Return the key by which sessions are ordered."""
    return session.ends, session.begins, session.id


class _History:
    def __init__(
        self,
        project: Project,
        filters: SessionFilters,
        announce: Callable[[str], None],
        find_days: FindDays | None,
        find_ending: FindEnding | None,
    ) -> None:
        self._find_days = find_days
        self._find_ending = find_ending
        self._journal = Journal(project.for_counting())
        self._filters = filters
        self._announce = announce
        self._lines = functools.lru_cache(16)(self._read)
        self._first: dict[str, str] = {}

    def sessions(self) -> Iterator[PastSession]:
        for date, days_of in self._ending():
            if date < self._filters.since:
                return
            known = (self._joined(name, days) for name, days in days_of.items())
            yield from sorted((one for one in known if one), key=activity, reverse=True)

    def _ending(self) -> Iterable[tuple[str, Mapping[str, list[str]]]]:
        if self._find_ending is not None:
            return self._find_ending(self._journal.project)
        ending: dict[str, dict[str, list[str]]] = {}
        for session, days in self._all_days().items():
            if session.startswith(self._filters.session) and (inside := self._inside(days)):
                ending.setdefault(inside[-1][:10], {})[session] = inside
        return sorted(ending.items(), reverse=True)

    def _inside(self, days: list[str]) -> list[str]:
        since, until = self._filters.since, self._filters.until
        return [day for day in days if since <= day[:10] <= until] if until else days

    def _all_days(self) -> Mapping[str, list[str]]:
        find = self._find_days
        found = find(self._journal.project) if find is not None else self._days_of()
        self._first = {session: days[0] for session, days in found.items()}
        return found

    def _days_of(self) -> dict[str, list[str]]:
        """Return the days of each session, in order. Reading only headings keeps a long memory fast."""
        found: dict[str, list[str]] = {}
        for day in self._journal.days():
            try:
                text = self._journal.text(f"{day}.md")
            except JournalError as error:
                self._announce(str(error))
                continue
            named = (anchors.parse(line).get("session") for line in _HEADING.findall(text))
            for session in dict.fromkeys(filter(None, named)):
                found.setdefault(session, []).append(day)
        return found

    def _read(self, day: str) -> tuple[DayFile, dict[str, DaySession]]:
        content = self._journal.day(day)
        return content, {one.session: one for one in sessions(day, content)}

    def _joined(self, session: str, days: list[str]) -> PastSession | None:
        read = [(self._lines(day), day) for day in days]
        lines = [
            (content, known[session], day) for (content, known), day in read if session in known
        ]
        if not lines or not any(self._is_wanted(content, line) for content, line, _ in lines):
            return None
        (_, first, day), (_, last, _) = lines[0], lines[-1]
        _, known = self._lines(self._first.get(session, day))
        named = known.get(session, first)  # what it was about was said on its first day
        return PastSession(
            id=session,
            root=self._journal.project.root,
            begins=f"{first.day} {first.begins}".strip(),
            ends=f"{last.day} {last.ends}".strip(),
            title=unescape(named.title),
            outcome=unescape(
                next((line.outcome for _, line, _ in reversed(lines) if line.outcome), "")
            ),
            turns=tuple(dict.fromkeys(turn for _, line, _ in lines for turn in line.turns)),
            branch=next((line.branch for _, line, _ in reversed(lines) if line.branch), ""),
            path=str(self._journal.path(day)),
            line=first.line,
        )

    def _is_wanted(self, content: DayFile, line: DaySession) -> bool:
        turns = [one for turn in line.turns if (one := content.find_turn(turn)) is not None]
        return _is_wanted(content, line.branch, turns, self._filters)


def _is_wanted(content: DayFile, named: str, turns: list[Section], filters: SessionFilters) -> bool:
    """Return whether a stretch of work on the branch `named` has the branch and the file of the filters."""
    branch, file = filters.branch, filters.file
    if branch and branch != named and all(one.pairs.get("branch") != branch for one in turns):
        return False
    if not file:
        return True
    calls = (call for one in turns for call in read_parts(content.text(one)).file_calls)
    return any(call.is_at([file], by_end=True) for call in calls)


def known_days(projects: Iterable[Project]) -> list[str]:
    """Return the days (ISO) that hold something, oldest first."""
    return sorted({day[:10] for project in projects for day in Journal(project).days() if day_of(day)})


def remarks(
    projects: Iterable[Project],
    since: str,
    until: str,
    announce: Callable[[str], None] = logger.warning,
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
    projects: Iterable[Project],
    filters: SessionFilters | None = None,
    announce: Callable[[str], None] = logger.warning,
) -> Iterator[Line]:
    """Yield the questions with which sessions ended, newest first, each once; `text` has no label.

    One after which its session went on is left out: it was answered, or it no longer mattered.
    Branch and file are those of the last day of a session.
    """
    seen: set[str] = set()
    ended: set[str] = set()
    wanted = filters or SessionFilters()
    found = list(_read_days(projects, wanted.since, "", announce))
    for root, day, content in sorted(found, key=lambda one: one[1], reverse=True):
        for heading, turns in reversed(list(content.groups())):
            if heading is None or "session" not in heading.pairs or heading.pairs["session"] in ended:
                continue
            session = heading.pairs["session"]
            ended.add(session)
            is_later = wanted.until and day[:10] > wanted.until
            if is_later or not session.startswith(wanted.session):
                continue
            if not _is_wanted(content, heading.pairs.get("branch", ""), turns, wanted):
                continue
            minute = max((one.minute for one in turns or [heading]), default="")
            for name, text in open_lines(content, heading, turns):
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
    """A page of sessions."""

    sessions: list[PastSession]
    next: str | None


def list_sessions(
    timeline: Timeline, filters: SessionFilters, limit: int, after: str, announce: Callable[[str], None]
) -> SessionPage:
    """Return at most `limit` sessions, the last active first, and `next`: `after` of the next page, or None.

    Raise `MemkitError` if `after` is none.
    """
    begin = tuple(after.split(_SEPARATOR, 2)) if after else ()
    if begin and (len(begin) != 3 or day_of(begin[0]) is None):
        raise MemkitError("`after` is the `next` of the page before")
    if filters.until:
        found = past_sessions(
            [timeline.project], filters, announce,
            find_days=lambda _: timeline.session_days(filters.since or "0001-01-01", filters.until),
        )  # fmt: skip
    else:
        first = begin[0][:10] if begin else ""
        found = past_sessions(
            [timeline.project], filters, announce, find_ending=lambda _: timeline.sessions_ending(first)
        )
    if begin:
        found = dropwhile(lambda one: activity(one) >= begin, found)
    page = list(islice(found, limit + 1))
    is_last = len(page) <= limit
    return {
        "sessions": page[:limit],
        "next": None if is_last else _SEPARATOR.join(activity(page[limit - 1])),
    }
