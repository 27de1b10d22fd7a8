"""Update the index of a project to match its Markdown.

A pass adds missing chunks and deletes stale ones. Unchanged files cost nothing, and moved text keeps its
vectors. Chroma is written first; the snapshot that searches read is derived from it. A pass that is killed
at any moment can be repeated, and ends in the same state.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
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
                return self._run(_Pass(self, files, made, progress, reuse), rebuild)
            except OtherLengthError:
                return self._run(_Pass(self, files, made, progress), True)

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

    def _run(self, one: _Pass, rebuild: bool) -> SyncReport:
        one.last = self.snapshot()
        if rebuild:
            self.close()
        try:
            if self._store is None:
                uri = self.settings.index.uri
                self._store = Store.open(self.home, uri, self.name, rebuild=rebuild)
            return one.run(self._store, None if rebuild else one.last)
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


@dataclass
class _Pass:
    """One pass over the memory files.

    `made` collects the embedded rows, so that a second attempt need not embed them again. `last` is the
    current snapshot: it has the text of files that cannot be read now and, if `reuse`, the vectors that
    the store has lost.
    """

    indexer: Indexer
    files: CurrentFiles
    made: dict[str, Row]
    progress: Progress | None
    reuse: bool = False
    last: Snapshot | None = None
    kept: frozenset[str] = frozenset()
    """The sources whose chunks go into the next snapshot as they are."""
    written: set[str] = field(default_factory=set)
    """The ids of `made` that are in the store."""

    def run(self, store: Store, snapshot: Snapshot | None) -> SyncReport:
        """Update `store` and the snapshot. `snapshot` is the current one, or None to start from nothing."""
        indexer, files = self.indexer, self.files
        project, name = indexer.project, indexer.name
        report = self.report = SyncReport(project.root, unreadable=files.problems)
        ids_held = store.tidy_ids()
        if snapshot is not None and fingerprint(ids_held) != snapshot.fingerprint:
            # Killed between the two writes, or the store is lost or replaced: use only the vectors.
            self.reuse, snapshot = True, None
        state = state_of(files, indexer.settings)
        old: dict[str, Row] = {}
        if snapshot is None:
            old = {row.id: row for row in store.rows()}
        else:
            known = snapshot.sources
            state |= {source: known[source] for source in known if files.is_unreadable(source)}
            self.kept = snapshot.unchanged(state)
            old = {row.id: row for row in snapshot.rows_outside(self.kept)}
        donor = snapshot
        if snapshot is None and self.reuse:
            donor = self.last

        rows = self._rows(state, old, snapshot, donor)
        unreadable = self._unreadable_rows(old, snapshot)
        state |= {row.chunk.source: state.get(row.chunk.source, "unreadable") for row in unreadable}
        rows += unreadable
        waiting = [row for row in rows if row.vectors is None]
        if waiting:
            embedder, report.degraded = indexer.find_embedder()
            if embedder is not None:
                self._embed(embedder, store, waiting, old, snapshot, donor)
        rows = [self.made.get(row.id, row) for row in rows]
        self._write_changed(store, rows, old)
        ids = {row.id for row in rows}
        stale = old.keys() - ids
        store.delete({id: old[id].windows for id in stale})

        report.files = len(files)
        report.chunks = len(rows)
        if snapshot is not None:
            ranges = snapshot.ranges
            report.chunks += sum(ranges[n][1] - ranges[n][0] for n in self.kept & ranges.keys())
        report.added, report.deleted = len(ids - old.keys()), len(stale)
        report.missing = sum(row.vectors is None for row in rows)
        is_same = snapshot is not None and (snapshot.sources, snapshot.root) == (state, project.root)
        if not is_same or report.missing < len(waiting):
            lexical = self._lexical(rows, old, snapshot)
            dimensions = store.dimensions or PLACEHOLDER_DIMENSIONS
            place = snapshot_directory(indexer.home, name)
            write_snapshot(
                place, rows, lexical, state, dimensions, project.root, snapshot, self.kept
            )
        if report.chunks and not report.missing and not files.problems:
            # All chunks are in this collection: remove those made with other settings.
            for other in other_collections(project, indexer.home, name):
                store.drop(other)
                shutil.rmtree(snapshot_directory(indexer.home, other), ignore_errors=True)
        unindexed.clear(indexer.home, project.root)
        return report

    def _rows(
        self,
        state: dict[str, str],
        old: dict[str, Row],
        snapshot: Snapshot | None,
        donor: Snapshot | None,
    ) -> list[Row]:
        """Return the rows of all files except the kept ones, with the vectors that exist.

        Unchanged files are not parsed again, even if they wait for vectors.
        """
        known = {} if snapshot is None else snapshot.sources
        by_source: dict[str, list[Row]] = {}
        for row in old.values():
            by_source.setdefault(row.chunk.source, []).append(row)
        known_rows = (*old.values(), *self.made.values())
        vectors = {row.chunk.text_number: row.vectors for row in known_rows}
        settings = self.indexer.settings
        rows: list[Row] = []
        for source, file in self.files.items():
            if source in self.kept:
                continue
            if known.get(source) == state[source]:
                rows += by_source.get(source, [])
                continue
            chunks, replaced = chunk_file(file, settings)
            if replaced:
                self.report.replaced[source] = replaced
            for chunk in chunks:
                found = vectors.get(chunk.text_number)
                if found is None and donor is not None:
                    found = donor.vectors_of_text(chunk.text_number)
                rows.append(Row(chunk.id(settings.embedding.model), chunk, found))
        return rows

    def _unreadable_rows(self, old: dict[str, Row], snapshot: Snapshot | None) -> list[Row]:
        """Return the known rows of files that cannot be read now, except the kept ones."""
        if not self.files.problems:
            return []
        known = old
        if snapshot is None and self.last is not None:
            rows = self.last.rows()
            if not self.reuse:
                rows = [replace(row, vectors=None) for row in rows]
            known = {row.id: row for row in rows} | old
        return [
            row
            for row in known.values()
            if row.chunk.source not in self.kept and self.files.is_unreadable(row.chunk.source)
        ]

    def _embed(
        self,
        embedder: Embedder,
        store: Store,
        waiting: list[Row],
        old: dict[str, Row],
        snapshot: Snapshot | None,
        donor: Snapshot | None,
    ) -> None:
        """Embed the waiting rows and write them batch by batch: a pass that ends early keeps its work.

        Rows that cannot be embedded keep waiting; the report has the reason.
        """
        known = [row.vectors for row in old.values()] + [None if donor is None else donor.vectors]
        lengths = (vectors.shape[1] for vectors in known if vectors is not None and len(vectors))
        # The user paid for a remote model's vectors, so no other length replaces them unasked.
        held = next(lengths, None) if embedder.dimensions is None else None
        batches = ChunkEmbedder(embedder, held)
        for start, vectors in batches.batches([row.chunk for row in waiting], BATCH_CHUNKS):
            pairs = zip(waiting[start:], vectors, strict=False)
            made = [Row(row.id, row.chunk, found) for row, found in pairs if found is not None]
            self.made |= {row.id: row for row in made}
            lengths_held = {store.dimensions}
            if snapshot is None and donor is not None and len(donor.vectors):
                lengths_held.add(donor.vectors.shape[1])
            if lengths_held - {None, batches.dimensions}:
                raise OtherLengthError
            _put(store, made, old)
            self.written |= {row.id for row in made}
            if self.progress is not None:
                self.progress(start + len(vectors), len(waiting))
        self.report.embedded, self.report.degraded = len(self.made), batches.problem

    def _write_changed(self, store: Store, rows: list[Row], old: dict[str, Row]) -> None:
        """Write the new and changed rows that `_embed` has not written."""
        others = [row for row in rows if row.id not in self.written]
        changed = [row for row in others if _needs_writing(row, old.get(row.id))]
        _put(store, changed, old)
        written = {row.id for row in changed}
        changed_files: dict[str, list[str]] = {}
        for row in others:
            source_hash = row.chunk.source_hash
            if row.id not in written and old[row.id].chunk.source_hash != source_hash:
                changed_files.setdefault(source_hash, []).append(row.id)
        for source_hash, ids in changed_files.items():
            store.note_source_hash(ids, source_hash)

    def _lexical(
        self, rows: list[Row], old: dict[str, Row], snapshot: Snapshot | None
    ) -> LexicalIndex:
        """Return the BM25 index, updated from that of `snapshot` if there is one."""
        if snapshot is None:
            index, present = LexicalIndex(self.indexer.settings.search.language), {}
        else:
            index, present = snapshot.lexical, old
        changed = [row for row in rows if not _has_same_text(row, present.get(row.id))]
        gone = present.keys() - {row.id for row in rows}
        removed = [*gone, *(row.id for row in changed if row.id in present)]
        return index.updated(((row.id, row.chunk.lexical_text) for row in changed), removed)


def _put(store: Store, rows: list[Row], old: dict[str, Row]) -> None:
    # A chunk is written window by window. Delete a replaced one first, or a kill would mix the two.
    store.delete({row.id: old[row.id].windows for row in rows if row.id in old})
    store.put(rows)


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
