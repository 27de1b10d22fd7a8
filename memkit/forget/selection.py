"""Turn what the user names into IDs, periods, and passages."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from os import stat
from pathlib import Path
from typing import NamedTuple

import msgspec

from memkit import anchors
from memkit.archive import file as archive_file
from memkit.archive.archive import Archive
from memkit.bullets import read_bullets
from memkit.capture.sessions import Sessions
from memkit.errors import AmbiguousIdError, MemkitError, NotFoundError
from memkit.files import read_regular
from memkit.hook.entries import days
from memkit.index import open_chunks
from memkit.index.chunk import Chunk
from memkit.index.memory_files import RACY_NS
from memkit.journal.facts import FactFile, WrittenFact
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.privacy.tombstones import Forgotten, Period
from memkit.projects.project import Project, Registry
from memkit.projects.team_files import is_team
from memkit.settings.load import Settings
from memkit.text import midnight

# Which IDs a file mentions. Most files mention none of those to forget, and need not be parsed.
#
# A file is read once, and again only if it has changed: what to forget is searched for several times, the
# last time under the lock.

# Every anchor of `memkit.anchors`, and other comments: rather too many than one too few.
_COMMENT = re.compile(rb"<!--([^\n<>]*)")
_KEYS = frozenset({"turn", "turns", "grip", "grips", "note", "fact"})


class Mentioned(NamedTuple):
    """The IDs of turns, bullets, notes, and facts that a file mentions, and whether it holds a fact."""

    ids: frozenset[str]
    has_fact: bool = False


class Mentions:
    """The IDs that each file mentions, kept in memory while its size, times, and inode stay the same."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, ...], Mentioned]] = {}

    def of_day(self, journal: Journal, day: str) -> Mentioned:
        """Return the IDs in a day of a memory. Raise `JournalError`."""
        return self._of(journal.project.day_file(day), lambda: _in_markdown(journal.data(f"{day}.md")))

    def of_file(self, journal: Journal, path: Path) -> Mentioned:
        """Return the IDs in a Markdown file of a memory. Raise `JournalError`."""
        return self._of(str(path), lambda: _in_markdown(journal.data(path)))

    def of_archive(self, path: str) -> Mentioned:
        """Return the IDs of the turns in an archive file, and perhaps others. Raise `ArchiveError`."""
        return self._of(path, lambda: Mentioned(archive_file.turn_ids(path)))

    def _of(self, path: str, read: Callable[[], Mentioned]) -> Mentioned:
        before = _stamp(path)
        known = self._known.get(path)
        if before and known is not None and known[0] == before:
            return known[1]
        now, found = time.time_ns(), read()
        is_settled = bool(before) and max(before[:2]) + RACY_NS < now
        if is_settled and _stamp(path) == before:
            self._known[path] = before, found
        return found


def _in_markdown(data: bytes) -> Mentioned:
    comments = b" ".join(_COMMENT.findall(data)).decode("utf-8", "surrogateescape")
    pairs = [pair.partition(":") for pair in comments.split()]
    ids: Collection[str] = {value for key, _, value in pairs if key in _KEYS}
    listed = {name for value in ids if "," in value for name in value.split(",")}
    return Mentioned(frozenset({*ids, *listed}), any(key == "fact" for key, _, _ in pairs))


def _stamp(path: str) -> tuple[int, ...]:
    try:
        found = stat(path)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines (from 1, both ends inclusive) without an ID; `source_hash` is the SHA-256 of their file."""

    project: Project
    path: Path
    start: int
    end: int
    source_hash: str
    heading: str


@dataclass(slots=True)
class ForgetSelection:
    """The entries and passages to forget.

    A period of one project covers that project only. Other projects keep their copies, unless `everywhere`.
    `mentions` spares those that search for it later from reading every file again.
    """

    forgotten: Forgotten = field(default_factory=Forgotten)
    passages: list[Passage] = field(default_factory=list)
    everywhere: bool = False
    mentions: Mentions = field(default_factory=Mentions)


def of_everything(project: Project, home: Home, now: float) -> ForgetSelection:
    """Select all of a project's memory until `now`, in seconds since the epoch."""
    return _of_period(home, Period(until=now, project=project.root, whole=True))


def _of_period(home: Home, period: Period) -> ForgetSelection:
    earlier = Registry.read(home).earlier_roots(period.project)
    periods = (msgspec.structs.replace(period, project=root) for root in earlier)
    return ForgetSelection(Forgotten(periods=(period, *periods)))


def of_days(
    project: Project, home: Home, since: date | None, until: date | None, now: float
) -> ForgetSelection:
    """Select the days of a project from `since` to `until`, both included. None leaves an end open."""
    first = midnight(since) if since else 0.0
    end = min(midnight(until + timedelta(days=1)), now) if until and until < date.max else now
    return _of_period(home, Period(since=first, until=end, project=project.root))


def of_session(project: Project, home: Home, name: str, now: float) -> ForgetSelection:
    """Select a session everywhere by the start of its ID. Raise `NotFoundError`, `AmbiguousIdError`."""
    known = {anchors.safe(state.id) for state in Sessions(home)} | set(Archive(home).sessions())
    journal = Journal(project)
    names = (*days(project), *journal.renamed_days())
    known |= {session for day in names for session in journal.day(day).sessions()}
    found = {name} & known or {session for session in known if name and session.startswith(name)}
    if not found:
        raise NotFoundError(f"no session {name!r} is remembered")
    if len(found) > 1:
        shown = ", ".join(sorted(found)[:5])
        raise AmbiguousIdError(f"several sessions start with {name!r}: {shown}")
    return ForgetSelection(Forgotten(periods=(Period(until=now, session=found.pop()),)))


