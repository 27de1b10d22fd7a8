"""Lexical search: rank-bm25's BM25Plus over postings. This is the only module that knows BM25."""

from __future__ import annotations

import functools
import hashlib
import json
import math
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Plus

from memkit.index.tokens import Tokenizer

PASSAGE_REACH = 2
"""A passage is a document with this many documents before and after it."""

_EMPTY: dict[str, NDArray[Any]] = {
    "terms": np.zeros(0, np.uint8),  # UTF-8, in the order of the bytes
    "term_offsets": np.zeros(1, np.int64),  # of the start of each, and the end of the last
    "posting_offsets": np.zeros(1, np.int64),
    "slots": np.zeros(0, np.int32),
    "frequencies": np.zeros(0, np.uint8),
    "lengths": np.zeros(0, np.int32),  # of the documents, in terms
}

ARRAYS = tuple(_EMPTY)
"""The names of the arrays of an index."""


def fingerprint(ids: Iterable[str]) -> str:
    """Return the SHA-256 of the sorted `ids` in hex: equal for equal sets of documents."""
    return hashlib.sha256(json.dumps(sorted(ids)).encode()).hexdigest()


class LexicalIndex:
    """Documents with ids, found by their terms. It never changes; `updated` returns another one.

    Equal contents give bit-identical `arrays` and scores, whatever updates led to them.
    """

    def __init__(
        self,
        language: str = "english",
        list_ids: Callable[[], Sequence[str]] = tuple,
        arrays: Mapping[str, NDArray[Any]] = _EMPTY,
    ) -> None:
        """`list_ids` returns the ids sorted by code point; only an update needs them.

        `arrays` are those of an index with the same `signature`; `language` is as for `Tokenizer`.
        """
        self.arrays = arrays
        self._list_ids = list_ids
        self._tokenizer = Tokenizer(language)
        self._postings = Postings(arrays)
        self._bm25 = PostingsBM25(self._postings, arrays["lengths"])

    def __len__(self) -> int:
        return len(self.arrays["lengths"])

    @functools.cached_property
    def ids(self) -> Sequence[str]:
        """The ids of all documents, sorted by code point."""
        return self._list_ids()

    @property
    def signature(self) -> str:
        """Everything the arrays depend on besides the documents."""
        bm25 = self._bm25
        return f"{self._tokenizer.signature}, BM25Plus {bm25.k1} {bm25.b} {bm25.delta}"

    def updated(
        self, added: Iterable[tuple[str, str]], removed: Sequence[str] = ()
    ) -> LexicalIndex:
        """Return this index without the `removed` ids and with the `added` pairs of id and text.

        An id may be in both. Raise `KeyError` for a removed id that is not present, `ValueError` for an
        added one that is.
        """
        slots = {name: slot for slot, name in enumerate(self.ids)}
        for name in removed:
            del slots[name]
        lengths = array("i", self.arrays["lengths"].tobytes())
        pairs: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
        for name, text in added:
            if name in slots:
                raise ValueError(f"The document {name!r} is already in the index.")
            terms = self._tokenizer.tokenize(text)
            for term, frequency in Counter(terms).items():
                pairs[term].extend((len(lengths), frequency))
            slots[name] = len(lengths)
            lengths.append(len(terms))
        if not removed and len(lengths) == len(self):
            return self
        ids = sorted(slots)
        order = np.array([slots[name] for name in ids], np.int64)
        new_slots = np.full(len(lengths), -1)
        new_slots[order] = np.arange(len(order))
        arrays = self._postings.updated(pairs, new_slots)
        arrays["lengths"] = np.array(lengths)[order]
        return LexicalIndex(self._tokenizer.language, lambda: ids, arrays)

    def query(self, text: str) -> LexicalMatch:
        """Return the scores of all documents for `text`."""
        return self._bm25.match(self._tokenizer.question(text))

    def passages(self, order: ReadingOrder) -> Callable[[str], NDArray[np.float64]]:
        """Return a function that scores the passage around each document, aligned to `ids`."""
        bm25 = PassageBM25(self._bm25, order)
        return lambda text: bm25.scores(self._tokenizer.question(text))

    def terms(self, text: str) -> list[str]:
        """Return the terms of a part of a document."""
        return self._tokenizer.tokenize(text)

    def rarities(self, text: str) -> dict[str, float]:
        """Return the terms of a question with their idf: the fewer documents hold a term, the higher."""
        terms = self._tokenizer.question(text)
        counts = {term: max(1, len(self._postings.find(term)[0])) for term in terms}
        return {term: self._bm25.idf_of(term, count) for term, count in counts.items()}

    def rarity(self, terms: Iterable[str]) -> float:
        """Return the sum of how rare the terms are: 1 for one that a single document holds, 0 if all do."""
        most = math.log(len(self) + 1) or 1.0
        counts = {term: max(1, len(self._postings.find(term)[0])) for term in sorted(terms)}
        return sum(self._bm25.idf_of(term, count) / most for term, count in counts.items())

    def holders(self, text: str) -> NDArray[np.bool_] | None:
        """Return which documents hold the one identifier or word that `text` is, or None if it is more."""
        term = self._tokenizer.identifier(text)
        if term is None:
            return None
        held = np.zeros(len(self), bool)
        held[self._postings.find(term)[0]] = True
        return held


