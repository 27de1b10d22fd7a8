"""Search: a question in, ranked chunks out."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memkit.errors import EmbeddingError
from memkit.index.chunk import Chunk
from memkit.index.chunk_reader import SHOWN_ID_CHARACTERS
from memkit.index.snapshot import Snapshot
from memkit.recall import boosts, fusion
from memkit.recall.answers import Answer, Result, SearchRequest
from memkit.recall.budget import fill
from memkit.recall.corpus import Corpus
from memkit.recall.filters import mask
from memkit.recall.relevance import relevance
from memkit.recall.selection import select
from memkit.settings.load import SearchSettings

if TYPE_CHECKING:
    from memkit.embedding import Embedder

logger = logging.getLogger(__name__)

MOST_FILLED = 1000
"""How many results are looked at to fill a budget."""

@dataclass(frozen=True, slots=True)
class _Found:
    """All that is known of all chunks for one question; `allowed` are those that may be results.

    `best` is the best relevance among what passes the filters; `problem` is empty, or says why there is
    no dense side.
    """

    arms: fusion.Arms
    ranking: fusion.Ranking
    context: fusion.Scores
    relevance: fusion.Scores
    boosts: fusion.Scores
    exact: NDArray[np.bool_] | None
    scores: fusion.Scores
    allowed: NDArray[np.bool_]
    best: float
    problem: str


class Searcher:
    """Answers questions about one project or several. Holds snapshots and model, so ask it often."""

    def __init__(
        self,
        memory: Sequence[Snapshot] | Corpus,
        settings: SearchSettings,
        embedder: Embedder | None,
        notes: Sequence[str] = (),
        names: Mapping[str, str] | None = None,
    ) -> None:
        """`embedder` is None for answers by words alone; `notes` say what all answers lack.

        `names` says by root what a project is called, by default as its directory.
        """
        self.corpus = memory if isinstance(memory, Corpus) else None
        if memory and not isinstance(memory, Corpus):
            self.corpus = Corpus(memory)
        self.settings = settings
        self.embedder = embedder
        self.notes = list(notes)
        self._names = names or {}

    def search(self, query: str, k: int | None = None) -> Answer:
        """The `k` best chunks for `query`."""
        return self.answer(SearchRequest(query, k))

    def answer(self, request: SearchRequest) -> Answer:
        """The results that `request` asks for."""
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
        took = round((time.perf_counter() - started) * 1000, 3)
        return Answer(
            query=request.query,
            mode=self.settings.mode,
            degraded="; ".join(notes),
            took_ms=took,
            results=results,
            best=best,
            chunks=0 if self.corpus is None else len(self.corpus),
        )

    def _find(self, corpus: Corpus, request: SearchRequest) -> _Found:
        query = request.query
        lexical, passages, coverage = corpus.lexical(query)
        dense, nearest, problem = None, None, ""
        if self.embedder is not None and corpus.has_vectors:
            try:
                dense, nearest = corpus.cosines(self.embedder.embed_query(query))
            except EmbeddingError as error:
                logger.warning("%s", error)
                problem = f"searched by words alone: {error}"
        recency = np.zeros(len(corpus))
        if self.settings.mode == "weighted" or self.settings.recency_boost:
            recency = boosts.recency(corpus, self.settings.half_life_days, date.today())
        arms = fusion.Arms(lexical, passages, dense, recency)
        ranking = fusion.fuse(arms, corpus.layout, self.settings)
        context = ranking.scores
        if self.settings.mode != "context":
            context = fusion.context(arms, corpus.layout, self.settings).scores
        factors = boosts.boosts(corpus, self.settings, request.file, recency)
        scores = ranking.scores * factors
        allowed, is_found = mask(request.filters, corpus), ranking.found
        exact = corpus.holders(query)
        if exact is not None and exact.any():
            # A question that is one name is answered by what holds the name, whatever else is like it.
            scores = scores + np.where(exact, 2 * scores.max() + 1, 0.0)
            is_found = is_found | exact
        relevant = relevance(coverage, nearest)
        best = round(float(relevant[allowed].max(initial=0.0)), 4)
        allowed &= is_found
        if request.minimum is not None:
            allowed &= relevant >= request.minimum
        return _Found(
            arms, ranking, context, relevant, factors, exact, scores, allowed, best, problem
        )

    def _results(self, corpus: Corpus, found: _Found, request: SearchRequest) -> Iterator[Result]:
        size = MOST_FILLED if request.budget else request.k or self.settings.k
        cost = self.settings.repeat_cost if self.settings.mode == "context" else 0.0
        entries = corpus.columns["entry"]
        places, scores = select(found.scores, entries, found.allowed, size, cost)
        final = dict(zip(places.tolist(), scores.tolist(), strict=True))
        ranked = ((n, corpus.chunk(n)) for n in final)
        for position, chunk in fill(ranked, request.budget) if request.budget else ranked:
            explanation = _explain(found, position, final[position]) if request.explain else {}
            yield self._result(corpus, found, position, chunk, final[position], explanation)

    def _result(
        self,
        corpus: Corpus,
        found: _Found,
        position: int,
        chunk: Chunk,
        score: float,
        explanation: dict[str, Any],
    ) -> Result:
        dense = found.arms.dense
        root = corpus.root(position)
        return Result(
            id=corpus.id(position)[:SHOWN_ID_CHARACTERS],
            root=root,
            project=self._names.get(root) or Path(root).name,
            score=_rounded(score),
            relevance=round(float(found.relevance[position]), 4),
            chunk=chunk,
            lexical=_rounded(found.arms.lexical[position]),
            dense=None if dense is None or np.isnan(dense[position]) else _rounded(dense[position]),
            context=_rounded(found.context[position]),
            explanation=explanation,
        )


def _explain(found: _Found, position: int, score: float) -> dict[str, Any]:
    """What the score at `position`, which is `score` in the end, is made of."""
    arms = {"lexical": found.arms.lexical}
    if found.arms.dense is not None and not np.isnan(found.arms.dense[position]):
        arms["dense"] = found.arms.dense
    return {
        **{
            name: {
                "rank": 1 + int(np.count_nonzero(arm > arm[position])),
                "score": _rounded(arm[position]),
            }
            for name, arm in arms.items()
        },
        "passage": _rounded(found.arms.passages[position]),
        **{name: _rounded(part[position]) for name, part in found.ranking.parts.items()},
        "boost": _rounded(found.boosts[position]),
        "repeat": _rounded(score - found.scores[position]),
        "identifier": bool(found.exact is not None and found.exact[position]),
    }


def _rounded(value: float | np.float64) -> float:
    return round(float(value), 6)
