"""One readable state of an index: the chunks, and what ranks them, over all segments.

It presents the chunks in the order (source, start_line), whatever segments hold them. So an index after any
updates equals one that was built at once: in its columns, words, cosines, and results.
"""

from __future__ import annotations

import contextlib
import functools
import os
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memkit.errors import IndexStoreError, StaleSnapshotError
from memkit.files import make_private_directory, remove_path, write_durably
from memkit.index.lexical import JoinedPostings, LexicalIndex, signature
from memkit.index.manifest import MANIFEST, SUFFIX, Entry, Manifest, Run, Stat, stat_of
from memkit.index.reader import ChunkReader
from memkit.index.segment import Columns, Names, Segment, join_columns
from memkit.index.store import Row

MANY_VECTORS = 50_000
"""From this many vectors on, their products are computed in several threads: below, that takes longer."""


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), "products")


class Snapshot(ChunkReader):
    """The chunks of a project with the arrays that rank them, all aligned to the positions of the chunks."""

    segments: Sequence[Segment]
    kind = Segment

    def __init__(self, directory: Path, language: str | None = None, earlier: Snapshot | None = None) -> None:
        """Open the current state in `directory`; take open segments from `earlier`.

        Raise `StaleSnapshotError`, also for words of another `language`. None accepts any, for a merge.
        """
        super().__init__(directory, earlier)
        self.language = language or "english"
        signatures = {one.signature for one in self.segments}
        if language is not None and signatures and signatures != {signature(language)}:
            raise StaleSnapshotError(
                f"the snapshot in {directory} cannot be used: its terms are of another version or language"
            )

    @functools.cached_property
    def _joined(self) -> Columns:
        parts = [(self.segments[run.segment], run) for run in self.runs]
        return join_columns([(one.columns[run.first : run.last], one.names) for one, run in parts])

    @property
    def columns(self) -> NDArray[Any]:
        """One row of `DTYPE` per chunk."""
        return self._joined[0]

    @property
    def names(self) -> Names:
        """The names of the numbers in `columns`."""
        return self._joined[1]

    @functools.cached_property
    def _vector_runs(self) -> list[tuple[Run, int, int]]:
        """The first row of vectors in the segment of each run, and one past the last."""
        found = []
        for run in self.runs:
            bounds = self.segments[run.segment].vector_bounds(np.array([run.first, run.last]))
            found.append((run, int(bounds[0]), int(bounds[1])))
        return found

    @functools.cached_property
    def owners(self) -> NDArray[np.int32]:
        """The position of the chunk of each vector; a chunk has one per window, or none."""
        parts = [
            self.segments[run.segment].owners[first:last] + np.int32(run.start - run.first)
            for run, first, last in self._vector_runs
        ]
        return np.concatenate([np.zeros(0, np.int32), *parts])

    @property
    def dimensions(self) -> int | None:
        """The length of the vectors; None if there are none."""
        for run, first, last in self._vector_runs:
            if first < last:
                return int(self.segments[run.segment].vectors.shape[1])
        return None

    def similarities(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the inner product of `vector` with each vector, in the order of `owners`."""
        numbers = sorted({run.segment for run, first, last in self._vector_runs if first < last})
        # numpy lets other threads run meanwhile.
        many = _threads().map if len(self.owners) >= MANY_VECTORS else map
        found = many(lambda number: self.segments[number].similarities(vector), numbers)
        products = dict(zip(numbers, found, strict=True))
        runs = (one for one in self._vector_runs if one[1] < one[2])
        parts = [np.zeros(0, np.float32), *(products[run.segment][first:last] for run, first, last in runs)]
        return np.concatenate(parts)

    def vectors_at(self, position: int) -> NDArray[np.float32]:
        """Return the vectors of the chunk at `position`: (windows, dimensions)."""
        number, place = self.place(position)
        return self.segments[number].vectors_of(place)

    def vectors(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors with these numbers, which count them in the order of `owners`."""
        found = np.zeros((len(rows), self.dimensions or 0), np.float32)
        start = 0
        for run, first, last in self._vector_runs:
            own = np.flatnonzero((rows >= start) & (rows < start + last - first))
            if len(own):
                found[own] = self.segments[run.segment].vectors[rows[own] - start + first]
            start += last - first
        return found

    @functools.cached_property
    def lexical(self) -> LexicalIndex:
        """The words of all chunks. The slot of a chunk is its position."""
        places = [np.full(len(one), -1, np.int32) for one in self.segments]
        lengths = [np.zeros(0, np.int32)]
        for run in self.runs:
            size = run.last - run.first
            places[run.segment][run.first : run.last] = np.arange(run.start, run.start + size)
            lengths.append(self.segments[run.segment].arrays["lengths"][run.first : run.last])
        postings = [one.postings for one in self.segments]
        return LexicalIndex(
            self.language, JoinedPostings(list(zip(postings, places, strict=True))), np.concatenate(lengths)
        )

    def author(self, position: int) -> str:
        """Return the name of the colleague who has the chunk at `position`; "" if this home has it."""
        return ""

    def rows(self) -> list[Row]:
        """Return all chunks."""
        return [self._row(run.segment, place) for run in self.runs for place in range(run.first, run.last)]

    def rows_of(self, source: str) -> list[Row]:
        """Return the chunks of a memory file."""
        entry = self.entries[source]
        return [self._row(entry.segment, place) for place in range(entry.first, entry.last)]

    def _row(self, number: int, place: int) -> Row:
        segment = self.segments[number]
        vectors = segment.vectors_of(place)
        return Row(segment.id(place), segment.chunk(place), vectors if len(vectors) else None)

    def vectors_of_text(self, number: int) -> NDArray[np.float32] | None:
        """Return the vectors of an embedded chunk with this `text_number`, or None."""
        for segment, live in zip(self.segments, self._live, strict=True):
            numbers, places = segment.by_text
            first, last = np.searchsorted(numbers, [number, number + 1])
            for place in places[first:last].tolist():
                if any(begin <= place < end for begin, end in live):
                    return segment.vectors_of(place)
        return None

    @functools.cached_property
    def _live(self) -> list[list[tuple[int, int]]]:
        """The ranges of each segment that count."""
        found: list[list[tuple[int, int]]] = [[] for _ in self.segments]
        for run in self.runs:
            found[run.segment].append((run.first, run.last))
        return found


def order(row: Row) -> tuple[str, int, int, str]:
    """Return the sort key of a chunk in a segment."""
    return (row.chunk.source, row.chunk.start_line, row.chunk.end_line, row.id)


def entries_of(rows: Sequence[Row], sources: Mapping[str, str], segment: int) -> dict[str, Entry]:
    """Return the entries of the sorted `rows` that the segment with this number holds."""
    entries: dict[str, Entry] = {}
    first = 0
    for source, group in groupby(rows, lambda row: row.chunk.source):
        own = list(group)
        waiting = sum(row.vectors is None for row in own)
        entries[source] = Entry(sources.get(source, ""), segment, first, first + len(own), waiting)
        first += len(own)
    return entries


def prepare(directory: Path) -> None:
    """Create the directory of a collection's segments. Raise `IndexStoreError`."""
    try:
        # All of this is derived: a file in the place of a directory can go.
        for place in (directory.parent, directory):
            if not place.is_dir():
                remove_path(place)
        make_private_directory(str(directory))
    except OSError as error:
        raise unwritable(directory, error) from error


def write_manifest(
    directory: Path, root: str, segments: Sequence[str], entries: Mapping[str, Entry],
    known: Mapping[str, Stat],
) -> None:  # fmt: skip
    """Make these entries of these segments the current state; remove all other segments.

    Segments without an entry are left out. `known` has the stats of the segments that were checked; the
    others have just been written. Raise `IndexStoreError`.
    """
    used = sorted({one.segment for one in entries.values() if one.first < one.last})
    number = {old: new for new, old in enumerate(used)}
    names = [segments[one] for one in used]
    numbered = {
        source: entry._replace(segment=number.get(entry.segment, 0)) for source, entry in entries.items()
    }
    try:
        stats = {one: known.get(one) or stat_of(os.stat(directory / f"{one}{SUFFIX}")) for one in names}
        manifest = Manifest(uuid.uuid4().hex, root, stats, numbered)
        write_durably(str(directory / MANIFEST), manifest.to_bytes())
    except OSError as error:
        raise unwritable(directory, error) from error
    remove_others(directory, names)


def unwritable(directory: Path, error: OSError) -> IndexStoreError:
    """Return the error for users about a failed write."""
    return IndexStoreError(f"cannot write the index in {directory}: {error.strerror or error}")


def remove_others(directory: Path, names: Sequence[str]) -> None:
    """Remove all segments of a collection except `names`, and what killed writers left.

    On Windows, files that a reader has open stay until the next call.
    """
    kept = {f"{name}{SUFFIX}" for name in names}
    for other in directory.iterdir():
        if other.suffix in (SUFFIX, ".tmp") and other.name not in kept:
            with contextlib.suppress(OSError):
                other.unlink()
