"""Import sessions from before memkit was installed, or that it missed.

Transcripts take the same path as live sessions, in the order in which the sessions began, each into its
own project. So the journal is what live capture would have made of them.
"""

from __future__ import annotations

import functools
import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from memkit.agents.claude_code.files import SESSION_PREFIX, TypedPrompt, read_history
from memkit.agents.registry import open_transcript
from memkit.agents.sources import Source, is_likely_project, project_of
from memkit.agents.turns import read_turns
from memkit.archive.archive import Archive
from memkit.capture.capture import Capture, CaptureOutcome
from memkit.capture.sessions import Sessions
from memkit.capture.worker import WorkReport, apply_events
from memkit.conversation.turn import Turn
from memkit.errors import ArchiveError, MemkitError
from memkit.files import PRIVATE_FILE, make_private_directory, write_durably
from memkit.ipc import spool
from memkit.journal.digest import ANSWER_CHARACTERS, PROMPT_CHARACTERS, local_time
from memkit.journal.journal import Journal
from memkit.journal.tool_lines import MAX_TOOLS
from memkit.locks import capture_lock
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.settings import load
from memkit.settings.load import Settings
from memkit.state import parse_json
from memkit.text import midnight

logger = logging.getLogger(__name__)

TOOL_BYTES = 80
"""Estimated bytes of a tool's line in the journal; a turn's heading and labels take twice that (measured)."""

ARCHIVE_SHARE = 0.12
"""Size of the archive relative to the transcript: 0.04 to 0.12 measured, depending on repetition."""

INDEX_FACTOR = 30
"""Bytes of index per byte of memory: Chroma and the snapshot take some 33 KB a chunk (measured)."""

LOCK_SECONDS = 600.0
"""The longest wait for another process that captures."""

BytesRead = Callable[[int], None]
"""Reports how many bytes of all transcripts are done."""


@dataclass(frozen=True)
class ImportSelection:
    """Transcripts to import, and the projects they go to.

    Attributes:
        sources: the transcripts, in the order in which the sessions began.
        otherwise: the project of sessions that name none.
        into: the project for all sessions; None for each session's own.
        since: the first day that counts; None for all.
        history: Claude Code's file of prompts; None to leave it alone.
        only: the one project whose prompts to take from the history; None for all.
        is_named: whether the user named the files; anybody may have written such a file.
    """

    home: Home
    sources: list[Source]
    otherwise: Project
    into: Project | None = None
    since: date | None = None
    history: Path | None = None
    only: Project | None = None
    is_named: bool = False

    @property
    def size(self) -> int:
        """Bytes of all transcripts."""
        return sum(source.size for source in self.sources)

    @property
    def wanted(self) -> list[Source]:
        """The sessions not known to end before `since`: no others can have wanted turns."""
        if self.since is None:
            return self.sources
        begin = midnight(self.since) * 1e9
        return [source for source in self.sources if not 0 < source.modified < begin]

    def project(self, source: Source) -> Project:
        """Return the project that a transcript's turns go to."""
        found = self.into or project_of(source.cwd, self.home) or self.otherwise
        is_doubtful = self.is_named and found not in (self.into, self.otherwise)
        if is_doubtful and not is_likely_project(found, self.home):
            return Project.kept(found.root, self.home)
        return found

    @property
    def targets(self) -> list[str]:
        """The roots of the projects that the transcripts go to, sorted."""
        return sorted({self.project(source).root for source in self.wanted})

    def includes(self, turn: Turn) -> bool:
        """Return whether the turn is from a wanted day."""
        return self.since is None or local_time(turn.time).date() >= self.since

    def typed(self) -> Iterator[tuple[TypedPrompt, Project]]:
        """Yield the prompts of deleted sessions, with their projects. Raise `TranscriptError`."""
        if self.history is None:
            return
        present = {path.stem for path in self.history.parent.glob("projects/*/*.jsonl")}
        is_remembered, has_sessions = functools.cache(_is_remembered), functools.cache(_has_sessions)
        for prompt in read_history(self.history):
            project = project_of(prompt.cwd, self.home)
            if project is None or self.only not in (None, project) or project.is_off:
                continue
            if not prompt.turn.is_memory or not self.includes(prompt.turn):
                continue
            # Of a known session, memkit or Claude Code has more than prompts.
            if prompt.session:
                is_known = prompt.session in present or is_remembered(self.home, prompt.session)
            else:  # then any session of that day counts
                is_known = has_sessions(project, prompt.day)
            if not is_known:
                yield prompt, project


