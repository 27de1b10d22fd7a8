"""How the arms of a search become one ranking. Pure arithmetic over arrays aligned to the chunks.

The default, `context`, judges a chunk together with the passage around it and its session, and lets
a long entry stand on its own. With z the standard score, m the mean over a chunk's entry (the pieces
of one turn), and w the need of an entry for context:

    w  = min(1, (own_length / characters of the entry)^2)
    l  = z(bm25) + passage_weight * w * z(bm25 of the passage)
    d  = (1 - entry_weight) * z(cosine) + entry_weight * z(m(cosine))
    a  = min(1, dense_weight + long_weight * (1 - w))
    s  = (1 - a) * l + a * d
    s' = s + w * (near_weight * sum of s one step away + far_weight * sum of s two steps away)
    S  = minmax(s') + session_weight * w * minmax(sum of the three best s in the session)

with steps and passages inside the same session only. It follows the project's design, with three
changes that were measured on its two development sets, short chats and long assistant sessions:
standard scores in place of min-max before the sum (one outlier no longer flattens an arm), the passage's
own BM25, and the length of the whole entry in place of the piece's, so that the short last piece of a
long answer does not borrow like a short remark. The cosine of a chunk of several windows is their mean.
`docs/benchmarks.md` has the figures. What repeats is pushed down afterwards, see `selection`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memkit.settings.load import SearchSettings

Scores = NDArray[np.float64]

BEST_OF_SESSION = 3
"""How many of a session's chunks speak for it."""


class Layout:
    """What belongs together. All arrays are aligned to the chunks."""

    def __init__(
        self, lengths: NDArray[np.int32], entries: NDArray[np.int32], sessions: NDArray[np.int32]
    ) -> None:
        """`lengths` in characters; numbers of entries, from 0, and of sessions, -1 for none."""
        self.entries = entries
        self.sessions = sessions
        self.entry_sizes = np.bincount(entries)
        # With weights, `bincount` adds up floats, which its type hints do not say.
        characters = np.asarray(np.bincount(entries, lengths), np.float64)
        self.entry_lengths = np.maximum(characters[entries], 1)
        # By session, and inside it in the order of the text: neighbours stand next to each other.
        self.order = np.argsort(sessions, kind="stable")
        self.ordered_sessions = sessions[self.order]
        self._has_next = {step: self._next_in_session(step) for step in (1, 2)}
        self.session_starts = np.flatnonzero(
            np.r_[True, self.ordered_sessions[1:] != self.ordered_sessions[:-1]][: len(sessions)]
        )

    def entry_means(self, scores: Scores) -> Scores:
        """For each chunk the mean score of its entry."""
        means: Scores = np.bincount(self.entries, scores) / self.entry_sizes
        return means[self.entries]

    def neighbours(self, scores: Scores, near: float, far: float) -> Scores:
        """For each chunk the weighted sum of the scores one and two steps from it in its session."""
        ordered = scores[self.order]
        total = np.zeros_like(scores)
        for (step, has_next), weight in zip(self._has_next.items(), (near, far), strict=True):
            total[step:] += weight * has_next * ordered[:-step]
            total[:-step] += weight * has_next * ordered[step:]
        return self._aligned(total)

    def session_sums(self, scores: Scores) -> Scores:
        """For each chunk the sum of the best scores in its session; without one the lowest such sum,
        or 0 if that is above it.
        """
        if not len(scores):
            return scores
        ordered, starts = scores[self.order], self.session_starts
        sizes = np.diff(np.r_[starts, len(scores)])
        sums, left = np.zeros(len(starts)), np.minimum(sizes, BEST_OF_SESSION)
        # The best of each session, then the best of what is left; a whole sort would cost more.
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
        """Whether the chunk `step` further on in the order is of the same session."""
        sessions = self.ordered_sessions
        same: NDArray[np.bool_] = (sessions[step:] == sessions[:-step]) & (sessions[step:] >= 0)
        return same

    def _aligned(self, ordered: Scores) -> Scores:
        aligned = np.empty_like(ordered)
        aligned[self.order] = ordered
        return aligned


@dataclass(frozen=True, slots=True)
class Arms:
    """What a query scored, arm by arm: BM25 of the chunks and of the passages around them, cosines
    (NaN for a chunk without a vector; None if there is no dense side), and recency in [0, 1].
    """

    lexical: Scores
    passages: Scores
    dense: Scores | None
    recency: Scores


@dataclass(frozen=True, slots=True)
class Ranking:
    """The scores of all chunks, which of them were found at all, and what the scores are made of."""

    scores: Scores
    found: NDArray[np.bool_]
    parts: dict[str, Scores] = field(default_factory=dict)


