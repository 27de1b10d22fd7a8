"""Lexical search: BM25 over postings, kept up to date a document at a time, saved as a snapshot.

The only package that knows BM25. The index is derived from the documents and never the truth: a
snapshot that does not fit is a `StaleSnapshotError`, and the caller builds the index anew.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memkit.errors import StaleSnapshotError, raise_if_exhausted
from memkit.files import create_private, make_private_directory
from memkit.index.lexical.bm25 import LexicalMatch, PassageBM25, PostingsBM25, ReadingOrder
from memkit.index.lexical.postings import Postings
from memkit.index.lexical.tokens import Tokenizer
from memkit.state import parse_json

_FORMAT = 1
_MANIFEST = "manifest.json"
_IDS = "ids.json"
_ARRAYS = ("terms", "term_offsets", "posting_offsets", "slots", "frequencies", "lengths")
_FILES = (_IDS, *(f"{name}.npy" for name in _ARRAYS))

# Dead slots are reclaimed at once when they outnumber the live ones by this factor, else by `save`.
_MOST_SLOTS_PER_DOCUMENT = 2
_SLOTS_NOT_WORTH_RECLAIMING = 1_000


__all__ = ["LexicalIndex", "LexicalMatch", "ReadingOrder", "StaleSnapshotError", "fingerprint"]


def fingerprint(ids: Iterable[str]) -> str:
    """SHA-256 over the sorted `ids`, in hex: equal for equal sets of documents."""
    return hashlib.sha256(_ids_as_json(sorted(ids))).hexdigest()


class LexicalIndex:
    """Documents under ids, found by their terms. `language` as for `Tokenizer`.

    Equal contents give equal scores, to the last bit, and equal snapshots, whatever additions and
    removals led to them. Several threads may query at once, but nothing may run beside a change.
    """

    def __init__(self, language: str = "english") -> None:
        self._tokenizer = Tokenizer(language)
        self._take([], Postings(), np.zeros(0, np.int32))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def ids(self) -> Sequence[str]:
        """The ids of all documents, sorted by code point."""
        self._rank()
        return self._ids

    def copy(self) -> LexicalIndex:
        """The same documents; a change of the copy is none of this one."""
        other = LexicalIndex.__new__(LexicalIndex)
        self._merge()
        other._tokenizer = self._tokenizer
        other._take(self._ids, Postings(self._postings.arrays), np.array(self._lengths))
        return other

    def add(self, documents: Iterable[tuple[str, str]]) -> None:
        """Add documents as pairs of id and text.

        Raises `ValueError` for an id already present; the documents before it are added.
        """
        slots = self._change()
        for name, text in documents:
            if name in slots:
                raise ValueError(f"The document {name!r} is in the index already.")
            terms = self._tokenizer.tokenize(text)
            slots[name] = len(self._lengths)
            self._postings.add(slots[name], terms)
            self._lengths.append(len(terms))

    def remove(self, ids: Iterable[str]) -> None:
        """Remove documents.

        Raises `KeyError` for an id not present; the documents before it are removed.
        """
        slots = self._change()
        for name in ids:
            del slots[name]
        worth_keeping = _MOST_SLOTS_PER_DOCUMENT * len(slots) + _SLOTS_NOT_WORTH_RECLAIMING
        if len(self._lengths) > worth_keeping:
            self._merge()

    def query(self, text: str) -> LexicalMatch:
        """How well each document answers `text`."""
        return self._rank().match(self._tokenizer.question(text))

    def passages(self, order: ReadingOrder) -> Callable[[str], NDArray[np.float64]]:
        """A function that tells how well the passage around each document answers a question.

        Its scores are aligned to `ids`. It stands for the index as it is now.
        """
        bm25 = PassageBM25(self._rank(), order)
        return lambda text: bm25.scores(self._tokenizer.question(text))

    def holders(self, text: str) -> NDArray[np.bool_] | None:
        """If `text` is one identifier or word, which documents hold just that; else None."""
        term = self._tokenizer.identifier(text)
        return None if term is None else self._rank().holders(term)

    def save(self, directory: str) -> None:
        """Write a snapshot into `directory`, which must not hold one that is in use; the manifest last.

        Nothing is forced to the disk; what a power cut damages, the checksums tell. Raises `OSError`;
        then the directory holds no whole snapshot.
        """
        self._merge()
        make_private_directory(directory)
        files = {_IDS: _ids_as_json(self._ids)}
        arrays = {**self._postings.arrays, "lengths": np.array(self._lengths)}
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
        """The index saved in `directory`, memory-mapped; it can be added to and removed from.

        Raises `StaleSnapshotError` unless everything fits: files, version, language, parameters.
        The files must not be changed in place while the index is in use.
        """
        index = cls(language)
        try:
            index._read(Path(directory))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise_if_exhausted(error)
            raise StaleSnapshotError(
                f"The lexical snapshot {directory} cannot be used ({error}): rebuild it."
            ) from error
        return index

    def _read(self, directory: Path) -> None:
        """Take over the snapshot; raises what reading, parsing and comparing it may raise."""
        manifest = parse_json((directory / _MANIFEST).read_bytes())
        checksums = {}
        for name in _FILES:
            checksums[name] = zlib.crc32(np.memmap(directory / name, np.uint8, mode="r").data)
        if manifest["checksums"] != checksums:
            raise ValueError("its files are damaged")
        # Slices of plain arrays are made several times faster than those of `numpy.memmap`.
        arrays = {
            name: np.asarray(np.load(directory / f"{name}.npy", mmap_mode="r", allow_pickle=False))
            for name in _ARRAYS
        }
        ids = (directory / _IDS).read_bytes()
        self._take(parse_json(ids), Postings(arrays), arrays.pop("lengths"))
        if manifest != self._manifest(ids, checksums):
            raise ValueError("it was made by another version or for other settings")

    def _manifest(self, ids: bytes, checksums: Mapping[str, int]) -> dict[str, Any]:
        """What a snapshot of this index says of itself."""
        bm25 = self._rank()
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

    def _take(self, ids: list[str], postings: Postings, lengths: NDArray[np.int32]) -> None:
        """Become the index of these documents, whose slots are their places in the sorted `ids`."""
        self._ids = ids
        self._postings = postings
        self._lengths = array("i", lengths.tobytes())  # by slot, removed documents included
        self._slots: dict[str, int] | None = None  # of present documents; made by the first change
        self._ranking: PostingsBM25 | None = PostingsBM25(postings, lengths, np.arange(len(ids)))

    def _change(self) -> dict[str, int]:
        """Prepare for a change; the slots of the present documents by id, to be kept current."""
        self._ranking = None
        if self._slots is None:
            self._slots = {name: slot for slot, name in enumerate(self._ids)}
        return self._slots

    def _rank(self) -> PostingsBM25:
        """BM25 over the present documents."""
        if self._ranking is None:
            slots = self._slots or {}
            self._ids = sorted(slots)
            order = np.array([slots[name] for name in self._ids], np.int64)
            self._ranking = PostingsBM25(self._postings, np.array(self._lengths), order)
        return self._ranking

    def _merge(self) -> None:
        """Number the documents in the order of their ids, and bring all postings into arrays."""
        if self._slots is None:
            return
        order = self._rank().order
        new_slots = np.full(len(self._lengths), -1)
        new_slots[order] = np.arange(len(order))
        self._take(self._ids, self._postings.merge(new_slots), np.array(self._lengths)[order])


def _ids_as_json(ids: Sequence[str]) -> bytes:
    return json.dumps(ids).encode()
