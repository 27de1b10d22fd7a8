"""Read overviews: the sessions, nodes, topics, notes, and open questions that a question asks for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import islice

from msgspec.structs import replace

from memkit.browse import history
from memkit.browse.history import LAST_DAY
from memkit.errors import MemkitError
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.privacy.tombstones import Forgotten, Tombstones
from memkit.projects.project import Project
from memkit.search.overview import FindTopics, Line, Overview, PeriodNode, TopicCount
from memkit.search.results import Period, SearchRequest
from memkit.timeline.nodes import Span, parts_of, spans_of
from memkit.timeline.summary import Entry, read_rollup
from memkit.timeline.tree import Timeline, open_timeline

MOST_NODES = 16
MOST_LINES = 24
"""The most lines of all rollups: those of three months."""

FEW_NODES = 3
"""With more nodes, those without a rollup show no decisions and open questions."""

_WORDS, _LINES = 8, 3


MOST_SESSIONS = 50
RECENT_SESSIONS = 20
BESIDE_SESSIONS = 8
"""The most sessions to list of a period, next to a rollup or topics, and next to results of other days."""

MOST_OPEN = 20
MOST_TOPICS = 12
NO_TOPICS = "No topics were found yet; you can run `memkit topics --refresh`."
NEAREST_DAYS = 2
"""The number of days to name before a period, and after it."""


class OverviewReader:
    """Reads the overviews of one question from the day files, the timeline, and the topics."""

    def __init__(
        self, request: SearchRequest, period: Period | None, projects: Callable[[], Sequence[Project]],
        home: Home, today: date, announce: Callable[[str], None],
    ) -> None:
        self._most = request.k
        self._period = period
        self._home = home
        self._today = today
        self._find_projects = projects
        self._announce = announce
        self._timelines: dict[str, Timeline] = {}
        self._since = period.since.isoformat() if period and period.since else ""
        self._until = period.until.isoformat() if period and period.until else ""
        given = request.filters
        self._wanted = history.SessionFilters(
            self._since, given.branch, until=self._until, session=given.session, agent=given.agent
        )
        self._is_narrowed = bool(given.branch or given.session or given.agent)

    def _timeline(self, project: Project) -> Timeline:
        if project.root not in self._timelines:
            self._timelines[project.root] = open_timeline(project, self._home, self._announce)
        return self._timelines[project.root]

    def _nodes(self) -> tuple[PeriodNode, ...]:
        """Return the nodes that the period consists of, by project, oldest first.

        A node without a rollup is followed by those of its parts that have one. Nodes without any memory are
        left out. Empty if the period does not consist of weeks, months, or years.
        """
        period = self._period
        if period is None or not period.since or not period.until or self._is_narrowed:
            return ()
        spans = spans_of(period.since, period.until, self._today)
        if not spans:
            return ()
        forgotten = Tombstones(self._home).forgotten()
        found: list[PeriodNode] = []
        for project in self._find_projects():
            own = list(_nodes(project, spans, forgotten.within(project.root)))
            few = sum(not one.lines for one in own) <= FEW_NODES
            described = (one if one.lines else _described(one, self._timeline(project), few) for one in own)
            found += filter(None, described)
        return _limited(found[:MOST_NODES])

    def topics(self, find: FindTopics) -> Overview:
        """Return the topics of the period, or all, and its sessions, or the newest."""
        found: list[TopicCount] = []
        missing = 0
        for project in self._find_projects():
            try:
                own = find(project, self._since, self._until or LAST_DAY)
            except MemkitError as error:
                self._announce(str(error))
                own = None
            found += own or ()
            missing += own is None
        found.sort(key=lambda one: -one.entries)
        has_period = self._period is not None
        if found:
            others = self.period(RECENT_SESSIONS) if has_period else self.recent(BESIDE_SESSIONS)
            return replace(others, kind="topics", topics=tuple(found[:MOST_TOPICS]))
        hint = "No topic has entries then." if not missing else NO_TOPICS
        return replace(self.period(with_nodes=True) if has_period else self.recent(), hint=hint)

    def period(self, cap: int = 0, *, with_nodes: bool = False) -> Overview:
        """Return the sessions and notes of the period; if there are none, the nearest days with something.

        `cap` limits both also if the request asks for more; 0 is no such limit. `with_nodes` adds the nodes
        of the timeline that the period consists of. Fewer sessions follow a rollup.
        """
        projects = self._find_projects()
        timelines = [self._timeline(one) for one in projects]
        until = self._until or LAST_DAY
        sessions = history.past_sessions(timelines, dataclasses.replace(self._wanted, until=until))
        nodes = self._nodes() if with_nodes else ()
        usual = RECENT_SESSIONS if any(one.lines for one in nodes) else MOST_SESSIONS
        most = self._most or usual
        most = min(most, cap or most)
        if self._is_narrowed:
            found = list(sessions)
            kept, omitted = found[:most], len(found[most:])
        else:  # read only those to show, and count the others
            kept = list(islice(sessions, most))
            count = sum(len(one.session_days(self._since, until)) for one in timelines)
            omitted = count - len(kept) if len(kept) == most else 0
        lines: list[Line] = []
        if not self._is_narrowed:
            remarks = history.remarks(projects, self._since, self._until, self._announce)
            lines = sorted(remarks, key=lambda one: one.time)
        shown = tuple(lines[-(cap or MOST_SESSIONS) :])
        nearest: list[str] = []
        if not (kept or lines or nodes):
            days = sorted({name[:10] for one in timelines for name in one.names})
            nearest = [day for day in days if day < self._since][-NEAREST_DAYS:]
            nearest += [day for day in days if self._until and day > self._until][:NEAREST_DAYS]
        in_order = sorted(kept, key=lambda one: (one.begins, one.ends, one.id))
        omitted_lines = len(lines) - len(shown)
        return Overview(
            "period", tuple(in_order), shown, omitted + omitted_lines, tuple(nearest), omitted_lines, nodes
        )

    def recent(self, most: int = RECENT_SESSIONS) -> Overview:
        """Return the newest sessions."""
        found = list(history.past_sessions(map(self._timeline, self._find_projects()), self._wanted))
        kept = found[: self._most or most]
        return Overview("recent", tuple(kept), omitted=len(found) - len(kept))

    def open(self, about: str) -> Overview | None:
        """Return the open questions, or the newest sessions if there are none; None if none is about that."""
        found = list(history.open_questions(self._find_projects(), self._wanted, self._announce))
        if about:
            found = _about(found, about)
            if not found:
                return None
        lines = tuple(found[: self._most or MOST_OPEN])
        sessions = () if lines else self.period(BESIDE_SESSIONS).sessions
        return Overview("open", sessions, lines)


def _nodes(project: Project, spans: Sequence[Span], forgotten: Forgotten) -> Iterator[PeriodNode]:
    journal = Journal(project)
    for span in spans:
        rollup = read_rollup(journal, span, forgotten)
        if rollup is None:
            yield PeriodNode(span.name, project.root)
            parts = _nodes(project, parts_of(span), forgotten)
            yield from (one for one in parts if one.lines)
            continue
        lines = (Line(one.date, one.text, one.id, "", project.root, one.citations) for one in rollup.lines)
        yield PeriodNode(span.name, project.root, rollup.title, tuple(lines))


def _described(node: PeriodNode, timeline: Timeline, few: bool) -> PeriodNode | None:
    if not timeline.has_period(node.id):
        return None
    known = timeline.node(node.id)
    node = replace(node, words=known.words[:_WORDS])
    if not few:
        return node

    def lines(entries: Sequence[Entry]) -> tuple[Line, ...]:
        return tuple(Line(one.time, one.text, one.id, "", node.root) for one in entries[:_LINES])

    decided, asked = timeline.decisions(known), timeline.open_questions(known)
    return replace(node, decided=lines(decided), open=lines(asked))


def _limited(nodes: Sequence[PeriodNode]) -> tuple[PeriodNode, ...]:
    most = MOST_LINES // max(1, sum(bool(one.lines) for one in nodes))
    return tuple(replace(one, lines=one.lines[:most], omitted=len(one.lines[most:])) for one in nodes)


def _about(lines: Sequence[Line], words: str) -> list[Line]:
    from memkit.index.tokens import Tokenizer

    tokenizer = Tokenizer()
    wanted = set(tokenizer.question(words))
    return [line for line in lines if wanted & set(tokenizer.tokenize(line.text))]
