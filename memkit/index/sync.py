"""Update the index of a project to match its Markdown.

A pass adds missing chunks and deletes stale ones. Unchanged files cost nothing, and moved text keeps its
vectors. Chroma is written first; the snapshot that searches read is derived from it. A pass that is killed
at any moment can be repeated, and ends in the same state.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from memkit.embedding.models import space
from memkit.errors import IndexStoreError
from memkit.hook.project import Project
from memkit.index import SyncReport
from memkit.index.catalog import collection_name, other_collections, snapshot_directory
from memkit.index.chunk_reader import open_current
from memkit.index.chunk_vectors import ChunkEmbedder
from memkit.index.chunker import chunk_file
from memkit.index.damage import in_use_marker, set_aside_if_damaged
from memkit.index.lexical import LexicalIndex, fingerprint
from memkit.index.memory_files import CurrentFiles, read_files, state_of
from memkit.index.snapshot import Snapshot
from memkit.index.snapshot_writer import write_snapshot
from memkit.index.store import PLACEHOLDER_DIMENSIONS, ForeignRowsError, Row, Store, directory
from memkit.ipc import unindexed
from memkit.paths import Home
from memkit.settings.load import Settings

if TYPE_CHECKING:
    from memkit.embedding import Embedder

logger = logging.getLogger(__name__)

BATCH_CHUNKS = 100
"""Chunks to embed and write at once. A kill or a refusal by a provider loses at most one batch."""

Progress = Callable[[int, int], None]
"""Called with the number of chunks embedded so far, and the total."""


class OtherLengthError(Exception):
    """The collection was created with vectors of another length, and accepts no others."""


def sync_project(
    project: Project,
    home: Home,
    settings: Settings,
    *,
    rebuild: bool = False,
    files: CurrentFiles | None = None,
    embedder: Embedder | None = None,
    announce: Callable[[str], None] = logger.info,
    progress: Progress | None = None,
) -> SyncReport:
    """Update the project's index once. The caller holds the index lock.

    `rebuild` starts from nothing. Without `files` and `embedder`, read and load them when needed. Raise
    `IndexStoreError`, `EmbeddingError`.
    """
    find = None if embedder is None else lambda: (embedder, "")
    with Indexer(project, home, settings, find_embedder=find, announce=announce) as indexer:
        return indexer.sync(files, rebuild=rebuild, progress=progress)


class Indexer:
    """Updates the index of one project repeatedly, and keeps Chroma open in between.

    A context manager that closes it. The caller holds the index lock all the time.
    """

    def __init__(
        self,
        project: Project,
        home: Home,
        settings: Settings,
        *,
        find_embedder: Callable[[], tuple[Embedder | None, str]] | None = None,
        announce: Callable[[str], None] = logger.info,
    ) -> None:
        """`find_embedder` returns the embedder, or None and the reason. By default, load one when needed."""
        self.project = project
        self.home = home
        self.settings = settings
        self.find_embedder = find_embedder or self._load_embedder
        self.name = collection_name(project, home, space(settings.embedding))
        self._embedder: Embedder | None = None
        self._announce = announce
        self._path = directory(home, settings.index.uri)
        self._store: Store | None = None
        self._snapshot: Snapshot | None = None

    def __enter__(self) -> Indexer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close Chroma; the next `sync` opens it again."""
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def snapshot(self) -> Snapshot | None:
        """Return the current snapshot; None if there is no usable one."""
        if self._snapshot is None or not self._snapshot.is_current():
            language = self.settings.search.language
            place = snapshot_directory(self.home, self.name)
            self._snapshot = open_current(place, lambda path: Snapshot(path, language))
        return self._snapshot

    def sync(
        self,
        files: CurrentFiles | None = None,
        *,
        rebuild: bool = False,
        progress: Progress | None = None,
    ) -> SyncReport:
        """Update the index to match `files`, by default all memory files as they are now.

        `rebuild` starts from nothing. Raise `IndexStoreError`, `EmbeddingError`.
        """
        if files is None:
            files = read_files(self.project, self.home, self.settings)
        made: dict[str, Row] = {}

        def run(*, rebuild: bool, reuse: bool = False) -> SyncReport:
            try:
                return self._run(files, made, progress, rebuild, reuse)
            except OtherLengthError:
                return self._run(files, made, progress, rebuild=True, reuse=False)

        path = self._path
        if self._store is None and path is not None and in_use_marker(path).exists():
            self._set_aside_if_damaged()  # opening it may have crashed the process that left the marker
        try:
            return run(rebuild=rebuild)
        except ForeignRowsError as error:
            self._announce(f"{error}; it is rebuilt")
            return run(rebuild=True, reuse=True)
        except IndexStoreError:
            if not self._set_aside_if_damaged():
                raise
            return run(rebuild=rebuild)

    def _run(
        self,
        files: CurrentFiles,
        made: dict[str, Row],
        progress: Progress | None,
        rebuild: bool,
        reuse: bool,
    ) -> SyncReport:
        last = self.snapshot()
        if rebuild:
            self.close()
        try:
            if self._store is None:
                uri = self.settings.index.uri
                self._store = Store.open(self.home, uri, self.name, rebuild=rebuild)
            snapshot = None if rebuild else last
            return _Pass(self, self._store, files, made, progress, snapshot, last, reuse).run()
        except BaseException:
            self.close()
            raise
        finally:
            if self._snapshot is not None and not self._snapshot.is_current():
                self._snapshot = None  # it is large, and no longer needed

    def _set_aside_if_damaged(self) -> bool:
        is_ours = not self.settings.index.uri
        return self._path is not None and set_aside_if_damaged(self._path, is_ours, self._announce)

    def _load_embedder(self) -> tuple[Embedder | None, str]:
        if self._embedder is not None:
            return self._embedder, ""
        from memkit.embedding import find_embedder

        self._embedder, reason = find_embedder(self.home, self.settings.embedding, self._announce)
        return self._embedder, reason


