"""The tree of the timeline: each node with what its children hold together.

    2026 > 2026-11 > 2026-W47 > 2026-11-20 > 8b52f4fb

Everything is read from the day files. `memkit.timeline.cache` keeps what was read.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from html import unescape
from itertools import groupby
from typing import TypedDict

from memkit.errors import AmbiguousIdError, NotFoundError
from memkit.journal.day_file import heading_title
from memkit.journal.facts import MEMORY_FILE, SUPERSEDED, FactFile
from memkit.journal.journal import Journal
from memkit.journal.sessions import turn_outcome
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.text import encodable, one_line
from memkit.timeline import nodes
from memkit.timeline.cache import Day, Month, MonthCache, Stamp
from memkit.timeline.nodes import Span, parse_span, path_of
from memkit.timeline.summary import (
    MOST_LINES,
    QUESTION_CHARACTERS,
    TITLE_CHARACTERS,
    Entry,
    Numbers,
    Segment,
    Summary,
    bullets_of,
    joined,
    read_day,
    read_rollup,
    same_day,
    summarize,
    telling,
)

logger = logging.getLogger(__name__)

MOST_DEPTH = 5
MOST_NODES = 100
_WORDS = 12
_LEAST_ID = 4
"""The fewest characters of an id: "2026" is a year, and a shorter one would name half of the memory."""


class TimelineNode(TypedDict):
    """A node as JSON: `kind` is all, year, month, week, day, segment, note, or turn."""

    kind: str
    id: str
    parent: str | None
    first: str
    last: str
    title: str
    outcome: str
    bullets: list[str]
    words: list[str]
    session: str | None
    days: int
    sessions: int
    turns: int
    notes: int
    failed: int


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the timeline.

    `id` names it: a period, the id of the first turn of a segment, or "" for the whole memory. `parent` is
    the id above it. `first` and `last` are the days of a period that hold something, or the local times
    (`2026-11-20 14:02`) of a segment or turn. `words` set it apart from the rest of the memory.

    `title` and `bullets` say what happened, if a model wrote about it.
    """

    kind: str
    id: str
    parent: str
    first: str
    last: str
    summary: Summary
    words: tuple[str, ...] = ()
    title: str = ""
    outcome: str = ""
    bullets: tuple[str, ...] = ()
    session: str = ""

    @property
    def cursor(self) -> str:
        """The name for going on after it in a list. A segment and its first turn have one id."""
        return f"{self.id}.turn" if self.kind == nodes.TURN else self.id

    def as_dict(self) -> TimelineNode:
        """Return names and counts."""
        return {
            "kind": self.kind, "id": self.id, "parent": self.parent or None, "first": self.first,
            "last": self.last, "title": self.title, "outcome": self.outcome, "bullets": list(self.bullets),
            "words": list(self.words), "session": self.session or None, "days": self.summary.days,
            "sessions": len(self.summary.sessions), "turns": self.summary.turns, "notes": self.summary.notes,
            "failed": self.summary.failed,
        }


def open_timeline(
    project: Project, home: Home, announce: Callable[[str], None] = logger.warning,
    announce_wait: Callable[[str], None] | None = None,
) -> Timeline:
    """Read the timeline of a project.

    `announce` gets a line about each day that cannot be read, and `announce_wait` (`announce` by default)
    about a long wait.
    """
    return Timeline(project, MonthCache(project, home, announce, announce_wait).months())


