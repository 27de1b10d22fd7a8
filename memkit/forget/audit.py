"""Find secrets in what memkit keeps, with the present rules and patterns, and redact them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn, redact_again
from memkit.capture.project_list import remembered_projects
from memkit.capture.sessions import Sessions
from memkit.conversation.values import redacted
from memkit.errors import MemkitError
from memkit.files import read_regular, write_durably
from memkit.forget.erase import purge_index
from memkit.home_files import HOME_FILES, TEMPORARY, find_files
from memkit.hook.entries import days
from memkit.index import read_files
from memkit.index.catalog import snapshots_of
from memkit.index.chunker import decode
from memkit.index.reader import ChunkReader, open_current
from memkit.ipc import spool, unindexed
from memkit.journal.day_edits import redact_day
from memkit.journal.files import replaced_files
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.privacy.redact import MARK, redact, visible
from memkit.projects.project import Project, digest16
from memkit.projects.team_files import team_files
from memkit.settings.load import Settings
from memkit.state import parse_json
from memkit.text import one_line, plural
from memkit.topics.files import NAME, read_derived
from memkit.topics.topic_store import kept_files, redact_kept, write_kept

MANY = 10_000
"""From this number of files and chunks on, which take some seconds, tell the user what takes time."""

Redact = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """The place and kind of a secret, but never the secret itself.

    `where` is the kind of place (`journal`, `archive`, …), `place` the file, or the session and turn. `line`
    is from 1, or None in a place without lines. `kind` is as in `[redacted:kind]`.
    """

    where: str
    place: str
    line: int | None
    kind: str


class SecretFinder:
    """Redacts text with `redact`, and records what that found."""

    def __init__(self, redact: Redact) -> None:
        self._redact = redact
        self.found: list[SecretFinding] = []

    def at(self, where: str, place: str, line: int | None = None) -> Redact:
        """Return a `redact` for text on one line, or in a place without lines."""
        return partial(self._record, lambda offset, kind: SecretFinding(where, place, line, kind))

    def lines_of(self, where: str, place: str) -> Callable[[int, str], str]:
        """Return a `redact` for parts of a file; it takes the number of the part's first line."""
        return lambda line, text: self._record(
            lambda offset, kind: SecretFinding(where, place, line + offset, kind), text
        )

    def _record(self, make: Callable[[int, str], SecretFinding], text: str) -> str:
        redacted = self._redact(text)
        text = visible(text)  # removing a color code is not a finding
        if redacted != text:
            self.found += [make(offset, kind) for offset, kind in added_marks(text, redacted)]
        return redacted


def added_marks(text: str, redacted: str) -> list[tuple[int, str]]:
    """Return the line in `text` (from 0) and the kind of each mark that `redacted` has and `text` lacks.

    The texts differ only at marks. The lines of two close marks can be swapped.
    """
    marks = list(MARK.finditer(redacted))
    ends = [*(mark.start() for mark in marks), len(redacted)][1:]
    found = []
    position = marks[0].start() if marks else 0
    for mark, end in zip(marks, ends, strict=True):
        kept = redacted[mark.end() : end]
        if text.startswith(mark[0] + kept, position):
            position += len(mark[0] + kept)
            continue
        found.append((text.count("\n", 0, position), mark[1]))
        after = text.find(kept, position + 1) if end < len(redacted) else len(text) - len(kept)
        position = max(after, position) + len(kept)
    return found or [(0, "secret")]


Place = Callable[[SecretFinder, bool], object]
"""A function that visits a file with text, or a part of one.

It passes the text to the finder. If the second argument is True, it also writes the redacted text back; the
caller then holds both locks. Raises `MemkitError`, `OSError`.
"""


def _day(journal: Journal, day: str, home: Home, finder: SecretFinder, fix: bool) -> None:
    """A day of the journal. A fix does not keep an unfinished turn from growing.

    In OpenClaw's folder, what surrounds memkit's sections is Markdown of others.
    """
    is_theirs = day in journal.project.openclaw_days()
    path = str(journal.path(day))
    redact = finder.lines_of("journal", path)
    if is_theirs:
        content, around = journal.day(day), finder.lines_of("markdown", path)
        around(1, "\n".join(content.opening))
        around(content.file_lines()[-1] + 2, content.rest or "")
    if not fix:
        redact_day(journal.day(day), redact, {}, only_sections=is_theirs)
        return
    sessions = Sessions(home)
    root = journal.project.root
    states = {turn: state for state in sessions for turn in state.growing_in(root)}
    growing = {turn: state.growing_in(root)[turn] for turn, state in states.items()}

    def will_write(turn: str, section_hash: str) -> None:
        states[turn].will_write(turn, root, section_hash)
        sessions.save(states[turn])

    journal.redact(day, redact, growing, will_write)


def _foreign_markdown(path: Path, finder: SecretFinder, fix: bool) -> None:
    text, _ = decode(read_regular(os.path.realpath(path)))
    finder.lines_of("markdown", str(path))(1, text)


