"""Ranking: from the scores of each arm to one order. Pure arithmetic over arrays aligned to the chunks.

The default mode, `context`, ranks entries of every length. Short remarks between people are judged together
with what stands around them. A turn of a coding session has hundreds of words and neighbors about something
else, so it is judged by itself and by how well its whole session matches. A document is a session, or a
file outside of sessions. z is the standard score, and minmax stretches to [0, 1]:

    w  = min(1, (own_length / characters of the entry)^2)
    v  = min(1, (own_length / characters of the entry that a usual character of the document is in)^2)
    l  = z(bm25) + passage_weight * v * z(bm25 of the passage)
    a  = min(1, dense_weight + long_weight * (1 - w))
    s  = (1 - a) * l + a * z(cosine)
    s' = s + min(w, v) * (near_weight * sum of s one step away + far_weight * sum of s two steps away)
    D  = (1 - mean_weight) * z(bm25 of the document) + mean_weight * z(mean cosine of the document)
    S  = minmax(s')
       + session_weight * w * (minmax(sum of the three best s in the session) - neutral)
       + document_weight * (1 - v) * (minmax(D) - neutral)

The best chunks also gain by the question's wording, see `memkit.search.ranking`. Steps and passages stay
inside one session, and leave bullets out. Measured details: standard scores replace min-max before the sum,
so that one outlier does not flatten an arm. Passage and document have a BM25 of their own. The length of the
whole entry counts, so that the short last piece of a long answer does not borrow like a short remark.
`neutral` keeps the two bonuses from preferring an entry for its length. `docs/benchmarks.md` has the figures.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Weights:
    """The constants of all modes.

    Those of `context` were tuned on real coding sessions, DevMemBench, LoCoMo, and BEAM (development halves)
    together. Those of `weighted` are the usual shares.
    """

    dense_weight: float = 0.5  # share of the cosine, next to BM25
    long_weight: float = 0.2  # additional share of the cosine for long entries
    passage_weight: float = 0.75
    near_weight: float = 0.2
    far_weight: float = 0.05
    session_weight: float = 0.25
    document_weight: float = 0.4
    mean_weight: float = 0.6  # share of the cosine in a document's match
    neutral: float = 0.4  # the stretched match of a session that neither helps nor harms
    own_length: int = 700  # characters from which an entry needs less context
    wording_weight: float = 0.4
    repeat_cost: float = 0.1  # the loss of each further piece of an entry
    rrf_k: int = 60
    semantic_weight: float = 0.5
    keyword_weight: float = 0.3
    recency_weight: float = 0.2


WEIGHTS = Weights()

BEST_OF_SESSION = 3
"""The number of chunks that count for their session."""

COVERAGE_WEIGHT = 0.5
"""Weight of the covered share of the question's words against the cosine.

