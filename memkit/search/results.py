"""A question to the memory, and its answer.

Imports nothing heavy: a command that asks the service needs no more than this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatchcase
from typing import Any, TypedDict, cast

from memkit.index.chunk import Chunk
from memkit.search.overview import Line, Overview
from memkit.text import one_line
from memkit.timeline.nodes import day_of, week_of

NOTE_CHARACTERS = 300

_CHUNK_FIELDS = (
    "source", "start_line", "end_line", "heading", "breadcrumb", "kind", "date", "session",
    "turns", "citations", "branch", "content",
)  # fmt: skip

_MINUTE = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?= |$)")


@dataclass(frozen=True, slots=True)
class Period:
    """Days, both inclusive; None is open. `text` are the words that name it, or "" if options do."""

    since: date | None
    until: date | None
    text: str = ""

    @property
    def days(self) -> str:
        """The days to show: `2026-11-16 to 2026-11-22`."""
        if self.since == self.until:
            return str(self.since) if self.since else ""
        if self.since is None:
            return f"all days until {self.until}"
        return f"{self.since} to {self.until}" if self.until else f"all days since {self.since}"

    def __str__(self) -> str:
        says_more = self.text and str(self.since or self.until) not in self.text
        return f"{self.days} ({self.text})" if says_more else self.days


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions that each result must meet. An empty field is no condition.

    `since` and `until` are days, both inclusive; a chunk without a date meets neither. `session` is
    an id or its first characters. `path` is a file or directory as in `source`, or a pattern such as
    `docs/*.md`. `agent` is the name of an agent.
    """

    since: date | None = None
    until: date | None = None
    session: str = ""
    branch: str = ""
    kind: str = ""
    path: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A question and the limits of its answer.

    `minimum` is the lowest relevance of a result, except of one that comes before what it changes; 0 returns
    everything. By default the best match must reach `search.best_relevance`, or nothing is returned, and
    results far below it are left out, unless there is a `budget` to fill.
    """

    query: str
    k: int | None = None  # number of results; the default is `search.k`
    budget: int | None = None  # fill this many tokens with results, instead of `k`
    filters: Filters = field(default_factory=Filters)
    file: str = ""  # being edited, relative to the project; raises chunks about its domain
    minimum: float | None = None
    explain: bool = False  # add to each result how its score came about
    excerpts: bool = False  # add to each result the two lines to show to a person
    today: date | None = None  # the day that "yesterday" is before; the default is the day of the answer
    lookups: bool = True  # also turns in which Claude only asked the memory
    subject: str = ""  # the words of the query that count for relevance; all by default


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The lines that a person reads of a result.

    `time` is the one in its heading, `title` the rest, or the text of a bullet. `match` is the sentence that
    adds the most words of the question to the title, or "". `outcome` is what came of a turn, or "". `words`
    are the words of the question as these texts have them, in lowercase. `session` is the title of the
    session, or "".
    """

    time: str = ""
    title: str = ""
    match: str = ""
    outcome: str = ""
    words: tuple[str, ...] = ()
    session: str = ""

    @property
    def heading(self) -> str:
        """Time and title."""
        return f"{self.time} {self.title}".strip()


