"""The files that searches read: chunks, vectors, and the BM25 index, derived from Chroma.

A search maps these files into memory and needs neither Chroma nor the index lock. A snapshot is written
whole into its own directory (see `snapshot_writer`), then the file `current` names it. It carries the
hashes of the memory files, the fingerprint of its ids, and checksums of its files, so a stale or damaged
snapshot is noticed and never used.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memkit.errors import StaleSnapshotError, raise_if_exhausted
from memkit.index.chunk_reader import CHUNKS, ID_BYTES, IDS, ChunkReader
from memkit.index.lexical import LexicalIndex
from memkit.index.store import Row
from memkit.state import parse_json

NAMES = "names.json"
HEADER_BYTES = 1024
"""An upper bound for the header of our `.npy` files."""

NAMED = ("session", "kind", "branch", "source", "domain")
"""Columns of numbers for names: equal numbers mean equal names, and -1 the empty one."""

DTYPE = np.dtype(
    [*((name, np.int32) for name in ("length", "entry", "day", *NAMED)), ("text", np.int64)]
)
"""One row per chunk, so that a search need not parse 100,000 chunks to rank them.

`length` is the content's in characters. `entry` numbers the turns; any other chunk is its own entry.
`day` is the proleptic ordinal of the date, 0 without one. `text` is `Chunk.text_number`.
"""

Names = dict[str, list[str]]
"""For each of `NAMED` the names of its numbers."""

Columns = tuple[NDArray[Any], Names]
"""An array of `DTYPE`, and the names of its numbers."""

_ARRAYS = ("columns", "vectors", "owners")


@dataclass(frozen=True, slots=True)
class ChunkSegment:
    """Neighboring chunks as files hold them. `lengths`, `windows`, and the columns are aligned to them.

    Unchanged chunks go from one snapshot into the next as bytes, in 1 µs per chunk. Parsing and writing
    them again takes 30 µs.
    `lines` are the chunks as JSON lines, `lengths` the bytes of each; `ids` have no separators;
    `vectors` (sum of windows, dimensions) are those of the windows, `windows` the number per chunk.
    """

    lines: bytes | memoryview
    lengths: NDArray[np.int64]
    ids: bytes | memoryview
    columns: Columns
    vectors: NDArray[np.float32]
    windows: NDArray[np.int64]


class Snapshot(ChunkReader):
    """One readable state of a project's index: the chunks, and the arrays to rank them.

    `columns` is aligned to the chunks. `owners` maps each row of `vectors` to its chunk: a chunk has one
    vector per window, or none if it is not embedded.
    """

    files = (
        *ChunkReader.files, NAMES, *(f"{name}.npy" for name in _ARRAYS), "lexical/manifest.json",
    )  # fmt: skip

    def __init__(self, path: Path, language: str) -> None:
        """Open the snapshot at `path`. Raise `StaleSnapshotError`."""
        super().__init__(path)
        try:
            self.ids = np.frombuffer(self._ids, f"S{ID_BYTES}")
            self.columns = _array(self._data["columns.npy"])
            if self.columns.dtype != DTYPE:
                raise ValueError("its columns are of another version")
            self.vectors = _array(self._data["vectors.npy"])
            self.owners = _array(self._data["owners.npy"])
            self.lexical = LexicalIndex.load(str(path / "lexical"), language=language)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise_if_exhausted(error)
            raise StaleSnapshotError(f"snapshot {path} cannot be used: {error}") from error

    @property
    def names(self) -> Names:
        """The names of the numbers in `columns`."""
        names: Names = parse_json(bytes(self._data[NAMES]))
        return names

    @functools.cached_property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """The positions of each source's chunks: the first one, and the one after the last."""
        numbers = self.columns["source"]
        starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
        names = self.names["source"]
        ends = [*starts[1:], len(numbers)]
        return {
            names[numbers[start]]: (start, end) for start, end in zip(starts, ends, strict=False)
        }

    def unchanged(self, state: dict[str, str]) -> frozenset[str]:
        """Return the sources that are as in `state`, with all chunks embedded."""
        known = self.sources
        same = {source for source, found in state.items() if known.get(source) == found}
        waiting = np.ones(len(self), bool)
        waiting[self.owners] = False
        for source, (start, stop) in self.ranges.items() if self.missing else ():
            if waiting[start:stop].any():
                same.discard(source)
        return frozenset(same)

    def rows_outside(self, sources: frozenset[str]) -> Iterator[Row]:
        """Yield the chunks of all other sources."""
        for source, (start, stop) in self.ranges.items():
            if source not in sources:
                yield from self.rows(start, stop)

    def rows(self, start: int = 0, stop: int | None = None) -> list[Row]:
        """Return the chunks from `start` to before `stop`, by default all, as rows of the store."""
        places = range(len(self))[start:stop]
        bounds = self._vector_bounds(np.arange(places.start, places.stop + 1)).tolist()
        return [
            Row(self.id(n), self.chunk(n), self.vectors[begin:end] if begin < end else None)
            for n, begin, end in zip(places, bounds, bounds[1:], strict=False)
        ]

    def segment(self, start: int, stop: int) -> ChunkSegment:
        """Return the chunks from `start` to before `stop` for the next snapshot."""
        bounds = self._vector_bounds(np.arange(start, stop + 1))
        offsets = np.asarray(self._offsets[start : stop + 1])
        return ChunkSegment(
            lines=self._data[CHUNKS][offsets[0] : offsets[-1]],
            lengths=np.diff(offsets),
            ids=self._data[IDS][start * ID_BYTES : stop * ID_BYTES],
            columns=(self.columns[start:stop], self.names),
            vectors=self.vectors[bounds[0] : bounds[-1]],
            windows=np.diff(bounds),
        )

    def vectors_of_text(self, number: int) -> NDArray[np.float32] | None:
        """Return the vectors of an embedded chunk with this `text_number`, or None."""
        numbers, places = self._by_text
        first = int(np.searchsorted(numbers, number))
        if first == len(numbers) or numbers[first] != number:
            return None
        place = int(places[first])
        begin, end = self._vector_bounds(np.array([place, place + 1])).tolist()
        found: NDArray[np.float32] = self.vectors[begin:end]
        return found

    @functools.cached_property
    def _by_text(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The text numbers of all embedded chunks, sorted, and the position of each."""
        places = np.unique(self.owners).astype(np.int64)
        numbers = self.columns["text"][places]
        order = np.argsort(numbers, kind="stable")
        return numbers[order], places[order]

    def _vector_bounds(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first row in `vectors` of each position."""
        return np.searchsorted(self.owners, places)


def _array(data: memoryview) -> Any:
    """Return the array of a mapped `.npy` file; `np.load` would map it a second time."""
    header = io.BytesIO(data[:HEADER_BYTES])
    np.lib.format.read_magic(header)
    shape, _, dtype = np.lib.format.read_array_header_1_0(header)
    return np.frombuffer(data, dtype, offset=header.tell()).reshape(shape)
