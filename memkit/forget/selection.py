"""What a person names, as ids, periods and passages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from pathlib import Path, PurePosixPath

from memkit import anchors
from memkit.capture.archive import Archive
from memkit.capture.brief import days
from memkit.capture.day_file import DayFile
from memkit.capture.journal import Journal
from memkit.capture.sessions import Sessions
from memkit.capture.tombstones import Forgotten, Period
from memkit.config import Settings
from memkit.errors import AmbiguousIdError, MemkitError, NotFoundError
from memkit.index.chunk import Chunk
from memkit.index.chunk_reader import ChunkReader
from memkit.index.current import open_chunks
from memkit.paths import MEMORY_DIRECTORY, Home
from memkit.project import Project


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines of a markdown file of the memory directory that belong to no turn: from 1, both inclusive.

    `source_hash` is the SHA-256 of the file they were counted in.
    """

    path: Path
    start: int
    end: int
    source_hash: str
    heading: str

    def is_unchanged(self) -> bool:
        """Whether the lines are still what they were."""
        try:
            return hashlib.sha256(self.path.read_bytes()).hexdigest() == self.source_hash
        except FileNotFoundError:
            return False


@dataclass(slots=True)
class Selection:
    """What is to be forgotten."""

    forgotten: Forgotten = field(default_factory=Forgotten)
    passages: list[Passage] = field(default_factory=list)


def of_everything(project: Project, now: float) -> Selection:
    """All that is remembered of a project until `now`, in seconds since the epoch."""
    return Selection(Forgotten(periods=(Period(until=now, project=project.root, whole=True),)))


def of_days(project: Project, since: date | None, until: date | None, now: float) -> Selection:
    """The days of a project from `since` to `until`, both included; None leaves an end open."""
    first = _midnight(since) if since else 0.0
    end = min(_midnight(until + timedelta(days=1)), now) if until else now
    return Selection(Forgotten(periods=(Period(since=first, until=end, project=project.root),)))


def _midnight(day: date) -> float:
    return datetime.combine(day, time.min).astimezone().timestamp()


def of_session(project: Project, home: Home, name: str, now: float) -> Selection:
    """All of the session whose id is, or begins with, `name`, wherever it is remembered.

    Raises `NotFoundError`, `AmbiguousIdError`.
    """
    known = {anchors.safe(state.id) for state in Sessions(home)} | set(Archive(home).sessions())
    journal = Journal(project)
    known |= {session for day in days(project) for session in journal.day(day).sessions()}
    found = {name} & known or {session for session in known if name and session.startswith(name)}
    if not found:
        raise NotFoundError(f"no session {name!r} is remembered")
    if len(found) > 1:
        shown = ", ".join(sorted(found)[:5])
        raise AmbiguousIdError(f"the session {name!r} fits several: {shown}")
    return Selection(Forgotten(periods=(Period(until=now, session=found.pop()),)))


class Finder:
    """Finds out what ids stand for: those of chunks, as search prints them, of turns, grips or notes."""

    def __init__(self, project: Project, home: Home, settings: Settings) -> None:
        self._project = project
        self._archive = Archive(home)
        self._chunks = open_chunks(project, home, settings)
        journal = Journal(project)
        self._days = {day: journal.day(day) for day in journal.days()}

    def select(self, names: Iterable[str]) -> Selection:
        """What all of `names` stand for. Raises `NotFoundError`, `AmbiguousIdError`, `MemkitError`."""
        selection = Selection()
        for name in names:
            found = self._entry(name) or self._archived(name)
            if found is None:
                found = self._chunk(name, selection)
            selection.forgotten |= found
        return selection

    def _entry(self, name: str) -> Forgotten | None:
        """What in the journal has exactly this id."""
        for content in self._days.values():
            for section in content.sections:
                if section.pairs.get("turn") == name:
                    return Forgotten(turns=frozenset({name}))
                if section.pairs.get("note") == name:
                    return Forgotten(notes=frozenset({name}))
            if any(anchors.parse(line).get("grip") == name for line in content.lines if name in line):
                return Forgotten(grips=frozenset({name}))
        return None

    def _archived(self, name: str) -> Forgotten | None:
        """The turn of this id, if only the archive still has it."""
        for session in self._archive.sessions():
            if any(turn.id == name for turn in self._archive.turns(session)):
                return Forgotten(turns=frozenset({name}))
        return None

    def _chunk(self, name: str, selection: Selection) -> Forgotten:
        if self._chunks is None:
            raise NotFoundError(f"nothing in {self._project.root} has the id {name!r}")
        chunk = _chunk(self._chunks, name)
        if chunk.kind == "turn":
            return Forgotten(turns=frozenset(chunk.turns))
        if chunk.grips:
            return Forgotten(grips=frozenset(chunk.grips))
        notes = frozenset(self._notes(chunk))
        if not notes:
            selection.passages.append(self._passage(chunk))
        return Forgotten(notes=notes)

    def _notes(self, chunk: Chunk) -> Iterator[str]:
        """The notes that memkit wrote on the lines of a chunk."""
        source = PurePosixPath(chunk.source)
        content = self._days.get(source.stem, DayFile(""))
        if source.parent == PurePosixPath(Path(MEMORY_DIRECTORY).as_posix()):
            for section in content.sections:
                if section.start < chunk.end_line and chunk.start_line <= section.end:
                    yield from filter(None, [section.pairs.get("note")])

    def _passage(self, chunk: Chunk) -> Passage:
        path = Path(self._project.root, chunk.source)
        memory = Path(self._project.memory).resolve()
        if not path.resolve().is_relative_to(memory):
            raise MemkitError(
                f"{path}:{chunk.start_line}-{chunk.end_line} is a file of your own, which memkit does not "
                "change; edit it, and the next search knows"
            )
        found = Passage(
            path, chunk.start_line, chunk.end_line, chunk.source_hash, chunk.breadcrumb
        )
        if not found.is_unchanged():
            raise MemkitError(f"{path} has changed since it was indexed; search again")
        return found


def _chunk(chunks: ChunkReader, name: str) -> Chunk:
    return chunks.chunk(chunks.find(name))
