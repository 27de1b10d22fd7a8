"""rank-bm25's BM25Plus over postings: of single documents, and of the passages around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Plus

from memkit.index.lexical.postings import Postings

PASSAGE_REACH = 2
"""A document's passage is the documents up to so many steps before and after it, and itself."""


@dataclass(frozen=True)
class LexicalMatch:
    """What a query found, aligned to `LexicalIndex.ids`."""

    scores: NDArray[np.float64]
    """BM25 scores; 0 exactly where no term of the query stands, else positive."""

    coverage: NDArray[np.float64]
    """The share in [0, 1] of the query's idf mass that the document holds."""


@dataclass(frozen=True)
class ReadingOrder:
    """Which documents follow each other: what a passage is made of."""

    documents: NDArray[np.intp]
    """The documents, as places in `LexicalIndex.ids`, in the order in which they are read."""

    sessions: NDArray[np.int32]
    """For each of `documents` a number of its session; no passage leaves one. -1: stands alone."""


class PostingsBM25(BM25Plus):  # type: ignore[misc]  # rank-bm25 has no type hints
    """rank-bm25's BM25Plus over postings: a query touches only the documents that hold its terms.

    k1, b and the idf are BM25Plus's own. BM25Plus gives every document delta * idf for each term of
    the query, held or not: a constant of the query that ranks nothing. Here it is left out, so a
    document without any term of the query scores 0.
    """

    def __init__(
        self, postings: Postings, lengths: NDArray[np.int32], order: NDArray[np.int64]
    ) -> None:
        """`lengths` in terms by slot; `order` names the slots that are documents, as returned."""
        self.order = order
        self._postings = postings
        self.slot_lengths = lengths
        super().__init__(order)

    def _initialize(self, corpus: NDArray[np.int64]) -> dict[str, int]:
        """Called by the constructor of BM25Plus, which would count the terms of all documents."""
        self.corpus_size = len(corpus)
        self.doc_len = self.slot_lengths[corpus]
        # A sum of integers is exact: the same however the index came about.
        self.avgdl = int(self.doc_len.sum()) / max(1, len(corpus)) or 1.0
        self._length_norms = self.k1 * (1 - self.b + self.b * self.slot_lengths / self.avgdl)
        self._is_live = np.zeros(len(self.slot_lengths), bool)
        self._is_live[corpus] = True
        self._is_in_order = np.array_equal(corpus, np.arange(len(self.slot_lengths)))
        return {}  # how many documents hold a term is read off its postings, by `match`

    def get_scores(self, query: Sequence[str]) -> NDArray[np.float64]:
        """The scores of all documents; a term counts as often as it stands in `query`."""
        return self.match(query).scores

    def match(self, query: Sequence[str]) -> LexicalMatch:
        """Scores, and the share of the query's idf mass held, of all documents.

        A term that no document holds weighs in that mass as if one did, the formula's largest idf.
        """
        found = list(self._find(query))
        mass = sum(weight for *_, weight in found)
        if not mass:
            return LexicalMatch(np.zeros(self.corpus_size), np.zeros(self.corpus_size))
        weights = [weight for *_, weight in found]
        slots = np.concatenate([slots for slots, *_ in found], dtype=np.intp)
        frequencies = np.concatenate([frequencies for _, frequencies, _ in found])
        weight = np.repeat(weights, [len(slots) for slots, *_ in found])
        saturation = frequencies * (self.k1 + 1) / (self._length_norms[slots] + frequencies)
        size = len(self.slot_lengths)
        # With weights, `bincount` adds up floats, which its type hints do not say.
        scores = np.asarray(np.bincount(slots, weight * saturation, size), np.float64)
        coverage = np.asarray(np.bincount(slots, weight, size), np.float64) / mass
        if self._is_in_order:
            return LexicalMatch(scores, coverage)
        return LexicalMatch(scores[self.order], coverage[self.order])

    def holders(self, term: str) -> NDArray[np.bool_]:
        """Which documents hold `term`, aligned as the scores."""
        held = np.zeros(len(self.slot_lengths), bool)
        held[self.holding(term)[0]] = True
        return held[self.order]

    def _find(self, query: Sequence[str]) -> Iterator[tuple[NDArray[Any], NDArray[Any], float]]:
        """For each term of `query` the slots that hold it, its frequencies, and its weight."""
        if not self.corpus_size:
            return
        # Sums of floats depend on their order: the same words shall score the same in any order.
        for term, count in sorted(Counter(query).items()):
            slots, frequencies = self.holding(term)
            yield slots, frequencies, count * self.idf_of(term, max(1, len(slots)))

    def idf_of(self, term: str, holders: int) -> float:
        """BM25Plus's idf of a term that so many documents, or passages, hold."""
        self._calc_idf({term: holders})
        return float(self.idf[term])

    def holding(self, term: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """The slots of the present documents that hold `term`, and the frequency in each."""
        slots, frequencies = self._postings.find(term)
        if self.corpus_size < len(self.slot_lengths):
            live = self._is_live[slots]
            slots, frequencies = slots[live], frequencies[live]
        return slots, frequencies


class PassageBM25:
    """BM25 of the passages around the documents of a `PostingsBM25`.

    A passage is scored as one document made of its documents; how many passages hold a term decides
    its idf. Two short remarks that share the words of a question between them answer it together.
    """

    def __init__(self, bm25: PostingsBM25, order: ReadingOrder) -> None:
        self._bm25 = bm25
        self._documents = order.documents
        size = len(order.documents)
        self._places = np.full(len(bm25.slot_lengths), -1, np.intp)  # by slot, in reading order
        self._places[bm25.order[order.documents]] = np.arange(size)
        self._neighbours = [
            (shift, _has_neighbour(order.sessions, shift).astype(np.float64))
            for shift in range(1, PASSAGE_REACH + 1)
        ]
        lengths = self._sums(bm25.doc_len[order.documents].astype(np.float64))
        mean = lengths.mean() if size else 1.0
        self._norms = bm25.k1 * (1 - bm25.b + bm25.b * lengths / (mean or 1.0))

    def scores(self, query: Sequence[str]) -> NDArray[np.float64]:
        """The scores of the passages around all documents, aligned as those of `match`."""
        bm25 = self._bm25
        size = len(self._documents)
        scores = np.zeros(size)
        for term, count in sorted(Counter(query).items()):
            slots, frequencies = bm25.holding(term)
            if not len(slots):
                continue
            # With weights, `bincount` adds up floats, which its type hints do not say.
            found = np.asarray(np.bincount(self._places[slots], frequencies, size), np.float64)
            sums = self._sums(found)
            weight = count * bm25.idf_of(term, int(np.count_nonzero(sums)))
            scores += weight * (bm25.k1 + 1) * sums / (self._norms + sums)
        aligned = np.empty_like(scores)
        aligned[self._documents] = scores
        return aligned

    def _sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each place the sum of `values` over its passage."""
        sums: NDArray[np.float64] = values.copy()
        for shift, has_neighbour in self._neighbours:
            sums[shift:] += values[:-shift] * has_neighbour
            sums[:-shift] += values[shift:] * has_neighbour
        return sums


def _has_neighbour(sessions: NDArray[np.int32], shift: int) -> NDArray[np.bool_]:
    """For each place but the last `shift` ones, whether that so far behind it is of the same session."""
    same: NDArray[np.bool_] = (sessions[:-shift] == sessions[shift:]) & (sessions[shift:] >= 0)
    return same
