"""Facts that depend on forgotten entries, and kept copies of files that still hold such entries.

A compaction or a restore keeps a copy of each file it replaces. A copy that holds forgotten text is removed
whole: it exists so that the user can get text back, but nobody wants this text back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from memkit.archive.archive import Archive
from memkit.errors import ArchiveError
from memkit.forget.selection import Mentions, Passage, read_facts
from memkit.hook.entries import DAY_FILE
from memkit.index.catalog import snapshots_of
from memkit.index.chunk import SHOWN_ID_CHARACTERS, Chunk
from memkit.index.reader import ChunkReader, open_current
from memkit.journal.facts import FactFile
from memkit.journal.files import original_name, replaced_files
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.privacy.tombstones import Forgotten
from memkit.projects.project import Project


@dataclass(frozen=True, slots=True)
class FactLocation:
    """The facts of one file that are to be forgotten: their text by ID."""

    project: Project
    path: Path
    facts: dict[str, str]


def find_facts(
    home: Home, journal: Journal, forgotten: Forgotten, passages: list[Passage], mentions: Mentions
) -> Iterator[FactLocation]:
    """Yield the facts in one memory that are forgotten, or depend on forgotten entries or on `passages`.

    A fact with a full anchor may depend on more than it cites, so it is forgotten if anything of this memory
    is. Raise `JournalError`, `OSError`.
    """
    is_touched = journal.project.root in forgotten.roots
    chunks: _CitedChunks | None = None
    for path in journal.markdown():
        if not mentions.of_file(journal, path).has_fact:
            continue
        found = {}
        for _, one in read_facts(path):
            cited = one.fact.citations
            goes = forgotten.covers_fact(one.id, cited.turns, cited.grips)
            goes = goes or (is_touched and cited.is_full)
            if not goes and cited.chunks and passages:
                chunks = chunks or _CitedChunks(home, journal)
                goes = chunks.are_lost(cited.chunks, passages)
            if goes:
                found[one.id] = one.fact.shown
        if found:
            yield FactLocation(journal.project, path, found)


class _CitedChunks:
    """The indexed chunks of one project, by the short ID that facts cite.

    A chunk's ID changes when lines above it are added or removed. So a fact may cite an unknown chunk; such a
    fact may depend on any text that has no ID of its own.
    """

    def __init__(self, home: Home, journal: Journal) -> None:
        self._root = Path(journal.project.root)
        self._chunks: dict[str, Chunk] = {}
        for directory in snapshots_of(home, {journal.project.root}):
            reader = open_current(directory, ChunkReader)
            if reader is not None:
                for position, chunk in enumerate(reader.chunks()):
                    self._chunks[reader.id(position)[:SHOWN_ID_CHARACTERS]] = chunk

    def are_lost(self, cited: Iterable[str], passages: list[Passage]) -> bool:
        """Return whether one of the `cited` chunks is unknown, or lies in one of `passages`."""
        return any(
            name not in self._chunks or any(self._is_in(self._chunks[name], one) for one in passages)
            for name in cited
        )

    def _is_in(self, chunk: Chunk, passage: Passage) -> bool:
        if self._root / chunk.source != passage.path:
            return False
        # If the file has changed since, the present lines of the chunk are unknown.
        has_changed = chunk.source_hash != passage.source_hash
        return has_changed or (chunk.start_line <= passage.end and passage.start <= chunk.end_line)


def find_old_versions(
    home: Home, forgotten: Forgotten, names: Collection[str], sessions: Collection[str]
) -> Iterator[Path]:
    """Yield the copies that hold something of `forgotten`.

    `names` are files that lose text without an ID; `sessions` (as in anchors) lose turns. Raise `OSError`.
    """
    wholes = {period.project for period in forgotten.periods if period.whole}
    roots = {*forgotten.roots, *forgotten.only, *(period.project for period in forgotten.periods)} - {""}
    of_project = {path: root for root in sorted(roots) for path in replaced_files(home, {root})}
    for path in replaced_files(home, None):
        root = of_project.get(path, "")
        periods = tuple(one for one in forgotten.periods if one.project in ("", root))
        own = msgspec.structs.replace(forgotten.within(root), periods=periods)
        lost = names if root in forgotten.roots else ()
        if root in wholes or _holds(path, original_name(path), own, lost):
            yield path
    for root in forgotten.only:  # the projects of the following copies are unknown
        forgotten = forgotten.within(root)
    for kept in sorted(Path(home.before_restore).glob("*")):
        copied_home = Home(str(kept / "home"))
        yield from _archived(copied_home, forgotten)
        for path in sorted(Path(copied_home.sessions).glob("*.json")):
            if _names_forgotten(path, forgotten, sessions):
                yield path
        for path in sorted(Path(copied_home.projects).glob("*.topics.json")):
            if _holds(path, path.name, forgotten, names):  # its labels may come from a forgotten member
                yield path
        yield from find_old_versions(copied_home, forgotten, names, sessions)
        for path in sorted((kept / "projects").rglob("*.md")):
            if wholes or _holds(path, path.name, forgotten, names):
                yield path


def _archived(home: Home, forgotten: Forgotten) -> Iterator[Path]:
    archive = Archive(home)
    for session in archive.sessions():
        try:
            turns = archive.versions(session)
            holds = any(forgotten.covers(one.id, one.project, session, one.time) for one in turns)
        except ArchiveError:  # its turns are unknown
            holds = True
        if holds:
            yield archive.path(session)


def _names_forgotten(path: Path, forgotten: Forgotten, sessions: Collection[str]) -> bool:
    data = path.read_bytes()
    names = {*sessions, *forgotten.turns, *(period.session for period in forgotten.periods)}
    roots = {*forgotten.roots, *(one.project for one in forgotten.periods if not one.session)} - {""}
    quoted = [json.dumps(root).encode("ascii") for root in roots]
    return any(one in data for one in (*quoted, *(os.fsencode(name) for name in names if name)))


def _holds(path: Path, name: str, forgotten: Forgotten, names: Collection[str]) -> bool:
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    ids = forgotten.turns | forgotten.grips | forgotten.notes | forgotten.facts
    sessions = (f"session:{period.session}" for period in forgotten.periods if period.session)
    if name in names or any(one in text for one in (*ids, *sessions)):
        return True
    cited = [fact.fact.citations for _, fact in FactFile(text, name).everywhere()]
    if any(one.is_full or (names and one.chunks) for one in cited):
        return True
    periods = [period for period in forgotten.periods if not period.session]
    return any(_overlaps(name, period.since, period.until) for period in periods)


def _overlaps(name: str, since: float, until: float) -> bool:
    try:
        start = datetime.fromisoformat(name[:10] if DAY_FILE.match(name) else "").astimezone()
        return start.timestamp() < until and since < (start + timedelta(days=1)).timestamp()
    except (ValueError, OverflowError):  # the latter for the first and the last day of the calendar
        return False
