"""One pass over the memory files of a project: embed what is new, write the store, then the snapshot."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from memkit.embedding import UnusableVectorError, check_vectors
from memkit.errors import EmbeddingError
from memkit.index import SyncReport
from memkit.index.catalog import other_collections, snapshot_directory
from memkit.index.chunk import Chunk
from memkit.index.chunker import chunk_file
from memkit.index.lexical import LexicalIndex, fingerprint
from memkit.index.memory_files import CurrentFiles, state_of
from memkit.index.snapshot import Snapshot, write_snapshot
from memkit.index.store import PLACEHOLDER_DIMENSIONS, Row, Store
from memkit.ipc import unindexed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memkit.embedding import Embedder
    from memkit.index.sync import Indexer

logger = logging.getLogger(__name__)

BATCH_CHUNKS = 100
"""Chunks to embed and write at once. A kill or a refusal by a provider loses at most one batch."""

MOST_FAILURES = 3
"""After this many failed chunks in a row, blame the model and send no more."""

SHOWN_PROBLEMS = 3

Progress = Callable[[int, int], None]
"""Called with the number of chunks embedded so far, and the total."""


class OtherLengthError(Exception):
    """The collection was created with vectors of another length, and accepts no others."""


class Update:
    """One pass over the memory files.

    `made` collects the embedded rows, so that a second attempt need not embed them again. `last` is the
    current snapshot. It supplies the text of files that cannot be read now and, with `reuse`, known vectors.
    """

    def __init__(
        self,
        indexer: Indexer,
        store: Store,
        files: CurrentFiles,
        made: dict[str, Row],
        last: Snapshot | None,
        reuse: bool,
    ) -> None:
        self.indexer = indexer
        self.settings = indexer.settings
        self.store = store
        self.files = files
        self.made = made
        self.last = last
        self.donor = last if reuse else None  # of vectors
        ids = fingerprint(store.tidy_ids())
        # None: killed between the two writes, or the store is lost, replaced, or emptied.
        self.snapshot = self.donor if self.donor and self.donor.fingerprint == ids else None
        self.report = SyncReport(indexer.project.root, unreadable=files.problems)
        self.state = state_of(files, self.settings)
        self.kept: frozenset[str] = frozenset()  # sources that the next snapshot takes over as they are
        self.written: set[str] = set()  # the ids of `made` that are in the store
        if self.snapshot is None:
            self.old = {row.id: row for row in store.rows()}
        else:
            known = self.snapshot.sources
            self.state |= {name: known[name] for name in known if files.is_unreadable(name)}
            self.kept = self.snapshot.unchanged(self.state)
            self.old = {row.id: row for row in self.snapshot.rows_outside(self.kept)}

    def run(self, progress: Progress | None) -> SyncReport:
        """Update the store and the snapshot."""
        store, report, old, snapshot = self.store, self.report, self.old, self.snapshot
        home, root = self.indexer.home, self.indexer.project.root
        unreadable = self._unreadable_rows()
        for row in unreadable:
            self.state.setdefault(row.chunk.source, "unreadable")
        rows = self._rows() + unreadable
        waiting = [row for row in rows if row.vectors is None]
        if waiting:
            embedder, report.degraded = self.indexer.find_embedder()
            if embedder is not None:
                self._embed(embedder, waiting, progress)
        rows = [self.made.get(row.id, row) for row in rows]
        self._write_changed(rows)
        ids = {row.id for row in rows}
        stale = old.keys() - ids
        store.delete({id: old[id].windows for id in stale})

        report.files, report.chunks = len(self.files), len(rows)
        if snapshot is not None:
            ranges = snapshot.ranges
            report.chunks += sum(ranges[n][1] - ranges[n][0] for n in self.kept & ranges.keys())
        report.added, report.deleted = len(ids - old.keys()), len(stale)
        report.missing = sum(row.vectors is None for row in rows)
        is_same = snapshot is not None and (snapshot.sources, snapshot.root) == (self.state, root)
        if not is_same or report.missing < len(waiting):
            lexical = self._lexical(rows)
            dimensions = store.dimensions or PLACEHOLDER_DIMENSIONS
            place = snapshot_directory(home, self.indexer.name)
            write_snapshot(place, rows, lexical, self.state, dimensions, root, snapshot, self.kept)
        if report.chunks and not report.missing and not self.files.problems:
            # All chunks are in this collection: remove those made with other settings.
            for other in other_collections(self.indexer.project, home, self.indexer.name):
                store.drop(other)
                shutil.rmtree(snapshot_directory(home, other), ignore_errors=True)
        unindexed.clear(home, root)
        return report

    def _rows(self) -> list[Row]:
        """Return the rows of all files except the kept ones, with the vectors that exist.

        Unchanged files are not parsed again, even if they wait for vectors.
        """
        known = {} if self.snapshot is None else self.snapshot.sources
        by_source: dict[str, list[Row]] = {}
        for row in self.old.values():
            by_source.setdefault(row.chunk.source, []).append(row)
        known_rows = (*self.old.values(), *self.made.values())
        vectors = {row.chunk.text_number: row.vectors for row in known_rows}
        rows: list[Row] = []
        for source, file in self.files.items():
            if source in self.kept:
                continue
            if known.get(source) == self.state[source]:
                rows += by_source.get(source, [])
                continue
            chunks, replaced = chunk_file(file, self.settings)
            if replaced:
                self.report.replaced[source] = replaced
            for chunk in chunks:
                found = vectors.get(chunk.text_number)
                if found is None and self.donor is not None:
                    found = self.donor.vectors_of_text(chunk.text_number)
                rows.append(Row(chunk.id(self.settings.embedding.model), chunk, found))
        return rows

    def _unreadable_rows(self) -> list[Row]:
        """Return the known rows of files that cannot be read now, except the kept ones."""
        if not self.files.problems:
            return []
        known = self.old
        if self.snapshot is None and self.last is not None:
            rows = self.last.rows()
            if self.donor is None:
                rows = [replace(row, vectors=None) for row in rows]
            known = {row.id: row for row in rows} | known
        return [
            row
            for row in known.values()
            if row.chunk.source not in self.kept and self.files.is_unreadable(row.chunk.source)
        ]

    def _embed(self, embedder: Embedder, waiting: list[Row], progress: Progress | None) -> None:
        """Embed the waiting rows and write them batch by batch: a pass that ends early keeps its work.

        Rows that cannot be embedded keep waiting; the report has the reason.
        """
        donated = None if self.donor is None else self.donor.vectors
        known = [*(row.vectors for row in self.old.values()), donated]
        lengths = (vectors.shape[1] for vectors in known if vectors is not None and len(vectors))
        # The user paid for a remote model's vectors, so no other length replaces them unasked.
        held = next(lengths, None) if embedder.dimensions is None else None
        batches = ChunkEmbedder(embedder, held)
        for start, vectors in batches.batches([row.chunk for row in waiting], BATCH_CHUNKS):
            pairs = zip(waiting[start:], vectors, strict=False)
            made = [Row(row.id, row.chunk, found) for row, found in pairs if found is not None]
            self.made |= {row.id: row for row in made}
            lengths_held = {self.store.dimensions}
            if self.snapshot is None and donated is not None and len(donated):
                lengths_held.add(donated.shape[1])
            if lengths_held - {None, batches.dimensions}:
                raise OtherLengthError
            self._put(made)
            self.written |= {row.id for row in made}
            if progress is not None:
                progress(start + len(vectors), len(waiting))
        self.report.embedded, self.report.degraded = len(self.made), batches.problem

    def _write_changed(self, rows: list[Row]) -> None:
        """Write the new and changed rows that `_embed` has not written."""
        changed: list[Row] = []
        other_hash: dict[str, list[str]] = {}  # unchanged text in changed files
        for row in rows:
            before = self.old.get(row.id)
            if row.id in self.written or row is before:
                continue
            source_hash = row.chunk.source_hash
            if before is None or row.chunk != replace(before.chunk, source_hash=source_hash):
                changed.append(row)
            elif before.chunk.source_hash != source_hash:
                other_hash.setdefault(source_hash, []).append(row.id)
        self._put(changed)
        for source_hash, ids in other_hash.items():
            self.store.note_source_hash(ids, source_hash)

    def _put(self, rows: list[Row]) -> None:
        # A chunk is written window by window. Delete a replaced one first, or a kill would mix the two.
        self.store.delete({row.id: self.old[row.id].windows for row in rows if row.id in self.old})
        self.store.put(rows)

    def _lexical(self, rows: list[Row]) -> LexicalIndex:
        """Return the BM25 index, updated from that of the snapshot if there is one."""
        index, present = LexicalIndex(self.settings.search.language), {}
        if self.snapshot is not None:
            index, present = self.snapshot.lexical, self.old
        changed = []
        for row in rows:
            before = present.get(row.id)
            if before is None or (
                row is not before and row.chunk.lexical_text != before.chunk.lexical_text
            ):
                changed.append(row)
        gone = present.keys() - {row.id for row in rows}
        removed = [*gone, *(row.id for row in changed if row.id in present)]
        return index.updated(((row.id, row.chunk.lexical_text) for row in changed), removed)


class ChunkEmbedder:
    """Embeds chunks in batches; `problem` names those that cannot be embedded."""

    def __init__(self, embedder: Embedder, dimensions: int | None) -> None:
        """`dimensions` is the required length of the vectors; None accepts any, set by the first vector."""
        self.dimensions = dimensions
        self._embedder = embedder
        self._problems: list[str] = []
        self._failures = 0

    @property
    def problem(self) -> str:
        """The reason for chunks without vectors, in one line; empty if there are none."""
        return "; ".join(self._problems[:SHOWN_PROBLEMS])

    def batches(
        self, chunks: Sequence[Chunk], size: int
    ) -> Iterator[tuple[int, list[NDArray[np.float32] | None]]]:
        """Yield the vectors of `size` chunks at a time, with the position of the first one.

        A chunk has vectors (windows, dimensions), each of length 1, or None if it cannot be embedded. Stop
        early if the rest cannot be embedded either.
        """
        for start in range(0, len(chunks), size):
            try:
                vectors = self._embed(chunks[start : start + size])
            except EmbeddingError as error:
                self._note(str(error))
                return
            yield start, vectors

    def _embed(self, chunks: Sequence[Chunk]) -> list[NDArray[np.float32] | None]:
        """Return the vectors of each chunk; halve the batch until a chunk that fails is alone."""
        windows = [self._embedder.windows(chunk.text) for chunk in chunks]
        try:
            vectors = self._embedder.embed([window for own in windows for window in own])
            check_vectors(self._embedder.name, vectors, sum(map(len, windows)), self.dimensions)
        except UnusableVectorError as error:
            owners = [chunk for chunk, own in zip(chunks, windows, strict=True) for _ in own]
            blamed = owners[error.position]
            problem = f"{blamed.source}:{blamed.start_line}: {error}"
            if len(chunks) == 1:
                self._failures += 1
            if error.is_general or self._failures == MOST_FAILURES:
                raise EmbeddingError(problem) from None
            if len(chunks) == 1:
                self._note(problem)
                return [None]
            middle = len(chunks) // 2
            return self._embed(chunks[:middle]) + self._embed(chunks[middle:])
        self._failures = 0
        self.dimensions = vectors.shape[1]
        ends = list(accumulate(map(len, windows), initial=0))
        return [vectors[start:end] for start, end in pairwise(ends)]

    def _note(self, problem: str) -> None:
        logger.warning("%s", problem)
        self._problems.append(problem)
