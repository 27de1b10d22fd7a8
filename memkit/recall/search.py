"""Search: a question in, ranked chunks out."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memkit.errors import EmbeddingError
from memkit.index.chunk import SHOWN_ID_CHARACTERS
from memkit.index.snapshot import Snapshot
from memkit.recall import fusion
from memkit.recall.corpus import Corpus
from memkit.recall.fusion import Scores
from memkit.recall.results import Answer, Filters, Result, SearchRequest, fill, is_at
from memkit.settings.load import SearchSettings

if TYPE_CHECKING:
    from memkit.embedding import Embedder

logger = logging.getLogger(__name__)

DOMAIN_BOOST = 1.3
"""Factor for a chunk about the domain of the file being edited."""

INSTRUCTION_BOOST = 1.2
"""Factor for a chunk of an `*.instructions.md`."""

UNVERIFIED_FACTOR = 0.7
"""Factor for a bullet whose text its turns do not prove."""

MOST_FILLED = 1000
"""The number of results to consider for a budget."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Everything about all chunks for one question; `allowed` chunks may become results."""

    arms: fusion.Arms
    ranking: fusion.Ranking
    context: Scores
    relevance: Scores
    boosts: Scores
    exact: NDArray[np.bool_] | None
    scores: Scores
    allowed: NDArray[np.bool_]
    best: float
    problem: str


class Searcher:
    """Answers questions about one project or several. It holds snapshots and model: ask it often.

        searcher = open_searcher(project, home, settings)
        for result in searcher.search("which port does staging use").results:
            print(result.id, result.chunk.content)
    """

    def __init__(
        self,
        memory: Sequence[Snapshot] | Corpus,
        settings: SearchSettings,
        embedder: Embedder | None,
        notes: Sequence[str] = (),
        names: Mapping[str, str] | None = None,
    ) -> None:
        """Search by words alone if `embedder` is None; `notes` are what every answer lacks.

        `names` maps the root of a project to its name; the default is the name of the directory.
        """
        self.corpus = memory if isinstance(memory, Corpus) else None
        if memory and not isinstance(memory, Corpus):
            self.corpus = Corpus(memory)
        self.settings = settings
        self.embedder = embedder
        self.notes = list(notes)
        self.weights = fusion.WEIGHTS
        self._names = names or {}

    def search(self, query: str, k: int | None = None) -> Answer:
        """Return the `k` best chunks for `query`."""
        return self.answer(SearchRequest(query, k))

    def answer(self, request: SearchRequest) -> Answer:
        """Return the results that `request` asks for."""
        started = time.perf_counter()
        results: list[Result] = []
        notes, best = self.notes, 0.0
        if self.corpus is not None and len(self.corpus) and request.query.strip():
            found = self._find(self.corpus, request)
            best = found.best
            notes = [*notes, found.problem] if found.problem else notes
            least = self.settings.best_relevance if request.minimum is None else request.minimum
            if best >= least:
                results = list(self._results(self.corpus, found, request))
        return Answer(
            query=request.query,
            mode=self.settings.mode,
            degraded="; ".join(notes),
            took_ms=round((time.perf_counter() - started) * 1000, 3),
            results=results,
            best=best,
            chunks=0 if self.corpus is None else len(self.corpus),
        )

    def _find(self, corpus: Corpus, request: SearchRequest) -> _Found:
        query, mode = request.query, self.settings.mode
        lexical, passages, coverage = corpus.lexical(query)
        dense, nearest, problem = None, None, ""
        if self.embedder is not None and corpus.has_vectors:
            try:
                dense, nearest = corpus.cosines(self.embedder.embed_query(query))
            except EmbeddingError as error:
                logger.warning("%s", error)
                problem = f"searched by words alone: {error}"
        recency = np.zeros(len(corpus))
        if mode == "weighted" or self.settings.recency_boost:
            recency = recency_of(corpus, self.settings.half_life_days, date.today())
        arms = fusion.Arms(lexical, passages, dense, recency)
        ranking = fusion.fuse(arms, corpus.layout, mode, self.weights)
        context = ranking.scores
        if mode != "context":
            context = fusion.context(arms, corpus.layout, self.weights).scores
        boosts = boosts_of(corpus, self.settings, request.file, recency)
        scores = ranking.scores * boosts
        allowed, is_found = mask(request.filters, corpus), ranking.found
        exact = corpus.holders(query)
        if exact is not None and exact.any():
            # A question that is one name is answered first by the chunks that hold it.
            scores = scores + np.where(exact, 2 * scores.max() + 1, 0.0)
            is_found = is_found | exact
        relevant = fusion.relevance(coverage, nearest)
        best = round(float(relevant[allowed].max(initial=0.0)), 4)
        allowed &= is_found
        if request.minimum is not None:
            allowed &= relevant >= request.minimum
        return _Found(
            arms, ranking, context, relevant, boosts, exact, scores, allowed, best, problem
        )

    def _results(self, corpus: Corpus, found: _Found, request: SearchRequest) -> Iterator[Result]:
        size = MOST_FILLED if request.budget else request.k or self.settings.k
        cost = self.weights.repeat_cost if self.settings.mode == "context" else 0.0
        entries = corpus.columns["entry"]
        places, scores = fusion.select(found.scores, entries, found.allowed, size, cost)
        final: dict[int, float] = dict(zip(places.tolist(), scores.tolist(), strict=True))
        ranked = ((n, corpus.chunk(n)) for n in final)
        for position, chunk in fill(ranked, request.budget) if request.budget else ranked:
            dense = None if found.arms.dense is None else found.arms.dense[position]
            root = corpus.root(position)
            yield Result(
                id=corpus.id(position)[:SHOWN_ID_CHARACTERS],
                root=root,
                project=self._names.get(root) or Path(root).name,
                score=_rounded(final[position]),
                relevance=round(float(found.relevance[position]), 4),
                chunk=chunk,
                lexical=_rounded(found.arms.lexical[position]),
                dense=None if dense is None or np.isnan(dense) else _rounded(dense),
                context=_rounded(found.context[position]),
                explanation=_explain(found, position, final[position]) if request.explain else {},
            )