def _archived_session(
    archive: Archive, session: str, roots: Collection[str] | None, finder: SecretFinder, fix: bool
) -> None:
    def redacted_turn(turn: ArchivedTurn) -> ArchivedTurn:
        return redact_again(turn, finder.at("archive", f"session {session} turn {turn.id}"))

    if fix:
        archive.rewrite(session, redacted_turn)
        return
    turns = list(archive.versions(session))  # also the replaced ones, which are in the file, too
    if roots is None or any(turn.project in roots for turn in turns):
        for turn in turns:
            redacted_turn(turn)


def _record(where: str, path: Path, value: dict[str, Any], finder: SecretFinder, fix: bool) -> None:
    """A session state or spooled event. Only an error may quote text."""
    text = {"error": value.get("error", "")}
    changed = value | redacted(text, finder.at(where, str(path)))
    if fix:
        write_durably(str(path), json.dumps(changed).encode("ascii"))


def _text_file(where: str, path: Path, finder: SecretFinder, fix: bool) -> None:
    """A log, a copy of a replaced file, or a damaged file. JSON lines stay JSON lines."""
    data = _redacted_text(where, path, finder).encode("utf-8", "surrogateescape")
    if fix and where == "log":
        with path.open("r+b") as file:  # in place: another process may have the log open
            file.write(data)
            file.truncate()
    elif fix:
        write_durably(str(path), data)


def _redacted_text(where: str, path: Path, finder: SecretFinder) -> str:
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    parts = []
    number = 1
    for is_json, group in groupby(map(_parsed, text.split("\n")), lambda pair: pair[1] is not None):
        lines = list(group)
        if is_json:
            for offset, (line, value) in enumerate(lines):
                changed = redacted(value, finder.at(where, str(path), number + offset))
                parts.append(line if changed == value else json.dumps(changed))
        else:
            run = "\n".join(line for line, _ in lines)
            parts.append(finder.lines_of(where, str(path))(number, run))
        number += len(lines)
    return "\n".join(parts)


def _parsed(line: str) -> tuple[str, dict[str, Any] | None]:
    try:
        return line, parse_json(line) if line.startswith("{") else None
    except ValueError:
        return line, None


def places_in_home(home: Home, roots: Collection[str] | None) -> Iterator[Place]:
    """Yield the places with text in a memory home that belong to the projects at `roots`, or to any if None.

    This includes logs, which belong to no project. The index is not included.
    """
    for kind in HOME_FILES:
        top = kind.pattern.partition("/")[0]
        is_of_index = top == "index" and not kind.pattern.startswith("index/timeline/")
        if not kind.has_text or is_of_index or top == ".restore-*":
            continue
        if kind.pattern == "archive/*.jsonl.zst":
            archive = Archive(home)
            yield from (partial(_archived_session, archive, one, roots) for one in archive.sessions())
        elif kind.pattern.startswith("archive/replaced/"):
            yield from (partial(_text_file, "archive", path) for path in replaced_files(home, roots))
        elif kind.pattern.startswith("archive/before-restore/"):
            for kept in sorted(Path(home.before_restore).glob("*")):  # laid out like a backup
                yield from places_in_home(Home(str(kept / "home")), roots)
                for path in sorted((kept / "projects").rglob("*")):
                    if path.is_file():
                        yield partial(_text_file, "replaced", path)
        elif kind.pattern == "projects/*.topics.json":
            yield from (partial(_kept_topics, path) for path in kept_files(home))
        elif top in ("sessions", "spool"):
            where = "session" if top == "sessions" else "spool"
            for name in find_files(home.root, kind):
                yield from _state_or_event(where, Path(name), roots)
        elif top == "index":  # a fix removes all of them, see `purge_index`
            for path in map(Path, find_files(home.root, kind)):
                if roots is None or path.parent.name in map(digest16, roots):
                    yield partial(_text_file, "timeline", path)
        else:
            yield from (partial(_text_file, "log", Path(one)) for one in find_files(home.root, kind))
    yield from temporary_files("session", home.sessions)


def _kept_topics(path: Path, finder: SecretFinder, fix: bool) -> None:
    """The labels of topics that the user or a model gave. All else in their file are ids."""
    kept = redact_kept(path, finder.at("topics", str(path)))
    if fix and kept is not None:
        write_kept(path, kept)


def _state_or_event(where: str, path: Path, roots: Collection[str] | None) -> Iterator[Place]:
    try:
        value = parse_json(path.read_bytes())
    except FileNotFoundError:  # a worker has handled it
        return
    except (OSError, ValueError):
        value = None
    if not isinstance(value, dict):
        yield partial(_text_file, where, path)
    elif roots is None or value.get("project") in roots:
        yield partial(_record, where, path, value)


def temporary_files(where: str, directory: str) -> Iterator[Place]:
    """Yield the unfinished files of killed writers in a directory."""
    for path in sorted(Path(directory).glob(TEMPORARY)):
        if path.is_file() and not path.is_symlink():
            yield partial(_text_file, where, path)


