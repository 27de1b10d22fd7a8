"""List the sessions of a memory, newest first. Reads the day files alone."""

from __future__ import annotations

import functools
import heapq
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import unescape
from typing import Any

from memkit import anchors
from memkit.errors import JournalError
from memkit.hook.project import Project
from memkit.journal import Journal
from memkit.journal.day_file import DayFile
from memkit.journal.digest import read_turn
from memkit.journal.overview import SessionLine, sessions

logger = logging.getLogger(__name__)

_HEADING = re.compile(r"^## [^\n]*session:[^\n]*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PastSession:
    """A session with all its days.

    `begins` and `ends` are the local times (`2026-11-20 14:02`) of its first and last turn, or days alone.
    `path` and `line` (1-based) are where it begins.
    """

    id: str
    root: str
    begins: str
    ends: str
    title: str
    outcome: str
    turns: tuple[str, ...]
    branch: str
    path: str
    line: int

    def as_dict(self) -> dict[str, Any]:
        """Return the session as `memkit sessions --json` prints it."""
        return {
            "session": self.id,
            "project": self.root,
            "begins": self.begins,
            "ends": self.ends,
            "title": self.title,
            "outcome": self.outcome,
            "turns": list(self.turns),
            "branch": self.branch,
            "path": self.path,
            "line": self.line,
        }


@dataclass(frozen=True, slots=True)
class SessionFilters:
    """The sessions to list; "" means any.

    `since` is an ISO day, the earliest last day. `branch` and `file` are those of any turn; `file` is a path
    relative to the project, or its last parts.
    """

    since: str = ""
    branch: str = ""
    file: str = ""


def past_sessions(
    projects: Iterable[Project],
    filters: SessionFilters | None = None,
    announce: Callable[[str], None] = logger.warning,
) -> Iterator[PastSession]:
    """Yield the sessions of `projects`, the last active first.

    A day that cannot be read is reported to `announce`, and left out.
    """
    found = [_History(one, filters or SessionFilters(), announce).sessions() for one in projects]
    return heapq.merge(*found, key=_activity, reverse=True)


def _activity(session: PastSession) -> tuple[str, str, str]:
    return session.ends, session.begins, session.id


class _History:
    """The sessions of one project."""

    def __init__(
        self, project: Project, filters: SessionFilters, announce: Callable[[str], None]
    ) -> None:
        self._journal = Journal(project)
        self._filters = filters
        self._announce = announce
        self._lines = functools.lru_cache(16)(self._read)

    def sessions(self) -> Iterator[PastSession]:
        days_of = self._days_of()
        ending: dict[str, list[str]] = {}
        for session, days in days_of.items():
            ending.setdefault(days[-1][:10], []).append(session)
        for date in sorted(ending, reverse=True):
            if date < self._filters.since:
                return
            known = (self._joined(name, days_of[name]) for name in ending[date])
            yield from sorted((one for one in known if one), key=_activity, reverse=True)

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

    def _read(self, day: str) -> tuple[DayFile, dict[str, SessionLine]]:
        content = self._journal.day(day)
        return content, {one.session: one for one in sessions(day, content)}

    def _joined(self, session: str, days: list[str]) -> PastSession | None:
        """Return a session of all its days, or None if the filters leave it out."""
        read = [(self._lines(day), day) for day in days]
        lines = [
            (content, known[session], day) for (content, known), day in read if session in known
        ]
        if not lines or not any(self._is_wanted(content, line) for content, line, _ in lines):
            return None
        (_, first, day), (_, last, _) = lines[0], lines[-1]
        return PastSession(
            id=session,
            root=self._journal.project.root,
            begins=f"{first.day} {first.begins}".strip(),
            ends=f"{last.day} {last.ends}".strip(),
            title=unescape(first.title),
            outcome=unescape(
                next((line.outcome for _, line, _ in reversed(lines) if line.outcome), "")
            ),
            turns=tuple(dict.fromkeys(turn for _, line, _ in lines for turn in line.turns)),
            branch=next((line.branch for _, line, _ in reversed(lines) if line.branch), ""),
            path=str(self._journal.path(day)),
            line=first.line,
        )

    def _is_wanted(self, content: DayFile, line: SessionLine) -> bool:
        branch, file = self._filters.branch, self._filters.file
        turns = [one for turn in line.turns if (one := content.find_turn(turn)) is not None]
        if (
            branch
            and branch != line.branch
            and all(one.pairs.get("branch") != branch for one in turns)
        ):
            return False
        if not file:
            return True
        paths = (
            call.path.strip("`") for one in turns for call in read_turn(content.text(one)).calls
        )
        return any(path == file or path.endswith(f"/{file}") for path in paths)