@dataclass(frozen=True)
class LexicalMatch:
    """The result of a query, aligned to `LexicalIndex.ids`."""

    scores: NDArray[np.float64]
    """BM25 scores: exactly 0 without any term of the query, else positive."""

    coverage: NDArray[np.float64]
    """The share in [0, 1] of the query's idf mass that the document holds."""


@dataclass(frozen=True)
class ReadingOrder:
    """The documents in the order in which they are read; passages are made of neighbors."""

    documents: NDArray[np.intp]
    """The documents in order, as positions in `LexicalIndex.ids`."""

    sessions: NDArray[np.int32]
    """The session number of each of `documents`; no passage crosses one. -1 is a passage by itself."""


class Postings:
    """For each term the documents that hold it, and how often. Documents are numbered from 0 (slots).

    The arrays are ordered by term and never change, so they may be memory-mapped.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.arrays = arrays
        # `_term` reads single elements, for which memory views are several times faster.
        self._terms = self.arrays["terms"].data
        self._term_offsets = self.arrays["term_offsets"].data
        self._size = len(self.arrays["posting_offsets"]) - 1

    def find(self, term: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the slots that hold `term`, and the frequency in each."""
        key = term.encode()
        row = bisect_left(range(self._size), key, key=self._term)
        begin = end = 0
        if row < self._size and self._term(row) == key:
            begin, end = self.arrays["posting_offsets"][row : row + 2]
        return self.arrays["slots"][begin:end], self.arrays["frequencies"][begin:end]

    def updated(
        self, added: Mapping[str, array[int]], new_slots: NDArray[np.int64]
    ) -> dict[str, NDArray[Any]]:
        """Return the arrays with slot `i` renumbered to `new_slots[i]` (-1 drops it) and `added` postings.

        `added` maps a term to slot, frequency, slot, frequency, … Equal documents give identical bytes.
        """
        items = sorted((term.encode(), pairs) for term, pairs in added.items())
        old_rows, added_rows, new_terms = self._rows_of([term for term, _ in items])
        counts = [len(pairs) // 2 for _, pairs in items]
        old_counts = np.diff(self.arrays["posting_offsets"])
        rows = np.concatenate([np.repeat(old_rows, old_counts), np.repeat(added_rows, counts)])
        pairs = np.frombuffer(b"".join(pairs for _, pairs in items), np.int32).reshape(-1, 2)
        slots = new_slots[np.concatenate([self.arrays["slots"], pairs[:, 0]])]
        frequencies = np.concatenate([self.arrays["frequencies"], pairs[:, 1]])

        live = slots >= 0
        rows, slots, frequencies = rows[live], slots[live], frequencies[live]
        # The rows are almost in order already, which makes a stable sort fast.
        order = np.argsort(rows * max(1, len(new_slots)) + slots, kind="stable")
        slots, frequencies = slots[order], frequencies[order]
        per_term = np.bincount(rows, minlength=len(old_rows) + len(new_terms))
        return {
            **self._terms_with(new_terms, old_rows, per_term > 0),
            "posting_offsets": _offsets(per_term[per_term > 0]),
            "slots": slots.astype(np.int32),
            "frequencies": frequencies.astype(np.min_scalar_type(frequencies.max(initial=0))),
        }

    def _rows_of(
        self, terms: Sequence[bytes]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], list[tuple[int, bytes]]]:
        """Return the rows of the old terms and of the sorted `terms` in a table that merges both.

        The third value lists the new terms, each with the old row before which it goes.
        """
        rows: list[int] = []
        new: list[tuple[int, bytes]] = []
        for term in terms:
            place = bisect_left(range(self._size), term, key=self._term)
            rows.append(place + len(new))
            if place == self._size or self._term(place) != term:
                new.append((place, term))
        old = np.arange(self._size)
        before = np.searchsorted([place for place, _ in new], old, side="right")
        return old + before, np.array(rows, np.int64), new

    def _terms_with(
        self,
        new: Sequence[tuple[int, bytes]],
        old_rows: NDArray[np.int64],
        is_used: NDArray[np.bool_],
    ) -> dict[str, NDArray[Any]]:
        """Return the arrays of those old and new terms that are used."""
        lengths = np.zeros(len(is_used), np.int64)
        lengths[old_rows] = np.diff(self.arrays["term_offsets"])
        lengths[np.delete(np.arange(len(is_used)), old_rows)] = [len(term) for _, term in new]
        parts: list[bytes | memoryview] = []
        begin = 0
        for place, term in new:
            end = int(self._term_offsets[place])
            parts += [self._terms[begin:end], term]
            begin = end
        letters = np.frombuffer(b"".join([*parts, self._terms[begin:]]), np.uint8)
        return {
            "terms": letters[np.repeat(is_used, lengths)],
            "term_offsets": _offsets(lengths[is_used]),
        }

    def _term(self, row: int) -> bytes:
        return bytes(self._terms[self._term_offsets[row] : self._term_offsets[row + 1]])


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the offset at which each of consecutive runs starts, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