class _Pass:
    """One pass over the memory files.

    `made` collects the embedded rows, so that a second attempt need not embed them again. `snapshot` is
    the current one, or None to start from nothing. `last` is the current one in any case: it has the text
    of files that cannot be read now and, with `reuse`, the vectors that the store has lost.
    """

    def __init__(
        self,
        indexer: Indexer,
        store: Store,
        files: CurrentFiles,
        made: dict[str, Row],
        progress: Progress | None,
        snapshot: Snapshot | None,
        last: Snapshot | None,
        reuse: bool,
    ) -> None:
        ids = store.tidy_ids()
        if snapshot is not None and fingerprint(ids) != snapshot.fingerprint:
            # Killed between the two writes, or the store is lost or replaced: use only the vectors.
            snapshot, reuse = None, True
        self.indexer = indexer
        self.settings = indexer.settings
        self.store = store
        self.files = files
        self.made = made
        self.progress = progress
        self.snapshot = snapshot
        self.last = last
        self.reuse = reuse
        self.donor = last if snapshot is not None or reuse else None  # of vectors
        self.report = SyncReport(indexer.project.root, unreadable=files.problems)
        self.state = state_of(files, self.settings)
        self.kept: frozenset[str] = frozenset()  # sources that the next snapshot takes over as they are
        self.written: set[str] = set()  # the ids of `made` that are in the store
        if snapshot is None:
            self.old = {row.id: row for row in store.rows()}
        else:
            known = snapshot.sources
            self.state |= {name: known[name] for name in known if files.is_unreadable(name)}
            self.kept = snapshot.unchanged(self.state)
            self.old = {row.id: row for row in snapshot.rows_outside(self.kept)}

    def run(self) -> SyncReport:
        """Update the store and the snapshot."""
        indexer, store, report, old, snapshot = (
            self.indexer, self.store, self.report, self.old, self.snapshot
        )  # fmt: skip
        root = indexer.project.root
        rows = self._rows()
        unreadable = self._unreadable_rows()
        for row in unreadable:
            self.state.setdefault(row.chunk.source, "unreadable")
        rows += unreadable
        waiting = [row for row in rows if row.vectors is None]
        if waiting:
            embedder, report.degraded = indexer.find_embedder()
            if embedder is not None:
                self._embed(embedder, waiting)
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
            place = snapshot_directory(indexer.home, indexer.name)
            write_snapshot(place, rows, lexical, self.state, dimensions, root, snapshot, self.kept)
        if report.chunks and not report.missing and not self.files.problems:
            # All chunks are in this collection: remove those made with other settings.
            for other in other_collections(indexer.project, indexer.home, indexer.name):
                store.drop(other)
                shutil.rmtree(snapshot_directory(indexer.home, other), ignore_errors=True)
        unindexed.clear(indexer.home, root)
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
            if not self.reuse:
                rows = [replace(row, vectors=None) for row in rows]
            known = {row.id: row for row in rows} | known
        return [
            row
            for row in known.values()
            if row.chunk.source not in self.kept and self.files.is_unreadable(row.chunk.source)
        ]

    def _embed(self, embedder: Embedder, waiting: list[Row]) -> None:
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
            if self.progress is not None:
                self.progress(start + len(vectors), len(waiting))
        self.report.embedded, self.report.degraded = len(self.made), batches.problem

    def _write_changed(self, rows: list[Row]) -> None:
        """Write the new and changed rows that `_embed` has not written."""
        others = [row for row in rows if row.id not in self.written]
        changed = [row for row in others if _needs_writing(row, self.old.get(row.id))]
        self._put(changed)
        written = {row.id for row in changed}
        changed_files: dict[str, list[str]] = {}
        for row in others:
            source_hash = row.chunk.source_hash
            if row.id not in written and self.old[row.id].chunk.source_hash != source_hash:
                changed_files.setdefault(source_hash, []).append(row.id)
        for source_hash, ids in changed_files.items():
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
        changed = [row for row in rows if not _has_same_text(row, present.get(row.id))]
        gone = present.keys() - {row.id for row in rows}
        removed = [*gone, *(row.id for row in changed if row.id in present)]
        return index.updated(((row.id, row.chunk.lexical_text) for row in changed), removed)


def _has_same_text(row: Row, before: Row | None) -> bool:
    # A row of an unchanged file is the same object.
    return row is before or (
        before is not None and row.chunk.lexical_text == before.chunk.lexical_text
    )


def _needs_writing(row: Row, before: Row | None) -> bool:
    """Return whether a row is new or differs in more than the hash of its file."""
    if before is None or row is before:
        return before is None
    return replace(row.chunk, source_hash="") != replace(before.chunk, source_hash="")
