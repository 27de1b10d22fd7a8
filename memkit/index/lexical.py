"""Lexical search: rank-bm25's BM25Plus over postings. This is the only module that knows BM25."""

from __future__ import annotations

import heapq
import math
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Plus

from memkit.index.tokens import tokenizer_of

PASSAGE_REACH = 2
"""A passage is a document with this many documents before and after it."""

DOCUMENT_K1, DOCUMENT_B = 5.0, 0.9
"""For BM25 of whole sessions and files.

A long session is about many things, so repeated words say more than in a chunk: k1 is higher. Of 1.5, 5, 20,
and 100 for k1, and 0.75, 0.9, and 1 for b, these ranked coding sessions and chats best.
"""

Arrays = dict[str, NDArray[Any]]
"""The postings of some documents, see `make_arrays`."""

CACHED_TERMS = 64
"""One search asks for the same few terms several times."""

_EMPTY: Arrays = {
    "terms": np.zeros(0, np.uint8),  # UTF-8, in the order of the bytes
    "term_offsets": np.zeros(1, np.int64),  # of the start of each, and the end of the last
    "posting_offsets": np.zeros(1, np.int64),
    "slots": np.zeros(0, np.int32),
    "frequencies": np.zeros(0, np.uint8),
    "lengths": np.zeros(0, np.int32),  # of the documents, in terms
}

ARRAYS = tuple(_EMPTY)
"""The names of the arrays."""