class Timeline:
    """The timeline of one project, as its day files were when it was opened."""

    def __init__(self, project: Project, months: dict[str, Month]) -> None:
        """`months` are those of `MonthCache`, oldest first."""
        self.project = project
        self.journal = Journal(project.for_counting())
        self._months = months

    @cached_property
    def names(self) -> list[str]:
        """The names of all day files, oldest first."""
        return sorted(name for month in self._months.values() for name in month.names)

    @cached_property
    def _everything(self) -> Summary:
        return joined([month.total for month in self._months.values()])

    def node(self, name: str = "") -> Node:
        """Return a node by its name, or the segment that holds a turn whose id begins with `name`.

        Raise `NotFoundError` for anything else, with the nearest days, and `AmbiguousIdError`.
        """
        if name == "today":
            name = date.today().isoformat()
        span = parse_span(name)
        if span is not None:
            node = self._period(span)
            if span.kind == nodes.DAY:
                days = (read_day(self.journal, one) for one in self.days_in(span))
                told = tuple(one for day in days for one in bullets_of(day))
                node = replace(node, bullets=told[:MOST_LINES])
            if node.summary.days or span.kind == nodes.ALL:
                return node
        place = self._find_segment(name)
        if place is not None:
            segment, day = place
            content = read_day(self.journal, day)
            summary = summarize(day, content, segment.id)
            told = tuple(bullets_of(content, segment.id))
            node = _segment_node(segment, day[:10], summary)
            return replace(node, words=self._telling(summary), bullets=told)
        if span is None:
            raise NotFoundError(
                f"the timeline has no node {name!r}; name a year (2026), a month (2026-11), a week "
                "(2026-W47), a day (2026-11-20), or a turn"
            )
        raise NotFoundError(
            f"{self.project.root} has no memory of {name}{self._near(span)}; `memkit timeline` lists all"
        )

    def has_period(self, name: str) -> bool:
        """Whether `name` is a year, month, week, or day with memory."""
        span = parse_span(name)
        return span is not None and bool(self.days_in(span))

    def path(self, node: Node) -> list[str]:
        """Return the ids from the year down to the node."""
        if node.kind in (nodes.SEGMENT, nodes.TURN, nodes.NOTE):
            return [*path_of(date.fromisoformat(node.first[:10])), node.id]
        span = parse_span(node.id)
        found: list[str] = []
        while span is not None and span.name:
            found.insert(0, span.name)
            span = parse_span(nodes.parent_of(span))
        return found

    def days_in(self, span: Span) -> list[str]:
        """Return the day files in a period, oldest first."""
        first = bisect_left(self.names, span.first.isoformat())
        end = bisect_right(self.names, f"{span.last.isoformat()}~")  # after `2026-11-20.local`
        return self.names[first:end]

    def children(self, node: Node) -> Iterator[Node]:
        """Yield the nodes below a node, in the order of time."""
        if node.kind == nodes.SEGMENT:
            yield from self._turns(node)
        elif node.kind == nodes.DAY:
            for one in self.segments_of(date.fromisoformat(node.id)):
                yield _segment_node(one, node.id)
        elif (span := parse_span(node.id)) is not None and node.kind not in (nodes.TURN, nodes.NOTE):
            level = [nodes.ALL, nodes.YEAR, nodes.MONTH, nodes.WEEK].index(node.kind)
            dates = dict.fromkeys(name[:10] for name in self.days_in(span))
            for name in dict.fromkeys(path_of(date.fromisoformat(day))[level] for day in dates):
                child = parse_span(name)
                assert child is not None
                yield self._period(child)

    def walk(self, node: Node, depth: int) -> Iterator[tuple[int, Node]]:
        """Yield the nodes below a node down to a depth, each before its children, with its level from 1."""
        for child in self.children(node):
            yield 1, child
            # A segment of one turn has the text of that turn.
            if depth > 1 and not (child.kind == nodes.SEGMENT and child.summary.turns <= 1):
                for level, below in self.walk(child, depth - 1):
                    yield level + 1, below

    def page(self, node: Node, depth: int, limit: int, after: str = "") -> tuple[list[tuple[int, Node]], str]:
        """Return at most `limit` nodes of `walk`, and the cursor to go on after, or "".

        Raise `NotFoundError` if `after` is none of them.
        """
        found: list[tuple[int, Node]] = []
        seen: set[str] = set()  # a copied section must not lead in a circle
        is_wanted = not after
        for level, child in self.walk(node, min(depth, MOST_DEPTH)):
            if child.cursor in seen:
                continue
            seen.add(child.cursor)
            if not is_wanted:
                is_wanted = child.cursor == after
                continue
            if len(found) == min(limit, MOST_NODES):
                return found, found[-1][1].cursor
            found.append((level, child))
        if not is_wanted:
            raise NotFoundError(f"{node.id or 'the timeline'} has no node {after!r} to go on after")
        return found, ""

    def session_days(self, first: str, last: str) -> dict[str, list[str]]:
        """Return the sessions of a period (ISO days, inclusive), each with its first day file of all, and all
        in the period.
        """
        found: dict[str, list[str]] = {}
        for name in self.names[bisect_left(self.names, first) : bisect_right(self.names, f"{last}~")]:
            for session in self._day(name).summary.sessions:
                found.setdefault(session, []).append(name)
        for session, days in found.items():
            month = self._months[self._months_of_sessions[session][0]]
            if month.names[0][:10] < first and (begun := self.days_of(session)[0])[:10] < first:
                days.insert(0, begun)
        return found

    def numbers(self, first: str = "") -> Iterator[tuple[str, Numbers]]:
        """Yield the numbers of each day file by its name, oldest first, from the day `first` (ISO) on."""
        for month in self._months.values():
            if month.names[-1][:10] >= first:
                for name, day in sorted(month.days.items()):
                    if name[:10] >= first:
                        yield name, day.numbers

    def calendar(self, year: int) -> dict[str, Summary]:
        """Return the days (ISO) of a calendar year that hold something, oldest first, with what they hold."""
        return self._by_date(self.days_in(Span(nodes.YEAR, "", date(year, 1, 1), date(year, 12, 31))))

    def _by_date(self, names: list[str]) -> dict[str, Summary]:
        return {
            day: same_day([self._day(name).summary for name in own])
            for day, own in groupby(names, lambda name: name[:10])
        }

    def changes_since(self, earlier: Timeline) -> tuple[list[str], list[str]]:
        """Return the days (ISO) that were not so in an earlier timeline, and their new turns and notes."""
        now, before = self._stamps, earlier._stamps
        changed = sorted({name for name, _ in now.items() ^ before.items()})
        known = {one for name in changed if name in before for one in earlier._entries_of(name)}
        found = [one for name in changed if name in now for one in self._entries_of(name)]
        return sorted({name[:10] for name in changed}), [one for one in found if one not in known]

    @cached_property
    def _stamps(self) -> dict[str, Stamp]:
        return {name: stamp for month in self._months.values() for name, stamp in month.stamps.items()}

    def _entries_of(self, name: str) -> list[str]:
        segments = self._day(name).segments
        return [entry for one in segments for entry in (one.turns if one.session or one.turns else (one.id,))]

    def sessions_ending(self, before: str = "") -> Iterator[tuple[str, dict[str, list[str]]]]:
        """Yield each day (ISO), newest first, with the sessions that were last active then.

        Each has all its day files, oldest first. `before` is the day to begin with. Only the months that are
        asked for are read.
        """
        seen: set[str] = set()
        for month in reversed(self._months.values()):
            if before and month.names[0][:10] > before:
                seen.update(month.total.sessions)
                continue
            for day, names in groupby(reversed(month.names), lambda name: name[:10]):
                own = {session for name in names for session in self._day(name).summary.sessions}
                if not before or day <= before:
                    yield day, {session: self.days_of(session) for session in sorted(own - seen)}
                seen |= own

    def find_session(self, name: str) -> tuple[str, str]:
        """Return the session whose id is or begins with `name`, or that of such a turn, and the turn or "".

        Raise `NotFoundError` and `AmbiguousIdError`.
        """
        known = self._months_of_sessions
        found = [name] if name in known else [one for one in known if name and one.startswith(name)]
        if len(found) > 1:
            shown = ", ".join(sorted(found)[:5])
            raise AmbiguousIdError(f"{name!r} matches several sessions: {shown}; give more characters")
        if found:
            return found[0], ""
        place = self._find_segment(name)
        if place is None or not place[0].session:
            raise NotFoundError(f"{self.project.root} has no session {name!r}; `memkit sessions` lists them")
        segment, _ = place
        return segment.session, next((turn for turn in segment.turns if turn.startswith(name)), "")

    def days_of(self, session: str) -> list[str]:
        """Return the day files of a session, oldest first."""
        months = [self._months[name] for name in self._months_of_sessions[session]]
        return [
            name for month in months for name in month.names if session in month.days[name].summary.sessions
        ]

    @cached_property
    def _months_of_sessions(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, month in self._months.items():
            for session in month.total.sessions:
                found.setdefault(session, []).append(name)
        return found

    def open_questions(self, node: Node) -> list[Entry]:
        """Return the questions with which sessions ended in a node, newest first.

        One after which its session went on, also after the node, is left out: it was answered, or it no
        longer mattered.
        """
        later = self._sessions_after(node.last[:10])
        asked = [
            entry
            for session, entries in node.summary.open.items()
            if session not in later
            for entry in entries
        ]
        return sorted(asked, key=lambda one: one.time, reverse=True)

    def decisions(self, node: Node) -> list[Entry]:
        """Return what was decided in a node, newest first: lasting facts, and bullets no fact stands for."""
        facts: list[Entry] = []
        cited: set[str] = set()
        if node.kind not in (nodes.SEGMENT, nodes.TURN, nodes.NOTE):
            content = FactFile(encodable(self.journal.text(MEMORY_FILE)), MEMORY_FILE)
            for one in content.facts():
                fact = one.fact
                cited.update(fact.citations.grips)
                if fact.kind != SUPERSEDED and fact.is_verified and _is_in(node, fact.date):
                    facts.append(Entry(fact.date, one_line(unescape(fact.text), QUESTION_CHARACTERS), one.id))
        bullets = [one for one in node.summary.decided if one.id not in cited]
        return sorted([*facts, *bullets], key=lambda one: one.time, reverse=True)

    def _sessions_after(self, day: str) -> set[str]:
        found: set[str] = set()
        for month in reversed(self._months.values()):
            if month.names[-1][:10] <= day:
                break
            if month.names[0][:10] > day:
                found.update(month.total.sessions)
                continue
            for name in month.names:
                if name[:10] > day:
                    found.update(month.days[name].summary.sessions)
        return found

    def _period(self, span: Span) -> Node:
        summary, known = self._summary(span)
        dates = [name[:10] for name in known]
        first, last = (dates[0], dates[-1]) if dates else ("", "")
        rollup = read_rollup(self.journal, span)
        return Node(
            kind=span.kind, id=span.name, parent=nodes.parent_of(span), first=first, last=last,
            summary=summary, words=self._telling(summary), title=rollup.title if rollup else "",
            bullets=tuple(one.text for one in rollup.lines) if rollup else (),
        )

    def _summary(self, span: Span) -> tuple[Summary, list[str]]:
        if span.kind == nodes.ALL:
            return self._everything, self.names
        known = self.days_in(span)
        if span.kind in (nodes.YEAR, nodes.MONTH):
            months = [month for name, month in self._months.items() if span.name in (name, name[:4])]
            return joined([month.total for month in months]), known
        return joined(list(self._by_date(known).values())), known

    def _telling(self, summary: Summary) -> tuple[str, ...]:
        if not summary.turns:
            return ()
        everything = self._everything
        found = telling(summary.words, summary.turns, everything.words, everything.turns, _WORDS)
        return tuple(found)

    def _day(self, name: str) -> Day:
        return self._months[nodes.month_of(date.fromisoformat(name[:10]))].days[name]

    def segments_of(self, day: date) -> list[Segment]:
        """Return the segments and notes of a day, in the order of time."""
        span = Span(nodes.DAY, day.isoformat(), day, day)
        found = [one for name in self.days_in(span) for one in self._day(name).segments]
        return sorted(found, key=lambda one: one.begins)

    def notes_of(self, name: str) -> list[Segment]:
        """Return the notes of a day file."""
        return [one for one in self._day(name).segments if not one.session and not one.turns]

    def _find_segment(self, name: str) -> tuple[Segment, str] | None:
        """Return the segment or note with an id that is or begins with `name`, or that holds such a turn, and
        its day file.
        """
        found: dict[str, tuple[Segment, str]] = {}
        if len(name) < _LEAST_ID or not name.isalnum():
            return None
        for month in reversed(self._months.values()):
            if not month.may_hold(name):
                continue
            for day in month.names:
                for one in month.days[day].segments:
                    for known in {one.id, *one.turns}:
                        if known.startswith(name):
                            found[known] = one, day
        exact = {known: place for known, place in found.items() if known == name} or found
        places = {(one.id, day): (one, day) for one, day in exact.values()}
        if len(places) > 1:
            shown = ", ".join(sorted(exact)[:5])
            raise AmbiguousIdError(f"{name!r} matches several turns: {shown}; give more characters")
        return next(iter(places.values()), None)

    def _turns(self, segment: Node) -> Iterator[Node]:
        span = parse_span(segment.parent)
        assert span is not None
        for name in self.days_in(span):
            own = next((one for one in self._day(name).segments if one.id == segment.id), None)
            if own is None:
                continue
            content = read_day(self.journal, name)
            for turn in own.turns:
                section = content.find_turn(turn)
                if section is None:
                    continue
                time = f"{name[:10]} {section.minute}".strip()
                yield Node(
                    kind=nodes.TURN, id=turn, parent=segment.id, first=time, last=time,
                    summary=Summary(turns=1),
                    title=one_line(unescape(heading_title(section)), TITLE_CHARACTERS),
                    outcome=one_line(unescape(turn_outcome(content.text(section)))),
                    session=own.session,
                )

    def _near(self, span: Span) -> str:
        known = [name[:10] for name in self.names]
        before = [day for day in known if day < span.first.isoformat()][-1:]
        near = before + [day for day in known if day > span.last.isoformat()][:1]
        if not near:
            return "; it has no day yet" if not known else ""
        return f"; the nearest {'day is' if len(near) == 1 else 'days are'} {' and '.join(near)}"


def _segment_node(one: Segment, day: str, summary: Summary | None = None) -> Node:
    is_note = not one.session and not one.turns
    known = summary or Summary(
        days=1, turns=len(one.turns), notes=int(is_note), sessions=[one.session] * bool(one.session)
    )
    return Node(
        kind=nodes.NOTE if is_note else nodes.SEGMENT, id=one.id, parent=day,
        first=f"{day} {one.begins}".strip(), last=f"{day} {one.ends}".strip(), summary=known, title=one.title,
        outcome=one.outcome, session=one.session,
    )


def _is_in(node: Node, day: str) -> bool:
    span = parse_span(node.id)
    known = nodes.day_of(day)
    return span is not None and known is not None and span.holds(known)