def _is_remembered(home: Home, session: str) -> bool:
    if Sessions(home).load(session).transcript:
        return True
    try:  # turns from the history itself have neither id
        return any(turn.prompt_id or turn.uuid for turn in Archive(home).turns(session))
    except ArchiveError:
        return True  # an unreadable archive holds more than prompts


def _has_sessions(project: Project, date: str) -> bool:
    """Return whether a day (ISO) has a session that was not made from the history."""
    journal = Journal(project)
    sessions = (one for day in journal.days() if day[:10] == date for one in journal.day(day).sessions())
    return not all(one.startswith(SESSION_PREFIX) for one in sessions)


@dataclass(slots=True)
class ImportPreview:
    """The effect of an import. Bytes are estimates.

    Attributes:
        typed: prompts from Claude Code's history.
        days: numbers of turns by the project's root and the ISO date.
        skipped: the lines that cannot be read.
        problems: lines for users.
    """

    sessions: int = 0
    typed: int = 0
    days: Counter[tuple[str, str]] = field(default_factory=Counter)
    memory_bytes: int = 0
    archive_bytes: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    @property
    def turns(self) -> int:
        """Turns worth remembering, including `typed` ones."""
        return sum(self.days.values())

    @property
    def projects(self) -> list[str]:
        """The roots of the projects whose memory would grow."""
        return sorted({root for root, _ in self.days})

    @property
    def index_bytes(self) -> int:
        """Bytes of the index."""
        return INDEX_FACTOR * self.memory_bytes


def preview_import(selection: ImportSelection, progress: BytesRead) -> ImportPreview:
    """Read everything in `selection`. Turns that are already remembered count too."""
    found = ImportPreview()
    read = 0
    for source in selection.wanted:
        project = selection.project(source)
        transcript = open_transcript(source.path)
        turns = 0
        try:
            for turn in read_turns(transcript) if not project.is_off else ():
                if turn.is_memory and selection.includes(turn):
                    turns += 1
                    _count(found, turn, project.root)
                progress(read + turn.end)
        except MemkitError as error:
            found.problems.append(str(error))
        found.skipped += Counter(transcript.counts)
        if turns:
            found.sessions += 1
            found.archive_bytes += int(ARCHIVE_SHARE * source.size)
        read += source.size
        progress(read)
    try:
        for prompt, project in selection.typed():
            found.typed += 1
            _count(found, prompt.turn, project.root)
    except MemkitError as error:
        found.problems.append(str(error))
    return found


def _count(found: ImportPreview, turn: Turn, root: str) -> None:
    found.days[root, local_time(turn.time).date().isoformat()] += 1
    found.memory_bytes += (
        min(len(turn.prompt), PROMPT_CHARACTERS)
        + min(len(turn.answer), ANSWER_CHARACTERS)
        + TOOL_BYTES * (2 + min(len(turn.tools), MAX_TOOLS))
    )


@dataclass(slots=True)
class ImportReport:
    """The result of an import.

    Attributes:
        files: each transcript with what it brought.
        done_before: how many transcripts an interrupted run had already imported.
        history: what Claude Code's history added.
        problems: lines for users.
    """

    files: list[tuple[Path, CaptureOutcome]] = field(default_factory=list)
    done_before: int = 0
    history: CaptureOutcome = field(default_factory=CaptureOutcome)
    problems: list[str] = field(default_factory=list)

    @property
    def total(self) -> CaptureOutcome:
        """The sum of all outcomes."""
        total = CaptureOutcome()
        for outcome in (*(outcome for _, outcome in self.files), self.history):
            total.add(outcome)
        return total


@contextmanager
def one_import(home: Home) -> Iterator[None]:
    """Hold the lock of imports: two would share one record. Raise `MemkitError` if another one runs."""
    from filelock import FileLock, Timeout

    make_private_directory(home.run)
    try:
        with FileLock(home.import_lock, timeout=0, mode=PRIVATE_FILE):
            yield
    except Timeout as error:
        raise MemkitError("another import is running; try again when it is done") from error


