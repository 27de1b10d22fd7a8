"""An inverted file: for each term the documents that hold it, and how often.

Knows nothing of scores or of ids; `memkit.index.lexical` puts BM25 and the documents' names on it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Postings:
    """For each term the documents that hold it, and how often; documents are numbered slots.

    Two layers: `arrays`, ordered by term and never changed, so they may be memory-mapped, and the
    documents added since, in a dictionary. `merge` makes new arrays of both.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]] | None = None) -> None:
        self.arrays = arrays or {
            "terms": np.zeros(0, np.uint8),  # UTF-8, in the order of the bytes
            "term_offsets": np.zeros(1, np.int64),  # where each begins, and the end of the last
            "posting_offsets": np.zeros(1, np.int64),
            "slots": np.zeros(0, np.int32),
            "frequencies": np.zeros(0, np.uint8),
        }
        # Element by element, as `_term` reads them, memory views are several times faster.
        self._terms = self.arrays["terms"].data
        self._term_offsets = self.arrays["term_offsets"].data
        # By term: slot, frequency, slot, frequency, …
        self._added: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))

    def add(self, slot: int, terms: Sequence[str]) -> None:
        """Enter the document `slot`, which must be new."""
        for term, frequency in Counter(terms).items():
            pairs = self._added[term]
            pairs.append(slot)
            pairs.append(frequency)

    def find(self, term: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """The slots that hold `term`, in no order, and the frequency in each."""
        offsets = self.arrays["posting_offsets"]
        key = term.encode()
        row = bisect_left(range(len(offsets) - 1), key, key=self._term)
        if row < len(offsets) - 1 and self._term(row) == key:
            begin, end = offsets[row], offsets[row + 1]
        else:
            begin = end = 0
        slots, frequencies = self.arrays["slots"][begin:end], self.arrays["frequencies"][begin:end]
        if term in self._added:
            added = np.array(self._added[term]).reshape(-1, 2)
            slots = np.concatenate([slots, added[:, 0]])
            frequencies = np.concatenate([frequencies, added[:, 1]])
        return slots, frequencies

    def merge(self, new_slots: NDArray[np.int64]) -> Postings:
        """Both layers as one, slot `i` renumbered `new_slots[i]`, or left out where that is -1.

        The outcome depends on the live documents and their new slots alone, to the byte.
        """
        added = sorted((term.encode(), pairs) for term, pairs in self._added.items())
        old_rows, added_rows, new_terms = self._rows_of([term for term, _ in added])
        counts = [len(pairs) // 2 for _, pairs in added]
        rows = np.concatenate(
            [
                np.repeat(old_rows, np.diff(self.arrays["posting_offsets"])),
                np.repeat(added_rows, counts),
            ]
        )
        pairs = np.frombuffer(b"".join(pairs for _, pairs in added), np.int32).reshape(-1, 2)
        slots = new_slots[np.concatenate([self.arrays["slots"], pairs[:, 0]])]
        frequencies = np.concatenate([self.arrays["frequencies"], pairs[:, 1]])

        live = slots >= 0
        rows, slots, frequencies = rows[live], slots[live], frequencies[live]
        # Almost in order already, which a stable sort makes use of.
        order = np.argsort(rows * max(1, len(new_slots)) + slots, kind="stable")
        slots, frequencies = slots[order], frequencies[order]
        per_term = np.bincount(rows, minlength=len(old_rows) + len(new_terms))
        return Postings(
            {
                **self._terms_with(new_terms, old_rows, per_term > 0),
                "posting_offsets": _offsets(per_term[per_term > 0]),
                "slots": slots.astype(np.int32),
                "frequencies": frequencies.astype(np.min_scalar_type(frequencies.max(initial=0))),
            }
        )

    def _rows_of(
        self, terms: Sequence[bytes]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], list[tuple[int, bytes]]]:
        """The rows of the old terms and of `terms`, which are sorted, in a table of both.

        Also those of `terms` that are new, each with the old row that it goes before.
        """
        size = len(self.arrays["posting_offsets"]) - 1
        rows: list[int] = []
        new: list[tuple[int, bytes]] = []
        for term in terms:
            place = bisect_left(range(size), term, key=self._term)
            rows.append(place + len(new))
            if place == size or self._term(place) != term:
                new.append((place, term))
        before = np.searchsorted([place for place, _ in new], np.arange(size), side="right")
        return np.arange(size) + before, np.array(rows, np.int64), new

    def _terms_with(
        self,
        new: Sequence[tuple[int, bytes]],
        old_rows: NDArray[np.int64],
        is_used: NDArray[np.bool_],
    ) -> dict[str, NDArray[Any]]:
        """The arrays of the terms, old and new ones, as far as they are used."""
        offsets = self.arrays["term_offsets"]
        lengths = np.zeros(len(is_used), np.int64)
        lengths[old_rows] = np.diff(offsets)
        lengths[np.delete(np.arange(len(is_used)), old_rows)] = [len(term) for _, term in new]
        parts: list[bytes | memoryview] = []
        begin = 0
        for place, term in new:
            end = int(offsets[place])
            parts += [self._terms[begin:end], term]
            begin = end
        letters = np.frombuffer(b"".join([*parts, self._terms[begin:]]), np.uint8)
        return {
            "terms": letters[np.repeat(is_used, lengths)],
            "term_offsets": _offsets(lengths[is_used]),
        }

    def _term(self, row: int) -> bytes:
        return bytes(self._terms[self._term_offsets[row] : self._term_offsets[row + 1]])


def _offsets(sizes: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Where runs of `sizes` begin when they follow each other, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
