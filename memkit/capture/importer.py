"""Remembers sessions that were held before memkit was there, or without it.

Transcripts go through the same path as live sessions, in the order in which these began, each into the
project it was held in: so the journal is what live capture would have made of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time
from functools import partial
from pathlib import Path

from memkit.capture.capture import Capture
from memkit.capture.history import SweptSessions, TypedPrompt, read_history
from memkit.capture.import_record import ImportRecord
from memkit.capture.outcome import CaptureOutcome
from memkit.claude_code.files import Source, is_likely_project, project_of
from memkit.claude_code.turn import Turn
from memkit.errors import MemkitError
from memkit.hook.project import Project
from memkit.journal.digest import local_time
from memkit.paths import Home
from memkit.settings.load import Settings

BytesRead = Callable[[int], None]
"""Told how many bytes of all transcripts are done."""


@dataclass(frozen=True)
class ImportSelection:
    """What is imported, and where it goes.

    `sources` in the order in which they began; `since` the first day that counts, None for all. Turns go
    to `into` if that is given, else to the project of their session, or to `otherwise` if it names none.
    `history` is the client's file of prompts, None to leave it alone, and `only` the one project whose
    prompts are wanted of it. `is_named` says that a person named the files, so anybody may have written
    them.
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
        """The sources that can hold turns of the days that count: the others were not written to since."""
        if self.since is None:
            return self.sources
        begin = datetime.combine(self.since, time.min).astimezone().timestamp() * 1e9
        return [source for source in self.sources if not 0 < source.modified < begin]

    def project(self, source: Source) -> Project:
        """Where the turns of a transcript go."""
        found = self.into or project_of(source.cwd, self.home) or self.otherwise
        is_doubtful = self.is_named and found not in (self.into, self.otherwise)
        if is_doubtful and not is_likely_project(found, self.home):
            return Project.kept(found.root, self.home)
        return found

    @property
    def targets(self) -> list[str]:
        """The roots of the projects that the transcripts go to, sorted."""
        return sorted({self.project(source).root for source in self.wanted})

    def counts(self, turn: Turn) -> bool:
        """Whether the turn is of the days that count."""
        return self.since is None or local_time(turn.time).date() >= self.since

    def typed(self) -> Iterator[tuple[TypedPrompt, Project]]:
        """The prompts of sessions whose transcript is gone, and their projects. Raises `TranscriptError`."""
        if self.history is None:
            return
        present = {path.stem for path in self.history.parent.glob("projects/*/*.jsonl")}
        swept = SweptSessions(self.home, present)
        for prompt in read_history(self.history):
            project = project_of(prompt.cwd, self.home)
            if project is None or self.only not in (None, project) or project.is_off:
                continue
            turn = prompt.turn
            if turn.is_memory and self.counts(turn) and swept.has(prompt, project):
                yield prompt, project


@dataclass(slots=True)
class ImportReport:
    """What an import did: what each transcript brought, how many an earlier run had done already, what
    the client's history added, and what went wrong, in lines for people.
    """

    files: list[tuple[Path, CaptureOutcome]] = field(default_factory=list)
    done_before: int = 0
    history: CaptureOutcome = field(default_factory=CaptureOutcome)
    problems: list[str] = field(default_factory=list)

    @property
    def total(self) -> CaptureOutcome:
        """All together."""
        found = CaptureOutcome()
        for captured in (*(captured for _, captured in self.files), self.history):
            found.add(captured)
        return found


class Importer:
    """One import. The caller holds the index lock, and indexes the projects when it has run."""

    def __init__(self, selection: ImportSelection, settings: Settings) -> None:
        self.selection = selection
        self.capture = Capture(selection.home, settings)
        self.record = ImportRecord(selection.home, _purpose(selection))

    def run(self, progress: BytesRead) -> ImportReport:
        """Take everything in; what an earlier run that was killed has taken in is passed over."""
        report = ImportReport()
        read = 0
        for source in self.selection.wanted:
            if self.record.has(source):
                report.done_before += 1
            else:
                self._take(source, report, partial(_add, progress, read))
            read += source.size
            progress(read)
        try:
            report.history = self._take_history()
        except (MemkitError, OSError) as error:
            report.problems.append(str(error))
        return report

    def finish(self) -> None:
        """Note that all that was taken in is indexed too."""
        self.record.finish()

    def _take(self, source: Source, report: ImportReport, progress: BytesRead) -> None:
        project = self.selection.project(source)

        def choose(turn: Turn) -> Project | None:
            return project if self.selection.counts(turn) else None

        try:
            captured = self.capture.import_file(source.path, choose, progress, project.root)
        except (MemkitError, OSError) as error:
            report.problems.append(str(error))
            return
        report.files.append((source.path, captured))
        self.record.add(source)

    def _take_history(self) -> CaptureOutcome:
        home = self.selection.home
        turns = (prompt.turn for prompt, _ in self.selection.typed())
        return self.capture.import_turns(turns, lambda turn: project_of(turn.cwd, home))


def _add(progress: BytesRead, before: int, read: int) -> None:
    progress(before + read)


def _purpose(selection: ImportSelection) -> str:
    """What distinguishes this import from another one of the same transcripts."""
    into = selection.into.root if selection.into else ""
    since = selection.since.isoformat() if selection.since else ""
    return json.dumps({"into": into, "otherwise": selection.otherwise.root, "since": since})
