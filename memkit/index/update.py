"""One pass over the memory files of a project: embed what is new, and write it as segments."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from memkit.embedding import UnusableVectorError, check_vectors
from memkit.embedding.models import space
from memkit.errors import EmbeddingError
from memkit.index import SyncReport
from memkit.index.catalog import collection_name, snapshot_directory
from memkit.index.chunk import Chunk
from memkit.index.chunker import chunk_file
from memkit.index.manifest import Entry
from memkit.index.memory_files import CurrentFiles, file_state, state_of
from memkit.index.mirror import note_changed
from memkit.index.segment import Segment, write_rows
from memkit.index.snapshot import (
    Snapshot,
    entries_of,
    order,
    prepare,
    remove_others,
    unwritable,
    write_manifest,
)
from memkit.index.store import Row
from memkit.ipc import unindexed
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.settings.load import Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memkit.embedding import Embedder

MOST_FAILURES = 3
"""After this many failed chunks in a row, blame the model and send no more."""

SHOWN_PROBLEMS = 3


class ChunkEmbedder:
    """Embeds chunks in batches; `problem` names those that cannot be embedded.

    `is_stopped` is set when the rest cannot be embedded either.
    """

    def __init__(self, embedder: Embedder, dimensions: int | None) -> None:
        """`dimensions` is the required length of the vectors; None accepts any, set by the first vector."""
        self.dimensions = dimensions
        self._embedder = embedder
        self.is_stopped = False
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
                self.is_stopped = True
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


logger = logging.getLogger(__name__)

BATCH_CHUNKS = 100
"""Chunks to embed at once."""

SEGMENT_CHUNKS = 1024
"""A pass holds about this many chunks in memory, and writes them as one segment. A kill loses at most one."""

NO_DIMENSIONS = 384
"""The length of vectors that a segment without any names."""

Progress = Callable[[int, int], None]
"""Called with the number of chunks embedded so far, and the total as far as it is known."""

Vectors = dict[int, "NDArray[np.float32]"]
"""Vectors by the `text_number` of their chunk."""


@dataclass(frozen=True)
class Target:
    """The project whose index is updated. `find_embedder` returns the embedder, or None and the reason."""

    project: Project
    home: Home
    settings: Settings
    find_embedder: Callable[[], tuple[Embedder | None, str]]

    @property
    def name(self) -> str:
        """The name of its collection."""
        return collection_name(self.project, self.home, space(self.settings.embedding))

    @property
    def directory(self) -> Path:
        """The directory of its segments."""
        return snapshot_directory(self.home, self.name)


class OtherLengthError(Exception):
    """The index has vectors of another length."""


class Update:
    """One pass over the memory files.

    `last` is the last snapshot, even with words of another language: it has the text of files that cannot be
    read now. `base` is the one whose chunks of unchanged files stay, and `embedded` the one whose vectors do.
    `made` collects the vectors of the chunks in work, so that a second attempt need not embed them again.
    """

    def __init__(
        self, target: Target, files: CurrentFiles, made: Vectors, last: Snapshot | None,
        base: Snapshot | None = None, embedded: Snapshot | None = None,
    ) -> None:  # fmt: skip
        self.target = target
        self.settings = target.settings
        self.files = files
        self.made = made
        self.last = last
        self.base = base
        self.embedded = embedded
        self.directory = target.directory
        self.report = SyncReport(target.project.root, unreadable=files.problems)
        self.state = state_of(files, self.settings)
        self.stats = {source: file.stat for source, file in files.items()}
        self.kept: frozenset[str] = frozenset()  # sources whose chunks stay as they are
        self.waiting: frozenset[str] = frozenset()  # unchanged ones with chunks to embed
        if base is not None:
            known = base.sources
            self.state |= {name: known[name] for name in known if files.is_unreadable(name)}
            same = {name for name, entry in base.entries.items() if self.state.get(name) == entry.state}
            self.waiting = frozenset(name for name in same if base.entries[name].waiting)
            self.kept = frozenset(same - self.waiting)
        self.segments = [] if base is None else [one.name for one in base.segments]
        self.entries: dict[str, Entry] = {} if base is None else dict(base.entries)
        self.embedder: ChunkEmbedder | None = None
        self.is_asked = False  # whether the embedder was looked for
        self.before: set[str] = set()  # the ids in `base` of the files that this pass may change
        self.after: set[str] = set()  # their ids now
        self.known: Vectors = {}  # of these files

    def run(self, progress: Progress | None) -> SyncReport:
        """Write what has changed."""
        report, base = self.report, self.base
        changed = () if base is None else base.entries.keys() - self.kept - self.waiting
        for source in changed:
            rows = [] if base is None else base.rows_of(source)
            self.before |= {row.id for row in rows}
            self.known |= {row.chunk.text_number: row.vectors for row in rows if row.vectors is not None}
        is_first = True
        for batch, share in self._batches():
            # If this pass is killed, the next one goes on from here. A rebuild replaces the index at its end.
            if not is_first and base is self.last:
                self._write_manifest()
            is_first = False
            self._index(batch, share, progress)
        self._commit()
        report.files = len(self.files)
        report.added = len(self.after - self.before)
        report.deleted = len(self.before - self.after)
        report.chunks = sum(entry.last - entry.first for entry in self.entries.values())
        report.missing = sum(entry.waiting for entry in self.entries.values())
        unindexed.clear(self.target.home, self.target.project.root)
        return report

    def _commit(self) -> None:
        base, root = self.base, self.target.project.root
        for source in self.entries.keys() - self.state.keys():
            del self.entries[source]
        for source, state in self.state.items():
            entry = self.entries.get(source)
            if entry is None or entry.state != state:
                entry = Entry(state)
            stat = self.stats.get(source, ())
            self.entries[source] = entry._replace(stat=stat or entry.stat)
        if base is not None and (base.entries, base.root) == (self.entries, root):
            remove_others(self.directory, self.segments)  # a killed pass or merge may have left some
        else:
            self._write_manifest()

    def _write_manifest(self) -> None:
        base = self.base
        known = {} if base is None else {one.name: one.stat for one in base.segments}
        old = {} if self.last is None else self.last.entries
        sources = self.entries.keys() | old.keys()
        prepare(self.directory)
        if base is not None:
            sources = {one for one in sources if _rows_differ(self.entries.get(one), old.get(one))}
        note_changed(self.directory, sources)
        write_manifest(self.directory, self.target.project.root, self.segments, self.entries, known=known)

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
            if self._find_embedder() is None:
                break
            rows = self._last_rows(source)
            self.before |= {row.id for row in rows}
            batch += rows
        if batch:
            yield batch, 1.0

    def _last_rows(self, source: str) -> list[Row]:
        rows = [] if self.last is None else self.last.rows_of(source)
        return rows if self.embedded is not None else [replace(row, vectors=None) for row in rows]

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
        waiting = [row.chunk for row in rows if row.vectors is None]
        embedder = self._find_embedder() if waiting else None
        if embedder is not None:
            done = self.report.embedded

            def note(count: int) -> None:
                if progress is not None:
                    progress(done + count, max(done + count, round((done + len(waiting)) / share)))

            self._embed(embedder, waiting, note)
            rows = self._with_vectors(rows)
        self.after |= {row.id for row in rows}
        self._write_segment(rows)
        self.made.clear()

    def _with_vectors(self, rows: list[Row]) -> list[Row]:
        """Give rows the vectors that the same text has already."""
        found: dict[int, NDArray[np.float32] | None] = {}
        for number in {row.chunk.text_number for row in rows if row.vectors is None}:
            vectors = self.made.get(number, self.known.get(number))
            if vectors is None and self.embedded is not None:
                vectors = self.embedded.vectors_of_text(number)
            found[number] = vectors
        return [
            replace(row, vectors=found[row.chunk.text_number]) if row.vectors is None else row
            for row in rows
        ]

    def _find_embedder(self) -> ChunkEmbedder | None:
        if not self.is_asked:
            self.is_asked = True
            embedder, self.report.degraded = self.target.find_embedder()
            if embedder is not None:
                # The user paid for a remote model's vectors, so no other length replaces them unasked.
                held = None
                if embedder.dimensions is None:
                    held = next((one.shape[1] for one in self.known.values()), None)
                    if held is None and self.embedded is not None:
                        held = self.embedded.dimensions
                self.embedder = ChunkEmbedder(embedder, held)
        if self.embedder is None or self.embedder.is_stopped:
            return None
        return self.embedder

    def _embed(self, embedder: ChunkEmbedder, chunks: list[Chunk], note: Callable[[int], None]) -> None:
        """Embed chunks; the report has the reason for those that could not be."""
        held = None if self.embedded is None else self.embedded.dimensions
        for start, vectors in embedder.batches(chunks, BATCH_CHUNKS):
            pairs = zip(chunks[start:], vectors, strict=False)
            made = {chunk.text_number: found for chunk, found in pairs if found is not None}
            self.made |= made
            if held not in (None, embedder.dimensions):
                raise OtherLengthError
            self.report.embedded += sum(found is not None for found in vectors)
            note(start + len(vectors))
        self.report.degraded = embedder.problem

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
        dimensions = dimensions or NO_DIMENSIONS
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


def _rows_differ(new: Entry | None, old: Entry | None) -> bool:
    """Whether the chunks of a memory file may have changed. Its `stat` may be noted only in a later pass."""
    if new is None or old is None:
        return new is not old
    return new._replace(stat=()) != old._replace(stat=())
