"""Lexical search: BM25 over postings, saved as a snapshot.

This is the only package that knows BM25. The index is derived from the documents. A snapshot that does
not match raises `StaleSnapshotError`, and the caller builds a new index.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memkit.errors import StaleSnapshotError, raise_if_exhausted
from memkit.files import create_private, make_private_directory
from memkit.index.lexical.bm25 import (
    LexicalMatch,
    PassageBM25,
    Postings,
    PostingsBM25,
    ReadingOrder,
)
from memkit.index.lexical.tokens import Tokenizer
from memkit.state import parse_json

_FORMAT = 1
_MANIFEST = "manifest.json"
_IDS = "ids.json"
_ARRAYS = ("terms", "term_offsets", "posting_offsets", "slots", "frequencies", "lengths")
_FILES = (_IDS, *(f"{name}.npy" for name in _ARRAYS))

__all__ = ["LexicalIndex", "LexicalMatch", "ReadingOrder", "StaleSnapshotError", "fingerprint"]


def fingerprint(ids: Iterable[str]) -> str:
    """Return the SHA-256 of the sorted `ids` in hex: equal for equal sets of documents."""
    return hashlib.sha256(_ids_as_json(sorted(ids))).hexdigest()


class LexicalIndex:
    """Documents with ids, found by their terms. It never changes; `updated` returns another one.

    Equal contents give bit-identical scores and snapshots, whatever updates led to them.
    """

    def __init__(
        self,
        language: str = "english",
        ids: Sequence[str] = (),
        postings: Postings | None = None,
        lengths: NDArray[np.int32] | None = None,
    ) -> None:
        """`ids` are sorted by code point, `lengths` count their terms; `language` as for `Tokenizer`."""
        self.ids = ids
        self._tokenizer = Tokenizer(language)
        self._postings = Postings() if postings is None else postings
        self._lengths = np.zeros(0, np.int32) if lengths is None else lengths
        self._bm25 = PostingsBM25(self._postings, self._lengths)

    def __len__(self) -> int:
        return len(self.ids)

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
        lengths = array("i", self._lengths.tobytes())
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
        postings = self._postings.updated(pairs, new_slots)
        return LexicalIndex(self._tokenizer.language, ids, postings, np.array(lengths)[order])

    def query(self, text: str) -> LexicalMatch:
        """Return the scores of all documents for `text`."""
        return self._bm25.match(self._tokenizer.question(text))

    def passages(self, order: ReadingOrder) -> Callable[[str], NDArray[np.float64]]:
        """Return a function that scores the passage around each document, aligned to `ids`."""
        bm25 = PassageBM25(self._bm25, order)
        return lambda text: bm25.scores(self._tokenizer.question(text))

    def holders(self, text: str) -> NDArray[np.bool_] | None:
        """Return which documents hold the one identifier or word that `text` is, or None if it is more."""
        term = self._tokenizer.identifier(text)
        if term is None:
            return None
        held = np.zeros(len(self), bool)
        held[self._postings.find(term)[0]] = True
        return held

    def save(self, directory: str) -> None:
        """Write a snapshot into `directory`, which no reader may use yet; the manifest last.

        Nothing is synced to disk; the checksums reveal what a power cut damages. Raise `OSError`; then
        the directory holds no complete snapshot.
        """
        make_private_directory(directory)
        files = {_IDS: _ids_as_json(self.ids)}
        arrays = {**self._postings.arrays, "lengths": self._lengths}
        for name in _ARRAYS:
            buffer = io.BytesIO()
            np.save(buffer, arrays[name], allow_pickle=False)
            files[f"{name}.npy"] = buffer.getvalue()
        checksums = {name: zlib.crc32(data) for name, data in files.items()}
        manifest = json.dumps(self._manifest(files[_IDS], checksums), indent=2)
        for name, data in {**files, _MANIFEST: manifest.encode()}.items():
            with create_private(str(Path(directory, name))) as file:
                file.write(data)

    @classmethod
    def load(cls, directory: str, *, language: str = "english") -> LexicalIndex:
        """Return the index saved in `directory`, memory-mapped.

        Raise `StaleSnapshotError` unless files, version, language, and parameters match. The files must
        not change in place while the index is in use.
        """
        try:
            return cls._read(Path(directory), language)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise_if_exhausted(error)
            raise StaleSnapshotError(
                f"The lexical snapshot {directory} cannot be used ({error}): rebuild it."
            ) from error

    @classmethod
    def _read(cls, directory: Path, language: str) -> LexicalIndex:
        manifest = parse_json((directory / _MANIFEST).read_bytes())
        checksums = {}
        for name in _FILES:
            checksums[name] = zlib.crc32(np.memmap(directory / name, np.uint8, mode="r").data)
        if manifest["checksums"] != checksums:
            raise ValueError("its files are damaged")
        # Slicing plain arrays is several times faster than slicing `numpy.memmap`.
        arrays = {
            name: np.asarray(np.load(directory / f"{name}.npy", mmap_mode="r", allow_pickle=False))
            for name in _ARRAYS
        }
        ids = (directory / _IDS).read_bytes()
        lengths = arrays.pop("lengths")
        index = cls(language, parse_json(ids), Postings(arrays), lengths)
        if manifest != index._manifest(ids, checksums):
            raise ValueError("it was made by another version or for other settings")
        return index

    def _manifest(self, ids: bytes, checksums: Mapping[str, int]) -> dict[str, Any]:
        bm25 = self._bm25
        return {
            "format": _FORMAT,
            "tokenizer": self._tokenizer.signature,
            "bm25": {"k1": bm25.k1, "b": bm25.b, "delta": bm25.delta},
            "documents": len(self._lengths),
            "terms": len(self._postings.arrays["term_offsets"]) - 1,
            "postings": len(self._postings.arrays["slots"]),
            "fingerprint": hashlib.sha256(ids).hexdigest(),
            "checksums": dict(checksums),
        }


def _ids_as_json(ids: Sequence[str]) -> bytes:
    return json.dumps(ids).encode()
