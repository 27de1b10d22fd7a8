"""One pass over a project's memory files: what is new goes into the index, what is gone out of it."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from memkit.hook.project import Project
from memkit.index.chunk import Chunk
from memkit.index.chunk_vectors import ChunkEmbedder
from memkit.index.chunker import ChunkOptions, chunk_markdown, decode
from memkit.index.current import (
    CurrentFiles,
    MemoryFile,
    other_collections,
    snapshot_directory,
    state_of,
)
from memkit.index.lexical import LexicalIndex, fingerprint
from memkit.index.snapshot import Snapshot
from memkit.index.snapshot_writer import Kept, write
from memkit.index.store import PLACEHOLDER_DIMENSIONS, Row, Store
from memkit.index.sync_report import SyncReport
from memkit.ipc import unindexed
from memkit.paths import Home
from memkit.settings.load import Settings

if TYPE_CHECKING:
    from memkit.embedding import Embedder

logger = logging.getLogger(__name__)

BATCH_CHUNKS = 100
"""Chunks embedded and written at once: what a kill, or a provider that refuses the rest, can cost."""

Progress = Callable[[int, int], None]
"""Called with the number of chunks embedded so far and in all."""


class OtherLengthError(Exception):
    """The collection was begun with vectors of another length, and takes no others."""


class IndexPass:
    """One pass for one project. Everything it does can be done twice, or be cut short and done again."""

    def __init__(
        self,
        project: Project,
        home: Home,
        settings: Settings,
        find_embedder: Callable[[], tuple[Embedder | None, str]],
        made: dict[str, Row],
        progress: Progress | None,
    ) -> None:
        """`find_embedder` gives the embedder, or None and why there is none; it is asked if one is needed.

        `made` gets what is embedded: another pass after one that failed need not embed it again.
        """
        self.project = project
        self.home = home
        self.settings = settings
        self.find_embedder = find_embedder
        self.made = made
        self.progress = progress
        self.report = SyncReport(project.root)
        self.written: set[str] = set()  # what of that the store holds
        self.donor: Snapshot | None = None  # has vectors for what the store has lost
        self.last: Snapshot | None = None  # has the text of files that cannot be read now

    def run(
        self, store: Store, name: str, snapshot: Snapshot | None, files: CurrentFiles
    ) -> SyncReport:
        """Bring the collection `name`, which is open as `store`, and its snapshot into step with `files`.

        `snapshot` is the one in force, if any can be trusted. Where the store does not hold the same
        chunks, only its vectors are used.
        """
        if fingerprint(store.tidy_ids()) != (snapshot.fingerprint if snapshot else ""):
            # Killed between the two writes, or the store is lost or another one.
            self.donor, snapshot = self.donor or snapshot, None
        state = state_of(files, self.settings)
        known_sources = {} if snapshot is None else snapshot.sources
        state |= {name: known_sources[name] for name in known_sources if files.is_unreadable(name)}
        kept = None if snapshot is None else Kept.unchanged(snapshot, state)
        old = {row.id: row for row in (store.rows() if kept is None else kept.other_rows())}

        rows = self._rows(files, state, old, kept)
        unreadable = self._unreadable_rows(files, old, kept)
        state |= {row.chunk.source: state.get(row.chunk.source, "unreadable") for row in unreadable}
        rows += unreadable
        self.report.unreadable = files.problems
        waiting = [row for row in rows if row.vectors is None]
        if waiting:
            embedder, self.report.degraded = self.find_embedder()
            if embedder is not None:
                self._embed(embedder, store, waiting, old, kept)
        rows = [self.made.get(row.id, row) for row in rows]
        self._write_changed(store, rows, old)
        stale = old.keys() - {row.id for row in rows}
        store.delete({name: old[name].windows for name in stale})
        if self.donor is not None and store.is_shared:
            store.delete_without_owner(self.donor.rows())

        self.report.files = len(files)
        self.report.chunks = len(rows) + (0 if kept is None else kept.chunks)
        self.report.added, self.report.deleted = len({r.id for r in rows} - old.keys()), len(stale)
        self.report.missing = sum(row.vectors is None for row in rows)
        known = None if snapshot is None else (snapshot.sources, snapshot.root)
        # The root differs where the project moved.
        if known != (state, self.project.root) or self.report.missing < len(waiting):
            lexical = self._lexical(snapshot, rows, old)
            dimensions = store.dimensions or PLACEHOLDER_DIMENSIONS
            directory = snapshot_directory(self.home, name)
            write(directory, rows, lexical, state, dimensions, self.project.root, kept)
        if self.report.chunks and not self.report.missing and not files.problems:
            self._drop_others(store, name)
        unindexed.clear(self.home, self.project.root)
        return self.report

    def _rows(
        self,
        files: CurrentFiles,
        state: dict[str, str],
        old: dict[str, Row],
        kept: Kept | None,
    ) -> list[Row]:
        """What the index shall hold beside what is kept, with the vectors there are.

        Unchanged files are not parsed, those that wait for vectors neither.
        """
        known = {} if kept is None else kept.snapshot.sources
        vectors_of = self.donor if kept is None else kept.snapshot
        by_source: dict[str, list[Row]] = {}
        for row in old.values():
            by_source.setdefault(row.chunk.source, []).append(row)
        known_rows = (*old.values(), *self.made.values())
        vectors = {row.chunk.text_number: row.vectors for row in known_rows}
        model = self.settings.embedding.model
        rows = []
        for source, file in files.items():
            if kept is not None and source in kept.sources:
                continue
            if known.get(source) == state[source]:
                rows += by_source.get(source, [])
                continue
            for chunk in self._chunks(file):
                found = vectors.get(chunk.text_number)
                if found is None and vectors_of is not None:
                    found = vectors_of.vectors_of_text(chunk.text_number)
                rows.append(Row(chunk.id(model), chunk, found))
        return rows

    def _unreadable_rows(
        self, files: CurrentFiles, old: dict[str, Row], kept: Kept | None
    ) -> list[Row]:
        """What is known of files that cannot be read now, beside what is kept."""
        sources = frozenset() if kept is None else kept.sources
        if not files.problems:
            return []
        known = dict(old)
        if kept is None and self.donor is not None:
            known = {row.id: row for row in self.donor.rows()} | known
        elif kept is None and self.last is not None:  # of an index that is rebuilt the text alone
            known = {row.id: replace(row, vectors=None) for row in self.last.rows()} | known
        return [
            row
            for row in known.values()
            if row.chunk.source not in sources and files.is_unreadable(row.chunk.source)
        ]

    def _chunks(self, file: MemoryFile) -> list[Chunk]:
        chunks, replaced = chunks_of(file, self.settings)
        if replaced:
            self.report.replaced[file.source] = replaced
        return chunks

    def _embed(
        self,
        embedder: Embedder,
        store: Store,
        waiting: list[Row],
        old: dict[str, Row],
        kept: Kept | None,
    ) -> None:
        """Embed what waits, and write it batch by batch: a run that ends early keeps what it has.

        What cannot be embedded goes on waiting, for the reason in the report.
        """
        snapshot = kept.snapshot if kept else self.donor
        known = [row.vectors for row in old.values()] + [snapshot.vectors if snapshot else None]
        lengths = (vectors.shape[1] for vectors in known if vectors is not None and len(vectors))
        # What a remote model made was paid for: it is not made anew unasked.
        held = next(lengths, None) if embedder.dimensions is None else None
        batches = ChunkEmbedder(embedder, held)
        for start, vectors in batches.batches([row.chunk for row in waiting], BATCH_CHUNKS):
            pairs = zip(waiting[start:], vectors, strict=False)
            made = [Row(row.id, row.chunk, found) for row, found in pairs if found is not None]
            self.made |= {row.id: row for row in made}
            lengths_held = {store.dimensions}
            if self.donor is not None and len(self.donor.vectors):
                lengths_held.add(self.donor.vectors.shape[1])
            if lengths_held - {None, batches.dimensions}:
                raise OtherLengthError
            _put(store, made, old)
            self.written |= {row.id for row in made}
            if self.progress is not None:
                self.progress(start + len(vectors), len(waiting))
        self.report.embedded, self.report.degraded = len(self.made), batches.problem

    def _write_changed(self, store: Store, rows: list[Row], old: dict[str, Row]) -> None:
        """Write what is new or changed beside what was just embedded."""
        others = (row for row in rows if row.id not in self.written)
        changed = [row for row in others if _needs_writing(row, old.get(row.id))]
        _put(store, changed, old)
        written = self.written | {row.id for row in changed}
        moved_on: dict[str, list[str]] = {}
        for row in rows:
            source_hash = row.chunk.source_hash
            if row.id not in written and old[row.id].chunk.source_hash != source_hash:
                moved_on.setdefault(source_hash, []).append(row.id)
        for source_hash, ids in moved_on.items():
            store.note_source_hash(ids, source_hash)

    def _lexical(
        self, snapshot: Snapshot | None, rows: list[Row], old: dict[str, Row]
    ) -> LexicalIndex:
        """The BM25 index of `rows`, made from the last one where that can be trusted."""
        language = self.settings.search.language
        lexical = LexicalIndex(language) if snapshot is None else snapshot.lexical.copy()
        present = {} if snapshot is None else old
        changed = [row for row in rows if not _reads_as(row, present.get(row.id))]
        gone = present.keys() - {row.id for row in rows}
        lexical.remove([*gone, *(row.id for row in changed if row.id in present)])
        lexical.add((row.id, row.chunk.lexical_text) for row in changed)
        return lexical

    def _drop_others(self, store: Store, name: str) -> None:
        """Remove what was made with other settings, now that all chunks stand in `name`."""
        for other in other_collections(self.project, self.home, name):
            store.drop(other)
            shutil.rmtree(snapshot_directory(self.home, other), ignore_errors=True)


def chunks_of(file: MemoryFile, settings: Settings) -> tuple[list[Chunk], int]:
    """A memory file cut as the settings say, and how many of its bytes were no UTF-8."""
    text, replaced = decode(file.data)
    cut = settings.chunking
    options = ChunkOptions(cut.max_characters, cut.min_characters, cut.overlap_lines)
    return chunk_markdown(text, file.source, source_hash=file.hash, options=options), replaced


def _put(store: Store, rows: list[Row], old: dict[str, Row]) -> None:
    # A chunk is written window by window, so one that is replaced goes first, or a kill would mix both.
    store.delete({row.id: old[row.id].windows for row in rows if row.id in old})
    store.put(rows)


def _reads_as(row: Row, before: Row | None) -> bool:
    """Whether BM25 reads both alike. A row of an unchanged file is the very same object."""
    return row is before or (
        before is not None and row.chunk.lexical_text == before.chunk.lexical_text
    )


def _needs_writing(row: Row, before: Row | None) -> bool:
    """Whether a row is new or differs in more than the hash of its file."""
    if before is None or row is before:
        return before is None
    return replace(row.chunk, source_hash="") != replace(before.chunk, source_hash="")