Of 0, 0.3, 0.5, and 1, this weight best separated a development set's own questions from those of the other
set.
"""


class Layout:
    """The chunks' entries, sessions, and documents. All arrays are aligned to the chunks."""

    def __init__(
        self, lengths: NDArray[np.int32], entries: NDArray[np.int32], sessions: NDArray[np.int32],
        documents: NDArray[np.int32],
    ) -> None:
        """`lengths` are in characters. All are numbered from 0; a session of -1 is none."""
        # With weights, `bincount` adds up floats; its type hints do not know.
        characters = np.asarray(np.bincount(entries, lengths), np.float64)
        self.entry_lengths = np.maximum(characters[entries], 1)
        _, self._firsts, self._documents = np.unique(documents, return_index=True, return_inverse=True)
        self._document_sizes = np.bincount(self._documents)
        # Each entry weighs its length, so that many bullets do not make a session of long turns a chat.
        weights = np.maximum(lengths, 1)
        sums = np.bincount(self._documents, self.entry_lengths * weights)
        self.document_lengths = (sums / np.bincount(self._documents, weights))[self._documents]
        # Sorted by session, in the order of the text inside it: neighbors are next to each other.
        self.order = np.argsort(sessions, kind="stable")
        self.ordered_sessions = sessions[self.order]
        self._has_next = {step: self._next_in_session(step) for step in (1, 2)}
        self.session_starts = np.flatnonzero(
            np.r_[True, self.ordered_sessions[1:] != self.ordered_sessions[:-1]][: len(sessions)]
        )

    def document_means(self, scores: Scores) -> Scores:
        """Return for each chunk the mean score of its document."""
        means: Scores = np.bincount(self._documents, scores) / self._document_sizes
        return means[self._documents]

    def standard_documents(self, scores: Scores) -> Scores:
        """Return the standard score of each chunk's document, whose chunks all have the same score."""
        return standard(scores[self._firsts])[self._documents]

    def neighbors(self, scores: Scores, near: float, far: float) -> Scores:
        """Return for each chunk the weighted sum of the scores one and two steps away in its session."""
        ordered = scores[self.order]
        total = np.zeros_like(scores)
        for (step, has_next), weight in zip(self._has_next.items(), (near, far), strict=True):
            total[step:] += weight * has_next * ordered[:-step]
            total[:-step] += weight * has_next * ordered[step:]
        return self._aligned(total)

    def session_sums(self, scores: Scores) -> Scores:
        """Return for each chunk the sum of the best scores in its session.

        A chunk without a session gets the lowest such sum, but at most 0.
        """
        if not len(scores):
            return scores
        ordered, starts = scores[self.order], self.session_starts
        sizes = np.diff(np.r_[starts, len(scores)])
        sums, left = np.zeros(len(starts)), np.minimum(sizes, BEST_OF_SESSION)
        # The best of each session, then the best of the rest; sorting everything would cost more.
        for _ in range(BEST_OF_SESSION):
            best = np.maximum.reduceat(ordered, starts)
            is_best = ordered == np.repeat(best, sizes)
            taken = np.minimum(np.add.reduceat(is_best.astype(np.int64), starts), left)
            sums += np.where(taken > 0, best, 0.0) * taken
            left = left - taken
            ordered = np.where(is_best, -np.inf, ordered)
        in_session = self.ordered_sessions[starts] >= 0
        sums[~in_session] = sums[in_session].min(initial=0.0)
        return self._aligned(np.repeat(sums, sizes))

    def _next_in_session(self, step: int) -> NDArray[np.bool_]:
        sessions = self.ordered_sessions
        same: NDArray[np.bool_] = (sessions[step:] == sessions[:-step]) & (sessions[step:] >= 0)
        return same

    def _aligned(self, ordered: Scores) -> Scores:
        aligned = np.empty_like(ordered)
        aligned[self.order] = ordered
        return aligned


@dataclass(frozen=True, slots=True)
class Arms:
    """The scores of one query by arm: BM25 of chunks, of passages, and of documents, cosine, recency.

    A cosine is NaN for a chunk without a vector; `dense` is None if there is no dense side. Recency is
    in [0, 1].
    """

    lexical: Scores
    passages: Scores
    documents: Scores
    dense: Scores | None
    recency: Scores


@dataclass(frozen=True, slots=True)
class Ranking:
    """The score of each chunk, whether it was found at all, and the parts of the score."""

    scores: Scores
    found: NDArray[np.bool_]
    parts: dict[str, Scores] = field(default_factory=dict)


ROUNDING = 1e-12
"""Equal values and their means differ by less than this share: a sum of many is off by some epsilons."""


def standard(values: Scores) -> Scores:
    """Return standard scores: mean 0, deviation 1. 0 for NaN, and for all if all are equal."""
    known = ~np.isnan(values)
    some = values if known.all() else values[known]
    deviation = some.std() if len(some) else 0.0
    if deviation < ROUNDING * max(1.0, np.abs(some).max(initial=0.0)):
        return np.zeros_like(values)
    scores: Scores = (values - some.mean()) / deviation
    return scores if some is values else np.where(known, scores, 0.0)


def minmax(values: Scores, equal: float = 0.0) -> Scores:
    """Return `values` stretched to [0, 1], or `equal` for each if all are equal."""
    if len(values) == 0:
        return values
    low, high = values.min(), values.max()
    if high <= low:
        return np.full_like(values, equal)
    stretched: Scores = (values - low) / (high - low)
    return stretched


def window_means(similarities: Scores, owners: NDArray[np.int32], size: int) -> tuple[Scores, Scores]:
    """Return for each of `size` chunks the mean and the best cosine of its windows; NaN without a vector.

    The mean ranks: on the long messages of BEAM it finds the evidence among five results for 50 % of
    the questions, the best window for 38 %. The best window measures relevance.
    """
    if len(owners) == size and np.array_equal(owners, np.arange(size)):
        return similarities, similarities
    counts = np.bincount(owners, minlength=size)
    sums = np.bincount(owners, similarities, size)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    best = np.full(size, -np.inf)
    np.maximum.at(best, owners, similarities)
    return means, np.where(counts > 0, best, np.nan)