class Importer:
    """One import. The caller holds the lock `one_import`, and indexes the projects afterwards.

    It takes the capture lock for one session at a time. Before it takes it again, the turns of live sessions
    are captured: by the service, or here. Finish the `record` when what was imported has its extracts and is
    indexed.
    """

    def __init__(
        self, selection: ImportSelection, settings: Settings, announce: Callable[[str], None] = logger.info
    ) -> None:
        """`announce` gets a line about a wait for another process."""
        self.selection = selection
        self.record = ImportRecord(selection.home, _purpose(selection))
        self._settings = settings
        self._announce = announce

    def run(self, progress: BytesRead) -> ImportReport:
        """Import everything that an interrupted run has not imported."""
        report = ImportReport()
        read = 0
        for source in self.selection.wanted:
            if self.record.has(source):
                report.done_before += 1
            else:
                self._import(source, report, lambda done, before=read: progress(before + done))  # type: ignore[misc]
            read += source.size
            progress(read)
        with self.turn():
            try:
                self._import_history(report.history)
            except (MemkitError, OSError) as error:
                report.problems.append(str(error))
        return report

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the capture lock, after the events of live sessions have been applied.

        A hook that finds the lock held starts no worker. Raise `IndexBusyError`.
        """
        home = self.selection.home
        with capture_lock(home, LOCK_SECONDS, self._announce):
            if spool.work(home):
                apply_events(home, lambda project: load.load(home, project).settings, WorkReport())
            yield

    def _import(self, source: Source, report: ImportReport, progress: BytesRead) -> None:
        with self.turn():
            project, is_wanted = self.selection.project(source), self.selection.includes
            try:
                outcome = self._capture().import_file(source.path, project, is_wanted, progress)
            except (MemkitError, OSError) as error:
                report.problems.append(str(error))
                return
        report.files.append((source.path, outcome))
        self.record.add(source)

    def _capture(self) -> Capture:
        return Capture(self.selection.home, self._settings, self.record.add_day)

    def _import_history(self, outcome: CaptureOutcome) -> None:
        turns: dict[Project, list[Turn]] = {}
        for prompt, project in self.selection.typed():
            turns.setdefault(project, []).append(prompt.turn)
        for project, group in turns.items():
            outcome.add(self._capture().import_turns(group, project))


class ImportRecord:
    """The progress of an unfinished import. The next import continues there.

    `MEMKIT_HOME/run/import.jsonl`: a line that describes the import, one for each imported transcript, and
    one for each day of a session that gets turns. Losing it loses no turn: importing a transcript twice is
    the same as once. There is one import at a time.

    Attributes:
        days: the days that still need extracts, by project root and session.
    """

    def __init__(self, home: Home, purpose: str) -> None:
        """`purpose` describes the import. Of another import, only the days are kept."""
        self.path = Path(home.run, "import.jsonl")
        self.days: dict[str, dict[str, set[str]]] = {}
        self._done: set[str] = set()
        days = self._read(purpose)
        make_private_directory(str(self.path.parent))
        # The last line of a killed run may be half-written: start with whole lines.
        text = "".join(f"{line}\n" for line in (purpose, *sorted(self._done), *days))
        write_durably(str(self.path), text.encode("ascii"))

    def has(self, source: Source) -> bool:
        """Return whether the transcript was imported and has not changed since."""
        return _line(source) in self._done

    def add(self, source: Source) -> None:
        """Record that the transcript was imported. Raise `OSError`."""
        self._done.add(_line(source))
        # Not synced: after a power cut the last transcripts are read again.
        self._append(_line(source))

    def add_day(self, root: str, session: str, day: str) -> None:
        """Record, durably, that a day gets turns of a session. Raise `OSError`."""
        days = self._days_of(root, session)
        if day not in days:
            line = json.dumps({"root": root, "session": session, "day": day})
            self._append(line, is_synced=True)
            days.add(day)

    def finish(self) -> None:
        """Delete the record: the import is complete, with its extracts and its index."""
        self.path.unlink(missing_ok=True)

    def _append(self, line: str, *, is_synced: bool = False) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
        with os.fdopen(descriptor, "ab") as file:
            file.write(line.encode("ascii") + b"\n")
            if is_synced:
                file.flush()
                os.fsync(file.fileno())

    def _read(self, purpose: str) -> list[str]:
        try:
            first, *lines = self.path.read_bytes().decode("ascii", "replace").split("\n")[:-1]
        except (FileNotFoundError, ValueError):  # no file, or no whole line
            return []
        days = [line for line in lines if line.startswith("{")]
        for line in days:
            try:
                entry = parse_json(line)
                self._days_of(entry["root"], entry["session"]).add(entry["day"])
            except (ValueError, KeyError, TypeError):
                logger.warning("%s: a damaged line; a day may get no extract", self.path)
        if first == purpose:
            self._done = set(lines) - set(days)
        return days

    def _days_of(self, root: str, session: str) -> set[str]:
        return self.days.setdefault(root, {}).setdefault(session, set())


def _line(source: Source) -> str:
    return json.dumps([os.fspath(source.path), source.size, source.modified])


def _purpose(selection: ImportSelection) -> str:
    into = selection.into.root if selection.into else ""
    since = selection.since.isoformat() if selection.since else ""
    return json.dumps({"into": into, "otherwise": selection.otherwise.root, "since": since})
