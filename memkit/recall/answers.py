"""A question to the memory and its answer: what goes between a command, the service and the search.

Imports nothing heavy: a command that asks the service needs no more than this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Any

from memkit.index.chunk import Chunk

_CHUNK_FIELDS = (
    "source", "start_line", "end_line", "heading", "breadcrumb", "kind", "date", "session",
    "turns", "citations", "branch", "content",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Filters:
    """What is asked of a result; an empty field asks nothing.

    `since` and `until` are days, both included: a chunk without a date passes neither. `session`
    is an id or its beginning, `path` a file or directory as in `source`, or a pattern of them
    (`docs/*.md`).
    """

    since: date | None = None
    until: date | None = None
    session: str = ""
    branch: str = ""
    kind: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """One found chunk.

    `id` is shortened as shown. `project` is the name of the project whose root directory is `root`.
    `relevance` in [0, 1] holds across questions, `score` ranks the answers to one. `lexical` and
    `dense` are BM25 and cosine, `dense` None without a vector; `explanation` says what the score is
    made of, if the request asked for it.
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
    explanation: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """As `memkit search --json` prints it."""
        return {
            "id": self.id,
            "score": self.score,
            "relevance": self.relevance,
            "project": self.project,
            "root": self.root,
            **{name: getattr(self.chunk, name) for name in _CHUNK_FIELDS},
            "turns": list(self.chunk.turns),
            "citations": list(self.chunk.citations),
            "scores": {"lexical": self.lexical, "dense": self.dense, "context": self.context},
            **({"explanation": self.explanation} if self.explanation else {}),
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """The results of one query, best first.

    `degraded` is empty, or one line that says what is missing from the answer and why. `best` is
    the relevance of the best match, returned or not, `chunks` how many were searched.
    """

    query: str
    mode: str
    degraded: str
    took_ms: float
    results: list[Result]
    best: float = 0.0
    chunks: int = 0

    def as_dict(self, *, with_query: bool = True) -> dict[str, Any]:
        """As `memkit search --json` prints it."""
        return {
            **({"query": self.query} if with_query else {}),
            "mode": self.mode,
            "degraded": bool(self.degraded),
            **({"degraded_reason": self.degraded} if self.degraded else {}),
            "took_ms": self.took_ms,
            "best_relevance": self.best,
            "chunks": self.chunks,
            "results": [result.as_dict() for result in self.results],
        }


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A question and what its answer may be.

    Attributes:
        k: how many results; by default as the settings say.
        budget: tokens to fill with results, in place of a number of them.
        filters: which chunks may be results.
        file: the file being edited, relative to the project, whose domain is raised.
        minimum: least relevance of each result. By default none, but nothing is found unless the best
            match reaches `search.best_relevance`; 0 lets everything pass.
        explain: whether the results say what their scores are made of.
    """

    query: str
    k: int | None = None
    budget: int | None = None
    filters: Filters = field(default_factory=Filters)
    file: str = ""
    minimum: float | None = None
    explain: bool = False


def shortened(result: Result, characters: int) -> str:
    """The content of a result, cut to `characters` at a word with ` …`."""
    text = result.chunk.content.strip()
    if len(text) <= characters:
        return text
    return text[:characters].rsplit(None, 1)[0] + " …"
