"""Which facts of compactions rest on what is to be forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from memkit.forget.selection import Passage, read_facts
from memkit.hook.project import Project
from memkit.index.catalog import snapshots_of
from memkit.index.chunk import Chunk
from memkit.index.chunk_reader import SHOWN_ID_CHARACTERS, ChunkReader, open_current
from memkit.journal.facts import WrittenFact
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.privacy.tombstones import Forgotten


@dataclass(frozen=True, slots=True)
class FactLocation:
    """The facts of one file that go, as they read, by their ids."""

    project: Project
    path: Path
    facts: dict[str, str]


class CitedChunks:
    """The chunks that facts of one project may cite, as it is indexed.

    A chunk's id says where it stands, so it is another one when lines above it come or go. A fact that
    cites one nobody knows any more may rest on anything: where text without an id of its own is
    forgotten, it goes as well.
    """

    def __init__(self, home: Home, journal: Journal) -> None:
        self._root = Path(journal.project.root)
        self._chunks: dict[str, Chunk] = {}
        for directory in snapshots_of(home, {journal.project.root}):
            reader = open_current(directory, ChunkReader)
            if reader is not None:
                for place, chunk in enumerate(reader.chunks()):
                    self._chunks[reader.id(place)[:SHOWN_ID_CHARACTERS]] = chunk

    def lost(self, cited: Iterable[str], passages: Iterable[Passage]) -> bool:
        """Whether one of the `cited` ids is of a chunk in `passages`, or of none that is known."""
        gone = list(passages)
        return any(
            name not in self._chunks or any(self._is_in(self._chunks[name], one) for one in gone)
            for name in cited
        )

    def _is_in(self, chunk: Chunk, passage: Passage) -> bool:
        if self._root / chunk.source != passage.path:
            return False
        # Of a file that has changed since nobody knows where the chunk is now.
        is_other = chunk.source_hash != passage.source_hash
        return is_other or (chunk.start_line <= passage.end and passage.start <= chunk.end_line)


def find_facts(
    home: Home, journal: Journal, forgotten: Forgotten, passages: list[Passage]
) -> Iterator[FactLocation]:
    """The facts in the memory of `journal` that are forgotten, or rest on what is, or on `passages`.

    Where something else of this memory goes, so do facts that cite as much as an anchor has room for: they
    may rest on more. Raises `OSError`.
    """
    is_touched = journal.project.root in forgotten.roots
    chunks: CitedChunks | None = None
    for path in journal.markdown():
        found = {}
        for _, one in read_facts(path):
            cited = one.fact.citations
            goes = rests_on(one, forgotten) or (is_touched and cited.is_full)
            if not goes and cited.chunks and passages:
                chunks = chunks or CitedChunks(home, journal)
                goes = chunks.lost(cited.chunks, passages)
            if goes:
                found[one.id] = one.fact.shown
        if found:
            yield FactLocation(journal.project, path, found)


def rests_on(written: WrittenFact, forgotten: Forgotten) -> bool:
    """Whether a fact is forgotten, or cites a turn or bullet that is."""
    cited = written.fact.citations
    return forgotten.covers_fact(written.id, cited.turns, cited.grips)