def make_arrays(texts: Iterable[str], language: str) -> Arrays:
    """Return the postings of `texts`; the slot of a document is its place among them."""
    tokenize = tokenizer_of(language).tokenize
    lengths = array("i")
    pairs: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
    for text in texts:
        terms = tokenize(text)
        for term, frequency in Counter(terms).items():
            pairs[term].extend((len(lengths), frequency))
        lengths.append(len(terms))
    items = sorted((term.encode(), found) for term, found in pairs.items())
    joined = np.frombuffer(b"".join(found for _, found in items), np.int32).reshape(-1, 2)
    return {
        "terms": np.frombuffer(b"".join(term for term, _ in items), np.uint8),
        "term_offsets": _offsets([len(term) for term, _ in items]),
        "posting_offsets": _offsets([len(found) // 2 for _, found in items]),
        "slots": joined[:, 0].copy(),
        "frequencies": joined[:, 1].astype(_smallest(joined[:, 1])),
        "lengths": np.array(lengths, np.int32),
    }


def join_arrays(parts: Sequence[tuple[Mapping[str, NDArray[Any]], NDArray[np.int32]]]) -> Arrays:
    """Return the postings of some documents of each part, equal to those that `make_arrays` makes of them.

    Each part has arrays, and for each of its slots the new slot, or -1 for a document that is left out.
    """
    terms: list[list[bytes]] = []  # of each part, those of documents that stay
    postings: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []  # term there, slot, frequency
    lengths = np.zeros(sum(int(np.count_nonzero(places >= 0)) for _, places in parts), np.int32)
    for arrays, places in parts:
        found = places[arrays["slots"]]
        live = np.flatnonzero(found >= 0)
        rows = np.searchsorted(arrays["posting_offsets"], live, side="right") - 1
        used, own = np.unique(rows, return_inverse=True)
        starts, ends = arrays["term_offsets"][used].tolist(), arrays["term_offsets"][used + 1].tolist()
        letters = arrays["terms"].data
        terms.append([bytes(letters[start:end]) for start, end in zip(starts, ends, strict=True)])
        postings.append((own, found[live], arrays["frequencies"][live]))
        lengths[places[places >= 0]] = arrays["lengths"][places >= 0]
    vocabulary = {term: number for number, term in enumerate(sorted(set().union(*terms)))}
    numbers = [np.array([vocabulary[term] for term in own], np.int64) for own in terms]
    row = _joined([known[own] for known, (own, _, _) in zip(numbers, postings, strict=True)])
    slot = _joined([slots for _, slots, _ in postings])
    # The rows are almost in order already, which makes a stable sort fast.
    order = np.argsort(row * max(1, len(lengths)) + slot, kind="stable")
    frequency = _joined([counts for _, _, counts in postings])[order]
    return {
        "terms": np.frombuffer(b"".join(vocabulary), np.uint8),
        "term_offsets": _offsets([len(term) for term in vocabulary]),
        "posting_offsets": _offsets(np.bincount(row, minlength=len(vocabulary))),
        "slots": slot[order].astype(np.int32),
        "frequencies": frequency.astype(_smallest(frequency)),
        "lengths": lengths,
    }


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def signature(language: str) -> str:
    """Return everything that postings and scores depend on besides the documents."""
    bm25 = PostingsBM25(Postings(_EMPTY), _EMPTY["lengths"])
    return f"{tokenizer_of(language).signature}, BM25Plus {bm25.k1} {bm25.b} {bm25.delta}"


class LexicalIndex:
    """Documents, found by their terms. A document's slot is its place in the order of all. It never changes.

    Equal documents give bit-identical scores, however many parts hold the postings.
    """

    def __init__(
        self, language: str, postings: Postings | JoinedPostings, lengths: NDArray[np.int32]
    ) -> None:
        """`language` is as for `tokenizer_of`; `lengths` are those of the documents, in terms."""
        self._size = len(lengths)
        self._tokenizer = tokenizer_of(language)
        self._postings = postings
        self._bm25 = PostingsBM25(postings, lengths)

    @classmethod
    def of(cls, texts: Iterable[str], language: str = "english") -> LexicalIndex:
        """Return the index of `texts`."""
        arrays = make_arrays(texts, language)
        return cls(language, Postings(arrays), arrays["lengths"])

    def __len__(self) -> int:
        return self._size

    def query(self, text: str) -> LexicalMatch:
        """Return the scores of all documents for `text`."""
        return self._bm25.match(self._tokenizer.question(text))

    def passages(self, order: ReadingOrder) -> Callable[[str], NDArray[np.float64]]:
        """Return a function that scores the passage around each document, by slot."""
        bm25 = PassageBM25(self._bm25, order)
        return lambda text: bm25.scores(self._tokenizer.question(text))

    def documents(self, numbers: NDArray[np.int32]) -> Callable[[str], NDArray[np.float64]]:
        """As `passages`, for whole documents; `numbers` has the document of each chunk."""
        bm25 = GroupBM25(self._bm25, numbers, DOCUMENT_K1, DOCUMENT_B)
        return lambda text: bm25.scores(self._tokenizer.question(text))

    def terms(self, text: str) -> list[str]:
        """Return the terms of a part of a document."""
        return self._tokenizer.tokenize(text)

    def postings(self) -> Iterator[tuple[bytes, NDArray[Any]]]:
        """Yield each term, in the order of the bytes, and the slots of the documents that hold it."""
        return self._postings.items()

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

    def wording(self, question: str) -> Callable[[str], float]:
        """Return a function that tells what share of a question's pairs of neighboring words a text has.

        A pair weighs the idf of its words.
        """
        weights = {pair: self.rarity(pair) for pair in self._tokenizer.pairs(question)}
        most = math.fsum(weights.values()) or 1.0
        pairs_of = self._tokenizer.pairs
        return lambda text: (
            math.fsum(weights[one] for one in weights.keys() & set(pairs_of(text, question))) / most
        )

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
    """The result of a query, by slot."""

    scores: NDArray[np.float64]
    """BM25 scores: exactly 0 without any term of the query, else positive."""

    coverage: NDArray[np.float64]
    """The share in [0, 1] of the query's idf mass that the document holds."""


@dataclass(frozen=True)
class ReadingOrder:
    """The documents in the order in which they are read; passages are made of neighbors."""

    documents: NDArray[np.intp]
    """The slots of the documents, in order."""

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

    def items(self) -> Iterator[tuple[bytes, NDArray[Any]]]:
        """Yield each term and its slots, in the order of the bytes."""
        offsets = self.arrays["posting_offsets"].tolist()
        for row, (begin, end) in enumerate(pairwise(offsets)):
            yield self._term(row), self.arrays["slots"][begin:end]

    def _term(self, row: int) -> bytes:
        return bytes(self._terms[self._term_offsets[row] : self._term_offsets[row + 1]])


class JoinedPostings:
    """The postings of several parts as one. Each part has for each of its slots the slot here, or -1."""

    def __init__(self, parts: Sequence[tuple[Postings, NDArray[np.int32]]]) -> None:
        self._parts = parts
        self._found: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}

    def find(self, term: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the slots that hold `term`, part by part, and the frequency in each."""
        found = self._found.get(term)
        if found is None:
            found = self._find(term)
            if len(self._found) >= CACHED_TERMS:
                self._found.clear()
            self._found[term] = found
        return found

    def _find(self, term: str) -> tuple[NDArray[Any], NDArray[Any]]:
        slots: list[NDArray[Any]] = [np.zeros(0, np.int32)]
        frequencies: list[NDArray[Any]] = [np.zeros(0, np.uint8)]
        for postings, places in self._parts:
            held, counts = postings.find(term)
            if len(held):
                found = places[held]
                live = found >= 0
                slots.append(found[live])
                frequencies.append(counts[live])
        return np.concatenate(slots), np.concatenate(frequencies)

    def items(self) -> Iterator[tuple[bytes, NDArray[Any]]]:
        """Yield each term and its slots, in the order of the bytes."""

        def of_part(postings: Postings, places: NDArray[np.int32]) -> Iterator[tuple[bytes, NDArray[Any]]]:
            return ((term, places[slots]) for term, slots in postings.items())

        merged = heapq.merge(*(of_part(*part) for part in self._parts), key=itemgetter(0))
        for term, group in groupby(merged, key=itemgetter(0)):
            slots = np.concatenate([slots for _, slots in group])
            live = np.sort(slots[slots >= 0])
            if len(live):
                yield term, live


def _offsets(sizes: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, np.int64))])


def _smallest(numbers: NDArray[Any]) -> np.dtype[Any]:
    return np.min_scalar_type(int(numbers.max(initial=0)))


class PostingsBM25(BM25Plus):  # type: ignore[misc]  # rank-bm25 has no type hints
    """BM25Plus over postings: a query touches only the documents that hold its terms.

    k1, b, and the idf are BM25Plus's own. BM25Plus adds delta * idf to every document for each term of
    the query, whether it holds the term or not. That constant ranks nothing, so it is left out here: a
    document without any term of the query scores 0.
    """

    def __init__(self, postings: Postings | JoinedPostings, lengths: NDArray[np.int32]) -> None:
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
        """Return BM25Plus's idf of a term that `holders` documents hold."""
        self._calc_idf({term: holders})
        return float(self.idf[term])


class GroupBM25:
    """BM25 of groups of the documents of a `PostingsBM25`.

    A group is scored as one document made of its documents. The number of groups that hold a term decides
    its idf, by BM25Plus's formula.
    """

    def __init__(self, bm25: PostingsBM25, groups: NDArray[Any], k1: float, b: float) -> None:
        """`groups` has the number of each document's group, by slot."""
        self._postings = bm25.postings
        self._groups = groups
        self._k1 = k1
        sizes = np.bincount(groups)
        self._count = int(np.count_nonzero(sizes))
        lengths = self._sums(np.asarray(np.bincount(groups, bm25.doc_len), np.float64))
        mean = lengths[sizes > 0].mean() if self._count else 1.0
        self._norms = k1 * (1 - b + b * lengths / (mean or 1.0))

    def scores(self, query: Mapping[str, float]) -> NDArray[np.float64]:
        """Return the scores of the groups of all documents, by slot."""
        scores = np.zeros(len(self._norms))
        for term, share in sorted(query.items()):
            slots, frequencies = self._postings.find(term)
            if not len(slots):
                continue
            found = np.asarray(np.bincount(self._groups[slots], frequencies, len(scores)), np.float64)
            sums = self._sums(found)
            weight = share * math.log((self._count + 1) / int(np.count_nonzero(sums)))
            scores += weight * (self._k1 + 1) * sums / (self._norms + sums)
        aligned: NDArray[np.float64] = scores[self._groups]
        return aligned

    def _sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values


class PassageBM25(GroupBM25):
    """BM25 of the passages around the documents.

    Two short remarks that share the words of a question answer it together.
    """

    def __init__(self, bm25: PostingsBM25, order: ReadingOrder) -> None:
        places = np.full(bm25.corpus_size, -1, np.intp)  # by slot, in reading order
        places[order.documents] = np.arange(len(order.documents))
        sessions = order.sessions
        self._neighbors = [
            (shift, ((sessions[:-shift] == sessions[shift:]) & (sessions[shift:] >= 0)).astype(np.float64))
            for shift in range(1, PASSAGE_REACH + 1)
        ]
        super().__init__(bm25, places, bm25.k1, bm25.b)

    def _sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        sums: NDArray[np.float64] = values.copy()
        for shift, has_neighbor in self._neighbors:
            sums[shift:] += values[:-shift] * has_neighbor
            sums[:-shift] += values[shift:] * has_neighbor
        return sums