def _explain(found: _Found, position: int, score: float) -> dict[str, Any]:
    """Return the parts of the final `score` of the chunk at `position`."""
    arms = {"lexical": found.arms.lexical}
    if found.arms.dense is not None and not np.isnan(found.arms.dense[position]):
        arms["dense"] = found.arms.dense
    ranked = {
        name: {
            "rank": 1 + int(np.count_nonzero(arm > arm[position])),
            "score": _rounded(arm[position]),
        }
        for name, arm in arms.items()
    }
    return {
        **ranked,
        "passage": _rounded(found.arms.passages[position]),
        **{name: _rounded(part[position]) for name, part in found.ranking.parts.items()},
        "boost": _rounded(found.boosts[position]),
        "repeat": _rounded(score - found.scores[position]),
        "identifier": bool(found.exact is not None and found.exact[position]),
    }


def _rounded(value: float | np.float64) -> float:
    return round(float(value), 6)


def mask(filters: Filters, corpus: Corpus) -> NDArray[np.bool_]:
    """Return which chunks of `corpus` meet the filters."""
    allowed = np.ones(len(corpus), bool)
    days = corpus.columns["day"]
    if filters.since:
        allowed &= days >= filters.since.toordinal()
    if filters.until:
        allowed &= (days <= filters.until.toordinal()) & (days > 0)
    if filters.session:
        allowed &= corpus.where("session", lambda name: name.startswith(filters.session))
    if filters.branch:
        allowed &= corpus.where("branch", lambda name: name == filters.branch)
    if filters.kind:
        allowed &= corpus.where("kind", lambda name: name == filters.kind)
    if filters.path:
        path = filters.path.removeprefix("./").rstrip("/")
        allowed &= corpus.where("source", lambda name: is_at(name, path))
    return allowed


def recency_of(corpus: Corpus, half_life_days: float, today: date) -> Scores:
    """Return 1 for an entry of today, one half after `half_life_days`, and 0 without a date."""
    days = corpus.columns["day"]
    ages = np.maximum(0, today.toordinal() - days)
    result: Scores = np.where(days > 0, 0.5 ** (ages / half_life_days), 0.0)
    return result


def boosts_of(corpus: Corpus, settings: SearchSettings, file: str, recency: Scores) -> Scores:
    """Return a factor for each chunk; `file` is the file being edited, relative to the project, or ""."""
    factors = np.ones(len(corpus))
    factors[corpus.where("kind", lambda kind: kind == "instruction")] *= INSTRUCTION_BOOST
    factors[corpus.where("kind", lambda kind: kind == "unverified")] *= UNVERIFIED_FACTOR
    if file:
        factors[_in_domain(corpus, settings.domains, file)] *= DOMAIN_BOOST
    return factors * (1 + settings.recency_boost * recency)


def _in_domain(corpus: Corpus, domains: Sequence[str], file: str) -> NDArray[np.bool_]:
    """Return which chunks are about the part of the code that `file` belongs to.

    `domains` names a directory of the memory for a directory of the code; the innermost one that
    holds `file` counts. Without one, a chunk's own directory must have the name of one of the file's.
    """
    pairs = [tuple(part.strip("/ ") for part in one.partition("=")[::2]) for one in domains]
    fitting = [(len(code), memory) for code, memory in pairs if is_at(file, code)]
    if fitting:
        _, memory = max(fitting, key=lambda pair: pair[0])
        return corpus.where("source", lambda source: is_at(source, memory))
    directories = PurePosixPath(file).parent.parts
    return corpus.where("domain", lambda domain: domain in directories)