@dataclass(frozen=True, slots=True)
class Result:
    """One chunk that was found.

    `id` is that of its entry, or `chunk_id` for text outside of entries. `project` is the name of the project
    whose root directory is `root`.
    `relevance` in [0, 1] compares across questions; `score` ranks the results of one question.
    `lexical` is BM25, `dense` the cosine (None without a vector), `context` the score of that mode.
    The pieces of a turn and the bullets that cite it are one result, with the id of the best of them:
    `merged` has the ids and kinds of the others.
    `superseded` has the date, text, and id of a later fact because of which it no longer holds.
    `changed_by` has those of a later entry that changes what it says; its text is the sentence that does.
    `author` is the name of the colleague whose memory it is from, on a server; "" for one's own.
    `excerpt` is for a person; it is None unless the request asks for it. `git` has the marks from git, see
    `memkit.browse.git_marks`. `team` says who shared it, if somebody did: author, day, commit, and a line;
    see `memkit.search.shared_by`.
    """

    id: str
    project: str
    score: float
    relevance: float
    chunk: Chunk
    lexical: float
    dense: float | None
    context: float
    root: str = ""
    merged: list[dict[str, str]] = field(default_factory=list)
    superseded: dict[str, str] = field(default_factory=dict)
    changed_by: dict[str, str] = field(default_factory=dict)
    explanation: dict[str, Any] = field(default_factory=dict)
    excerpt: Excerpt | None = None
    git: dict[str, Any] = field(default_factory=dict)
    team: dict[str, Any] = field(default_factory=dict)
    author: str = ""
    chunk_id: str = ""

    @property
    def now(self) -> str:
        """The fact that supersedes it, with its date, on one line; or ""."""
        return _dated(self.superseded)

    @property
    def newer(self) -> str:
        """The entry to see instead: id, date, and the sentence that changes it, on one line; or ""."""
        return f"see {self.changed_by['id']}, {_dated(self.changed_by)}" if self.changed_by else ""

    @property
    def mark(self) -> str:
        """The line that marks it as out of date, or ""."""
        if self.superseded:
            return f"superseded {self.now}"
        return f"earlier; {self.newer}" if self.changed_by else ""

    @property
    def git_line(self) -> str:
        """The marks from git in words, on one line; or ""."""
        return one_line(str(self.git.get("line", "")), NOTE_CHARACTERS)

    @property
    def team_line(self) -> str:
        """Who shared it, on one line; or ""."""
        return one_line(str(self.team.get("line", "")), NOTE_CHARACTERS)

    @property
    def node(self) -> str:
        """Its place in the timeline: `2026-W47 > 2026-11-20 > 14:02`; "" without a date.

        `memkit timeline` takes each of the first two names, and the id of a turn.
        """
        day = day_of(self.chunk.date) if self.chunk.date else None
        if day is None:
            return ""
        minute = _MINUTE.match(self.chunk.heading)
        return " > ".join([week_of(day), day.isoformat(), *([minute[0]] if minute else [])])

    @property
    def turn_entries(self) -> list[str]:
        """The ids to expand for the turns that a bullet cites. Expanding the bullet shows its session."""
        if self.chunk.kind == "turn":  # expanding it shows all of its pieces
            return []
        return list(dict.fromkeys(one["id"] for one in self.merged if one["kind"] == "turn"))

    def as_dict(self) -> SearchResult:
        """Return the result as `memkit search --json` prints it."""
        value: dict[str, Any] = {
            "id": self.id, "chunk_id": self.chunk_id, "score": self.score, "relevance": self.relevance,
            "project": self.project, "root": self.root, **({"author": self.author} if self.author else {}),
            **{name: getattr(self.chunk, name) for name in _CHUNK_FIELDS}, "node": self.node,
            "turns": list(self.chunk.turns), "citations": list(self.chunk.citations), "merged": self.merged,
            **({"superseded": self.superseded} if self.superseded else {}),
            **({"git": self.git} if self.git else {}), **({"team": self.team} if self.team else {}),
            **({"changed_by": self.changed_by} if self.changed_by else {}),
            "scores": {"lexical": self.lexical, "dense": self.dense, "context": self.context},
            **({"explanation": self.explanation} if self.explanation else {}),
            **({"excerpt": self.excerpt} if self.excerpt else {}),
        }  # fmt: skip
        return cast("SearchResult", value)


