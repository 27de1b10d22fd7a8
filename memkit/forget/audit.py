"""Looks for secrets in what was written before, with the rules and patterns of today, and takes them out."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from memkit.archive.archive import Archive
from memkit.capture.project_list import remembered_projects
from memkit.capture.sessions import Sessions
from memkit.embedding.models import space
from memkit.errors import MemkitError
from memkit.forget.audit_places import (
    AuditedDayFile,
    ForeignMarkdown,
    Place,
    left_behind,
    look_through,
    state_places,
)
from memkit.forget.findings import SecretFinder, SecretFinding
from memkit.hook.project import Project
from memkit.hook.session_facts import days
from memkit.index.chunk_reader import ChunkReader, open_in_force
from memkit.index.current import collection_name, read_files, snapshots_of
from memkit.index.erasure import erase_deleted, forget_collection
from memkit.index.snapshot_writer import remove_others
from memkit.index.sync import sync_project
from memkit.ipc import spool, unindexed
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.privacy.redact import redact
from memkit.settings.load import Settings


@dataclass(slots=True)
class AuditReport:
    """What was found, and what of it is left; `problems` are lines for people."""

    found: list[SecretFinding] = field(default_factory=list)
    left: list[SecretFinding] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Audit:
    """One audit of some projects, or of a whole memory home."""

    def __init__(
        self,
        home: Home,
        project: Project | None,
        settings_of: Callable[[Project], Settings],
        announce: Callable[[str], None],
    ) -> None:
        """Of `project`; None: of all there are. `announce` is told, in one line, what takes time."""
        self._home = home
        self._announce = announce
        self._roots = None if project is None else {project.root}
        projects = all_projects(home) if project is None else [project]
        self._projects = [(one, settings_of(one)) for one in projects]
        settings = settings_of(project or Project(home.root))
        self._uri = settings.index.uri
        self._patterns = settings.capture.compiled_patterns()

    def look(self) -> AuditReport:
        """Find out what there is; changes nothing and needs no lock."""
        report = AuditReport()
        self._look(report)
        report.left = report.found
        return report

    def fix(self) -> AuditReport:
        """Redact what there is, and have no file of the index hold it. The caller holds the index lock.

        Can be killed and done again. What another markdown file than memkit's own holds is left. Raises
        `IndexStoreError`, `EmbeddingError`.
        """
        spool.recover(self._home)
        spool.drop_text(self._home)
        Sessions(self._home).drop_text()
        report = AuditReport()
        for project, _ in self._projects:
            if Path(project.root).is_dir():
                unindexed.mark(self._home, project.root)
        for place in self._look(report):
            try:
                place.fix(self._redact)
            except (MemkitError, OSError) as error:
                report.problems.append(" ".join(str(error).split()))
        self._fix_index()
        after = AuditReport()
        self._look(after)
        report.left = after.found
        report.problems += [line for line in after.problems if line not in report.problems]
        return report

    def _redact(self, text: str) -> str:
        return redact(text, self._patterns)

    def _look(self, report: AuditReport) -> list[Place]:
        """Note in `report` what is found; the places where it is, but for the index."""
        finder = SecretFinder(self._redact)
        places = look_through(self._places(report.problems), finder, report.problems)
        for directory in snapshots_of(self._home, self._roots):
            _look_at_chunks(directory, finder)
        report.found = finder.found
        return places

    def _places(self, problems: list[str]) -> list[Place]:
        places: list[Place] = []
        for project, settings in self._projects:
            journal = Journal(project, shared=settings.memory.shared, home=self._home)
            own = days(project)
            places += [AuditedDayFile(journal, day, self._home) for day in own]
            if own:
                places += left_behind("journal", project.memory)
            directory = Path(project.memory).relative_to(project.root).as_posix()
            written = {f"{directory}/{day}.md" for day in own}
            files = read_files(project, self._home, settings)
            places += [
                ForeignMarkdown(Path(project.root, source))
                for source in files
                if source not in written
            ]
            problems += [f"{line} ({project.root})" for line in files.problems]
        return [*places, *state_places(self._home, self._roots)]

    def _fix_index(self) -> None:
        """Bring the index into step, and leave nothing in its files that is not in it."""
        for project, settings in self._projects:
            if Path(project.root).is_dir():
                self._announce(f"bringing the index of {project.root} into step")
                sync_project(project, self._home, settings)
        kept = {project.root for project, _ in self._projects if Path(project.root).is_dir()}
        for directory in snapshots_of(self._home, self._roots):
            chunks = open_in_force(directory, ChunkReader)
            if chunks is None:  # of no use to anybody
                shutil.rmtree(directory, ignore_errors=True)
                continue
            remove_others(directory, chunks.path.name)
            finder = SecretFinder(self._redact)
            _look_at_chunks(directory, finder)
            is_stale = chunks.root not in kept or directory.name not in self._names()
            if finder.found and is_stale:
                forget_collection(self._home, self._uri, directory.name)
        if not erase_deleted(self._home, self._uri):
            self._announce(
                f"the Chroma server {self._uri} may keep what was deleted in its own files; run "
                "`chroma vacuum` there"
            )

    def _names(self) -> set[str]:
        """The collections in use."""
        return {
            collection_name(project, self._home, space(settings.embedding))
            for project, settings in self._projects
        }


def all_projects(home: Home) -> list[Project]:
    """Every project that something under the memory home is of, sorted by root."""
    archive = Archive(home)
    roots = {turn.project for session in archive.sessions() for turn in archive.turns(session)}
    projects = {*remembered_projects(home), *(Project.at_root(root, home) for root in roots if root)}
    return sorted(projects, key=lambda project: project.root)


def _look_at_chunks(directory: Path, finder: SecretFinder) -> None:
    chunks = open_in_force(directory, ChunkReader)
    for chunk in chunks.chunks() if chunks is not None else ():
        finder.lines_of("index", chunk.source)(chunk.start_line, chunk.content)
