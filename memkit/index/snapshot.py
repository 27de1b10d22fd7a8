"""What searches read: the chunks, their vectors and the BM25 index as files, derived from Chroma.

A search maps these files into memory and needs neither Chroma nor the index lock. A snapshot is
written whole into a directory of its own, see `snapshot_writer`, then the file `current` is pointed at it;
it carries the hashes of the memory files it stands for, the fingerprint of its ids, and checksums of its
own files, so one that is stale or damaged is noticed and never trusted.
"""

from __future__ import annotations

import functools
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memkit.errors import StaleSnapshotError, raise_if_exhausted
from memkit.index.chunk_reader import CHUNKS, ID_BYTES, IDS, ChunkReader, open_in_force
from memkit.index.columns import DTYPE, Names
from memkit.index.lexical import LexicalIndex
from memkit.index.segment import ChunkSegment
from memkit.index.store import Row
from memkit.state import parse_json

NAMES = "names.json"
HEADER_BYTES = 1024
"""More than the header of an `.npy` file of ours takes."""

_ARRAYS = ("columns", "vectors", "owners")


class Snapshot(ChunkReader):
    """One readable state of a project's index: the chunks, and what a search needs to rank them.

    Arrays are aligned to the chunks: `columns`, see there, and `owners`, which maps each row of
    `vectors` to its chunk: a chunk has one vector a window, or none if it is not embedded.
    """

    files = (
        *ChunkReader.files, NAMES, *(f"{name}.npy" for name in _ARRAYS), "lexical/manifest.json",
    )  # fmt: skip

    def __init__(self, path: Path, language: str) -> None:
        """Open the snapshot at `path`. Raises `StaleSnapshotError`."""
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
        """The names that the numbers of `columns` stand for."""
        names: Names = parse_json(bytes(self._data[NAMES]))
        return names

    @functools.cached_property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """Where the chunks of each source stand: the place of the first, and that after the last."""
        numbers = self.columns["source"]
        starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
        names = self.names["source"]
        ends = [*starts[1:], len(numbers)]
        return {
            names[numbers[start]]: (start, end) for start, end in zip(starts, ends, strict=True)
        }

    def rows(self, start: int = 0, stop: int | None = None) -> list[Row]:
        """The chunks from `start` to before `stop`, by default all, as they stand in the store."""
        places = range(len(self))[start:stop]
        bounds = self._vector_bounds(np.arange(places.start, places.stop + 1)).tolist()
        return [
            Row(self.id(n), self.chunk(n), self.vectors[begin:end] if begin < end else None)
            for n, begin, end in zip(places, bounds, bounds[1:], strict=False)
        ]

    def segment(self, start: int, stop: int) -> ChunkSegment:
        """The chunks from `start` to before `stop`, as the next snapshot can take them over."""
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
        """The vectors of a chunk whose `text_number` is `number`, if one is embedded."""
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
        """The text numbers of all embedded chunks, sorted, and the place of each."""
        places = np.unique(self.owners).astype(np.int64)
        numbers = self.columns["text"][places]
        order = np.argsort(numbers, kind="stable")
        return numbers[order], places[order]

    def _vector_bounds(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where in `vectors` those of each place begin."""
        return np.searchsorted(self.owners, places)


def _array(data: memoryview) -> Any:
    """The array of an `.npy` file that is mapped; `np.load` would map it a second time."""
    header = io.BytesIO(data[:HEADER_BYTES])
    np.lib.format.read_magic(header)
    shape, _, dtype = np.lib.format.read_array_header_1_0(header)
    return np.frombuffer(data, dtype, offset=header.tell()).reshape(shape)


def open_current(directory: Path, language: str) -> Snapshot | None:
    """The snapshot in force in `directory`; None if there is none that can be trusted."""
    return open_in_force(directory, lambda path: Snapshot(path, language))