def standard(values: Scores) -> Scores:
    """The standard scores of `values`: mean 0, deviation 1; 0 for NaN, and for all if none differ."""
    known = ~np.isnan(values)
    some = values if known.all() else values[known]
    deviation = some.std() if len(some) else 0.0
    if deviation < np.finfo(float).eps * max(1.0, np.abs(some).max(initial=0.0)):
        return np.zeros_like(values)
    scores: Scores = (values - some.mean()) / deviation
    return scores if some is values else np.where(known, scores, 0.0)


def minmax(values: Scores, equal: float = 0.0) -> Scores:
    """`values` stretched to [0, 1]; all `equal` if they do not differ."""
    if len(values) == 0:
        return values
    low, high = values.min(), values.max()
    if high <= low:
        return np.full_like(values, equal)
    stretched: Scores = (values - low) / (high - low)
    return stretched


def window_means(
    similarities: Scores, owners: NDArray[np.int32], size: int
) -> tuple[Scores, Scores]:
    """Of each of `size` chunks the mean and the best cosine of its windows; NaN without a vector.

    The mean ranks: on the long messages of BEAM it finds the evidence among five results for 50 % of
    the questions where the best window finds 38 %. The best one tells how near a chunk is at all.
    """
    if len(owners) == size and np.array_equal(owners, np.arange(size)):
        return similarities, similarities
    counts = np.bincount(owners, minlength=size)
    sums = np.bincount(owners, similarities, size)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    best = np.full(size, -np.inf)
    np.maximum.at(best, owners, similarities)
    return means, np.where(counts > 0, best, np.nan)


def fuse(arms: Arms, layout: Layout, settings: SearchSettings) -> Ranking:
    """The ranking in the mode of `settings`; from the lexical arm alone if there is no dense one."""
    if settings.mode == "lexical" or (settings.mode == "dense" and arms.dense is None):
        return Ranking(arms.lexical, arms.lexical > 0)
    if settings.mode == "dense":
        assert arms.dense is not None
        similar = np.nan_to_num(arms.dense, nan=0.0)
        return Ranking(similar, similar > 0)
    if settings.mode == "rrf":
        return reciprocal_rank(arms, settings)
    if settings.mode == "weighted":
        return weighted(arms, settings)
    return context(arms, layout, settings)


def context(arms: Arms, layout: Layout, settings: SearchSettings) -> Ranking:
    """The `context` scores, see the module."""
    needs = np.minimum(1.0, (settings.own_length / layout.entry_lengths) ** 2)
    own = standard(arms.lexical) + settings.passage_weight * needs * standard(arms.passages)
    if arms.dense is not None:
        dense = standard(arms.dense)
        of_entry = standard(layout.entry_means(dense))
        dense = (1 - settings.entry_weight) * dense + settings.entry_weight * of_entry
        share = np.minimum(1.0, settings.dense_weight + settings.long_weight * (1 - needs))
        own = (1 - share) * own + share * dense
    neighbours = needs * layout.neighbours(own, settings.near_weight, settings.far_weight)
    session = settings.session_weight * needs * minmax(layout.session_sums(own))
    scores = minmax(own + neighbours, equal=1.0) + session
    parts = {"own": own, "neighbours": neighbours, "session": session}
    return Ranking(scores, np.ones(len(scores), bool), parts)


def reciprocal_rank(arms: Arms, settings: SearchSettings) -> Ranking:
    """Reciprocal rank fusion (Cormack et al., SIGIR 2009): the weighted sum of 1 / (rrf_k + rank).

    An arm ranks only what it found: what holds a word of the query, what has a cosine above 0.
    """
    scores = (1 - settings.dense_weight) * _reciprocals(arms.lexical, settings.rrf_k)
    if arms.dense is not None:
        found = np.nan_to_num(arms.dense, nan=0.0)
        scores = scores + settings.dense_weight * _reciprocals(found, settings.rrf_k)
    return Ranking(scores, scores > 0)


def ranks(scores: Scores) -> NDArray[np.int64]:
    """The rank of each chunk, from 1; equal scores in the order of the chunks."""
    places = np.empty(len(scores), np.int64)
    places[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return places


def _reciprocals(scores: Scores, k: int) -> Scores:
    return np.where(scores > 0, 1 / (k + ranks(scores)), 0.0)


def weighted(arms: Arms, settings: SearchSettings) -> Ranking:
    """The weighted sum of the arms, each stretched to [0, 1], and of recency."""
    parts = {
        "semantic": settings.semantic_weight
        * minmax(np.zeros_like(arms.lexical) if arms.dense is None else np.nan_to_num(arms.dense)),
        "keyword": settings.keyword_weight * minmax(arms.lexical),
        "recency": settings.recency_weight * arms.recency,
    }
    scores = sum(parts.values(), np.zeros_like(arms.lexical))
    return Ranking(scores, scores > 0, parts)