def fuse(arms: Arms, layout: Layout, mode: str, weights: Weights) -> Ranking:
    """Return the ranking in `mode`; by words alone if there is no dense side."""
    if mode == "lexical" or (mode == "dense" and arms.dense is None):
        return Ranking(arms.lexical, arms.lexical > 0)
    if mode == "dense":
        similar = _known(arms)
        return Ranking(similar, similar > 0)
    if mode == "rrf":
        return reciprocal_rank(arms, weights)
    if mode == "weighted":
        return weighted(arms, weights)
    return context(arms, layout, weights)


def context(arms: Arms, layout: Layout, weights: Weights) -> Ranking:
    """Return the `context` ranking; the module's docstring has the formula."""
    short = np.minimum(1.0, (weights.own_length / layout.entry_lengths) ** 2)
    chatty = np.minimum(1.0, (weights.own_length / layout.document_lengths) ** 2)
    own = standard(arms.lexical) + weights.passage_weight * chatty * standard(arms.passages)
    document = layout.standard_documents(arms.documents)
    if arms.dense is not None:
        dense = standard(arms.dense)
        share = np.minimum(1.0, weights.dense_weight + weights.long_weight * (1 - short))
        own = (1 - share) * own + share * dense
        mean = layout.standard_documents(layout.document_means(dense))
        document = (1 - weights.mean_weight) * document + weights.mean_weight * mean
    lent = layout.neighbors(own, weights.near_weight, weights.far_weight)
    neighbors = np.minimum(short, chatty) * lent
    best = minmax(layout.session_sums(own), equal=weights.neutral) - weights.neutral
    session = weights.session_weight * short * best
    match = minmax(document, equal=weights.neutral) - weights.neutral
    whole = weights.document_weight * (1 - chatty) * match
    scores = minmax(own + neighbors, equal=1.0) + session + whole
    parts = {"own": own, "neighbors": neighbors, "session": session, "document": whole}
    return Ranking(scores, np.ones(len(scores), bool), parts)


def reciprocal_rank(arms: Arms, weights: Weights) -> Ranking:
    """Return reciprocal rank fusion (Cormack et al., SIGIR 2009): the sum of the arms' 1 / (rrf_k + rank).

    An arm ranks only what it found: chunks with a word of the query, chunks with a cosine above 0.
    """
    scores = _reciprocals(arms.lexical, weights.rrf_k) + _reciprocals(_known(arms), weights.rrf_k)
    return Ranking(scores, scores > 0)


def ranks(scores: Scores) -> NDArray[np.int64]:
    """Return the rank of each chunk, from 1; equal scores keep the order of the chunks."""
    places = np.empty(len(scores), np.int64)
    places[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return places


def _reciprocals(scores: Scores, k: int) -> Scores:
    return np.where(scores > 0, 1 / (k + ranks(scores)), 0.0)


def _known(arms: Arms) -> Scores:
    return np.zeros_like(arms.lexical) if arms.dense is None else np.nan_to_num(arms.dense)


def weighted(arms: Arms, weights: Weights) -> Ranking:
    """Return the weighted sum of the two arms, each stretched to [0, 1], and recency."""
    parts = {
        "semantic": weights.semantic_weight * minmax(_known(arms)),
        "keyword": weights.keyword_weight * minmax(arms.lexical),
        "recency": weights.recency_weight * arms.recency,
    }
    scores = sum(parts.values(), np.zeros_like(arms.lexical))
    return Ranking(scores, scores > 0, parts)


def relevance(coverage: Scores, dense: Scores | None) -> Scores:
    """Return the relevance of each chunk in [0, 1], comparable across questions.

    It joins the cosine and the covered share of the question's idf mass; without a cosine it is the
    share alone.
    """
    if dense is None:
        return coverage
    both = (np.clip(dense, 0.0, 1.0) + COVERAGE_WEIGHT * coverage) / (1 + COVERAGE_WEIGHT)
    result: Scores = np.where(np.isnan(dense), coverage, both)
    return result
