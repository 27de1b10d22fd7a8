"""Brings the index into step with the markdown.

Missing chunks are added, stale ones deleted, unchanged ones cost nothing; text that only moved keeps its
vector. Chroma is written first; the snapshot that searches read is derived from it. Whatever instant
this is killed at, the next run ends in the same state.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from memkit import pending
from memkit.config import Settings
from memkit.errors import EmbeddingError
from memkit.index.chunk import Chunk
from memkit.index.chunker import ChunkOptions, chunk_markdown, decode
from memkit.index.lexical import LexicalIndex, fingerprint
from memkit.index.paths import added_paths
from memkit.index.scanner import scan
from memkit.index.snapshot import Snapshot, open_current, write
from memkit.index.store import PLACEHOLDER_DIMENSIONS, Row, Store
from memkit.paths import Home
from memkit.project import Project, identity

if TYPE_CHECKING:
    from memkit.index.embedding import Embedder

logger = logging.getLogger(__name__)

BATCH_CHUNKS = 256
"""Chunks embedded and written at once: what a kill can cost."""

Progress = Callable[[int, int], None]
"""Called with the number of chunks embedded so far and in all."""


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


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A memory file's bytes, the SHA-256 of them, and its path relative to the project."""

    source: str
    data: bytes
    hash: str


def read_files(project: Project, home: Home, settings: Settings) -> dict[str, MemoryFile]:
    """The memory files of a project by source, in order.

    A file that cannot be read is logged and left out.
    """
    files = {}
    paths = [*settings.memory.paths, *added_paths(home, project)]
    for found in scan(Path(project.root), paths, exclude=settings.memory.exclude):
        try:
            data = found.path.read_bytes()
        except OSError as error:
            logger.warning("cannot read %s: %s", found.path, error)
            continue
        files[found.source] = MemoryFile(found.source, data, hashlib.sha256(data).hexdigest())
    return files


def collection_name(project: Project, home: Home, model: str) -> str:
    """The name of the project's collection for one model."""
    slug = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[:40] or "model"
    return f"memkit-{identity(project, home)}-{slug}"


def snapshot_directory(home: Home, name: str) -> Path:
    """Where the snapshots of a collection lie."""
    return Path(home.index) / "snapshots" / name


def open_snapshot(project: Project, home: Home, settings: Settings) -> Snapshot | None:
    """The project's snapshot in force, in step or not; None if there is none."""
    name = collection_name(project, home, settings.embedding.model)
    return open_current(snapshot_directory(home, name), settings.search.language)


def is_in_step(snapshot: Snapshot, files: dict[str, MemoryFile], settings: Settings) -> bool:
    """Whether the snapshot stands for exactly these files, cut as the settings say."""
    return snapshot.sources == _state(files, settings)


