"""Understand a question and answer it: ranked results, those of a period, or an overview.

Every search goes through `answer`: in a terminal, by the skill, and in the service.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

from msgspec import structs

from memkit.paths import Home
from memkit.projects.project import Project
from memkit.recall.overview import FindTopics, Overview
from memkit.recall.overview_reader import BESIDE_SESSIONS, MOST_SESSIONS, OverviewReader
from memkit.recall.periods import Period, find_period, is_about_work, without_work_words
from memkit.recall.results import Answer, SearchRequest
from memkit.timeline.nodes import day_of

if TYPE_CHECKING:
    from memkit.recall.search import Searcher

RECENT = re.compile(
    r"^(?:(?:so|and|please|tell me|remind me|show me|list|give me|an?|the)\W+)*(?:"
    r"(?:what|which)\b.*\b(?:topics|subjects|themes)\b|"
    r"what (?:have|had|did|were|are) (?:we|i|you)\b|what(?:['’]ve| have) (?:we|i|you)\b|"
    r"(?:overview|summary|recap|list) of\b.*\b(?:topics|sessions|work|progress)|(?:recent|last|latest) sessions\b|"
    r"(?:was|woran|worüber) (?:haben|hatten|habe) (?:wir|ich)\b|(?:welche|an welchen) (?:themen|sitzungen)\b|"
    r"(?:qu['’]|sur quoi |de quoi )(?:avons-nous|a-t-on|ai-je|est-ce qu['’]on a|est-ce que (?:nous avons|j['’]ai))|"
    r"(?:sur )?quels? (?:sujets|thèmes)\b|¿?(?:en |de )?qué (?:hicimos|hice|hemos|he|temas|trabajamos)\b|"
    r"(?:我们|我們|咱们|我)?(?:最近)?(?:都)?(?:做|讨论|討論|聊|处理|完成)[过過了]*(?:什么|什麼|哪些|啥)|(?:有)?哪些(?:主题|主題|话题|話題)|"
    r"(?:最近)?(?:は)?(?:何を(?:し|やっ|作業)|どんな(?:トピック|テーマ|作業|話題|こと))"
    r")",
    re.IGNORECASE,
)
"""Questions about work as such, if they have no other words: "what topics have we worked on"."""

TOPICS = re.compile(
    r"^(?:(?:so|and|please|tell me|remind me|show me|list|give me|an?|the|on|about)\W+)*(?:"
    r"(?:what|which)\b.*\b(?:topics?|subjects?|themes?)\b|what\b.*\b(?:we|i|you)\b.*\bworking\b|"
    r"(?:overview|summary|recap|list) of\b.*\btopics\b|"
    r"(?:an |über )?welche[nr]? themen\b|(?:sur )?quels? (?:sujets|thèmes)\b|¿?(?:en |de |sobre )?qué temas\b|"
    r".*(?:哪些|什么|什麼)(?:主题|主題|话题|話題)|.*(?:どんな|何の)(?:トピック|テーマ|話題)"
    r")",
    re.IGNORECASE,
)
"""Questions about what the work was on, if they have no other words: "what topics did we work on"."""

LAST_TIME = re.compile(
    r"\bwhen (?:did|have|had|was|were) (?:we|i|you|claude|it|this|that|the \w+) last\b|\bwhen was the last time\b|\bthe last time (?:we|i|you)\b|"
    r"\bwann (?:haben|habe|hat|hatten|wurde|war)\b.*\b(?:zuletzt|das letzte mal|zum letzten mal)\b|"
    r"\bquand\b.*\b(?:pour )?la dernière fois\b|\bcuándo\b.*\b(?:por )?última vez\b|(?:上次|上一次|最后一次|最後一次|最近一次).*(?:什么时候|什麼時候|何时|何時)|"
    r"(?:什么时候|什麼時候|何时|何時).*(?:上次|上一次|最后一次|最後一次|最近一次)|最後に.*(?:いつ|何時)|前回.*いつ",
    re.IGNORECASE,
)
"""Questions about the last time: the newest answer is wanted, not the best one."""

LAST_TIME_WORDS = frozenset(
    "when last latest ran run use used see saw seen wann zuletzt letzte letzten angefasst geändert benutzt quand dernière fois "
    "touché changé utilisé cuándo última vez tocamos cambiamos usamos".split()
)
"""Words of such questions that name no subject. Those of questions about work name none either."""

OPEN = (
    re.compile(
        r"^(?:(?:so|and|ok|please|tell|show|list|give|me|us|what|whats|which|anything|any|is|are|was|were|there|the|all|our|my|"
        r"do|does|did|we|i|have|has|had|things?|else|s|re|still|of|work)[\s'’,]+)*"
        r"(?:left open|still open|is open|are open|open (?:questions?|points?|items?|ends?|threads?|tasks?|to-?dos?|topics?)|"
        r"loose ends?|unfinished(?: (?:work|business|things))?|unresolved(?: questions?)?|outstanding|pending|"
        r"left(?: over)?(?: to (?:do|be done))?|to-?dos? left|(?:remains?|remaining)(?: (?:open|to (?:do|be done)))?)"
        r"(?P<about>(?:\W.*)?)$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^(?:was (?:ist|sind|war|bleibt|blieb) (?:denn )?(?:noch )?(?:offen(?: geblieben)?|unerledigt|zu tun)|was steht noch aus|"
        r"was fehlt noch|(?:welche |gibt es |was sind )?(?:noch |die )?offene[nr]? (?:fragen|punkte|aufgaben|themen)(?: (?:sind|gibt es))?(?: noch)?)"
        r"(?P<about>(?:\W.*)?)$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^(?:(?:qu['’]est-ce qui|que|quoi|il) reste(?:-t-il)?(?: (?:ouvert|à faire|en suspens|à finir))?|"
        r"(?:quel(?:le)?s? (?:sont )?)?(?:les )?(?:questions|points|sujets|tâches) (?:sont )?(?:encore )?(?:ouvert(?:e)?s|en suspens))"
        r"(?P<about>(?:\W.*)?)$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^¿?(?:qué (?:queda|falta|quedó|está)(?: (?:aún|todavía))?(?: (?:abierto|pendiente|por hacer))?|(?:cuáles son )?(?:qué )?(?:las |los )?"
        r"(?:preguntas|cuestiones|tareas|temas|puntos) (?:están |quedan )?(?:pendientes|abiert[oa]s))"
        r"(?P<about>(?:\W.*)?)$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^(?P<about>.*?)(?:还有|還有|有|还剩|還剩)?(?:什么|什麼|哪些)?(?:问题|問題|事情|工作|任务|任務)?(?:还|還)?(?:没有?|沒有?|未)"
        r"(?:完成|做完|解决|解決|做)(?:的(?:问题|問題|事情|工作|任务|任務))?$|^(?P<about2>.*?)的?(?:待办(?:事项)?|待辦(?:事項)?|遗留问题|遺留問題)$"
    ),
    re.compile(
        r"^(?P<about>.*?)[でにのは]?(?:まだ)?(?:(?:何が)?(?:残って|終わって(?:い)?ない|未解決|未完了)(?:い?る|います)?|残(?:件|課題|タスク|作業))"
        r"(?:の?(?:こと|作業|課題|問題|タスク|もの))?(?:は?(?:何|なに)?(?:です)?か?)?$"
    ),
)
"""Questions about what is left open, by language. `about` is what they are about, or ""."""

OPEN_UNSPACED = OPEN[-2:]
"""Those of the languages that put the subject first, without a preposition."""

ABOUT = re.compile(
    r"^\W*(?:on|about|for|with|in|of|from|regarding|von|vom|zu|zum|zur|bei|beim|am|an|im|in|über|für|sur|pour|dans|avec|du|de|"
    r"sobre|en|con|para|del)\W+(?P<words>.+)$",
    re.IGNORECASE,
)


LAST_TIME_RESULTS = 30
LAST_TIME_RELEVANCE = 0.7
"""A question about the last time reads so many results at once, and gets the newest of those with this
share of the best relevance.
"""


@dataclass(frozen=True, slots=True)
class Question:
    """What a request asks: `kind` is "search", or the kind of an `Overview`.

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