def search_places(
    places: Iterable[Place], finder: SecretFinder, problems: list[str],
    progress: Callable[[int], None] = lambda done: None,
) -> list[Place]:
    """Return the places with findings. Append a line to `problems` for each place that cannot be read.

    `progress` gets the number of places before each.
    """
    found = []
    for number, place in enumerate(places):
        progress(number)
        before = len(finder.found)
        try:
            place(finder, False)
        except FileNotFoundError:  # handled or rotated since the listing
            continue
        except (MemkitError, OSError) as error:
            problems.append(one_line(str(error)))
        if len(finder.found) > before:
            found.append(place)
    return found


@dataclass(slots=True)
class AuditReport:
    """All findings, those that remain, and problems as lines for users."""

    found: list[SecretFinding] = field(default_factory=list)
    remaining: list[SecretFinding] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Audit:
    """An audit of one project, or of a whole memory home."""

    def __init__(
        self, home: Home, project: Project | None, settings_of: Callable[[Project], Settings],
        announce: Callable[[str], None], progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:  # fmt: skip
        """Audit `project`, or all projects if None. `announce` takes a line about each slow step.

        `progress` gets the number of files and indexed chunks that were read, and of all.
        """
        self._home = home
        self._announce = announce
        self._progress = progress
        self._roots = None if project is None else {project.root}
        projects = all_projects(home) if project is None else [project]
        self._projects = [(one, settings_of(one)) for one in projects]
        settings = settings_of(project or Project(home.root, home))
        self._uri = settings.index.uri
        self._patterns = settings.capture.compiled_patterns()

    def search(self) -> AuditReport:
        """Find secrets. Change nothing and take no lock."""
        report = AuditReport()
        self._search(report)
        report.remaining = report.found
        return report

    def fix(self) -> AuditReport:
        """Redact the findings, also in the files of the index. The caller holds both locks.

        Do not change Markdown that memkit did not write. A killed fix can run again. Raise
        `IndexStoreError`, `EmbeddingError`.
        """
        spool.recover(self._home)
        report = AuditReport()
        for project, _ in self._projects:
            if Path(project.root).is_dir():
                unindexed.mark(self._home, project.root)
        for place in self._search(report):
            try:
                place(SecretFinder(self._redact), True)
            except (MemkitError, OSError) as error:
                report.problems.append(one_line(str(error)))
        purge_index(self._home, self._projects, self._uri, self._roots, self._holds_secret, self._announce)
        after = AuditReport()
        self._search(after)
        report.remaining = after.found
        report.problems += [line for line in after.problems if line not in report.problems]
        return report

    def _redact(self, text: str) -> str:
        return redact(text, self._patterns)

    def _holds_secret(self, chunks: ChunkReader) -> bool:
        return any(self._redact(chunk.content) != visible(chunk.content) for chunk in chunks.stored_chunks())

    def _search(self, report: AuditReport) -> list[Place]:
        finder = SecretFinder(self._redact)
        places = list(self._places(report.problems))
        directories = snapshots_of(self._home, self._roots)
        readers = [open_current(directory, ChunkReader) for directory in directories]
        chunks = sum(len(segment) for one in readers if one is not None for segment in one.segments)
        if len(places) + chunks >= MANY:
            self._announce(f"reading {plural(len(places), 'file')} and {plural(chunks, 'indexed chunk')}")

        def note(done: int) -> None:
            self._progress(done, len(places) + chunks)

        found = search_places(places, finder, report.problems, note)
        done = len(places)
        for directory, reader in zip(directories, readers, strict=True):
            for chunk in reader.stored_chunks() if reader is not None else ():
                note(done)
                done += 1
                finder.lines_of("index", chunk.source)(chunk.start_line, chunk.content)
            topics = read_derived(directory / NAME)  # a fix removes them
            for topic in topics.topics if topics is not None else ():
                finder.at("index", str(directory / NAME))(", ".join((topic.label, *topic.words)))
        report.found = finder.found
        return found

    def _places(self, problems: list[str]) -> Iterator[Place]:
        for project, settings in self._projects:
            journal = Journal(project, shared=settings.memory.shared, home=self._home)
            own = days(project)
            yield from (partial(_day, journal, day, self._home) for day in own)
            if own:
                yield from temporary_files("journal", project.memory)
            if project.openclaw_days():
                yield from temporary_files("journal", project.openclaw)
            written = {journal.path(day).relative_to(project.root).as_posix() for day in own}
            files = read_files(project, self._home, settings)
            shared = team_files(project.root)  # in a clone that is not trusted, the index lacks them
            for source in dict.fromkeys([*files, *shared]):
                if source not in written:
                    yield partial(_foreign_markdown, Path(project.root, source))
            problems += [f"{line} ({project.root})" for line in files.problems]
        yield from places_in_home(self._home, self._roots)


def all_projects(home: Home) -> list[Project]:
    """Return every project that has something in the memory home, sorted by root."""
    archive = Archive(home)
    roots = {turn.project for session in archive.sessions() for turn in archive.turns(session)}
    projects = {*remembered_projects(home), *(Project.at_root(root, home) for root in roots if root)}
    return sorted(projects, key=lambda project: project.root)
