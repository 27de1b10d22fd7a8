"""Understand a question and answer it: ranked results, those of a period, or an overview.

Every search goes through `answer`: in a terminal, by the skill, and in the service.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

from memkit.errors import MemkitError
from memkit.hook.project import Project
from memkit.paths import Home
from memkit.recall.overview import FindTopics, Line, Overview, PeriodNode, TopicCount
from memkit.recall.periods import Period, find_period, is_about_work, without_work_words
from memkit.recall.results import Answer, SearchRequest
from memkit.timeline.nodes import day_of

if TYPE_CHECKING:
    from memkit.recall.search import Searcher
    from memkit.timeline.tree import Timeline

MOST_SESSIONS = 50
RECENT_SESSIONS = 20
BESIDE_SESSIONS = 8
"""The most sessions to list next to results of other days, or if there are no open questions."""

MOST_OPEN = 20
MOST_TOPICS = 12
NO_TOPICS = "No topics were found yet; the user can run `memkit topics --refresh`."
NEAREST_DAYS = 2
"""The number of days to name before a period, and after it."""

LAST_TIME_RESULTS = 30
LAST_TIME_RELEVANCE = 0.7
"""A question about the last time gets the newest of so many results that have this share of the best
relevance.
"""


@dataclass(frozen=True, slots=True)
class Question:
    """What a request asks: `kind` is "search", or the kind of an `Overview`.

    `request` has the words without the period, and the period as filters. `about` are the words that open
    questions must share, or "". `is_named` tells that the period is in the question, not in options.
    """

    kind: str
    request: SearchRequest
    period: Period | None
    about: str = ""
    is_named: bool = False


def understand(request: SearchRequest, today: date) -> Question:
    """Return what `request` asks. Its own `since` and `until` take the place of a period in its words."""
    from memkit.recall.question_words import TOPICS

    filters = request.filters
    found = find_period(request.query, today)
    words = found.rest if found else request.query
    period = found.period if found else None
    if filters.since or filters.until:
        period = Period(filters.since, filters.until)
    if period is not None:
        filters = replace(filters, since=period.since, until=period.until)
    asked = replace(request, query=words, filters=filters)
    is_named = found is not None and not (request.filters.since or request.filters.until)
    if filters.kind or filters.path:  # an overview is of sessions
        if found and is_about_work(words):
            asked = replace(asked, query=request.query, minimum=0.0)
        return Question("search", asked, period, "", is_named)
    about = _open_about(words)
    if about is not None:
        return Question("open", asked, period, about, is_named)
    asks_for_work = is_about_work(words) and _asks_for_work(words)
    if is_about_work(words) and TOPICS.search(words.strip()):
        return Question("topics", asked, period, "", is_named)
    if period is not None and (asks_for_work or (found and is_about_work(words))):
        return Question("period", asked, period, "", is_named)
    return Question("recent" if asks_for_work else "search", asked, period, "", is_named)


def _asks_for_work(words: str) -> bool:
    from memkit.recall.question_words import RECENT

    return RECENT.search(words.strip()) is not None


def _open_about(words: str) -> str | None:
    """Return what open questions are wanted about, "" for all, or None if the question is another one."""
    from memkit.recall.question_words import ABOUT, OPEN, OPEN_UNSPACED

    asked = words.strip(" ?!.？！。")
    if " " not in asked and asked.isascii():  # `memkit search pending`
        return None
    for pattern in OPEN:
        if (match := pattern.match(asked)):
            about = next(filter(None, match.groups()), "").strip(" ?!.,")
            if is_about_work(about):
                return ""
            if not about.isascii() and pattern in OPEN_UNSPACED:
                return about
            named = ABOUT.match(about)
            return named["words"] if named else None
    return None


def answer(
    request: SearchRequest,
    searcher: Callable[[], Searcher],
    projects: Callable[[], Sequence[Project]],
    home: Home,
    find_topics: FindTopics,
    announce: Callable[[str], None],
) -> Answer:
    """Return the answer to `request`.

    `searcher` opens the index, which an overview does not need. `projects` are those that are searched.
    `announce` gets a line on each day that cannot be read.
    """
    started = time.perf_counter()
    today = request.today or date.today()
    asked = understand(request, today)
    reader = _Reader(asked, projects, home, today, announce)
    overview = None
    if asked.kind == "topics":
        overview = reader.topics(find_topics)
    elif asked.kind == "period":
        overview = reader.period(with_nodes=True)
        if overview.is_empty:  # a file in a folder, or a heading in another file, may have the date
            lines = searcher().dated(asked.request.filters)
            shown = tuple(lines[:MOST_SESSIONS])
            nearest = () if shown else overview.nearest
            overview = replace(
                overview, lines=shown, omitted_lines=len(lines) - len(shown), nearest=nearest
            )
    elif asked.kind == "recent":
        overview = reader.recent()
    elif asked.kind == "open":
        overview = reader.open()
    if overview is None:
        found = _search(asked.request, searcher())
        is_outside = asked.is_named and not found.results and asked.request.query.strip() != ""
        if is_outside:
            open_filters = replace(asked.request.filters, since=None, until=None)
            found = _search(replace(asked.request, filters=open_filters), searcher())
            overview = reader.period(BESIDE_SESSIONS)
        return _told(found, request, asked, overview, is_outside=is_outside)
    took = round((time.perf_counter() - started) * 1000, 3)
    nothing = Answer(request.query, "overview", "", took, [])
    return _told(nothing, request, asked, overview)


def _search(request: SearchRequest, searcher: Searcher) -> Answer:
    """Return the results of a search, best first; for a question about the last time, the newest first."""
    from memkit.recall.question_words import LAST_TIME, LAST_TIME_WORDS

    if request.budget or not LAST_TIME.search(request.query):
        return searcher.answer(request)
    # "touch" in "when did we last touch billing" is rare, but nothing to look for. To ask is not to touch.
    subject = without_work_words(request.query, LAST_TIME_WORDS)
    wanted = replace(request, query=subject, lookups=False)
    size = request.k or searcher.settings.k
    most = max(size, LAST_TIME_RESULTS)
    found = searcher.answer(replace(wanted, k=most))
    least = LAST_TIME_RELEVANCE * max((one.relevance for one in found.results), default=0.0)
    near = {(one.root, one.id): one for one in found.results if one.relevance >= least}
    others = [one for one in found.results if one.relevance < least]
    newest = ""
    # More may match than were returned, so look again among those since the newest one, until none is newer.
    while near and (latest := max(one.chunk.date for one in near.values())) > newest:
        newest = latest
        filters = replace(wanted.filters, since=day_of(newest))
        later = searcher.answer(replace(wanted, k=most, minimum=least, filters=filters))
        near |= {(one.root, one.id): one for one in later.results}
    in_order = sorted(near.values(), key=lambda one: one.chunk.date, reverse=True)
    return replace(found, results=[*in_order, *others][:size])


def _told(
    found: Answer,
    request: SearchRequest,
    asked: Question,
    overview: Overview | None,
    *,
    is_outside: bool = False,
) -> Answer:
    """Return an answer with what was understood of the question."""
    return replace(
        found, query=request.query, period=asked.period, words=asked.request.query, overview=overview,
        is_outside=is_outside,
    )  # fmt: skip


class _Reader:
    """Reads overviews from the day files."""

    def __init__(
        self,
        asked: Question,
        projects: Callable[[], Sequence[Project]],
        home: Home,
        today: date,
        announce: Callable[[str], None],
    ) -> None:
        self._asked = asked
        self._home = home
        self._today = today
        self._find_projects = projects
        self._announce = announce
        self._timelines: dict[str, Timeline] = {}
        period = asked.period or Period(None, None)
        self._since = period.since.isoformat() if period.since else ""
        self._until = period.until.isoformat() if period.until else ""

    def _timeline(self, project: Project) -> Timeline:
        from memkit.timeline.tree import open_timeline

        if project.root not in self._timelines:
            self._timelines[project.root] = open_timeline(project, self._home, self._announce)
        return self._timelines[project.root]

    def _session_days(self, project: Project) -> dict[str, list[str]]:
        return self._timeline(project).session_days(self._since, self._until)

    def _nodes(self) -> tuple[PeriodNode, ...]:
        from memkit.recall.period_nodes import period_nodes

        period, filters = self._asked.period, self._asked.request.filters
        if period is None or not period.since or not period.until or filters.session or filters.branch:
            return ()
        days = period.since, period.until
        return period_nodes(self._find_projects(), self._home, days, self._today, self._timeline)

    def topics(self, find: FindTopics) -> Overview:
        """Return the topics of the period, or all, and its sessions, or the newest."""
        found: list[TopicCount] = []
        missing = 0
        for project in self._find_projects():
            try:
                own = find(project, self._since, self._until or "9999-12-31")
            except MemkitError as error:
                self._announce(str(error))
                own = None
            found += own or ()
            missing += own is None
        found.sort(key=lambda one: -one.entries)
        has_period = self._asked.period is not None
        if found:
            others = self.period(RECENT_SESSIONS) if has_period else self.recent(BESIDE_SESSIONS)
            return replace(others, kind="topics", topics=tuple(found[:MOST_TOPICS]))
        hint = "No topic has entries then." if not missing else NO_TOPICS
        return replace(self.period(with_nodes=True) if has_period else self.recent(), hint=hint)

    def period(self, cap: int = 0, *, with_nodes: bool = False) -> Overview:
        """Return the sessions and notes of the period; if there are none, the nearest days with something.

        `cap` limits both also if the request asks for more; 0 is no such limit. `with_nodes` adds the nodes
        of the timeline that the period consists of, and leaves out sessions beside a rollup.
        """
        from memkit.recall import history

        projects = self._find_projects()
        filters = self._asked.request.filters
        wanted = history.SessionFilters(
            self._since, filters.branch, until=self._until or "9999-12-31", session=filters.session
        )
        find_days = self._session_days if self._since and self._until else None
        found = list(history.past_sessions(projects, wanted, self._announce, find_days))
        nodes = self._nodes() if with_nodes else ()
        usual = RECENT_SESSIONS if any(one.lines for one in nodes) else MOST_SESSIONS
        most = self._asked.request.k or usual
        kept = found[: min(most, cap or most)]
        lines: list[Line] = []
        if not filters.session and not filters.branch:
            remarks = history.remarks(projects, self._since, self._until, self._announce)
            lines = sorted(remarks, key=lambda one: one.time)
        shown = tuple(lines[-(cap or MOST_SESSIONS) :])
        nearest: list[str] = []
        if not (found or lines or nodes):
            days = history.known_days(projects)
            nearest = [day for day in days if day < self._since][-NEAREST_DAYS:]
            nearest += [day for day in days if self._until and day > self._until][:NEAREST_DAYS]
        in_order = sorted(kept, key=lambda one: (one.begins, one.ends, one.id))
        omitted, omitted_lines = len(found) - len(kept), len(lines) - len(shown)
        return Overview("period", tuple(in_order), shown, omitted, tuple(nearest), omitted_lines, nodes)

    def recent(self, most: int = RECENT_SESSIONS) -> Overview:
        """Return the newest sessions."""
        from memkit.recall import history

        filters = self._asked.request.filters
        wanted = history.SessionFilters(session=filters.session, branch=filters.branch)
        found = list(history.past_sessions(self._find_projects(), wanted, self._announce))
        kept = found[: self._asked.request.k or most]
        return Overview("recent", tuple(kept), omitted=len(found) - len(kept))

    def open(self) -> Overview | None:
        """Return the open questions, or the newest sessions if there are none; None if none is about that."""
        from memkit.recall import history

        filters = self._asked.request.filters
        wanted = history.SessionFilters(
            self._since, filters.branch, until=self._until, session=filters.session
        )
        found = list(history.open_questions(self._find_projects(), wanted, self._announce))
        if self._asked.about:
            found = _about(found, self._asked.about)
            if not found:
                return None
        lines = tuple(found[: self._asked.request.k or MOST_OPEN])
        sessions = () if lines else self.period(BESIDE_SESSIONS).sessions
        return Overview("open", sessions, lines)


def _about(lines: Sequence[Line], words: str) -> list[Line]:
    """Return the lines that share a word with `words`."""
    from memkit.index.tokens import Tokenizer

    tokenizer = Tokenizer()
    wanted = set(tokenizer.question(words))
    return [line for line in lines if wanted & set(tokenizer.tokenize(line.text))]
