"""Understand a question and answer it: ranked results, those of a period, or an overview.

Every search goes through `answer`: in a terminal, by the skill, and in the service.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

from msgspec import structs

from memkit.paths import Home
from memkit.projects.project import Project
from memkit.questions.overview_reader import BESIDE_SESSIONS, MOST_SESSIONS, OverviewReader
from memkit.questions.period_days import LANGUAGES
from memkit.questions.periods import find_period, is_about_work, without_work_words
from memkit.search.overview import FindTopics, Overview
from memkit.search.results import Answer, Period, SearchRequest
from memkit.timeline.nodes import day_of

if TYPE_CHECKING:
    from memkit.search.ranking import Searcher

_LEAD = "so|and|please|tell me|remind me|show me|list|give me|an?|the"


def _any(lead: str, patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile(f"{lead}(?:{'|'.join(patterns)})", re.IGNORECASE)


RECENT = _any(rf"^(?:(?:{_LEAD})\W+)*", (one.recent for one in LANGUAGES))
"""Questions about work as such, if they have no other words: "what topics have we worked on"."""

TOPICS = _any(rf"^(?:(?:{_LEAD}|on|about)\W+)*", (one.topics for one in LANGUAGES))
"""Questions about what the work was on, if they have no other words: "what topics did we work on"."""

LAST_TIME = _any("", (one.last_time for one in LANGUAGES))
"""Questions about the last time: the newest answer is wanted, not the best one."""

LAST_TIME_WORDS = frozenset(
    "when last latest ran run use used see saw seen wann zuletzt letzte letzten angefasst geändert benutzt "
    "quand dernière fois touché changé utilisé cuándo última vez tocamos cambiamos usamos".split()
)
"""Words of such questions that name no subject. Those of questions about work name none either."""

OPEN = [(re.compile(one.open, re.IGNORECASE), one.is_spaced) for one in LANGUAGES]
"""Questions about what is left open. Languages without spaces put the subject first, with no preposition."""

ABOUT = re.compile(
    r"^\W*(?:on|about|for|with|in|of|from|regarding|von|vom|zu|zum|zur|bei|beim|am|an|im|über|für"
    r"|sur|pour|dans|avec|du|de|sobre|en|con|para|del)\W+(?P<words>.+)$",
    re.IGNORECASE,
)

LAST_TIME_RESULTS = 30
LAST_TIME_RELEVANCE = 0.7
"""The results to read at once for a question about the last time, and the least share of the best relevance.
The newest of them answers.
"""


@dataclass(frozen=True, slots=True)
class Question:
    """The meaning of a request: `kind` is "search", or the kind of an `Overview`.

    `request` has the words without the period, and the period as filters. `is_named` is true if the question
    names the period, and false if options do. `about` has the words that open questions must share, or "".
    """

    kind: str
    request: SearchRequest
    period: Period | None
    is_named: bool
    about: str = ""


def understand(request: SearchRequest, today: date) -> Question:
    """Return what `request` asks. Its own `since` and `until` take the place of a period in its words."""
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
    is_work = is_about_work(words)
    if filters.kind or filters.path:  # an overview is of sessions
        if found and is_work:
            asked = replace(asked, query=request.query, minimum=0.0)
        return Question("search", asked, period, is_named)
    about = _open_about(words)
    if about is not None:
        return Question("open", asked, period, is_named, about)
    asks_for_work = is_work and RECENT.search(words.strip()) is not None
    if is_work and TOPICS.search(words.strip()):
        return Question("topics", asked, period, is_named)
    if period is not None and (asks_for_work or (found and is_work)):
        return Question("period", asked, period, is_named)
    return Question("recent" if asks_for_work else "search", asked, period, is_named)


def _open_about(words: str) -> str | None:
    """Return what open questions are wanted about, "" for all, or None if the question is another one."""
    asked = words.strip(" ?!.？！。")
    if " " not in asked and asked.isascii():  # `memkit search pending`
        return None
    for pattern, is_spaced in OPEN:
        if match := pattern.match(asked):
            about = next(filter(None, match.groups()), "").strip(" ?!.,")
            if is_about_work(about):
                return ""
            if not (about.isascii() or is_spaced):
                return about
            named = ABOUT.match(about)
            return named["words"] if named else None
    return None


def answer(
    request: SearchRequest, searcher: Callable[[], Searcher], projects: Callable[[], Sequence[Project]],
    home: Home, find_topics: FindTopics, announce: Callable[[str], None],
) -> Answer:
    """Return the answer to `request`.

    `searcher` opens the index, which an overview does not need. `projects` are those that are searched.
    `announce` gets a line on each day that cannot be read.
    """
    started = time.perf_counter()
    today = request.today or date.today()
    asked = understand(request, today)
    reader = OverviewReader(asked.request, asked.period, projects, home, today, announce)
    overview: Overview | None = None
    if asked.kind == "topics":
        overview = reader.topics(find_topics)
    elif asked.kind == "period":
        overview = reader.period(with_nodes=True)
        if overview.is_empty:  # a file in a folder, or a heading in another file, may have the date
            lines = searcher().dated(asked.request.filters)
            shown = tuple(lines[:MOST_SESSIONS])
            nearest = () if shown else overview.nearest
            omitted = len(lines) - len(shown)
            overview = structs.replace(
                overview, lines=shown, omitted=omitted, omitted_lines=omitted, nearest=nearest
            )
    elif asked.kind == "recent":
        overview = reader.recent()
    elif asked.kind == "open":
        overview = reader.open(asked.about)
    is_outside = False
    if overview is not None:
        took = round((time.perf_counter() - started) * 1000, 3)
        found = Answer(request.query, "overview", "", took, [])
    else:
        found = _search(asked.request, searcher())
        is_outside = asked.is_named and not found.results and asked.request.query.strip() != ""
        if is_outside:
            open_filters = replace(asked.request.filters, since=None, until=None)
            found = _search(replace(asked.request, filters=open_filters), searcher())
            overview = reader.period(BESIDE_SESSIONS)
    return replace(
        found, query=request.query, period=asked.period, words=asked.request.query, overview=overview,
        is_outside=is_outside,
    )  # fmt: skip


def _search(request: SearchRequest, searcher: Searcher) -> Answer:
    """Return the results of a search, best first; for a question about the last time, the newest first."""
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
