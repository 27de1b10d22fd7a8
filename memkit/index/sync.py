"""Brings the index into step with the markdown.

Missing chunks are added, stale ones deleted, unchanged ones cost nothing; text that only moved keeps its
vector. Chroma is written first; the snapshot that searches read is derived from it. Whatever instant
this is killed at, the next run ends in the same state.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from memkit import pending
from memkit.config import Settings
from memkit.errors import IndexStoreError
from memkit.index.chunk import Chunk
from memkit.index.chunker import ChunkOptions, chunk_markdown, decode
from memkit.index.current import (
    MemoryFile,
    collection_name,
    open_snapshot,
    other_collections,
    read_files,
    snapshot_directory,
    state_of,
)
from memkit.index.damage import in_use_marker, set_aside_if_damaged
from memkit.index.embedding.chunks import ChunkEmbedder
from memkit.index.embedding.models import space
from memkit.index.lexical import LexicalIndex, fingerprint
from memkit.index.snapshot import Snapshot, open_current, write
from memkit.index.store import (
    PLACEHOLDER_DIMENSIONS,
    ForeignRowsError,
    Row,
    Store,
    directory,
)
from memkit.paths import Home
from memkit.project import Project

if TYPE_CHECKING:
    from memkit.index.embedding import Embedder

__all__ = ["SyncReport", "open_snapshot", "sync_project"]

logger = logging.getLogger(__name__)

BATCH_CHUNKS = 100
"""Chunks embedded and written at once: what a kill, or a provider that refuses the rest, can cost."""

Progress = Callable[[int, int], None]
"""Called with the number of chunks embedded so far and in all."""


class _OtherLengthError(Exception):
    """The collection was begun with vectors of another length, and takes no others."""


@dataclass(slots=True)
class SyncReport:
    """What a run changed.

    `missing` chunks have no vector yet, for the reason in `degraded`; `replaced` counts the bytes, by
    source, that were no UTF-8.
    """

    root: str
    files: int = 0
    chunks: int = 0
    added: int = 0
    deleted: int = 0
    embedded: int = 0
    missing: int = 0
    degraded: str = ""
    replaced: dict[str, int] = field(default_factory=dict)


def sync_project(
    project: Project,
    home: Home,
    settings: Settings,
    *,
    rebuild: bool = False,
    files: dict[str, MemoryFile] | None = None,
    embedder: Embedder | None = None,
    announce: Callable[[str], None] = logger.info,
    progress: Progress | None = None,
) -> SyncReport:
    """Bring the project's index into step. The caller holds the index lock.

    `rebuild` starts from nothing. `files` and `embedder` are used if given, else read and loaded when
    needed. Raises `IndexStoreError`, `EmbeddingError`.
    """
    return _Sync(project, home, settings, announce, progress, embedder).run(
        read_files(project, home, settings) if files is None else files, rebuild
    )


class _Sync:
    """One run for one project."""

    def __init__(
        self,
        project: Project,
        home: Home,
        settings: Settings,
        announce: Callable[[str], None],
        progress: Progress | None,
        embedder: Embedder | None,
    ) -> None:
        self.project = project
        self.home = home
        self.settings = settings
        self.announce = announce
        self.progress = progress
        self.embedder = embedder
        self.report = SyncReport(project.root)
        self.made: dict[str, Row] = {}  # embedded by this run
        self.written: set[str] = set()  # what of that the store holds

    def run(self, files: dict[str, MemoryFile], rebuild: bool) -> SyncReport:
        path = directory(self.home, self.settings.index.uri)
        if path is not None and in_use_marker(path).exists():
            self._set_aside_if_damaged(path)  # opening it may have killed the one who left that
        try:
            return self._run(files, rebuild)
        except ForeignRowsError as error:
            self.announce(f"{error}; it is made anew")
            return self._run(files, rebuild=True)
        except IndexStoreError:
            if path is None or not self._set_aside_if_damaged(path):
                raise
            return self._run(files, rebuild)

    def _set_aside_if_damaged(self, path: Path) -> bool:
        return set_aside_if_damaged(path, not self.settings.index.uri, self.announce)

    def _run(self, files: dict[str, MemoryFile], rebuild: bool) -> SyncReport:
        self.report, self.written = SyncReport(self.project.root), set()
        name = collection_name(self.project, self.home, space(self.settings.embedding))
        try:
            with Store.open(self.home, self.settings.index.uri, name, anew=rebuild) as store:
                self._bring_into_step(store, name, files, rebuild)
        except _OtherLengthError:
            return self._run(files, rebuild=True)
        return self.report

    def _bring_into_step(
        self, store: Store, name: str, files: dict[str, MemoryFile], rebuild: bool
    ) -> None:
        directory = snapshot_directory(self.home, name)
        snapshot = None if rebuild else open_current(directory, self.settings.search.language)
        if fingerprint(store.tidy_ids()) != (snapshot.fingerprint if snapshot else ""):
            snapshot = None  # killed between the two writes, or another machine wrote to the server
        old = {row.id: row for row in (store.rows() if snapshot is None else snapshot.rows())}

        rows = self._rows(files, old, snapshot)
        waiting = [row for row in rows if row.vectors is None]
        if waiting and self._find_embedder():
            self._embed(store, waiting, old)
        rows = [self.made.get(row.id, row) for row in rows]
        self._write_changed(store, rows, old)
        stale = old.keys() - {row.id for row in rows}
        store.delete({name: old[name].windows for name in stale})

        self.report.files, self.report.chunks = len(files), len(rows)
        self.report.added, self.report.deleted = len({r.id for r in rows} - old.keys()), len(stale)
        self.report.missing = sum(row.vectors is None for row in rows)
        sources = state_of(files, self.settings)
        known = None if snapshot is None else (snapshot.sources, snapshot.root)
        # The root differs where the project moved.
        if known != (sources, self.project.root) or self.report.missing < len(waiting):
            lexical = self._lexical(snapshot, rows, old)
            dimensions = store.dimensions or PLACEHOLDER_DIMENSIONS
            write(directory, rows, lexical, sources, dimensions, self.project.root)
        if rows and not self.report.missing:
            for other in other_collections(self.project, self.home, name):
                store.drop(other)
                shutil.rmtree(snapshot_directory(self.home, other), ignore_errors=True)
        pending.clear(self.home, self.project.root)

    def _rows(
        self, files: dict[str, MemoryFile], old: dict[str, Row], snapshot: Snapshot | None
    ) -> list[Row]:
        """What the index shall hold, with the vectors there are; unchanged files are not parsed."""
        state = state_of(files, self.settings)
        known = {} if snapshot is None else snapshot.sources
        by_source: dict[str, list[Row]] = {}
        for row in old.values():
            by_source.setdefault(row.chunk.source, []).append(row)
        known_rows = (*old.values(), *self.made.values())
        vectors = {_text_key(row.chunk): row.vectors for row in known_rows}
        model = self.settings.embedding.model
        rows = []
        for source, file in files.items():
            if known.get(source) == state[source]:
                rows += by_source.get(source, [])
                continue
            for chunk in self._chunks(file):
                rows.append(Row(chunk.id(model), chunk, vectors.get(_text_key(chunk))))
        return rows

    def _chunks(self, file: MemoryFile) -> list[Chunk]:
        text, replaced = decode(file.data)
        if replaced:
            self.report.replaced[file.source] = replaced
        cut = self.settings.chunking
        options = ChunkOptions(cut.max_characters, cut.min_characters, cut.overlap_lines)
        return chunk_markdown(text, file.source, source_hash=file.hash, options=options)

    def _find_embedder(self) -> bool:
        """Load the embedder; False, with the reason in the report, if there is none to be had."""
        if self.embedder is None:
            from memkit.index.embedding import find_embedder

            found = find_embedder(self.home, self.settings.embedding, self.announce)
            self.embedder, self.report.degraded = found
        return self.embedder is not None

    def _embed(self, store: Store, waiting: list[Row], old: dict[str, Row]) -> None:
        """Embed what waits, and write it batch by batch: a run that ends early keeps what it has.

        What cannot be embedded goes on waiting, for the reason in the report.
        """
        assert self.embedder is not None
        lengths = (row.vectors.shape[1] for row in old.values() if row.vectors is not None)
        # What a remote model made was paid for: it is not made anew unasked.
        held = next(lengths, None) if self.embedder.dimensions is None else None
        embedder = ChunkEmbedder(self.embedder, held)
        for start, vectors in embedder.batches([row.chunk for row in waiting], BATCH_CHUNKS):
            pairs = zip(waiting[start:], vectors, strict=False)
            made = [Row(row.id, row.chunk, found) for row, found in pairs if found is not None]
            self.made |= {row.id: row for row in made}
            if store.dimensions not in (None, embedder.dimensions):
                raise _OtherLengthError
            _put(store, made, old)
            self.written |= {row.id for row in made}
            if self.progress is not None:
                self.progress(start + len(vectors), len(waiting))
        self.report.embedded, self.report.degraded = len(self.made), embedder.problem

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
        lexical = LexicalIndex(language) if snapshot is None else snapshot.lexical
        present = {} if snapshot is None else old
        changed = [row for row in rows if not _reads_as(row, present.get(row.id))]
        gone = present.keys() - {row.id for row in rows}
        lexical.remove([*gone, *(row.id for row in changed if row.id in present)])
        lexical.add((row.id, row.chunk.lexical_text) for row in changed)
        return lexical


def _put(store: Store, rows: list[Row], old: dict[str, Row]) -> None:
    # A chunk is written window by window, so one that is replaced goes first, or a kill would mix both.
    store.delete({row.id: old[row.id].windows for row in rows if row.id in old})
    store.put(rows)


def _text_key(chunk: Chunk) -> tuple[str, str, bool]:
    """Equal keys, equal embedded text."""
    return (chunk.breadcrumb, chunk.content_hash, chunk.whole)


def _reads_as(row: Row, before: Row | None) -> bool:
    """Whether BM25 reads both alike. A row of an unchanged file is the very same object."""
    return row is before or (before is not None and row.chunk.lexical_text == before.chunk.lexical_text)


def _needs_writing(row: Row, before: Row | None) -> bool:
    """Whether a row is new or differs in more than the hash of its file."""
    if before is None or row is before:
        return before is None
    return replace(row.chunk, source_hash="") != replace(before.chunk, source_hash="")