@dataclass(frozen=True, slots=True)
class Answer:
    """The results of one question, best first.

    `degraded` is empty, or one line that explains what the answer lacks. `best` is the relevance of the
    best match, returned or not. `chunks` is the number of chunks that were searched.

    `period` is the period that the question names, and `words` is the question without it. If nothing in the
    period matches these words, the results are of other days (`is_outside`). `overview` is the answer to a
    question about work as such, and comes with results of other days. `nearest` names entries that match too
    little to be results, if there are none.
    """

    query: str
    mode: str
    degraded: str
    took_ms: float
    results: list[Result]
    best: float = 0.0
    chunks: int = 0
    period: Period | None = None
    words: str = ""
    is_outside: bool = False
    overview: Overview | None = None
    nearest: list[Line] = field(default_factory=list)

    @property
    def days(self) -> str:
        """The days of the period, or ""."""
        return self.period.days if self.period else ""

    def as_dict(self, *, with_query: bool = True) -> SearchAnswer:
        """Return the answer as `memkit search --json` prints it."""
        period = None
        if self.period is not None:
            ends = {"since": self.period.since, "until": self.period.until}
            period = {name: str(day) if day else None for name, day in ends.items()}
            if with_query:
                period |= {"text": self.period.text, "words": self.words}
        value: dict[str, Any] = {
            **({"query": self.query} if with_query else {}), **({"period": period} if period else {}),
            **({"outside_period": True} if self.is_outside else {}),
            **({"overview": self.overview} if self.overview else {}),
            **({"nearest": self.nearest} if self.nearest else {}), "mode": self.mode,
            "degraded": bool(self.degraded),
            **({"degraded_reason": self.degraded} if self.degraded else {}),
            "took_ms": self.took_ms, "best_relevance": self.best, "chunks": self.chunks,
            "results": [result.as_dict() for result in self.results],
        }  # fmt: skip
        return cast("SearchAnswer", value)


class Reference(TypedDict):
    """Another entry. `text` is the sentence that counts."""

    id: str
    date: str
    text: str


class MergedResult(TypedDict):
    """A part of the memory that a result stands for, too."""

    id: str
    kind: str


class ResultScores(TypedDict):
    """The parts of a score: BM25, the cosine of the vectors, and the score with its surroundings."""

    lexical: float
    dense: float | None
    context: float


class _SearchResult(TypedDict):
    id: str
    chunk_id: str
    score: float
    relevance: float
    project: str
    root: str
    source: str
    start_line: int
    end_line: int
    heading: str
    breadcrumb: str
    kind: str
    date: str
    session: str
    turns: list[str]
    citations: list[str]
    branch: str
    content: str
    node: str
    merged: list[MergedResult]
    scores: ResultScores


class SearchResult(_SearchResult, total=False):
    """A `Result` as JSON. Lines are those of `source`, from 1, both ends included.

    `chunk_id` changes when the text moves; `id`, of a turn, bullet, fact, or note, stays.
    """

    author: str
    superseded: Reference
    git: dict[str, Any]
    team: dict[str, Any]
    changed_by: Reference
    excerpt: Excerpt
    explanation: dict[str, Any]


class _SearchPeriod(TypedDict):
    since: str | None
    until: str | None


class SearchPeriod(_SearchPeriod, total=False):
    """The period that a question names, and its other words."""

    text: str
    words: str


class _SearchAnswer(TypedDict):
    mode: str
    degraded: bool
    took_ms: float
    best_relevance: float
    chunks: int
    results: list[SearchResult]


class SearchAnswer(_SearchAnswer, total=False):
    """An `Answer` as JSON. With `outside_period`, the results are of other days."""

    query: str
    period: SearchPeriod
    outside_period: bool
    overview: Overview
    nearest: list[Line]
    degraded_reason: str


def _dated(newer: Mapping[str, str]) -> str:
    known = [newer.get("date", ""), newer.get("text", "")]
    return one_line(": ".join(filter(None, known)), NOTE_CHARACTERS)


def is_at(source: str, path: str) -> bool:
    """Return whether the file `source` is `path`, is in that directory, or matches that pattern."""
    return source == path or source.startswith(f"{path}/") or fnmatchcase(source, path)