def _state(files: dict[str, MemoryFile], settings: Settings) -> dict[str, str]:
    """The hash of each file, salted with the way it is cut: another cut makes other chunks."""
    cut = settings.chunking
    suffix = f"{cut.max_characters}-{cut.min_characters}-{cut.overlap_lines}"
    return {file.source: f"{file.hash}:{suffix}" for file in files.values()}


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

    def run(self, files: dict[str, MemoryFile], rebuild: bool) -> SyncReport:
        name = collection_name(self.project, self.home, self.settings.embedding.model)
        directory = snapshot_directory(self.home, name)
        snapshot = None if rebuild else open_current(directory, self.settings.search.language)
        store = Store.open(self.home, self.settings.index.uri, name, anew=rebuild)
        if snapshot is not None and fingerprint(store.ids()) != snapshot.fingerprint:
            snapshot = None  # killed between the two writes, or another machine wrote to the server
        old = {row.id: row for row in (store.rows() if snapshot is None else snapshot.rows())}

        rows = self._rows(files, old, snapshot)
        waiting = [row for row in rows if row.vectors is None]
        if waiting and self._find_embedder() and not self._fits(old):
            return self.run(files, rebuild=True)
        rows = self._add(store, rows, waiting, old)
        stale = old.keys() - {row.id for row in rows}
        store.delete({name: old[name].windows for name in stale})

        sources = _state(files, self.settings)
        if snapshot is None or snapshot.sources != sources or waiting:
            lexical = self._lexical(snapshot, rows, old)
            write(directory, rows, lexical, sources, self._dimensions(rows))
        pending.clear(self.home, self.project.root)
        self.report.files, self.report.chunks = len(files), len(rows)
        self.report.added, self.report.deleted = len({r.id for r in rows} - old.keys()), len(stale)
        self.report.missing = sum(row.vectors is None for row in rows)
        return self.report

    def _rows(
        self, files: dict[str, MemoryFile], old: dict[str, Row], snapshot: Snapshot | None
    ) -> list[Row]:
        """What the index shall hold, with the vectors there are; unchanged files are not parsed."""
        state = _state(files, self.settings)
        known = {} if snapshot is None else snapshot.sources
        by_source: dict[str, list[Row]] = {}
        for row in old.values():
            by_source.setdefault(row.chunk.source, []).append(row)
        vectors = {_text_key(row.chunk): row.vectors for row in old.values()}
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
            from memkit.index.embedding import load_embedder

            chosen = self.settings.embedding
            if chosen.provider == "none":
                self.report.degraded = "embedding.provider is none"
                return False
            try:
                self.embedder = load_embedder(
                    self.home,
                    provider=chosen.provider,
                    model=chosen.model,
                    allow_download=chosen.download,
                    announce=self.announce,
                )
            except EmbeddingError as error:
                logger.warning("%s", error)
                self.report.degraded = str(error)
        return self.embedder is not None

    def _fits(self, old: dict[str, Row]) -> bool:
        """Whether the stored vectors, placeholders included, are as long as the embedder's."""
        assert self.embedder is not None
        lengths = {row.dimensions for row in old.values()}
        return lengths <= {self.embedder.dimensions}

    def _add(
        self, store: Store, rows: list[Row], waiting: list[Row], old: dict[str, Row]
    ) -> list[Row]:
        """Embed what waits and write what is new or changed; return the rows as they now stand.

        Chunks are written batch by batch, so that a long run that is killed keeps what it has.
        """
        done: dict[str, Row] = {}
        if self.embedder is not None:
            for start in range(0, len(waiting), BATCH_CHUNKS):
                batch = self._embed(waiting[start : start + BATCH_CHUNKS])
                store.put(batch)
                done |= {row.id: row for row in batch}
                if self.progress is not None:
                    self.progress(len(done), len(waiting))
        rows = [done.get(row.id, row) for row in rows]
        changed = [
            row for row in rows if row.id not in done and _needs_writing(row, old.get(row.id))
        ]
        store.put(changed)
        moved_on: dict[str, list[str]] = {}
        for row in rows:
            before = old.get(row.id)
            if before is not None and before.chunk.source_hash != row.chunk.source_hash:
                moved_on.setdefault(row.chunk.source_hash, []).append(row.id)
        for source_hash, ids in moved_on.items():
            store.note_source_hash(ids, source_hash)
        return rows

    def _embed(self, rows: list[Row]) -> list[Row]:
        assert self.embedder is not None
        windows = [self.embedder.windows(row.chunk.text) for row in rows]
        vectors = self.embedder.embed([window for own in windows for window in own])
        self.report.embedded += len(rows)
        embedded, position = [], 0
        for row, own in zip(rows, windows, strict=True):
            embedded.append(Row(row.id, row.chunk, vectors[position : position + len(own)]))
            position += len(own)
        return embedded

    def _lexical(
        self, snapshot: Snapshot | None, rows: list[Row], old: dict[str, Row]
    ) -> LexicalIndex:
        """The BM25 index of `rows`, made from the last one where that can be trusted."""
        language = self.settings.search.language
        lexical = LexicalIndex(language) if snapshot is None else snapshot.lexical
        present = {} if snapshot is None else old
        now = {row.id: row.chunk.text for row in rows}
        lexical.remove(name for name, row in present.items() if now.get(name) != row.chunk.text)
        lexical.add(
            (name, text)
            for name, text in now.items()
            if name not in present or present[name].chunk.text != text
        )
        return lexical

    def _dimensions(self, rows: list[Row]) -> int:
        if self.embedder is not None:
            return self.embedder.dimensions
        return next((row.dimensions for row in rows), PLACEHOLDER_DIMENSIONS)


def _text_key(chunk: Chunk) -> tuple[str, str]:
    """Equal keys, equal embedded text."""
    return (chunk.breadcrumb, chunk.content_hash)


def _needs_writing(row: Row, before: Row | None) -> bool:
    """Whether a row is new or differs in more than the hash of its file."""
    if before is None:
        return True
    return replace(row.chunk, source_hash="") != replace(before.chunk, source_hash="")