class PostingsBM25(BM25Plus):  # type: ignore[misc]  # rank-bm25 has no type hints
    """BM25Plus over postings: a query touches only the documents that hold its terms.

    k1, b, and the idf are BM25Plus's own. BM25Plus adds delta * idf to every document for each term of
    the query, whether it holds the term or not. That constant ranks nothing, so it is left out here: a
    document without any term of the query scores 0.
    """

    def __init__(self, postings: Postings, lengths: NDArray[np.int32]) -> None:
        """`lengths` are in terms, by slot."""
        self.postings = postings
        super().__init__(lengths)

    def _initialize(self, corpus: NDArray[np.int32]) -> dict[str, int]:
        """Replace the step of BM25Plus's constructor that would count the terms of all documents."""
        self.corpus_size = len(corpus)
        self.doc_len = corpus
        self.avgdl = int(corpus.sum()) / max(1, len(corpus)) or 1.0
        self._length_norms = self.k1 * (1 - self.b + self.b * corpus / self.avgdl)
        return {}

    def match(self, query: Mapping[str, float]) -> LexicalMatch:
        """Return for all documents the score and the share of the query's idf mass that they hold.

        `query` maps its terms to their weights.
        A term that no document holds counts in that mass with the formula's largest idf.
        """
        size = self.corpus_size
        if not size or not query:
            return LexicalMatch(np.zeros(size), np.zeros(size))
        # Sums of floats depend on their order: sorted, the same words score the same in any order.
        terms = sorted(query.items())
        found = [self.postings.find(term) for term, _ in terms]
        weights = [
            share * self.idf_of(term, max(1, len(slots)))
            for (term, share), (slots, _) in zip(terms, found, strict=True)
        ]
        slots = np.concatenate([slots for slots, _ in found], dtype=np.intp)
        frequencies = np.concatenate([frequencies for _, frequencies in found])
        weight = np.repeat(weights, [len(slots) for slots, _ in found])
        saturation = frequencies * (self.k1 + 1) / (self._length_norms[slots] + frequencies)
        # With weights, `bincount` sums floats; its type hints miss that.
        scores = np.asarray(np.bincount(slots, weight * saturation, size), np.float64)
        coverage = np.asarray(np.bincount(slots, weight, size), np.float64) / sum(weights)
        return LexicalMatch(scores, coverage)

    def idf_of(self, term: str, holders: int) -> float:
        """Return BM25Plus's idf of a term that `holders` documents, or passages, hold."""
        self._calc_idf({term: holders})
        return float(self.idf[term])


class PassageBM25:
    """BM25 of the passages around the documents of a `PostingsBM25`.

    A passage is scored as one document made of its documents; the number of passages that hold a term
    decides its idf. Two short remarks that share the words of a question answer it together.
    """

    def __init__(self, bm25: PostingsBM25, order: ReadingOrder) -> None:
        self._bm25 = bm25
        self._documents = order.documents
        size = len(order.documents)
        self._places = np.full(bm25.corpus_size, -1, np.intp)  # by slot, in reading order
        self._places[order.documents] = np.arange(size)
        self._neighbors = [
            (shift, _has_neighbor(order.sessions, shift).astype(np.float64))
            for shift in range(1, PASSAGE_REACH + 1)
        ]
        lengths = self._sums(bm25.doc_len[order.documents].astype(np.float64))
        mean = lengths.mean() if size else 1.0
        self._norms = bm25.k1 * (1 - bm25.b + bm25.b * lengths / (mean or 1.0))

    def scores(self, query: Mapping[str, float]) -> NDArray[np.float64]:
        """Return the scores of the passages around all documents, aligned to `LexicalIndex.ids`."""
        bm25 = self._bm25
        size = len(self._documents)
        scores = np.zeros(size)
        for term, share in sorted(query.items()):
            slots, frequencies = bm25.postings.find(term)
            if not len(slots):
                continue
            found = np.asarray(np.bincount(self._places[slots], frequencies, size), np.float64)
            sums = self._sums(found)
            weight = share * bm25.idf_of(term, int(np.count_nonzero(sums)))
            scores += weight * (bm25.k1 + 1) * sums / (self._norms + sums)
        aligned = np.empty_like(scores)
        aligned[self._documents] = scores
        return aligned

    def _sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return for each position the sum of `values` over its passage."""
        sums: NDArray[np.float64] = values.copy()
        for shift, has_neighbor in self._neighbors:
            sums[shift:] += values[:-shift] * has_neighbor
            sums[:-shift] += values[shift:] * has_neighbor
        return sums


def _has_neighbor(sessions: NDArray[np.int32], shift: int) -> NDArray[np.bool_]:
    """Return whether each position and the one `shift` after it are of the same session."""
    same: NDArray[np.bool_] = (sessions[:-shift] == sessions[shift:]) & (sessions[shift:] >= 0)
    return same