class SelectionFinder:
    """Finds the entries with given IDs: chunks (as search prints them), turns, bullets, notes, facts."""

    def __init__(
        self, project: Project, home: Home, settings: Settings, *, other_projects: bool = True
    ) -> None:
        """Look in the memory of `project`, then in the user's own memory.

        With `other_projects`, also find a turn that only the archive still has, whatever project it is of.
        """
        self._project, self._home, self._other_projects = project, home, other_projects
        self._archive = Archive(home)
        projects = dict.fromkeys([project, Project.of_user(home)])
        self._mentions = Mentions()
        self._memories = [_Memory(one, home, settings, self._mentions) for one in projects]

    def select(self, names: Iterable[str]) -> ForgetSelection:
        """Return the entries with these IDs. Raise `NotFoundError`, `AmbiguousIdError`, `MemkitError`."""
        selection = ForgetSelection(mentions=self._mentions)
        for name in names:
            found = next(filter(None, (memory.entry(name) for memory in self._memories)), None)
            found = found or self._archived(name) or self._chunk(name, selection)
            selection.forgotten |= found
        return selection

    def _archived(self, name: str) -> Forgotten | None:
        for session, path in self._archive.files():
            if name not in self._mentions.of_archive(path).ids:
                continue
            roots = [turn.project for turn in self._archive.turns(session) if turn.id == name]
            own = [root for root in roots if root and Project.at_root(root, self._home) == self._project]
            if roots if self._other_projects else own:
                return Forgotten(turns=frozenset({name}))
        return None

    def _chunk(self, name: str, selection: ForgetSelection) -> Forgotten:
        for memory in self._memories:
            with contextlib.suppress(NotFoundError):
                return memory.chunk(name, selection)
        raise NotFoundError(f"nothing in {self._memories[0].project.root} has the ID {name!r}")


class _Memory:
    def __init__(self, project: Project, home: Home, settings: Settings, mentions: Mentions) -> None:
        self.project = project
        self._open_chunks = partial(open_chunks, project, home, settings)
        self._directory = Path(project.memory)
        self._journal = Journal(project)
        self._days = (*self._journal.days(), *self._journal.renamed_days())
        self._mentions = mentions

    def entry(self, name: str) -> Forgotten | None:
        for day in self._days:
            if name not in self._mentions.of_day(self._journal, day).ids:
                continue
            content = self._journal.day(day)
            for section in content.sections:
                if section.pairs.get("turn") == name:
                    return Forgotten(turns=frozenset({name}))
                if section.pairs.get("note") == name:
                    return Forgotten(notes=frozenset({name}))
            if any(bullet.id == name for _, bullet in read_bullets(content.lines)):
                return Forgotten(grips=frozenset({name}))
        for path in self._journal.markdown():
            is_mentioned = name in self._mentions.of_file(self._journal, path).ids
            if is_mentioned and any(fact.id == name for _, fact in read_facts(path)):
                return Forgotten(facts=frozenset({name}))
        return None

    def chunk(self, name: str, selection: ForgetSelection) -> Forgotten:
        """Return the entries in the chunk whose ID starts with `name`. Add lines without ID to `selection`.

        Raise `NotFoundError`, `AmbiguousIdError`, `MemkitError`.
        """
        chunks = self._open_chunks()
        if chunks is None:
            raise NotFoundError(f"{self.project.root} has no index; run `memkit index`")
        _, chunk = chunks.known(name)
        if known := self.entry(chunk.entry_id) if chunk.entry_id else None:
            return known
        if chunk.kind == "turn":
            return Forgotten(turns=frozenset(chunk.turns))
        facts = self._facts(chunk)
        if facts:
            return Forgotten(facts=frozenset(facts))
        if chunk.citations:
            return Forgotten(grips=frozenset(chunk.citations))
        selection.passages.append(self._passage(chunk))
        return Forgotten()

    def _facts(self, chunk: Chunk) -> list[str]:
        path = Path(self.project.root, chunk.source)
        if not path.is_relative_to(self._directory):
            return []
        lines = range(chunk.start_line, chunk.end_line + 1)
        return [fact.id for number, fact in read_facts(path) if number in lines]

    def _passage(self, chunk: Chunk) -> Passage:
        path = Path(self.project.root, chunk.source)
        if is_team(chunk.source):
            raise MemkitError(
                f"{chunk.source}:{chunk.start_line} belongs to the repository; `memkit unshare` takes back "
                "what you shared"
            )
        if not path.resolve().is_relative_to(self._directory.resolve()):
            raise MemkitError(
                f"{path}:{chunk.start_line}-{chunk.end_line} is in a file of your own, which memkit does not "
                "change; edit the file, and the next search finds the new text"
            )
        data = read_regular(os.path.realpath(path)) if path.exists() else b""
        if hashlib.sha256(data).hexdigest() != chunk.source_hash:
            raise MemkitError(f"{path} has changed since it was indexed; search again")
        start, end = chunk.start_line, chunk.end_line
        return Passage(self.project, path, start, end, chunk.source_hash, chunk.breadcrumb)


def read_facts(path: Path) -> list[tuple[int, WrittenFact]]:
    """Return the facts in a Markdown file, each with its line number, from 1. Raise `OSError`."""
    text = read_regular(os.path.realpath(path)).decode("utf-8", "surrogateescape")
    return FactFile(text, path.name).everywhere()
