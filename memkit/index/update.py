"""One pass over the memory files of a project: embed what is new, write the store, then the snapshot."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from memkit.index import SyncReport
from memkit.index.catalog import other_collections, snapshot_directory
from memkit.index.chunk_embedder import ChunkEmbedder
from memkit.index.chunker import chunk_file
from memkit.index.manifest import Entry
from memkit.index.memory_files import CurrentFiles, file_state, state_of
from memkit.index.outbox import Unsent, waiting_chunks, write_unsent
from memkit.index.segment import Segment, write_rows
from memkit.index.snapshot import (
    STARTED,
    Snapshot,
    entries_of,
    mark_started,
    order,
    prepare,
    remove_others,
    unwritable,
    write_manifest,
)
from memkit.index.store import PLACEHOLDER_DIMENSIONS, Metadata, Row, Store, text_number
from memkit.ipc import unindexed
from memkit.text import plural

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memkit.index.sync import Indexer

logger = logging.getLogger(__name__)

BATCH_CHUNKS = 100
"""Chunks to embed and write at once. A kill or a refusal by a provider loses at most one batch."""

SEGMENT_CHUNKS = 4096
"""A pass holds about this many chunks in memory, and writes them as one segment."""

Progress = Callable[[int, int], None]
"""Called with the number of chunks embedded so far, and the total as far as it is known."""

Vectors = dict[int, "NDArray[np.float32]"]
"""Vectors by the `text_number` of their chunk."""


_NEW = Entry("")


class OtherLengthError(Exception):
    """The collection was created with vectors of another length, and accepts no others."""


class StoreNeededError(Exception):
    """The pass needs the store, which it was to leave for later."""


class Update:
    """One pass over the memory files.

    The store is to hold the chunks of the files, as the next snapshot does. `last` is the current snapshot:
    it has the text of files that cannot be read now and, with `reuse`, all chunks of unchanged files. With
    `is_in_step`, the store is known to hold exactly its chunks; else this compares all of them. `made`
    collects the vectors of the chunks in work, so that a second attempt need not embed them again. The store
    may lack the rows of `unsent`.
    """

    def __init__(
        self,
        indexer: Indexer,
        store: Store,
        files: CurrentFiles,
        made: Vectors,
        last: Snapshot | None,
        *,
        reuse: bool,
        is_in_step: bool,
        unsent: Unsent,
    ) -> None:
        self.indexer = indexer
        self.settings = indexer.settings
        self.store = store
        self.files = files
        self.made = made
        self.last = last
        self.base = base = last if reuse else None
        self.directory = snapshot_directory(indexer.home, indexer.name)
        self.report = SyncReport(indexer.project.root, unreadable=files.problems)
        self.state = state_of(files, self.settings)
        self.stats = {source: file.stat for source, file in files.items()}
        self.kept: frozenset[str] = frozenset()  # sources whose chunks stay as they are
        self.waiting: frozenset[str] = frozenset()  # unchanged ones with chunks to embed
        if base is not None:
            known = base.sources
            self.state |= {name: known[name] for name in known if files.is_unreadable(name)}
            self.kept = base.unchanged(self.state)
            self.waiting = base.waiting(self.state)
        self.is_in_step = is_in_step and base is not None
        self.last_unsent = unsent
        self.unsent = unsent.sources or frozenset()
        self.has_begun = False
        self.segments = [] if base is None else [one.name for one in base.segments]
        self.entries: dict[str, Entry] = {}
        if base is not None:
            self.entries = {name: base.entries[name] for name in base.entries if name in self.state}
        self.embedder: ChunkEmbedder | None = None
        self.is_asked = False  # whether the embedder was looked for
        # The metadata of chunks in the store: of all, or in step of those that this pass may change.
        self.before: dict[str, Metadata] = {}
        self.seen: set[str] = set()  # the ids that stay, among those
        self.indexed: set[str] = set()  # the ids of all rows that were read from the snapshot, if in step
        self.in_store: dict[int, tuple[str, int]] = {}  # of embedded chunks by text: id and windows
        self.known: Vectors = {}  # of the files that this pass may change

    def run(self, progress: Progress | None) -> SyncReport:
        """Update the store and the snapshot."""
        report = self.report
        self._read_store()
        for batch, share in self._batches():
            self._index(batch, share, progress)
        if not self.store.is_away:
            for source in sorted(self.kept & self.unsent if self.is_in_step else self.kept):
                self._write_changed(self._rows_of(source))
        stale = self.before.keys() - self.seen
        gone = {id: self.before[id] for id in stale if not self._is_kept_in_store(self.before[id])}
        if gone:
            self._begin()
            self.store.delete({id: _held(metadata) for id, metadata in gone.items()})

        report.files = len(self.files)
        report.deleted = len(gone)
        report.chunks = sum(entry.last - entry.first for entry in self.entries.values())
        report.missing = sum(entry.waiting for entry in self.entries.values())
        self._commit()
        is_stored = not self.store.problem and not self.store.is_away
        if report.chunks and not report.missing and not self.files.problems and is_stored:
            # All chunks are in this collection: remove those made with other settings.
            for other in other_collections(self.indexer.project, self.indexer.home, self.indexer.name):
                self.store.drop(other)
                shutil.rmtree(snapshot_directory(self.indexer.home, other), ignore_errors=True)
        unindexed.clear(self.indexer.home, self.indexer.project.root)
        return report

    def _begin(self) -> None:
        """Mark durably that the store and the snapshot may differ from now on."""
        if not self.has_begun and not self.store.is_away:
            prepare(self.directory)
            mark_started(self.directory)
            self.has_begun = True

    def _commit(self) -> None:
        base, root = self.base, self.indexer.project.root
        for source, state in self.state.items():
            entry = self.entries.get(source)
            if entry is None or entry.state != state:
                entry = Entry(state)
            stat = self.stats.get(source, ())
            self.entries[source] = entry._replace(stat=stat or entry.stat)
        identity, unsent = self._sent()
        if unsent != self.last_unsent:
            prepare(self.directory)
            write_unsent(self.directory, unsent)
        if base is not None and (base.entries, base.root) == (self.entries, root):
            is_marked = (self.directory / STARTED).exists()
            if not is_marked and base.manifest.collection == identity:
                remove_others(self.directory, self.segments)  # a killed pass or merge may have left some
                return
            name = base.name
        else:
            name = ""
        prepare(self.directory)
        known = {} if base is None else {one.name: one.stat for one in base.segments}
        write_manifest(self.directory, root, self.segments, self.entries, identity, name, known)

    def _sent(self) -> tuple[str, Unsent]:
        """Return which collection holds the chunks now, "" if that is unknown, and what waits for it."""
        identity = self.store.identity
        problem, last = self.store.problem, self.last_unsent
        if not problem and not self.store.is_away:
            return identity, Unsent()
        base, unsent = self.base, Unsent()
        if base is None or not self.is_in_step or last.sources is None:
            identity = ""
        else:
            identity = base.manifest.collection
            changes = last.changes + self.report.added + self.report.deleted
            sources = self.unsent | ((self.state.keys() | base.entries.keys()) - self.kept)
            if sources:
                unsent = Unsent(sources, changes, last.rows if last.sources else rows_in_store(base))
        if problem:
            self.report.unsent = waiting_chunks(self.entries, identity, unsent.sources or ())
            waiting = f"{plural(self.report.unsent, 'chunk')} will be sent later"
            self.report.away = f"{problem}; {waiting}" if self.report.unsent else ""
        return identity, unsent

    def _read_store(self) -> None:
        if not self.is_in_step:
            self._take(self.store.stored())
        for source in sorted(self.unsent) if self.is_in_step else ():
            self._take(self.store.stored(source))
        entries = {} if self.base is None else self.base.entries
        for source in entries.keys() - self.kept - self.waiting:
            rows = self._rows_of(source)
            self.known |= {row.chunk.text_number: row.vectors for row in rows if row.vectors is not None}
            self._note_stored(source, rows)

    def _take(self, stored: Mapping[str, Metadata]) -> None:
        self.before |= stored
        for id, metadata in stored.items():
            number, windows = text_number(metadata), metadata.get("windows")
            if number is not None and windows:
                self.in_store[number] = (id, int(windows))

    def _note_stored(self, source: str, rows: list[Row]) -> None:
        """Note that the store holds these rows of the snapshot, if it is in step with it.

        A store that is away holds nothing; then they are what the changes are counted from.
        """
        if self.is_in_step and (self.store.is_away or source not in self.unsent):
            self.before |= {row.id: self.store.describe(row) for row in rows}

    def _rows_of(self, source: str) -> list[Row]:
        rows = [] if self.base is None else self.base.rows_of(source)
        if self.is_in_step:
            self.indexed |= {row.id for row in rows}
        return rows

    def _batches(self) -> Iterator[tuple[list[Row], float]]:
        """Yield the chunks of all files that are not kept, without vectors, some files at a time.

        Unchanged files that wait for vectors come last and are not parsed again. Without an embedder they
        stay as they are. The second value is the part of the files that has been read.
        """
        last = self.last
        sources = {source for source in self.files if source not in self.kept}
        known: Mapping[str, Entry] = {} if last is None else last.entries
        unreadable = {name for name in known if name not in self.kept and self.files.is_unreadable(name)}
        everything = (sources | unreadable | self.waiting) - self.kept
        changed = sorted(everything - self.waiting)
        batch: list[Row] = []
        for number, source in enumerate(changed, 1):
            if source in unreadable:
                self.state.setdefault(source, "unreadable")
                batch += self._last_rows(source)
            else:
                batch += self._chunks_of(source)
            if len(batch) >= SEGMENT_CHUNKS:
                yield batch, number / len(everything)
                batch = []
        if batch:
            yield batch, len(changed) / len(everything)
        batch = []
        for number, source in enumerate(sorted(self.waiting), len(changed)):
            if len(batch) >= SEGMENT_CHUNKS:
                yield batch, number / len(everything)
                batch = []
            # Unless in step, the store may hold vectors that only `_with_vectors` brings into the snapshot.
            if not batch and self.is_in_step and self._find_embedder() is None:
                self.kept |= {one for one in self.waiting if one >= source}
                return
            rows = self._rows_of(source)
            self._note_stored(source, rows)
            batch += rows
        if batch:
            yield batch, 1.0

    def _last_rows(self, source: str) -> list[Row]:
        rows = [] if self.last is None else self.last.rows_of(source)
        return rows if self.base is not None else [replace(row, vectors=None) for row in rows]

    def _chunks_of(self, source: str) -> list[Row]:
        try:
            file = self.files[source].load()
        except OSError as error:
            logger.warning("cannot read %s: %s", source, error)
            self.report.unreadable.append(f"{source} cannot be read: {error.strerror or error}")
            if self.last is None or source not in self.last.entries:
                del self.state[source]
                return []
            self.state[source] = "unreadable" if self.base is None else self.last.entries[source].state
            return self._last_rows(source)
        if file.hash != self.files[source].hash:  # it has changed since
            self.state[source] = file_state(file, self.settings)
        self.stats[source] = file.stat
        chunks, replaced = chunk_file(file, self.settings)
        if replaced:
            self.report.replaced[source] = replaced
        return sorted(
            (Row(chunk.id(self.settings.embedding.model), chunk, None) for chunk in chunks), key=order
        )

    def _index(self, rows: list[Row], share: float, progress: Progress | None) -> None:
        rows = self._with_vectors(rows)
        waiting = [row for row in rows if row.vectors is None]
        written: set[str] = set()
        if waiting:
            embedder = self._find_embedder()
            if embedder is not None:
                done = self.report.embedded

                def note(count: int) -> None:
                    if progress is not None:
                        progress(done + count, max(done + count, round((done + len(waiting)) / share)))

                written = self._embed(embedder, waiting, note)
                rows = [
                    replace(row, vectors=self.made.get(row.chunk.text_number)) if row.vectors is None else row
                    for row in rows
                ]
        self._write_changed(rows, written)
        self._write_segment(rows)
        self.made.clear()

    def _with_vectors(self, rows: list[Row]) -> list[Row]:
        found: Vectors = {}
        wanted = {row.chunk.text_number for row in rows if row.vectors is None}
        in_store: dict[str, int] = {}
        made: set[int] = set()
        for number in wanted:
            vectors = self.made.get(number)  # of an attempt before
            if vectors is not None:
                made.add(number)
            else:
                vectors = self.known.get(number)
            if vectors is None and self.base is not None:
                vectors = self.base.vectors_of_text(number)
            if vectors is not None:
                found[number] = vectors
            elif number in self.in_store:
                id, windows = self.in_store[number]
                in_store[id] = windows
        if in_store:
            vectors_by_id = self.store.vectors(in_store)
            for number in wanted - found.keys():
                id, _ = self.in_store.get(number, ("", 0))
                if id in vectors_by_id:
                    found[number] = vectors_by_id[id]
        self.report.embedded += sum(
            row.vectors is None and row.chunk.text_number in made for row in rows
        )
        return [
            replace(row, vectors=found.get(row.chunk.text_number)) if row.vectors is None else row
            for row in rows
        ]

    def _find_embedder(self) -> ChunkEmbedder | None:
        if not self.is_asked:
            self.is_asked = True
            embedder, self.report.degraded = self.indexer.find_embedder()
            if embedder is not None:
                # The user paid for a remote model's vectors, so no other length replaces them unasked.
                held = None
                if embedder.dimensions is None:
                    held = next((one.shape[1] for one in self.known.values()), None)
                    if held is None and self.base is not None:
                        held = self.base.dimensions
                    if held is None and self.in_store:
                        held = self.store.dimensions
                self.embedder = ChunkEmbedder(embedder, held)
        if self.embedder is None or self.embedder.is_stopped:
            return None
        return self.embedder

    def _embed(
        self, embedder: ChunkEmbedder, waiting: list[Row], note: Callable[[int], None]
    ) -> set[str]:
        """Embed the waiting rows and write them batch by batch: a pass that ends early keeps its work.

        Return the ids of those. The others keep waiting; the report has the reason.
        """
        known = None if self.base is None else self.base.dimensions
        is_small = len(waiting) <= BATCH_CHUNKS and known is not None
        if self.store.is_away and not self.store.problem and not is_small:
            # The store keeps the vectors of a pass that is killed. It decides on their length, too.
            raise StoreNeededError
        written: set[str] = set()
        for start, vectors in embedder.batches([row.chunk for row in waiting], BATCH_CHUNKS):
            pairs = zip(waiting[start:], vectors, strict=False)
            made = [replace(row, vectors=found) for row, found in pairs if found is not None]
            self.made.update((row.chunk.text_number, row.vectors) for row in made if row.vectors is not None)
            lengths = {known}
            if not self.is_in_step or lengths == {None}:  # else the store has the same ones
                lengths.add(self.store.dimensions)
            if lengths - {None, embedder.dimensions}:
                raise OtherLengthError
            self._put(made)
            written |= {row.id for row in made}
            note(start + len(vectors))
        self.report.embedded += len(written)
        self.report.degraded = embedder.problem
        return written

    def _write_changed(self, rows: list[Row], written: Collection[str] = ()) -> None:
        self.seen |= {row.id for row in rows}
        new = [row for row in rows if row.id not in written]
        self._put([row for row in new if self.before.get(row.id) != self.store.describe(row)])
        self.report.added += sum(row.id not in self.before and row.id not in self.indexed for row in rows)

    def _put(self, rows: list[Row]) -> None:
        if not rows:
            return
        self._begin()
        self.store.put([row for row in rows if row.id not in self.before])
        # A chunk is written window by window. Delete a replaced one first, or a kill would mix the two. If
        # there is no snapshot, its vectors exist nowhere else, so do it in small batches.
        replaced = [row for row in rows if row.id in self.before]
        for start in range(0, len(replaced), BATCH_CHUNKS):
            batch = replaced[start : start + BATCH_CHUNKS]
            self.store.delete({row.id: _held(self.before[row.id]) for row in batch})
            self.store.put(batch)

    def _write_segment(self, rows: list[Row]) -> None:
        base = self.base
        entries = entries_of(rows, self.state, len(self.segments))
        for source, entry in [*entries.items()]:
            known = base.entries.get(source) if base is not None else None
            if known is not None and (known.state, known.waiting) == (entry.state, entry.waiting):
                del entries[source]
        kept = [row for row in rows if row.chunk.source in entries]
        if not kept:
            return
        dimensions = next((row.vectors.shape[1] for row in kept if row.vectors is not None), 0)
        if not dimensions and base is not None:
            dimensions = base.dimensions or 0
        dimensions = dimensions or self.store.dimensions or PLACEHOLDER_DIMENSIONS
        prepare(self.directory)
        try:
            language = self.settings.search.language
            name = write_rows(self.directory, kept, dimensions, language, self._same_terms(kept))
        except OSError as error:
            raise unwritable(self.directory, error) from error
        self.entries |= entries_of(kept, self.state, len(self.segments))
        self.segments.append(name)

    def _same_terms(self, rows: list[Row]) -> dict[str, tuple[Segment, int]]:
        """Return where the snapshot has those of the `rows` whose terms are the same, by id."""
        base = self.base
        if base is None:
            return {}
        texts = {row.id: row.chunk.lexical_text for row in rows}
        found = {}
        for source in {row.chunk.source for row in rows} & base.entries.keys():
            entry = base.entries[source]
            for place, row in enumerate(base.rows_of(source), entry.first):
                if texts.get(row.id) == row.chunk.lexical_text:
                    found[row.id] = (base.segments[entry.segment], place)
        return found

    def _is_kept_in_store(self, metadata: Metadata) -> bool:
        """Return whether a chunk's file may exist though it cannot be read, and no snapshot has its text."""
        source = str(metadata.get("source", ""))
        return source not in self.entries and self.files.is_unreadable(source)


def rows_in_store(snapshot: Snapshot) -> int:
    """Return the number of rows that an embedded store has for a snapshot."""
    return len(snapshot.owners) + snapshot.missing


def _held(metadata: Metadata) -> int:
    """Return the number of rows of a chunk in the store, of which some may be missing."""
    return max(1, int(metadata.get("held") or metadata.get("windows") or 1))
